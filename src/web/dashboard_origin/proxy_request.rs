//! Requests that are passed to a dashboard: one guard for plain requests and upgrades, then `proxy`.

use std::borrow::Cow;
use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use http_body::Body as _;
use http_body_util::Limited;

use crate::app::AppState;
use crate::auth::guest_links::{GuestAccessError, GuestLinkTargetKind};
use crate::dashboards::{DashboardKind, DashboardViewer, read_only};
use crate::proxy::{self, ProxyContext, ProxyError, clean_path};
use crate::web::dashboard_origin::{ProxiedResponseMarker, check_dashboard_access};
use crate::web::http::middleware::is_same_origin;
use crate::web::http::visitor::visitor_from_request;

/// The largest request of someone who may only read: a search.
const MAX_READER_BODY_BYTES: usize = 1024 * 1024;
/// Response headers of a dashboard that are passed on; all others are dropped.
const ALLOWED_RESPONSE_HEADERS: &[&str] = &[
    "accept-ranges",
    "cache-control",
    "connection",
    "content-disposition",
    "content-encoding",
    "content-language",
    "content-length",
    "content-range",
    "content-security-policy",
    "content-type",
    "date",
    "etag",
    "expires",
    "last-modified",
    "location",
    "retry-after",
    "sec-websocket-accept",
    "sec-websocket-extensions",
    "sec-websocket-protocol",
    "transfer-encoding",
    "upgrade",
    "vary",
];

/// The host that a dashboard is addressed as: it believes that it serves its own machine.
const UPSTREAM_HOST: &str = "localhost";

/// Passes a request on, if this browser may send it.
pub async fn handle(State(app): State<AppState>, request: Request) -> Response {
    let raw = request.uri().path_and_query().map_or("", |path| path.as_str());
    let Some((access_key, rest)) = split_path(raw) else { return refuse(StatusCode::NOT_FOUND, CLOSED) };
    let access = match check_dashboard_access(&app, access_key, request.headers()).await {
        Ok(access) => access,
        Err(GuestAccessError::Store(error)) => {
            tracing::error!(%error, "Could not check access to a dashboard");
            return refuse(StatusCode::SERVICE_UNAVAILABLE, BUSY);
        }
        Err(GuestAccessError::Closed | GuestAccessError::Locked(_)) => {
            return refuse(StatusCode::NOT_FOUND, CLOSED);
        }
    };
    let is_upgrade = request.headers().contains_key(header::UPGRADE);
    let is_reading = matches!(*request.method(), Method::GET | Method::HEAD);
    let here = &app.config.dashboards.public_url;
    // Reads are safe wherever the cookie is sent along; everything else must come from a page of this origin.
    let is_ours = if is_upgrade {
        has_allowed_origin(request.headers(), |origin| here.is_origin(origin))
    } else {
        is_reading || is_same_origin(here, request.headers())
    };
    if !is_ours {
        return refuse(StatusCode::FORBIDDEN, CROSS_SITE);
    }
    let Some(path_and_query) = clean_path(rest).map(Cow::into_owned) else {
        return refuse(StatusCode::BAD_REQUEST, MALFORMED);
    };
    let is_reader = access.viewer != DashboardViewer::Owner;
    if is_reader {
        let path = path_and_query.split('?').next().unwrap_or_default();
        let kind = access.dashboard.kind.parse::<DashboardKind>();
        let method = request.method().as_str();
        let is_allowed = !is_upgrade && kind.is_ok_and(|kind| read_only::is_allowed(kind, method, path));
        if !is_allowed {
            return refuse(StatusCode::FORBIDDEN, READ_ONLY);
        }
    }
    let Some(live) = app.dashboards.live(access.dashboard.id) else {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, NOT_RUNNING);
    };
    app.dashboards.record_use(live.run);
    let guard = app.dashboards.open_stream(&access);
    // Readers leave slots free for the owner and for each other.
    let places = if is_reader { live.acquire_reader_slots(&guard).await } else { Some(Vec::new()) };
    let Some(places) = places else { return show_proxy_failure(ProxyError::Busy) };
    let (parts, mut body) = request.into_parts();
    if is_reader {
        if body.size_hint().lower() > u64::try_from(MAX_READER_BODY_BYTES).unwrap_or(u64::MAX) {
            return refuse(StatusCode::PAYLOAD_TOO_LARGE, TOO_LARGE);
        }
        body = Body::new(Limited::new(body, MAX_READER_BODY_BYTES));
    }
    let passage = ProxyContext {
        path_and_query,
        host: UPSTREAM_HOST.to_owned(),
        prefix: format!("{}/app", GuestLinkTargetKind::Dashboard.base_path(&access.access_key)),
        origin: here.to_string(),
        client: visitor_from_request(&parts, &app.config.proxy.trusted).address,
        cancel: guard.cancellation().clone(),
        keep_alive: Some(Arc::new((guard, places))),
    };
    match proxy::forward_request(&live.upstream, passage, Request::from_parts(parts, body)).await {
        Ok(answer) => sanitize_response(answer.map(Body::new)),
        Err(failure) => {
            tracing::debug!(%failure, dashboard = access.dashboard.id.0, "A dashboard did not answer");
            show_proxy_failure(failure)
        }
    }
}

/// Splits `/b/KEY/app/REST` into the access key and `/REST`, undecoded.
fn split_path(raw: &str) -> Option<(&str, &str)> {
    let (access_key, rest) = raw.strip_prefix("/b/")?.split_once('/')?;
    Some((access_key, rest.strip_prefix("app")?)).filter(|(_, rest)| rest.starts_with('/'))
}

fn has_allowed_origin(headers: &HeaderMap, is_ours: impl Fn(&str) -> bool) -> bool {
    let mut origins = headers.get_all(header::ORIGIN).iter();
    let first = origins.next().and_then(|value| value.to_str().ok());
    origins.next().is_none() && first.is_some_and(is_ours)
}

/// Keeps only headers that are known to be harmless, and forbids shared caches to store the response.
fn sanitize_response(mut answer: Response) -> Response {
    let headers = answer.headers_mut();
    let unknown: Vec<HeaderName> =
        headers.keys().filter(|name| !ALLOWED_RESPONSE_HEADERS.contains(&name.as_str())).cloned().collect();
    for name in unknown {
        headers.remove(name);
    }
    let reports =
        |value: &HeaderValue| value.to_str().map_or(true, |text| text.to_ascii_lowercase().contains("report"));
    if headers.get_all(header::CONTENT_SECURITY_POLICY).iter().any(reports) {
        headers.remove(header::CONTENT_SECURITY_POLICY);
    }
    let kept = headers.get(header::CACHE_CONTROL).and_then(|value| value.to_str().ok());
    let kept = kept.map(|text| {
        let parts = text.split(',').map(|part| part.trim().to_ascii_lowercase());
        let is_ours =
            |part: &String| !part.is_empty() && part != "public" && part != "private" && !part.starts_with("s-maxage");
        ["private".to_owned()].into_iter().chain(parts.filter(is_ours)).collect::<Vec<_>>().join(", ")
    });
    let value = kept.and_then(|text| HeaderValue::from_str(&text).ok());
    headers.insert(header::CACHE_CONTROL, value.unwrap_or(HeaderValue::from_static("private, no-store")));
    answer.extensions_mut().insert(ProxiedResponseMarker);
    answer
}

const CLOSED: &str = "You don't have access to this dashboard, or your access has ended.\n";
const BUSY: &str = "The portal is busy. Try again in a minute.\n";
const CROSS_SITE: &str = "This request came from another site, so it was blocked.\n";
const MALFORMED: &str = "This address isn't valid.\n";
const READ_ONLY: &str = "You have read-only access to this dashboard.\n";
const TOO_LARGE: &str = "This request is too large.\n";
const NOT_RUNNING: &str = "This dashboard isn't running, or it can't be reached right now.\n";

fn show_proxy_failure(failure: ProxyError) -> Response {
    let (status, text) = match failure {
        ProxyError::Unreachable | ProxyError::BadResponse | ProxyError::ClientGone => {
            (StatusCode::BAD_GATEWAY, "The dashboard sent an invalid response.\n")
        }
        ProxyError::TimedOut => (StatusCode::GATEWAY_TIMEOUT, "The dashboard took too long to respond.\n"),
        ProxyError::Refused(_) => (StatusCode::BAD_REQUEST, MALFORMED),
        ProxyError::Busy => {
            (StatusCode::SERVICE_UNAVAILABLE, "Too many requests to this dashboard. Try again in a moment.\n")
        }
    };
    refuse(status, text)
}

/// The text is static: it repeats nothing from the request.
fn refuse(status: StatusCode, text: &'static str) -> Response {
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response()
}
