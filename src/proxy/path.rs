//! Which paths may be requested from an upstream. Pure: a path passes unchanged or not at all, and is never repaired,
//! because path traversal thrives on two programs that repair a path differently.

use std::borrow::Cow;

/// Without the query.
const MAX_PATH: usize = 4096;
/// With the query.
const MAX_TARGET: usize = 32 * 1024;
/// How many times a path may be encoded over itself: `%252e` is a dot for a server that decodes twice.
const MAX_DECODINGS: usize = 4;

/// The path and query after the caller's prefix, if they are safe to request from an upstream; starts with `/`.
/// `None` for anything that isn't an origin-form path, names a host (`//host`), climbs (`..` in any encoding), or
/// contains backslashes, control characters or invalid UTF-8.
pub fn clean_path(raw: &str) -> Option<Cow<'_, str>> {
    // Browsers encode these (and a backtick in a path); a fragment is never sent.
    let fit = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'"' | b'<' | b'>' | b'#');
    if raw.len() > MAX_TARGET || !raw.bytes().all(fit) {
        return None;
    }
    let path = raw.split('?').next().unwrap_or_default();
    if path.len() > MAX_PATH || path.contains('`') || !has_whole_escapes(path.as_bytes()) {
        return None;
    }
    if path.is_empty() {
        return Some(Cow::Owned(format!("/{raw}")));
    }
    if !path.starts_with('/') {
        return None;
    }
    let mut level = Cow::Borrowed(path.as_bytes());
    for _ in 0..MAX_DECODINGS {
        if !is_harmless(&level) {
            return None;
        }
        match decode_once(&level) {
            Some(next) => level = Cow::Owned(next),
            None => return Some(Cow::Borrowed(raw)),
        }
    }
    None
}

/// Whether every `%` is followed by two hex digits.
fn has_whole_escapes(path: &[u8]) -> bool {
    path.iter().enumerate().all(|(at, byte)| *byte != b'%' || parse_escape(&path[at..]).is_some())
}

/// The byte that the escape at the start of `text` stands for.
fn parse_escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// Decodes the path once; `None` if it has no escapes.
fn decode_once(path: &[u8]) -> Option<Vec<u8>> {
    let mut found = false;
    let mut out = Vec::with_capacity(path.len());
    let mut at = 0;
    while let Some(byte) = path.get(at) {
        if let Some(meant) = parse_escape(&path[at..]) {
            found = true;
            out.push(meant);
            at += 3;
        } else {
            out.push(*byte);
            at += 1;
        }
    }
    found.then_some(out)
}

/// Whether this decoding of the path contains nothing that could leave its folder.
fn is_harmless(path: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(path) else { return false };
    !text.starts_with("//")
        && !text.contains(|c: char| c == '\\' || c.is_control())
        && !text.split('/').any(|part| {
            // Some servers cut off what follows a semicolon before they resolve the path.
            let name = part.split(';').next().unwrap_or_default();
            name == "." || name == ".."
        })
}
