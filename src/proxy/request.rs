//! The head of a request on its way to the upstream: what is refused, what is left out, what is ours.

use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, TRANSFER_ENCODING, UPGRADE,
};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Uri, Version, request};

use super::framing::{Length, hop_by_hop, length, named_by_connection};
use super::path::clean_path;
use super::{Failure, Passage, websocket};

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A request and its answer.
    Plain,
    /// To speak WebSocket from here on.
    WebSocket,
}

/// What the body itself says of its length, which must agree with what the headers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Known {
    /// There is none.
    Empty,
    /// So many bytes.
    Bytes(u64),
    /// Not before it ends.
    Unknown,
}

/// Makes the head that the upstream gets out of the one that came.
pub(super) fn outgoing(
    parts: &mut request::Parts,
    known: Known,
    passage: &Passage,
) -> Result<Kind, Failure> {
    check(parts)?;
    let told = length(&parts.headers).ok_or(Failure::Refused("its length is told twice"))?;
    let kind = websocket::wanted(parts, told)?;
    let mut headers = kept(&mut parts.headers, kind);
    frame(&mut headers, &parts.method, told, known)?;
    ours(&mut headers, passage)?;
    if kind == Kind::WebSocket {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    }
    parts.headers = headers;
    parts.version = Version::HTTP_11;
    parts.uri = target(&passage.path_and_query)?;
    parts.extensions.clear();
    Ok(kind)
}

fn check(parts: &request::Parts) -> Result<(), Failure> {
    if parts.version < Version::HTTP_2 && parts.uri.authority().is_some() {
        return Err(Failure::Refused("its address names a host"));
    }
    if parts.method == Method::CONNECT || parts.method == Method::TRACE {
        return Err(Failure::Refused("its method is never passed on"));
    }
    let worker = parts.headers.contains_key("service-worker")
        || parts.headers.get("sec-fetch-dest").is_some_and(|dest| dest == "serviceworker");
    if worker {
        return Err(Failure::Refused("service workers are not allowed here"));
    }
    // The server in front of us answers this expectation when the body is first read, so the upstream need not know.
    let known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !parts.headers.get_all(EXPECT).iter().all(known) {
        return Err(Failure::Refused("it expects something unknown"));
    }
    Ok(())
}

/// The headers that pass.
fn kept(from: &mut HeaderMap, kind: Kind) -> HeaderMap {
    let named = named_by_connection(from);
    // Four forwarding headers, a host, a length, two for an upgrade.
    let mut headers = HeaderMap::with_capacity(from.len() + 8);
    let mut last = None;
    for (name, value) in from.drain() {
        if name.is_some() {
            last = name;
        }
        let Some(name) = &last else { continue };
        if passes(name.as_str(), kind) && !named.iter().any(|it| it == name.as_str()) {
            headers.append(name.clone(), value);
        }
    }
    headers
}

/// May a header of this name, in lower case, reach the upstream as the client sent it?
fn passes(name: &str, kind: Kind) -> bool {
    let dropped = hop_by_hop(name)
        || matches!(
            name,
            "host" | "content-length" | "expect"
            // Who someone is, and where they were: ours to know.
            | "cookie" | "cookie2" | "authorization" | "origin" | "referer"
            // What only a proxy may say.
            | "forwarded" | "via" | "x-real-ip" | "x-client-ip" | "true-client-ip" | "x-cluster-client-ip"
            | "cf-connecting-ip" | "x-host" | "x-scheme" | "x-script-name" | "x-original-host"
            // What changes the method or the path that was allowed.
            | "x-http-method" | "x-http-method-override" | "x-method-override" | "x-original-url" | "x-rewrite-url"
        )
        || name.starts_with("x-forwarded-")
        // Servers of the CGI family can not tell `X_Forwarded_For` from `X-Forwarded-For`.
        || name.contains('_')
        || (kind == Kind::Plain && name.starts_with("sec-websocket-"));
    !dropped
}

/// Says how long the body is, in one way only.
fn frame(
    headers: &mut HeaderMap,
    method: &Method,
    told: Length,
    known: Known,
) -> Result<(), Failure> {
    let bytes = match (told, known) {
        (Length::Untold | Length::Chunked, Known::Empty) => {
            let usual = [Method::POST, Method::PUT, Method::PATCH].contains(method);
            if !usual {
                return Ok(());
            }
            0
        }
        (Length::Bytes(0), Known::Empty) => 0,
        (Length::Untold | Length::Chunked, Known::Bytes(bytes))
        | (Length::Bytes(bytes), Known::Unknown) => bytes,
        (Length::Bytes(bytes), Known::Bytes(really)) if bytes == really => bytes,
        (Length::Bytes(_), _) => return Err(Failure::Refused("its body has another length")),
        (Length::Untold | Length::Chunked, Known::Unknown) => {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            return Ok(());
        }
    };
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    Ok(())
}

/// Whom it is for and on whose behalf.
fn ours(headers: &mut HeaderMap, passage: &Passage) -> Result<(), Failure> {
    let (proto, host) =
        passage.origin.split_once("://").ok_or(Failure::Refused("its origin is no address"))?;
    let value = |text: &str| {
        HeaderValue::from_str(text).map_err(|_| Failure::Refused("its way in is no text"))
    };
    headers.insert(HOST, value(&passage.host)?);
    headers.insert(X_FORWARDED_FOR, value(&passage.client.to_string())?);
    headers.insert(X_FORWARDED_PROTO, value(proto)?);
    headers.insert(X_FORWARDED_HOST, value(host)?);
    headers.insert(X_FORWARDED_PREFIX, value(&passage.prefix)?);
    Ok(())
}

const X_FORWARDED_FOR: HeaderName = HeaderName::from_static("x-forwarded-for");
const X_FORWARDED_PROTO: HeaderName = HeaderName::from_static("x-forwarded-proto");
const X_FORWARDED_HOST: HeaderName = HeaderName::from_static("x-forwarded-host");
const X_FORWARDED_PREFIX: HeaderName = HeaderName::from_static("x-forwarded-prefix");

/// The address as the client library wants it; the host in it is a name for the pool and is not sent.
fn target(path_and_query: &str) -> Result<Uri, Failure> {
    let refused = Failure::Refused("its path is not allowed");
    if !path_and_query.starts_with('/') || clean_path(path_and_query).is_none() {
        return Err(refused);
    }
    let mut parts = http::uri::Parts::default();
    parts.scheme = Some(Scheme::HTTP);
    parts.authority = Some(Authority::from_static("upstream"));
    let Ok(path) = PathAndQuery::try_from(path_and_query) else { return Err(refused) };
    parts.path_and_query = Some(path);
    Uri::from_parts(parts).map_err(|_| refused)
}
