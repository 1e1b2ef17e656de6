//! What happens around every request, in one place: host names, headers, origin checks, size limits, metrics.

use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::{DefaultBodyLimit, MatchedPath, Request, State};
use axum::http::{Extensions, HeaderMap, HeaderName, HeaderValue, Method, StatusCode, Version, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum_extra::extract::CookieJar;
use tower::ServiceBuilder;
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate as _};
use tower_http::timeout::RequestBodyTimeoutLayer;

use crate::app::AppState;
use crate::config::PublicUrl;
use crate::error::AppError;
use crate::web::dashboard_origin::{self, ProxiedResponseMarker};
use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::errors::{self, ResponseContext};
use crate::web::portal_state::PortalState;

/// The largest form, in bytes. Nothing that people type comes near it.
const MAX_BODY_BYTES: usize = 64 * 1024;
/// A form must have arrived within this time.
pub const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Everything comes from the portal itself; no inline scripts or styles, no framing.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
    img-src 'self' data:; media-src 'self'; connect-src 'self'; font-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

/// The same for the page of a terminal: the terminal writes its colours into the page as styles. Still no inline scripts.
pub const INLINE_STYLE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; \
    img-src 'self' data:; media-src 'self'; connect-src 'self'; font-src 'self'; form-action 'self'; \
    base-uri 'none'; frame-ancestors 'none'";

/// The same for the page around a dashboard, which is a frame of the same origin.
const DASHBOARD_PAGE_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
    connect-src 'self'; frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// What a dashboard may do: run its own scripts and talk to itself. It reaches no other host, so that what it shows
/// stays here.
const PROXIED_CONTENT_POLICY: &str = "default-src 'self' data: blob:; script-src 'self' 'unsafe-inline' 'unsafe-eval' blob:; \
    style-src 'self' 'unsafe-inline'; connect-src 'self' data: blob:; worker-src 'self' blob:; object-src 'none'; \
    form-action 'self'; base-uri 'self'; frame-ancestors 'self'; webrtc 'block'";

/// What a file of a person may do should a browser ever show it: nothing, on an origin of its own.
const USER_FILE_POLICY: &str = "sandbox; default-src 'none'; frame-ancestors 'none'";

/// The portal's policy for the one page that shows a file in a frame, from the dashboards' origin.
pub fn policy_with_frame(origin: &PublicUrl) -> String {
    format!("{CONTENT_SECURITY_POLICY}; frame-src {origin}")
}

/// Marks a response whose body is someone's file. It is sent as it is, without compression.
#[derive(Debug, Clone, Copy)]
pub struct UserFileMarker;

/// Sent with every response, beside the policy.
const SECURITY_HEADERS: &[(&str, &str)] = &[
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    // Links that contain secrets must not leak to other sites.
    ("referrer-policy", "same-origin"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()"),
    ("vary", "Cookie, HX-Request, Accept-Encoding"),
];

/// Wraps the portal's router. One stack and one function: each further layer would cost every request a copy of
/// all layers inside it.
pub fn wrap_portal(router: Router<PortalState>, state: &PortalState) -> Router<PortalState> {
    router.layer(
        ServiceBuilder::new()
            .layer(CompressionLayer::new().compress_when(DefaultPredicate::new().and(is_compressible)))
            .layer(middleware::from_fn_with_state(state.clone(), handle_portal_request))
            .layer(CatchPanicLayer::custom(errors::panic_response))
            .layer(DefaultBodyLimit::max(MAX_BODY_BYTES))
            .layer(RequestBodyTimeoutLayer::new(BODY_TIMEOUT)),
    )
}

/// Wraps the dashboards' router: another host, none of our cookies.
pub fn wrap_dashboards(router: Router<AppState>, app: &AppState) -> Router<AppState> {
    router.layer(
        ServiceBuilder::new()
            .layer(middleware::from_fn_with_state(app.clone(), handle_dashboard_request))
            .layer(CatchPanicLayer::custom(errors::panic_response)),
    )
}

/// Wraps the private listener's router.
pub fn wrap_private(router: Router<AppState>) -> Router<AppState> {
    router.layer(middleware::from_fn(require_loopback_host))
}

/// Handles a request: checks the host and the origin, runs the handler, then adds error pages, headers and metrics.
async fn handle_portal_request(
    State(PortalState { app, pages }): State<PortalState>,
    request: Request,
    next: Next,
) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let context = ResponseContext::new(&app, pages.next_request_id(), request.headers());
    let url = &app.config.portal.public_url;
    let response = if !is_addressed_to(url, &request) {
        errors::wrong_host_response(&url.to_string(), "portal.public_url")
    } else if !method.is_safe() && !is_same_origin(url, request.headers()) {
        AppError::CrossOrigin.into_response()
    } else {
        next.run(request).await
    };
    let response = errors::render_error(&app, &context, response).await;
    let mut response = clear_flash(&app, &context, response);
    if context.is_htmx {
        redirect_htmx(&mut response);
    }
    if response.extensions().get::<UserFileMarker>().is_some() {
        let policy = HeaderValue::from_static(USER_FILE_POLICY);
        response.headers_mut().entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    }
    add_headers(response.headers_mut(), url);
    response.headers_mut().insert(errors::REQUEST_ID, context.request_id.clone());
    record_metrics(&method, route.as_ref(), response.status(), started);
    response
}

async fn handle_dashboard_request(State(app): State<AppState>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let method = request.method().clone();
    let route = request.extensions().get::<MatchedPath>().cloned();
    let url = &app.config.dashboards.public_url;
    // Only forms of our own pages; requests passed to a dashboard have their own guard.
    let is_own_page = route.as_ref().is_none_or(|route| !route.as_str().starts_with("/b/{word}/app/"));
    let mut response = if !is_addressed_to(url, &request) {
        errors::wrong_host_response(&url.to_string(), "dashboards.public_url")
    } else if is_own_page && !method.is_safe() && !is_same_origin(url, request.headers()) {
        StatusCode::FORBIDDEN.into_response()
    } else {
        next.run(request).await
    };
    let is_proxied = response.extensions().get::<ProxiedResponseMarker>().is_some();
    if is_own_page && response.status().is_client_error() && !response.headers().contains_key(header::CONTENT_TYPE) {
        response = dashboard_origin::show_bad_request(response.status());
    }
    let is_user_file = response.extensions().get::<UserFileMarker>().is_some();
    let policy = match (is_proxied, is_user_file) {
        (true, _) => PROXIED_CONTENT_POLICY,
        (false, true) => USER_FILE_POLICY,
        (false, false) => DASHBOARD_PAGE_POLICY,
    };
    let own_policies: Vec<HeaderValue> = if is_proxied {
        response.headers().get_all(header::CONTENT_SECURITY_POLICY).iter().cloned().collect()
    } else {
        Vec::new()
    };
    let headers = response.headers_mut();
    let is_framed_file = is_user_file && headers.contains_key(header::CONTENT_SECURITY_POLICY);
    add_headers(headers, url);
    if is_framed_file {
        // Its own policy says which pages may frame it.
        headers.remove(header::X_FRAME_OPTIONS);
    } else {
        headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(policy));
    }
    // Each further policy can only forbid more.
    for policy in own_policies {
        headers.append(header::CONTENT_SECURITY_POLICY, policy);
    }
    headers.insert(header::REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    // All dashboards share this origin: a window that one of them opens must not keep a handle on its opener, which may
    // show another one by then.
    headers.insert("cross-origin-opener-policy", HeaderValue::from_static("noopener-allow-popups"));
    if is_proxied {
        headers.insert(header::X_FRAME_OPTIONS, HeaderValue::from_static("SAMEORIGIN"));
    }
    record_metrics(&method, route.as_ref(), response.status(), started);
    response
}

/// Compressing a file would cost time, lose its length and break ranges.
fn is_compressible(_: StatusCode, _: Version, _: &HeaderMap, extensions: &Extensions) -> bool {
    extensions.get::<UserFileMarker>().is_none()
}

/// Guards against DNS rebinding: a request must name our public host exactly once, and the same one everywhere that
/// it names a host.
fn is_addressed_to(url: &PublicUrl, request: &Request) -> bool {
    let is_ours = |host: &str| host.eq_ignore_ascii_case(url.authority());
    requested_host(request).is_some_and(is_ours)
        && request.headers().get_all(header::HOST).iter().count() <= 1
        && request.uri().authority().is_none_or(|authority| is_ours(authority.as_str()))
}

/// The private listener accepts only this machine's own names, for the same reason.
async fn require_loopback_host(request: Request, next: Next) -> Response {
    let requested = requested_host(&request).unwrap_or_default();
    let without_port = requested.rsplit_once(':').filter(|(_, port)| !port.ends_with(']'));
    let host = without_port.map_or(requested, |(host, _)| host);
    if ["localhost", "127.0.0.1", "[::1]"].contains(&host) {
        next.run(request).await
    } else {
        StatusCode::MISDIRECTED_REQUEST.into_response()
    }
}

fn requested_host(request: &Request) -> Option<&str> {
    let header = request.headers().get(header::HOST).and_then(|value| value.to_str().ok());
    header.or_else(|| request.uri().authority().map(axum::http::uri::Authority::as_str))
}

/// A request that changes something must come from a page of exactly this portal, and browsers say where it comes
/// from. A request that doesn't say is refused: every current browser sends at least one of the headers.
pub fn is_same_origin(url: &PublicUrl, headers: &HeaderMap) -> bool {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok());
    if headers.get_all(header::ORIGIN).iter().count() > 1 {
        return false;
    }
    match (header("origin"), header("sec-fetch-site")) {
        (Some(origin), Some(site)) if origin != "null" => url.is_origin(origin) && site == "same-origin",
        (Some(origin), None) => url.is_origin(origin),
        (_, Some(site)) => site == "same-origin",
        (None, None) => false,
    }
}

fn add_headers(headers: &mut HeaderMap, url: &PublicUrl) {
    headers.reserve(SECURITY_HEADERS.len() + 4);
    for (name, value) in SECURITY_HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    // Only responses with someone's file (a stricter one), the page around a PDF and terminals bring their own policy.
    let policy = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
    headers.entry(header::CONTENT_SECURITY_POLICY).or_insert(policy);
    if url.is_https() {
        headers.insert(header::STRICT_TRANSPORT_SECURITY, HeaderValue::from_static("max-age=31536000"));
    }
    // Private unless the response says otherwise (only assets do).
    headers.entry(header::CACHE_CONTROL).or_insert(HeaderValue::from_static("private, no-store"));
}

/// htmx follows redirects on its own and would put the whole next page into a fragment of the open one.
/// This makes it navigate to the next page instead.
fn redirect_htmx(response: &mut Response) {
    if !response.status().is_redirection() {
        return;
    }
    let Some(to) = response.headers_mut().remove(header::LOCATION) else { return };
    // After signing in, people return to the open page rather than to its fragment: refreshing it asks for sign-in.
    let (name, value) = if to.as_bytes().starts_with(b"/sign-in") {
        ("hx-refresh", HeaderValue::from_static("true"))
    } else {
        ("hx-redirect", to)
    };
    response.headers_mut().insert(HeaderName::from_static(name), value);
    *response.status_mut() = StatusCode::NO_CONTENT;
}

/// A message is shown once: the page that showed it clears the cookie. Fragments don't show it.
fn clear_flash(app: &AppState, context: &ResponseContext, response: Response) -> Response {
    let is_page =
        response.headers().get(header::CONTENT_TYPE).is_some_and(|kind| kind.as_bytes().starts_with(b"text/html"));
    if context.flash.is_some() && is_page && !context.is_htmx {
        return (cookies::clear(CookieJar::new(), app, CookieKind::FlashMessage), response).into_response();
    }
    response
}

/// Counts and times requests by route. Paths themselves aren't logged, since some contain secrets.
fn record_metrics(method: &Method, route: Option<&MatchedPath>, status: StatusCode, started: Instant) {
    let route = route.map_or_else(|| "none".to_owned(), |path| path.as_str().to_owned());
    let seconds = started.elapsed().as_secs_f64();
    metrics::histogram!("portolan_http_request_seconds", "route" => route.clone()).record(seconds);
    tracing::debug!(
        http.method = %method,
        http.route = route,
        http.status = status.as_u16(),
        "Answered a request"
    );
    let labels =
        [("method", method_label(method).to_owned()), ("route", route), ("status", status.as_str().to_owned())];
    metrics::counter!("portolan_http_requests_total", &labels).increment(1);
}

/// Clients may invent methods; metrics know only the usual ones.
fn method_label(method: &Method) -> &str {
    match *method {
        Method::GET | Method::HEAD | Method::POST | Method::PUT | Method::PATCH | Method::DELETE | Method::OPTIONS => {
            method.as_str()
        }
        _ => "other",
    }
}
