//! How errors are shown: a full page, a fragment for htmx, or JSON for scripts. Only this module decides.

use askama::Template;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{Html, IntoResponse, Response};

use crate::app::App;
use crate::auth::one_time_links::OneTimeLinkError;
use crate::error::AppError;
use crate::web::http::cookies::{self, CookieKind};
use crate::web::http::flash::PendingFlash;
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
    /// What to do as an administrator, who has no one to ask.
    admin_text: Option<&'static str>,
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
        let admin_text = admin_message(&self);
        response.extensions_mut().insert(UnrenderedError { title, text, admin_text, internal_error });
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
        AppError::LastAdmin | AppError::LastPi | AppError::KeychainLocked | AppError::BrokenRecipe(_) => {
            StatusCode::CONFLICT
        }
        AppError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        AppError::DiskFull => StatusCode::INSUFFICIENT_STORAGE,
        AppError::Internal(_) => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

/// What people read: what happened and what to do.
fn error_message(error: &AppError) -> (&'static str, String) {
    match error {
        AppError::NotSignedIn(_) => ("You're signed out", "Sign in and try again.".into()),
        AppError::Denied => (
            "You don't have access to this page",
            "To get access, ask a PI of your group or your portal administrator.".into(),
        ),
        AppError::NotFound => (
            "Page not found",
            "This page doesn't exist, or you don't have access to it. Check the address, or start from the home page.".into(),
        ),
        AppError::MethodNotAllowed => (
            "This address can't be opened directly",
            "Nothing was changed. Go back, and use the button or form on the previous page.".into(),
        ),
        AppError::BadRequest(_) => (
            "Invalid request",
            "Part of the form was missing or malformed. Go back, reload the page and try again. Nothing was changed.".into(),
        ),
        AppError::CrossOrigin => (
            "This request came from another site",
            "For your safety, nothing was changed. If you did select a button in this portal, open the portal at its usual address and try again.".into(),
        ),
        AppError::TooLarge => (
            "Too much text",
            "One of the fields is far too long. Shorten it and try again. Nothing was changed.".into(),
        ),
        AppError::TooManyTries(seconds) => ("Too many attempts", format!("To protect accounts, the number of attempts is limited. Try again in {}.", format_wait(*seconds))),
        AppError::OneTimeLink(problem) => link_error_message(*problem),
        AppError::KeychainLocked => (
            "Your SSH key is locked",
            "Signing in with your password unlocks your SSH key, but you signed in before that was possible. Sign out, sign in and try again. Nothing was changed.".into(),
        ),
        AppError::BrokenRecipe(problem) => (
            "This recipe no longer works",
            format!("{problem} Something the recipe depends on has changed or been removed since it was saved. Its owner can fix it under Recipes. Jobs that ran with it aren't affected."),
        ),
        AppError::LastAdmin => (
            "The portal needs at least one administrator",
            "This person is the last administrator who can sign in. Make someone else an administrator first. Nothing was changed.".into(),
        ),
        AppError::LastPi => (
            "A group with members needs a PI",
            "This person is the only PI of the group who can sign in. Change another member to PI first. Nothing was changed.".into(),
        ),
        AppError::Busy => (
            "The portal is busy",
            "Try again in a few seconds. Nothing was changed.".into(),
        ),
        AppError::DiskFull => (
            "The portal's disk is full",
            "The portal can't save anything until space is freed. Tell your portal administrator. Nothing was changed.".into(),
        ),
        AppError::Internal(_) => (
            "Something went wrong",
            "The portal had an internal error. Try again. If it keeps happening, give your portal administrator the request ID below.".into(),
        ),
    }
}

/// What administrators read where others are told to ask one.
const fn admin_message(error: &AppError) -> Option<&'static str> {
    Some(match error {
        AppError::Denied => {
            "Administrators can't see other people's results, or the usage of groups they don't belong to. Ask a PI of \
             the group if you need them."
        }
        AppError::DiskFull => {
            "The portal can't save anything until you free space on the disk with its data folder. Nothing was changed."
        }
        AppError::Internal(_) => {
            "The portal had an internal error. Try again. If it keeps happening, look for the request ID below in the \
             portal's log."
        }
        _ => return None,
    })
}

fn link_error_message(problem: OneTimeLinkError) -> (&'static str, String) {
    let (title, text) = match problem {
        OneTimeLinkError::Unknown => (
            "Invalid link",
            "It may be incomplete or mistyped. Open it again from the message you received, or ask for a new one.",
        ),
        OneTimeLinkError::Used => (
            "This link was already used",
            "Each link works only once. If you used it, just sign in. If not, tell the person who sent it to you.",
        ),
        OneTimeLinkError::Revoked => (
            "This link was revoked",
            "The person who sent it revoked it or created a newer one. Ask them for a new link.",
        ),
        OneTimeLinkError::Expired => ("This link has expired", "Ask the person who sent it for a new one."),
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
    pub flash: Option<PendingFlash>,
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
            flash: PendingFlash::read(app, &cookies),
            theme: cookies.get(app, CookieKind::Theme).map(Theme::parse).unwrap_or_default(),
            is_htmx: headers.contains_key("hx-request"),
            cookies,
            accepts_json: accept.starts_with(b"application/json"),
        }
    }
}

/// Gives failed requests their body.
pub async fn render_error(app: &App, context: &ResponseContext, mut response: Response) -> Response {
    let Some(error) = response.extensions_mut().remove::<UnrenderedError>() else {
        return response;
    };
    let UnrenderedError { title, text, admin_text, internal_error } = error;
    let request_id = context.request_id.to_str().unwrap_or_default();
    if let Some(error) = internal_error {
        tracing::error!(request.id = request_id, error, "A request failed");
    }
    let status = response.status();
    // If the database fails, this page must not fail with it.
    let cookie = context.cookies.get(app, CookieKind::Session).unwrap_or_default();
    let me = app.auth.peek_session(cookie).await.ok().flatten();
    let text = match admin_text {
        Some(admin_text) if me.as_ref().is_some_and(|me| me.person.is_admin) => admin_text.to_owned(),
        _ => text,
    };
    let body = if context.accepts_json {
        axum::Json(serde_json::json!({ "error": title, "what_to_do": text })).into_response()
    } else if context.is_htmx {
        let toast = ErrorToast { text: format!("{title}. {text}") };
        let headers = [("hx-retarget", "#toasts"), ("hx-reswap", "beforeend")];
        (headers, Html(toast.render().unwrap_or_else(|_| title.to_owned()))).into_response()
    } else {
        let request_id = if status.is_server_error() { request_id.to_owned() } else { String::new() };
        let mut page = PageFrame::for_anyone(context.theme, context.flash.clone(), title);
        // Signed-in people keep the navigation.
        if let Some(me) = me {
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
    format!("Too many attempts. Try again in {}.", format_wait(seconds))
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
            "This portal isn't available at the address you used. Open it at {right}\n\nIf you run this portal: set {setting} to the address people use, and make sure the reverse proxy passes the Host header on unchanged.\n"
        ),
    )
        .into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn administrators_are_not_told_to_ask_themselves() {
        let errors =
            [AppError::Denied, AppError::NotFound, AppError::DiskFull, AppError::Internal("x".into()), AppError::Busy];
        for error in errors {
            let is_to_ask = error_message(&error).1.contains("your portal administrator");
            let for_admins = admin_message(&error);
            assert_eq!(for_admins.is_some(), is_to_ask, "{error:?}");
            assert!(!for_admins.unwrap_or_default().contains("portal administrator"), "{error:?}");
        }
    }
}
