//! Which paths may be asked of an upstream. Pure: a path is let through as it stands or not at all, never mended,
//! because two programs that mend a path differently is how people climb out of folders.

use std::borrow::Cow;

/// Longest path, without its query.
const MAX_PATH: usize = 4096;
/// Longest path with its query.
const MAX_TARGET: usize = 32 * 1024;
/// So often may a path be encoded over itself: `%252e` is a dot for a server that decodes twice.
const MAX_DECODINGS: usize = 4;

/// The path and query that stood behind the caller's prefix, if they are fit to be asked of an upstream; it begins with
/// `/`. Nothing for what is no origin-form path, names a host (`//host`), climbs (`..` in any encoding), or holds
/// backslashes, control characters or bytes that are no UTF-8.
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

/// Is every `%` followed by two digits?
fn has_whole_escapes(path: &[u8]) -> bool {
    path.iter().enumerate().all(|(at, byte)| *byte != b'%' || parse_escape(&path[at..]).is_some())
}

/// The byte that an escape at the beginning of `text` stands for.
fn parse_escape(text: &[u8]) -> Option<u8> {
    let [b'%', high, low, ..] = text else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16).and_then(|digit| u8::try_from(digit).ok());
    Some(digit(*high)? << 4 | digit(*low)?)
}

/// The path with its escapes resolved once; nothing if it has none.
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

/// Is there nothing in this reading of the path by which it could leave its place?
fn is_harmless(path: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(path) else { return false };
    !text.starts_with("//")
        && !text.contains(|c: char| c == '\\' || c.is_control())
        && !text.split('/').any(|part| {
            // Some servers cut off what follows a semicolon before they look.
            let name = part.split(';').next().unwrap_or_default();
            name == "." || name == ".."
        })
}
