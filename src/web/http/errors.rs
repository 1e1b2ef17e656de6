//! How errors are shown: a full page, a fragment for htmx, or JSON for scripts. Only this module decides.

use askama::Template;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use crate::app::App;
use crate::auth::one_time_links::OneTimeLinkError;
use crate::error::AppError;
use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::flash::FlashMessage;
use crate::web::http::page_frame::{NavSection, PageFrame};
use crate::web::pages::account::theme::Theme;
use crate::web::pages::sign_in;

/// The header that carries the request id, as it appears in the log and on error pages.
pub const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Attached to a response until [`render_error`] gives it a body.
#[derive(Debug, Clone)]
struct UnrenderedError {
    /// What happened.
    title: &'static str,
    /// What to do.
    text: String,
    /// An internal error, for the log only.
    internal_error: Option<String>,
}

#[derive(Template)]
#[template(path = "http/error.html")]
struct ErrorPage {
    page: PageFrame,
    title: &'static str,
    text: String,
    request_id: String,
}

#[derive(Template)]
#[template(path = "http/error_toast.html")]
struct ErrorToast {
    text: String,
}

impl IntoResponse for AppError {
    fn into_response(self) -> Response {
        if let Self::NotSignedIn(wanted) = &self {
            return sign_in::redirect_to_sign_in(wanted);
        }
        let status = status_code(&self);
        let mut response = status.into_response();
        if let Self::TooManyTries(seconds) = &self {
            set_retry_after(&mut response, *seconds);
        }
        let (title, text) = error_message(&self);
        let internal_error = status.is_server_error().then(|| self.to_string());
        response.extensions_mut().insert(UnrenderedError { title, text, internal_error });
        response
    }
}

const fn status_code(error: &AppError) -> StatusCode {
    match error {
        AppError::NotSignedIn(_) => StatusCode::UNAUTHORIZED,
        AppError::Denied | AppError::CrossOrigin => StatusCode::FORBIDDEN,
        AppError::NotFound => StatusCode::NOT_FOUND,
        AppError::MethodNotAllowed => StatusCode::METHOD_NOT_ALLOWED,
        AppError::BadRequest(_) => StatusCode::BAD_REQUEST,
        AppError::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
        AppError::TooManyTries(_) => StatusCode::TOO_MANY_REQUESTS,
        AppError::OneTimeLink(_) => StatusCode::GONE,
        AppError::LastAdmin | AppError::KeychainLocked | AppError::BrokenRecipe(_) => StatusCode::CONFLICT,
        AppError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        AppError::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        AppError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What people read: what happened and what to do.
fn error_message(error: &AppError) -> (&'static str, String) {
    match error {
        AppError::NotSignedIn(_) => ("Please sign in", "Sign in and try again.".into()),
        AppError::Denied => (
            "This page is not for you",
            "Your account may not see or do this. If you think it should, ask the person who runs this portal.".into(),
        ),
        AppError::NotFound => (
            "There is nothing here",
            "The page does not exist, or it is not one that you can see. Check the address, or start from the home page.".into(),
        ),
        AppError::MethodNotAllowed => (
            "This address takes no such request",
            "It belongs to a button or a form. Go back to the page it is on and use it there. Nothing was changed.".into(),
        ),
        AppError::BadRequest(_) => (
            "The portal did not understand this request",
            "A part of the form did not arrive as expected. Go back, load the page again and try once more. Nothing was changed.".into(),
        ),
        AppError::CrossOrigin => (
            "This request came from another site",
            "For your safety, nothing was changed. If you did press a button on this portal, open the portal at its usual address and try again.".into(),
        ),
        AppError::TooLarge => (
            "That was too much text",
            "One of the fields holds far more than it is meant for. Shorten it and try again. Nothing was changed.".into(),
        ),
        AppError::TooManyTries(seconds) => ("Too many tries", format!("To keep guessers out, the next try is possible in {}.", format_wait(*seconds))),
        AppError::OneTimeLink(problem) => link_error_message(*problem),
        AppError::KeychainLocked => (
            "Your key is locked",
            "Your SSH key opens with your password when you sign in, and this browser signed in before that was possible. Sign out, sign in again and try once more. Nothing was changed.".into(),
        ),
        AppError::BrokenRecipe(problem) => (
            "This recipe cannot be used as it is",
            format!("{problem} It worked when it was saved; a part that it is made of has changed or is gone since. Whoever made it can mend it under Recipes. Jobs that ran with it are not affected."),
        ),
        AppError::LastAdmin => (
            "The portal needs an administrator",
            "This is the last administrator who can sign in. Make someone else an administrator first. Nothing was changed.".into(),
        ),
        AppError::Busy => (
            "The portal is busy",
            "It has more to do right now than it can manage. Try again in a few seconds. Nothing was changed.".into(),
        ),
        AppError::DiskFull => (
            "The portal's disk is full",
            "Nothing was changed. Please tell the person who runs this portal: it cannot store anything until there is room again.".into(),
        ),
        AppError::Internal(_) => (
            "Something went wrong on our side",
            "It is not your fault. Try again; if it happens again, tell the person who runs this portal and give them the number below.".into(),
        ),
    }
}

fn link_error_message(problem: OneTimeLinkError) -> (&'static str, String) {
    let (title, text) = match problem {
        OneTimeLinkError::Unknown => (
            "This link does not work",
            "It may be cut off or mistyped. Open it again from the message you got, or ask for a new one.",
        ),
        OneTimeLinkError::Used => (
            "This link was used before",
            "Each link works once. If it was you, simply sign in. If not, tell the person who sent it to you.",
        ),
        OneTimeLinkError::Revoked => (
            "This link was taken back",
            "The person who made it has withdrawn it, or a newer one took its place. Ask them for a new one.",
        ),
        OneTimeLinkError::Expired => {
            ("This link is too old", "Its time is over. Ask the person who sent it for a new one.")
        }
    };
    (title, text.into())
}

/// Tells scripts when to try again.
pub fn set_retry_after(response: &mut Response, seconds: i64) {
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
}

/// How long to wait before the next try.
pub fn format_wait(seconds: i64) -> String {
    crate::format::duration(seconds.max(1).unsigned_abs())
}

/// The facts about a request that decide how its response looks.
pub struct ResponseContext {
    /// The request id in the log and on error pages.
    pub request_id: HeaderValue,
    /// A message left by the previous page.
    pub flash: Option<FlashMessage>,
    cookies: cookies::RawRequestCookies,
    theme: Theme,
    /// Whether htmx asks for a fragment of an open page.
    pub is_htmx: bool,
    accepts_json: bool,
}

impl ResponseContext {
    /// Reads the context from a request. We choose the request id; one sent by the client never enters logs or pages.
    pub fn new(app: &App, request_id: String, headers: &HeaderMap) -> Self {
        let cookies = cookies::RawRequestCookies::from_headers(headers);
        let accept = headers.get(header::ACCEPT).map_or(&b""[..], HeaderValue::as_bytes);
        Self {
            request_id: request_id.try_into().unwrap_or(HeaderValue::from_static("unknown")),
            flash: cookies.get(app, CookieKind::FlashMessage).and_then(FlashMessage::parse),
            theme: cookies.get(app, CookieKind::Theme).map(Theme::parse).unwrap_or_default(),
            is_htmx: headers.contains_key("hx-request"),
            cookies,
            accepts_json: accept.starts_with(b"application/json"),
        }
    }
}

/// Gives failed requests their body.
pub async fn render_error(app: &App, context: &ResponseContext, mut response: Response) -> Response {
    let Some(UnrenderedError { title, text, internal_error }) = response.extensions_mut().remove() else {
        return response;
    };
    let request_id = context.request_id.to_str().unwrap_or_default();
    if let Some(error) = internal_error {
        tracing::error!(request.id = request_id, error, "A request failed");
    }
    let status = response.status();
    let body = if context.accepts_json {
        axum::Json(serde_json::json!({ "error": title, "what_to_do": text })).into_response()
    } else if context.is_htmx {
        let toast = ErrorToast { text: format!("{title}. {text}") };
        let headers = [("hx-retarget", "#toasts"), ("hx-reswap", "beforeend")];
        (headers, Html(toast.render().unwrap_or_else(|_| title.to_owned()))).into_response()
    } else {
        let request_id = if status.is_server_error() { request_id.to_owned() } else { String::new() };
        let mut page = PageFrame::for_anyone(context.theme, context.flash, title);
        // Signed-in people keep the navigation. If the database fails, this page must not fail with it.
        let cookie = context.cookies.get(app, CookieKind::Session).unwrap_or_default();
        if let Ok(Some(me)) = app.auth.peek_session(cookie).await {
            page = page.with_person(app, &me, NavSection::NoSection);
        }
        let page = ErrorPage { page, title, text, request_id };
        Html(page.render().unwrap_or_else(|_| title.to_owned())).into_response()
    };
    let mut rendered = (status, body).into_response();
    for (name, value) in response.headers() {
        if [header::RETRY_AFTER, header::SET_COOKIE, header::ALLOW].contains(name) {
            rendered.headers_mut().append(name, value.clone());
        }
    }
    rendered
}

/// The path exists, but not for this method.
pub async fn method_not_allowed() -> AppError {
    AppError::MethodNotAllowed
}

/// The same text for forms that show the problem next to a field.
pub fn too_many_tries_message(seconds: i64) -> String {
    format!("Too many tries. The next one is possible in {}.", format_wait(seconds))
}

/// Turns a panic in a handler into an ordinary 500.
pub fn panic_response(_: Box<dyn std::any::Any + Send + 'static>) -> Response {
    AppError::Internal("a handler panicked".into()).into_response()
}

/// Answers requests for a host name that isn't the portal's. The text is static: it repeats nothing from the request.
pub fn wrong_host_response(right: &str, setting: &str) -> Response {
    (
        StatusCode::MISDIRECTED_REQUEST,
        [(header::CONTENT_TYPE, "text/plain; charset=utf-8")],
        format!(
            "This portal does not go by the name you used. Open it at {right}\n\nIf you run this portal: set {setting} to the address people type, and let the proxy in front pass the Host header on unchanged.\n"
        ),
    )
        .into_response()
}
