//! The head of a request on its way to the upstream: what is refused, what is dropped, what we set.

use http::header::{CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderName, TRANSFER_ENCODING, UPGRADE};
use http::uri::{Authority, PathAndQuery, Scheme};
use http::{HeaderMap, HeaderValue, Method, Uri, Version, request};

use super::framing::{DeclaredLength, declared_length, is_hop_by_hop, named_by_connection};
use super::path::clean_path;
use super::{ProxyContext, ProxyError, websocket};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ProxyRequestKind {
    /// A request and its response.
    Plain,
    /// An upgrade to WebSocket.
    WebSocket,
}

/// The length of the actual body, which must agree with the headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BodySize {
    Empty,
    Bytes(u64),
    /// Not known before it ends.
    Unknown,
}

/// Builds the upstream's request head from the client's.
pub(super) fn prepare_request(
    parts: &mut request::Parts,
    body_size: BodySize,
    passage: &ProxyContext,
) -> Result<ProxyRequestKind, ProxyError> {
    check_request(parts)?;
    let declared = declared_length(&parts.headers).ok_or(ProxyError::Refused("its length is told twice"))?;
    let kind = websocket::requested_kind(parts, declared)?;
    let mut headers = kept_headers(&mut parts.headers, kind);
    set_body_length(&mut headers, &parts.method, declared, body_size)?;
    set_forwarding_headers(&mut headers, passage)?;
    if kind == ProxyRequestKind::WebSocket {
        headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    }
    parts.headers = headers;
    parts.version = Version::HTTP_11;
    parts.uri = upstream_uri(&passage.path_and_query)?;
    parts.extensions.clear();
    Ok(kind)
}

fn check_request(parts: &request::Parts) -> Result<(), ProxyError> {
    if parts.version < Version::HTTP_2 && parts.uri.authority().is_some() {
        return Err(ProxyError::Refused("its address names a host"));
    }
    if parts.method == Method::CONNECT || parts.method == Method::TRACE {
        return Err(ProxyError::Refused("its method is never passed on"));
    }
    let worker = parts.headers.contains_key("service-worker")
        || parts.headers.get("sec-fetch-dest").is_some_and(|dest| dest == "serviceworker");
    if worker {
        return Err(ProxyError::Refused("service workers are not allowed here"));
    }
    // The server in front of us answers this expectation when the body is first read, so the upstream need not know.
    let known = |value: &HeaderValue| value.as_bytes().eq_ignore_ascii_case(b"100-continue");
    if !parts.headers.get_all(EXPECT).iter().all(known) {
        return Err(ProxyError::Refused("it expects something unknown"));
    }
    Ok(())
}

/// The headers that are passed on.
fn kept_headers(from: &mut HeaderMap, kind: ProxyRequestKind) -> HeaderMap {
    let named = named_by_connection(from);
    // Four forwarding headers, a host, a length, two for an upgrade.
    let mut headers = HeaderMap::with_capacity(from.len() + 8);
    let mut last = None;
    for (name, value) in from.drain() {
        if name.is_some() {
            last = name;
        }
        let Some(name) = &last else { continue };
        if is_passed_header(name.as_str(), kind) && !named.iter().any(|it| it == name.as_str()) {
            headers.append(name.clone(), value);
        }
    }
    headers
}

/// Whether a header with this lower-case name may reach the upstream as the client sent it.
fn is_passed_header(name: &str, kind: ProxyRequestKind) -> bool {
    let dropped = is_hop_by_hop(name)
        || matches!(
            name,
            "host" | "content-length" | "expect"
            // Identity and browsing history: not the upstream's business.
            | "cookie" | "cookie2" | "authorization" | "origin" | "referer"
            // Only a proxy may set these.
            | "forwarded" | "via" | "x-real-ip" | "x-client-ip" | "true-client-ip" | "x-cluster-client-ip"
            | "cf-connecting-ip" | "x-host" | "x-scheme" | "x-script-name" | "x-original-host"
            // These change the method or the path that was allowed.
            | "x-http-method" | "x-http-method-override" | "x-method-override" | "x-original-url" | "x-rewrite-url"
        )
        || name.starts_with("x-forwarded-")
        // CGI-style servers can't tell `X_Forwarded_For` from `X-Forwarded-For`.
        || name.contains('_')
        || (kind == ProxyRequestKind::Plain && name.starts_with("sec-websocket-"));
    !dropped
}

/// States the body's length, in one way only.
fn set_body_length(
    headers: &mut HeaderMap,
    method: &Method,
    declared: DeclaredLength,
    body_size: BodySize,
) -> Result<(), ProxyError> {
    let bytes = match (declared, body_size) {
        (DeclaredLength::Undeclared | DeclaredLength::Chunked, BodySize::Empty) => {
            let usual = [Method::POST, Method::PUT, Method::PATCH].contains(method);
            if !usual {
                return Ok(());
            }
            0
        }
        (DeclaredLength::Bytes(0), BodySize::Empty) => 0,
        (DeclaredLength::Undeclared | DeclaredLength::Chunked, BodySize::Bytes(bytes))
        | (DeclaredLength::Bytes(bytes), BodySize::Unknown) => bytes,
        (DeclaredLength::Bytes(bytes), BodySize::Bytes(really)) if bytes == really => bytes,
        (DeclaredLength::Bytes(_), _) => {
            return Err(ProxyError::Refused("its body has another length"));
        }
        (DeclaredLength::Undeclared | DeclaredLength::Chunked, BodySize::Unknown) => {
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
            return Ok(());
        }
    };
    headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    Ok(())
}

/// The host, and whom the request is forwarded for.
fn set_forwarding_headers(headers: &mut HeaderMap, passage: &ProxyContext) -> Result<(), ProxyError> {
    let (proto, host) = passage.origin.split_once("://").ok_or(ProxyError::Refused("its origin is no address"))?;
    let value = |text: &str| HeaderValue::from_str(text).map_err(|_| ProxyError::Refused("its way in is no text"));
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

/// The URI as the client library wants it; its host only names the pool and is not sent.
fn upstream_uri(path_and_query: &str) -> Result<Uri, ProxyError> {
    let refused = ProxyError::Refused("its path is not allowed");
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
