//! Coming in: a ticket or a link becomes a cookie, and leaves the address bar at once.

use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use secrecy::SecretString;
use serde::Deserialize;

use super::super::errors::{retry_after, wait};
use super::super::extract::{Form, Path};
use super::super::visitor::visitor;
use super::look::{self, Words};
use super::{Thing, check, cookie, is_word};
use crate::app::{App, AppState};
use crate::auth::guest_links::{OpenGuestLinkError, ViewingSession};
use crate::auth::{AuthError, Visitor};
use crate::boards::NoEntry;

/// Someone of the portal comes with a ticket, which works once and for a minute.
pub async fn by_ticket(
    State(app): State<AppState>,
    Path(ticket): Path<String>,
    parts: Parts,
) -> Response {
    if !is_word(&ticket) {
        return look::say(&app, StatusCode::GONE, &OLD_TICKET);
    }
    match app.dashboards.enter(&ticket, &visit(&app, &parts)).await {
        Ok(Some(entered)) => lead_in(&app, Thing::Dashboard, &entered),
        Ok(None) => look::say(&app, StatusCode::GONE, &OLD_TICKET),
        Err(error) => trouble(&app, &error),
    }
}

/// A guest comes by a link.
pub async fn by_link(
    State(app): State<AppState>,
    Path(token): Path<String>,
    parts: Parts,
) -> Response {
    // Of another length it is none of ours, and costs a try like any other guess.
    let opened = app.dashboards.visit(&token, &visit(&app, &parts)).await;
    opened_link(&app, Thing::Dashboard, opened)
}

/// The answer to whoever opens a link, to whatever it leads.
pub fn opened_link(
    app: &App,
    thing: Thing,
    opened: Result<ViewingSession, OpenGuestLinkError>,
) -> Response {
    match opened {
        Ok(entered) => lead_in(app, thing, &entered),
        Err(OpenGuestLinkError::Unknown) => look::say(app, StatusCode::NOT_FOUND, &NO_LINK),
        Err(OpenGuestLinkError::Revoked) => look::say(app, StatusCode::GONE, &TAKEN_BACK),
        Err(OpenGuestLinkError::Expired(at)) => look::expired(app, thing, at),
        Err(OpenGuestLinkError::Auth(error)) => trouble(app, &error),
    }
}

/// What a guest fills in.
#[derive(Deserialize)]
pub struct Unlock {
    pub passphrase: SecretString,
}

/// A guest tells the passphrase.
pub async fn unlock(
    State(app): State<AppState>,
    Path(word): Path<String>,
    parts: Parts,
    Form(form): Form<Unlock>,
) -> Response {
    let to = format!("{}/", Thing::Dashboard.base(&word));
    let pass = match check(&app, &word, &parts.headers).await {
        Err(NoEntry::Locked(pass)) => pass,
        Ok(_) => return see_other(&to),
        Err(error) => return look::no_entry(&app, &error),
    };
    let tried = app.dashboards.unlock(&pass, &form.passphrase, &visit(&app, &parts)).await;
    unlocked(&app, &to, tried, |problem| look::locked_board(&pass, problem))
}

/// The answer to whoever tells a passphrase: to its place, or the same question with what was wrong.
pub fn unlocked(
    app: &App,
    to: &str,
    tried: Result<bool, AuthError>,
    again: impl Fn(&str) -> Response,
) -> Response {
    match tried {
        Ok(true) => see_other(to),
        Ok(false) => again("This is not the passphrase. Check it and try again."),
        Err(AuthError::TooManyTries(seconds)) => {
            let text = format!("Too many tries. The next one is possible in {}.", wait(seconds));
            let mut answer = again(&text);
            *answer.status_mut() = StatusCode::TOO_MANY_REQUESTS;
            retry_after(&mut answer, seconds);
            answer
        }
        Err(error) => trouble(app, &error),
    }
}

const OLD_TICKET: Words = Words {
    title: "This way in was used already, or is too old",
    text: "Open the dashboard again from its page in the portal.",
};
const NO_LINK: Words = Words {
    title: "There is no such link",
    text: "It may be cut off or mistyped. Open it again from the message you got, or ask whoever sent it for a new one.",
};
const TAKEN_BACK: Words = Words {
    title: "This link was taken back",
    text: "Whoever shared it has withdrawn the link. Ask them for a new one.",
};

pub fn visit(app: &App, parts: &Parts) -> Visitor {
    visitor(parts, &app.config.proxy.trusted)
}

fn lead_in(app: &App, thing: Thing, entered: &ViewingSession) -> Response {
    let mut headers = HeaderMap::new();
    if let Ok(value) = cookie(app, thing, entered).to_string().parse() {
        headers.insert(header::SET_COOKIE, value);
    }
    (headers, see_other(&format!("{}/", thing.base(&entered.path_token)))).into_response()
}

pub fn see_other(to: &str) -> Response {
    (StatusCode::SEE_OTHER, [(header::LOCATION, to.to_owned())]).into_response()
}

pub fn trouble(app: &App, error: &AuthError) -> Response {
    match error {
        AuthError::TooManyTries(seconds) => {
            let mut answer = look::say(app, StatusCode::TOO_MANY_REQUESTS, &TOO_MANY);
            retry_after(&mut answer, *seconds);
            answer
        }
        error => {
            tracing::error!(%error, "Someone could not be let in by a link or ticket");
            look::say(app, StatusCode::SERVICE_UNAVAILABLE, &look::BUSY)
        }
    }
}

const TOO_MANY: Words = Words {
    title: "Too many tries",
    text: "Links that do not exist were asked for too often from here. Wait a minute and try again.",
};
