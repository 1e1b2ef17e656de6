//! Entering: a ticket or a guest link becomes a cookie, and leaves the address bar at once.

use axum::Extension;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use secrecy::SecretString;
use serde::Deserialize;

use crate::app::{App, AppState};
use crate::auth::guest_links::{GuestAccessError, GuestLinkTargetKind, NewViewerAccess, OpenGuestLinkError};
use crate::auth::{AuthError, RequestClient};
use crate::web::dashboard_origin::viewer::{self, GuestMessage};
use crate::web::dashboard_origin::{access_cookie, check_dashboard_access, check_guest_access, is_token};
use crate::web::http::errors::{format_wait, set_retry_after};
use crate::web::http::extractors::{FormBody, PathParams};
use crate::web::http::visitor::visitor_from_request;

/// Lets a portal user in with a ticket, which works once and for a minute.
pub async fn by_ticket(State(app): State<AppState>, PathParams(ticket): PathParams<String>, parts: Parts) -> Response {
    if !is_token(&ticket) {
        return viewer::show_message(StatusCode::GONE, &TICKET_EXPIRED);
    }
    match app.dashboards.redeem_ticket(&ticket, &visitor_from_parts(&app, &parts)).await {
        Ok(Some(session)) => redirect_with_cookie(&app, GuestLinkTargetKind::Dashboard, &session),
        Ok(None) => viewer::show_message(StatusCode::GONE, &TICKET_EXPIRED),
        Err(error) => show_auth_error(&error),
    }
}

/// Lets a guest in with a guest link. A token of another length isn't ours, and counts as a try like any other guess.
pub async fn by_link(
    State(app): State<AppState>,
    Extension(kind): Extension<GuestLinkTargetKind>,
    PathParams(token): PathParams<String>,
    parts: Parts,
) -> Response {
    let visitor = visitor_from_parts(&app, &parts);
    let opened = match kind {
        GuestLinkTargetKind::Dashboard => app.dashboards.open_guest_link(&token, &visitor).await,
        GuestLinkTargetKind::Report | GuestLinkTargetKind::Files | GuestLinkTargetKind::DropBox => {
            app.auth.open_guest_link(kind, &token, &visitor).await.map(|(_, session)| session)
        }
    };
    match opened {
        Ok(session) => redirect_with_cookie(&app, kind, &session),
        Err(OpenGuestLinkError::Unknown) => viewer::show_message(StatusCode::NOT_FOUND, &LINK_NOT_FOUND),
        Err(OpenGuestLinkError::Revoked) => viewer::show_message(StatusCode::GONE, &LINK_REVOKED),
        Err(OpenGuestLinkError::Expired(at)) => viewer::show_expired_link(kind, at),
        Err(OpenGuestLinkError::Auth(error)) => show_auth_error(&error),
    }
}

#[derive(Deserialize)]
pub struct GuestPassphraseForm {
    passphrase: SecretString,
}

/// Checks a guest's passphrase: on to the page, or the form again with the error.
pub async fn unlock(
    State(app): State<AppState>,
    Extension(kind): Extension<GuestLinkTargetKind>,
    PathParams(access_key): PathParams<String>,
    parts: Parts,
    FormBody(form): FormBody<GuestPassphraseForm>,
) -> Response {
    let page = format!("{}/", kind.base_path(&access_key));
    let checked = match kind {
        GuestLinkTargetKind::Dashboard => check_dashboard_access(&app, &access_key, &parts.headers).await.map(drop),
        GuestLinkTargetKind::Report | GuestLinkTargetKind::Files | GuestLinkTargetKind::DropBox => {
            check_guest_access(&app, kind, &access_key, &parts.headers).await.map(drop)
        }
    };
    let access = match checked {
        Err(GuestAccessError::Locked(access)) => access,
        Ok(()) => return see_other(&page),
        Err(error) => return viewer::show_no_access(kind, &error),
    };
    match app.auth.unlock_guest_access(&access, &form.passphrase, &visitor_from_parts(&app, &parts)).await {
        Ok(true) => see_other(&page),
        Ok(false) => viewer::show_passphrase_form(&access, "Wrong passphrase. Check it and try again."),
        Err(AuthError::TooManyTries(seconds)) => {
            let problem = format!("Too many attempts. Try again in {}.", format_wait(seconds));
            let mut response = viewer::show_passphrase_form(&access, &problem);
            *response.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            set_retry_after(&mut response, seconds);
            response
        }
        Err(error) => show_auth_error(&error),
    }
}

const TICKET_EXPIRED: GuestMessage = GuestMessage {
    title: "This link has expired or was already used",
    text: "Open the dashboard again from the portal.",
};
const LINK_NOT_FOUND: GuestMessage = GuestMessage {
    title: "Invalid link",
    text: "It may be incomplete or mistyped. Open it again from the message you received, or ask the person who sent it for a new one.",
};
const LINK_REVOKED: GuestMessage =
    GuestMessage { title: "This link was revoked", text: "Ask the person who sent it for a new one." };
const TOO_MANY_TRIES: GuestMessage = GuestMessage {
    title: "Too many attempts",
    text: "Too many links were opened from your network in a short time. Wait a minute and try again.",
};

fn visitor_from_parts(app: &App, parts: &Parts) -> RequestClient {
    visitor_from_request(parts, &app.config.proxy.trusted)
}

fn redirect_with_cookie(app: &App, kind: GuestLinkTargetKind, session: &NewViewerAccess) -> Response {
    let mut headers = HeaderMap::new();
    if let Ok(value) = access_cookie(app, kind, session).to_string().parse() {
        headers.insert(header::SET_COOKIE, value);
    }
    (headers, see_other(&format!("{}/", kind.base_path(&session.access_key)))).into_response()
}

fn see_other(to: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, to.to_owned())]).into_response()
}

pub fn show_auth_error(error: &AuthError) -> Response {
    match error {
        AuthError::TooManyTries(seconds) => {
            let mut response = viewer::show_message(StatusCode::TOO_MANY_REQUESTS, &TOO_MANY_TRIES);
            set_retry_after(&mut response, *seconds);
            response
        }
        error => {
            tracing::error!(%error, "Could not open a guest link or ticket");
            viewer::show_message(StatusCode::SERVICE_UNAVAILABLE, &viewer::BUSY)
        }
    }
}
