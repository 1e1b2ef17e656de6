//! Entering: a ticket or a guest link becomes a cookie, and leaves the address bar at once.

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use secrecy::SecretString;
use serde::Deserialize;

use crate::app::{App, AppState};
use crate::auth::guest_links::{GuestViewingSession, OpenGuestLinkError};
use crate::auth::{AuthError, RequestClient};
use crate::dashboards::DashboardAccessError;
use crate::web::dashboard_origin::viewer::{self, GuestMessage};
use crate::web::dashboard_origin::{GuestContentKind, access_cookie, check_access, is_token};
use crate::web::http::errors::{format_wait, set_retry_after};
use crate::web::http::extractors::{FormBody, PathParams};
use crate::web::http::visitor::visitor_from_request;

/// Lets a portal user in with a ticket, which works once and for a minute.
pub async fn by_ticket(State(app): State<AppState>, PathParams(ticket): PathParams<String>, parts: Parts) -> Response {
    if !is_token(&ticket) {
        return viewer::show_message(&app, StatusCode::GONE, &TICKET_EXPIRED);
    }
    match app.dashboards.redeem_ticket(&ticket, &visitor_from_parts(&app, &parts)).await {
        Ok(Some(entered)) => redirect_with_cookie(&app, GuestContentKind::Dashboard, &entered),
        Ok(None) => viewer::show_message(&app, StatusCode::GONE, &TICKET_EXPIRED),
        Err(error) => show_auth_error(&app, &error),
    }
}

/// Lets a guest in with a guest link.
pub async fn by_link(State(app): State<AppState>, PathParams(token): PathParams<String>, parts: Parts) -> Response {
    // A token of another length isn't ours, and counts as a try like any other guess.
    let opened = app.dashboards.open_guest_link(&token, &visitor_from_parts(&app, &parts)).await;
    respond_to_link(&app, GuestContentKind::Dashboard, opened)
}

/// The response to an opened guest link, to a dashboard or a report.
pub fn respond_to_link(
    app: &App,
    thing: GuestContentKind,
    opened: Result<GuestViewingSession, OpenGuestLinkError>,
) -> Response {
    match opened {
        Ok(entered) => redirect_with_cookie(app, thing, &entered),
        Err(OpenGuestLinkError::Unknown) => viewer::show_message(app, StatusCode::NOT_FOUND, &LINK_NOT_FOUND),
        Err(OpenGuestLinkError::Revoked) => viewer::show_message(app, StatusCode::GONE, &LINK_REVOKED),
        Err(OpenGuestLinkError::Expired(at)) => viewer::show_expired_link(app, thing, at),
        Err(OpenGuestLinkError::Auth(error)) => show_auth_error(app, &error),
    }
}

#[derive(Deserialize)]
pub struct GuestPassphraseForm {
    pub passphrase: SecretString,
}

/// Checks a guest's passphrase.
pub async fn unlock(
    State(app): State<AppState>,
    PathParams(word): PathParams<String>,
    parts: Parts,
    FormBody(form): FormBody<GuestPassphraseForm>,
) -> Response {
    let to = format!("{}/", GuestContentKind::Dashboard.base_path(&word));
    let pass = match check_access(&app, &word, &parts.headers).await {
        Err(DashboardAccessError::Locked(pass)) => pass,
        Ok(_) => return see_other(&to),
        Err(error) => return viewer::show_no_access(&app, &error),
    };
    let tried = app.dashboards.unlock(&pass, &form.passphrase, &visitor_from_parts(&app, &parts)).await;
    respond_to_unlock(&app, &to, tried, |problem| viewer::show_dashboard_passphrase(&pass, problem))
}

/// The response to a passphrase: on to the page, or the form again with the error.
pub fn respond_to_unlock(
    app: &App,
    to: &str,
    tried: Result<bool, AuthError>,
    again: impl Fn(&str) -> Response,
) -> Response {
    match tried {
        Ok(true) => see_other(to),
        Ok(false) => again("This is not the passphrase. Check it and try again."),
        Err(AuthError::TooManyTries(seconds)) => {
            let text = format!("Too many tries. The next one is possible in {}.", format_wait(seconds));
            let mut answer = again(&text);
            *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            set_retry_after(&mut answer, seconds);
            answer
        }
        Err(error) => show_auth_error(app, &error),
    }
}

const TICKET_EXPIRED: GuestMessage = GuestMessage {
    title: "This way in was used already, or is too old",
    text: "Open the dashboard again from its page in the portal.",
};
const LINK_NOT_FOUND: GuestMessage = GuestMessage {
    title: "There is no such link",
    text: "It may be cut off or mistyped. Open it again from the message you got, or ask whoever sent it for a new one.",
};
const LINK_REVOKED: GuestMessage = GuestMessage {
    title: "This link was taken back",
    text: "Whoever shared it has withdrawn the link. Ask them for a new one.",
};

pub fn visitor_from_parts(app: &App, parts: &Parts) -> RequestClient {
    visitor_from_request(parts, &app.config.proxy.trusted)
}

fn redirect_with_cookie(app: &App, thing: GuestContentKind, entered: &GuestViewingSession) -> Response {
    let mut headers = HeaderMap::new();
    if let Ok(value) = access_cookie(app, thing, entered).to_string().parse() {
        headers.insert(header::SET_COOKIE, value);
    }
    (headers, see_other(&format!("{}/", thing.base_path(&entered.path_token)))).into_response()
}

pub fn see_other(to: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, to.to_owned())]).into_response()
}

pub fn show_auth_error(app: &App, error: &AuthError) -> Response {
    match error {
        AuthError::TooManyTries(seconds) => {
            let mut answer = viewer::show_message(app, StatusCode::TOO_MANY_REQUESTS, &TOO_MANY_TRIES);
            set_retry_after(&mut answer, *seconds);
            answer
        }
        error => {
            tracing::error!(%error, "Someone could not be let in by a link or ticket");
            viewer::show_message(app, StatusCode::SERVICE_UNAVAILABLE, &viewer::BUSY)
        }
    }
}

const TOO_MANY_TRIES: GuestMessage = GuestMessage {
    title: "Too many tries",
    text: "Links that do not exist were asked for too often from here. Wait a minute and try again.",
};
