//! The head of a response on its way to the browser: an upstream speaks only for itself, never for the origin that
//! serves it nor for the servers in between.

use http::header::{
    CONNECTION, CONTENT_LENGTH, HeaderName, LOCATION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_EXTENSIONS,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{HeaderMap, HeaderValue, Response, StatusCode, response};

use super::framing::{DeclaredLength, declared_length, has_token, is_hop_by_hop, named_by_connection};
use super::location::confine_location;
use super::request::ProxyRequestKind;
use super::{ProxyContext, ProxyError};

/// Builds the browser's response head from the upstream's.
pub(super) fn prepare_response(
    parts: response::Parts,
    kind: ProxyRequestKind,
    passage: &ProxyContext,
) -> Result<response::Parts, ProxyError> {
    let declared = declared_length(&parts.headers).ok_or(ProxyError::BadResponse)?;
    let headers = if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        if kind != ProxyRequestKind::WebSocket {
            return Err(ProxyError::BadResponse);
        }
        websocket_headers(&parts.headers)?
    } else {
        kept_headers(parts.headers, parts.status, declared, passage)?
    };
    // A fresh head, so that the version, the reason phrase and the extensions don't carry over.
    let (mut fresh, ()) = Response::new(()).into_parts();
    fresh.status = parts.status;
    fresh.headers = headers;
    Ok(fresh)
}

/// Only the headers that belong to the protocol switch.
fn websocket_headers(from: &HeaderMap) -> Result<HeaderMap, ProxyError> {
    if !has_token(from, UPGRADE, "websocket") || !from.contains_key(SEC_WEBSOCKET_ACCEPT) {
        return Err(ProxyError::BadResponse);
    }
    let mut headers = HeaderMap::with_capacity(8);
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    let named: [HeaderName; 3] = [SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_EXTENSIONS];
    for name in named {
        for value in from.get_all(&name) {
            headers.append(name.clone(), value.clone());
        }
    }
    Ok(headers)
}

fn kept_headers(
    from: HeaderMap,
    status: StatusCode,
    declared: DeclaredLength,
    passage: &ProxyContext,
) -> Result<HeaderMap, ProxyError> {
    let named = named_by_connection(&from);
    // Room for the caller's own headers.
    let mut headers = HeaderMap::with_capacity(from.len() + 8);
    let mut last = None;
    for (name, value) in from {
        if name.is_some() {
            last = name;
        }
        let Some(name) = &last else { continue };
        if is_passed_header(name.as_str()) && !named.iter().any(|it| it == name.as_str()) {
            if *name == LOCATION {
                let place = confine_location(&value, passage).ok_or(ProxyError::BadResponse)?;
                // With two of them, each browser would pick its own.
                if headers.insert(LOCATION, place).is_some() {
                    return Err(ProxyError::BadResponse);
                }
            } else {
                headers.append(name.clone(), value);
            }
        }
    }
    if let DeclaredLength::Bytes(bytes) = declared
        && status != StatusCode::NO_CONTENT
    {
        headers.insert(CONTENT_LENGTH, HeaderValue::from(bytes));
    }
    Ok(headers)
}

/// Whether a header with this lower-case name may reach the browser.
fn is_passed_header(name: &str) -> bool {
    let dropped = is_hop_by_hop(name)
        || matches!(
            name,
            "content-length"
            // Effects that outlast this response or reach beyond this upstream.
            | "set-cookie" | "set-cookie2" | "clear-site-data" | "service-worker-allowed" | "alt-svc"
            | "strict-transport-security" | "public-key-pins" | "public-key-pins-report-only" | "expect-ct"
            | "accept-ch" | "critical-ch" | "use-as-dictionary" | "speculation-rules" | "origin-agent-cluster"
            // Redirects and references other than `Location`.
            | "refresh" | "content-location" | "sourcemap" | "x-sourcemap"
            // Permission for other origins to read it, and reporting.
            | "timing-allow-origin" | "report-to" | "reporting-endpoints" | "nel"
            | "content-security-policy-report-only" | "x-frame-options"
            // A password prompt under our name.
            | "www-authenticate" | "authentication-info"
            // Instructions to the web server in front of the portal.
            | "x-sendfile" | "x-lighttpd-send-file" | "x-litespeed-location"
            // Server details that nobody needs.
            | "server" | "via" | "x-powered-by"
        )
        || name.starts_with("access-control-")
        || name.starts_with("x-accel-")
        || name.starts_with("attribution-reporting-")
        || name.starts_with("sec-websocket-");
    !dropped
}
