//! What happens around every request, in one place: names, headers, origin checks, sizes, figures.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum_extra::extract::CookieJar;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::csrf::{CsrfLayer, ProtectionError};
use tower_http::request_id::{MakeRequestUuid, PropagateRequestIdLayer, SetRequestIdLayer};
use tower_http::timeout::RequestBodyTimeoutLayer;

use super::cookies::{self, Kind};
use super::errors;
use crate::app::AppState;
use crate::config::PublicUrl;

/// Largest form, in bytes. Nothing that people type comes near it.
const BODY_MAX: usize = 64 * 1024;
/// A form must have arrived after this long.
const BODY_WITHIN: Duration = Duration::from_secs(30);

/// Everything comes from the portal itself; no script or style inside a page; no frame around it.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; connect-src 'self'; font-src 'self'; form-action 'self'; base-uri 'none'; \
    frame-ancestors 'none'";

/// Sent with every answer.
const HEADERS: &[(&str, &str)] = &[
    ("content-security-policy", CONTENT_SECURITY_POLICY),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // Links with secrets in them must not travel to other sites.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
];

/// Dresses the portal's router.
pub fn portal(router: Router<AppState>, app: &AppState) -> Router<AppState> {
    let csrf =
        CsrfLayer::new().with_rejection_response(|_: ProtectionError| errors::cross_origin());
    // The last layer is the first to see a request.
    router
        .layer(DefaultBodyLimit::max(BODY_MAX))
        .layer(RequestBodyTimeoutLayer::new(BODY_WITHIN))
        .layer(middleware::from_fn_with_state(app.clone(), same_origin_only))
        .layer(csrf)
        .layer(CatchPanicLayer::custom(errors::panicked))
        .layer(middleware::from_fn_with_state(app.clone(), errors::render))
        .layer(middleware::from_fn_with_state(app.clone(), spend_flash))
        .layer(CompressionLayer::new())
        .layer(middleware::from_fn_with_state(app.clone(), portal_host))
        .layer(middleware::from_fn_with_state(app.clone(), headers))
        .layer(middleware::from_fn(measure))
        .layer(PropagateRequestIdLayer::new(errors::REQUEST_ID))
        .layer(SetRequestIdLayer::new(errors::REQUEST_ID, MakeRequestUuid))
        .layer(middleware::from_fn(drop_foreign_request_id))
}

/// Dresses the dashboards' router: other host, no cookies of ours.
pub fn boards(router: Router, app: &AppState) -> Router {
    router
        .layer(middleware::from_fn_with_state(app.clone(), boards_host))
        .layer(middleware::from_fn_with_state(app.clone(), headers))
}

/// Dresses the private listener's router.
pub fn private(router: Router<AppState>) -> Router<AppState> {
    router.layer(middleware::from_fn(loopback_host))
}

/// Request ids are ours: what a client sends is not put into logs and pages.
async fn drop_foreign_request_id(mut request: Request, next: Next) -> Response {
    request.headers_mut().remove(errors::REQUEST_ID);
    next.run(request).await
}

async fn portal_host(State(app): State<AppState>, request: Request, next: Next) -> Response {
    only_host(&app.config.portal.public_url, "portal.public_url", request, next).await
}

async fn boards_host(State(app): State<AppState>, request: Request, next: Next) -> Response {
    only_host(&app.config.boards.public_url, "boards.public_url", request, next).await
}

/// Lets only requests through that name this host: rebinding a foreign name to our address gives nothing.
async fn only_host(url: &PublicUrl, setting: &str, request: Request, next: Next) -> Response {
    let named = named_host(&request);
    if named.is_some_and(|host| host.eq_ignore_ascii_case(&url.authority())) {
        next.run(request).await
    } else {
        errors::wrong_host(&url.to_string(), setting)
    }
}

/// The private listener goes by the names of this machine only, for the same reason.
async fn loopback_host(request: Request, next: Next) -> Response {
    let named = named_host(&request).unwrap_or_default();
    let host = named
        .rsplit_once(':')
        .filter(|(_, port)| !port.ends_with(']'))
        .map_or(named, |(host, _)| host);
    if ["localhost", "127.0.0.1", "[::1]"].contains(&host) {
        next.run(request).await
    } else {
        StatusCode::MISDIRECTED_REQUEST.into_response()
    }
}

/// The host that a request names.
fn named_host(request: &Request) -> Option<&str> {
    let header = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    header.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str))
}

/// A second look at what changes something: a browser says where such a request comes from, and it must be
/// exactly this portal. (The layer before lets requests without any such header pass, for scripts.)
async fn same_origin_only(State(app): State<AppState>, request: Request, next: Next) -> Response {
    if matches!(*request.method(), Method::GET | Method::HEAD | Method::OPTIONS) {
        return next.run(request).await;
    }
    if is_from(&app.config.portal.public_url, request.headers()) {
        next.run(request).await
    } else {
        errors::cross_origin()
    }
}

fn is_from(here: &PublicUrl, headers: &HeaderMap) -> bool {
    let says = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    match (says("origin"), says("sec-fetch-site")) {
        (Some(origin), _) if origin != "null" => origin == here.to_string(),
        (_, Some(site)) => site == "same-origin",
        (_, None) => false,
    }
}

async fn headers(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let mut response = next.run(request).await;
    let headers = response.headers_mut();
    for (name, value) in HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    if app.config.portal.public_url.is_https() {
        headers.insert(
            header::STRICT_TRANSPORT_SECURITY,
            HeaderValue::from_static("max-age=31536000"),
        );
    }
    // Personal unless it says otherwise (only assets do).
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-store"));
    headers.insert(header::VARY, HeaderValue::from_static("Cookie, HX-Request, Accept-Encoding"));
    response
}

/// A message is shown once: the page that showed it takes the cookie back.
async fn spend_flash(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let jar = CookieJar::from_headers(request.headers());
    let waiting = cookies::get(&jar, &app, Kind::Flash).is_some();
    let response = next.run(request).await;
    let is_page = response
        .headers()
        .get(header::CONTENT_TYPE)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if waiting && is_page && response.status() != StatusCode::SEE_OTHER {
        return (cookies::clear(CookieJar::new(), &app, Kind::Flash), response).into_response();
    }
    response
}

/// Counts and times requests by route; addresses themselves are not logged, since some hold secrets.
async fn measure(request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request
        .extensions()
        .get::<MatchedPath>()
        .map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let response = next.run(request).await;
    let status = response.status().as_u16();
    let labels = [
        ("method", method_label(&method).to_owned()),
        ("route", route.clone()),
        ("status", status.to_string()),
    ];
    metrics::counter!("portolan_http_requests_total", &labels).increment(1);
    metrics::histogram!("portolan_http_request_seconds", "route" => route.clone())
        .record(started.elapsed().as_secs_f64());
    tracing::debug!(http.method = %method, http.route = route, http.status = status, "Answered a request");
    response
}

/// Anyone may invent methods; figures know only the usual ones.
fn method_label(method: &Method) -> &str {
    match *method {
        Method::GET
        | Method::HEAD
        | Method::POST
        | Method::PUT
        | Method::DELETE
        | Method::OPTIONS => method.as_str(),
        _ => "other",
    }
}
