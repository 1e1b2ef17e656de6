//! How long a message is and who says so. Two answers to that question are how requests are smuggled, so a message
//! that gives two is not passed on, and what we send is framed anew from what we know of the body.

use http::header::{CONNECTION, CONTENT_LENGTH, TRANSFER_ENCODING};
use http::{HeaderMap, HeaderValue};

/// What a message's headers say of its length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaredLength {
    /// Nothing: no body in a request, up to the connection's end in an answer.
    Undeclared,
    Bytes(u64),
    /// In chunks, up to the last one.
    Chunked,
}

/// Reads the length; nothing if it is told twice, differently, or in a way that others may read differently.
pub(super) fn declared_length(headers: &HeaderMap) -> Option<DeclaredLength> {
    let mut told = DeclaredLength::Undeclared;
    for value in headers.get_all(CONTENT_LENGTH) {
        let bytes = DeclaredLength::Bytes(parse_digits(value.as_bytes())?);
        if told != DeclaredLength::Undeclared && told != bytes {
            return None;
        }
        told = bytes;
    }
    let mut encodings = headers.get_all(TRANSFER_ENCODING).iter();
    let Some(encoding) = encodings.next() else { return Some(told) };
    let alone = told == DeclaredLength::Undeclared && encodings.next().is_none();
    (alone && encoding.as_bytes().eq_ignore_ascii_case(b"chunked"))
        .then_some(DeclaredLength::Chunked)
}

/// A number of nothing but digits; `u64::from_str` would take a sign.
fn parse_digits(text: &[u8]) -> Option<u64> {
    if text.is_empty() || !text.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Headers that `Connection` declares to be meant for the next hop only, in lower case.
pub(super) fn named_by_connection(headers: &HeaderMap) -> Vec<String> {
    headers
        .get_all(CONNECTION)
        .iter()
        .flat_map(tokens)
        // These go anyway, and nearly every request names one of them.
        .filter(|name| {
            !["close", "keep-alive", "upgrade"].iter().any(|it| name.eq_ignore_ascii_case(it))
        })
        .map(str::to_ascii_lowercase)
        .collect()
}

/// Is one of a header's comma-separated words this one?
pub(super) fn has_token(headers: &HeaderMap, name: http::HeaderName, word: &str) -> bool {
    headers.get_all(name).iter().flat_map(tokens).any(|token| token.eq_ignore_ascii_case(word))
}

fn tokens(value: &HeaderValue) -> impl Iterator<Item = &str> {
    value.to_str().unwrap_or_default().split(',').map(str::trim).filter(|token| !token.is_empty())
}

/// Headers that are for one hop only, in either direction.
pub(super) fn is_hop_by_hop(name: &str) -> bool {
    matches!(
        name,
        "connection"
            | "keep-alive"
            | "te"
            | "trailer"
            | "transfer-encoding"
            | "upgrade"
            | "http2-settings"
            | "proxy"
    ) || name.starts_with("proxy-")
}
