//! Where a response may redirect a browser: only within the same upstream, rewritten to its public path. Pure.

use std::fmt::Write as _;

use http::HeaderValue;

use super::ProxyContext;
use super::path::clean_path;

/// The upstream's `Location` as a path below the public prefix; `None` if it leads elsewhere.
pub(super) fn confine_location(location: &HeaderValue, passage: &ProxyContext) -> Option<HeaderValue> {
    let text = encode_visible(location.as_bytes())?;
    let (target, fragment) = match text.find('#') {
        Some(at) => text.split_at(at),
        None => (text.as_str(), ""),
    };
    let place = resolve_target(target, passage)?;
    let (path, query) = match place.find('?') {
        Some(at) => place.split_at(at),
        None => (place.as_str(), ""),
    };
    let inside = format!("{}{query}", resolve_dots(path));
    let inside = clean_path(&inside)?;
    let prefix = passage.prefix.trim_end_matches('/');
    HeaderValue::try_from(format!("{prefix}{inside}{fragment}")).ok()
}

/// The target as a path and query at the upstream.
fn resolve_target(target: &str, passage: &ProxyContext) -> Option<String> {
    let here = passage.path_and_query.as_str();
    let here_path = here.split('?').next().unwrap_or_default();
    if let Some((host, rest)) = split_host(target)? {
        let ours = passage.origin.split_once("://").map_or("", |(_, ours)| ours);
        if !is_same_host(host, &passage.host) && !is_same_host(host, ours) {
            return None;
        }
        let root = if rest.starts_with('/') { "" } else { "/" };
        return Some(strip_prefix_path(&format!("{root}{rest}"), &passage.prefix));
    }
    Some(match target.as_bytes().first() {
        None => here.to_owned(),
        Some(b'/') => strip_prefix_path(target, &passage.prefix),
        Some(b'?') => format!("{here_path}{target}"),
        Some(_) => {
            let folder = here_path.rfind('/').map_or("/", |at| &here_path[..=at]);
            format!("{folder}{target}")
        }
    })
}

/// Splits `http://host/rest` and `//host/rest`. The outer `None` is for other schemes and broken URLs, the inner one
/// for URLs without a host.
#[expect(clippy::option_option, reason = "refused and absent are different answers here")]
fn split_host(target: &str) -> Option<Option<(&str, &str)>> {
    let after = match target.find([':', '/', '?']) {
        Some(at) if target[at..].starts_with(':') => {
            let scheme = &target[..at];
            if !scheme.eq_ignore_ascii_case("http") && !scheme.eq_ignore_ascii_case("https") {
                return None;
            }
            // Browsers read `http:/x` and `http:x` as hosts or as paths, depending on the page.
            target[at + 1..].strip_prefix("//")?
        }
        _ => match target.strip_prefix("//") {
            Some(after) => after,
            None => return Some(None),
        },
    };
    let end = after.find(['/', '?']).unwrap_or(after.len());
    Some(Some(after.split_at(end)))
}

fn is_same_host(one: &str, other: &str) -> bool {
    let bare = |host: &str| host.strip_suffix(":80").or_else(|| host.strip_suffix(":443")).unwrap_or(host).to_owned();
    !one.is_empty() && bare(one).eq_ignore_ascii_case(&bare(other))
}

/// An upstream that honours `X-Forwarded-Prefix` adds the prefix itself.
fn strip_prefix_path(path: &str, prefix: &str) -> String {
    let prefix = prefix.trim_end_matches('/');
    match path.strip_prefix(prefix) {
        Some("") => "/".into(),
        Some(rest) if rest.starts_with('?') => format!("/{rest}"),
        Some(rest) if rest.starts_with('/') => rest.into(),
        _ => path.into(),
    }
}

/// Resolves `.` and `..` as a browser would, stopping at the root.
fn resolve_dots(path: &str) -> String {
    let mut kept: Vec<&str> = Vec::new();
    let mut parts = path.strip_prefix('/').unwrap_or(path).split('/').peekable();
    while let Some(part) = parts.next() {
        let last = parts.peek().is_none();
        let plain = part.to_ascii_lowercase().replace("%2e", ".");
        match plain.as_str() {
            "." => {}
            ".." => {
                kept.pop();
            }
            _ => {
                kept.push(part);
                continue;
            }
        }
        if last {
            kept.push("");
        }
    }
    format!("/{}", kept.join("/"))
}

/// The header's text with everything but plain characters encoded; `None` if it contains what browsers skip or turn
/// into slashes.
fn encode_visible(bytes: &[u8]) -> Option<String> {
    let mut text = String::with_capacity(bytes.len());
    for byte in bytes {
        match byte {
            b'\\' | 0..=0x1f | 0x7f => return None,
            b' ' | b'"' | b'<' | b'>' | b'^' | b'`' | b'{' | b'|' | b'}' | 0x80.. => {
                write!(text, "%{byte:02X}").ok()?;
            }
            _ => text.push(char::from(*byte)),
        }
    }
    Some(text)
}
