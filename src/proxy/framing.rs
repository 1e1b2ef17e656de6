//! Message lengths. Two conflicting lengths are how requests are smuggled, so we refuse such a message, and frame
//! what we send from what we know about the body.

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};

/// What a message's headers say about its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredLength {
    /// Not stated: no body in a request, everything until the connection closes in a response.
    Undeclared,
    Bytes(u64),
    /// Chunked, until the last chunk.
    Chunked,
}

/// Parses the length; `None` if it is stated twice, differently, or in a way that others may read differently.
pub(super) fn declared_length(headers: &HeaderMap) -> Option<DeclaredLength> {
    let mut declared = DeclaredLength::Undeclared;
    for value in headers.get_all(CONTENT_LENGTH) {
        let bytes = DeclaredLength::Bytes(parse_digits(value.as_bytes())?);
        if declared != DeclaredLength::Undeclared && declared != bytes {
            return None;
        }
        declared = bytes;
    }
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(encoding) = encodings.next() else { return Some(declared) };
    let alone = declared == DeclaredLength::Undeclared && encodings.next().is_none();
    (alone && encoding.as_bytes().eq_ignore_ascii_case(b"chunked")).then_some(DeclaredLength::Chunked)
}

/// Digits only; `u64::from_str` would accept a sign.
fn parse_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Headers that `Connection` marks as hop-by-hop, in lower case.
pub(super) fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(tokens)
        // These are dropped anyway, and nearly every request names one of them.
        .filter(|name| !["close", "keep-alive", "upgrade"].iter().any(|it| name.eq_ignore_ascii_case(it)))
        .map(str::to_ascii_lowercase)
        .collect()
}

/// Whether a comma-separated header contains this word.
pub(super) fn has_token(headers: &HeaderMap, name: http::HeaderName, word: &str) -> bool {
    headers.get_all(name).iter().flat_map(tokens).any(|token| token.eq_ignore_ascii_case(word))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    value.to_str().unwrap_or_default().split(',').map(str::trim).filter(|token| !token.is_empty())
}

/// Whether a header is hop-by-hop, in either direction.
pub(super) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection" | "keep-alive" | "te" | "trailer" | "transfer-encoding" | "upgrade" | "http2-settings" | "proxy"
    ) || name.starts_with("proxy-")
}
