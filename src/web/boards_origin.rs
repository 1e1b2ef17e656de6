//! The dashboards' own origin: what is shown here are programs that are not ours, so nothing of the portal is here, not
//! even its cookies. A browser enters by a ticket or a link, gets an address and a cookie of its own for one dashboard,
//! and sees a slim bar around it.

mod enter;
mod look;
mod through;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use axum_extra::extract::cookie::{Cookie, SameSite};

use super::assets;
use super::cookies::Sent;
use crate::app::{App, AppState};
use crate::auth::shares::Entered;
use crate::boards::{NoEntry, Pass};
use crate::probe::BOARDS_MARK;

/// Largest form of our own pages here: a passphrase.
const BODY_MAX: usize = 4 * 1024;

/// All addresses of this origin.
pub fn routes() -> Router<AppState> {
    let own = Router::new()
        .route("/enter/{ticket}", get(enter::by_ticket))
        .route("/s/{token}", get(enter::by_link))
        .route("/b/{word}/", get(look::get))
        .route("/b/{word}/bar", get(look::bar))
        .route("/b/{word}/unlock", post(enter::unlock))
        .route("/assets/{name}", get(assets::get))
        .layer(DefaultBodyLimit::max(BODY_MAX));
    Router::new()
        .route("/b/{word}/app/", any(through::pass))
        .route("/b/{word}/app/{*rest}", any(through::pass))
        .merge(own)
        .fallback(nothing_here)
}

/// The answer to any address that is not a dashboard. Static: nothing of the request is repeated.
async fn nothing_here(State(_): State<AppState>) -> Response {
    (
        StatusCode::NOT_FOUND,
        [(header::CONTENT_TYPE.as_str(), "text/plain; charset=utf-8"), (BOARDS_MARK, "1")],
        "There is no dashboard at this address. Open dashboards from the portal.\n",
    )
        .into_response()
}

/// Marks an answer that comes from a dashboard and not from us.
#[derive(Debug, Clone, Copy)]
pub struct Foreign;

/// The address of a browser's place.
fn base(word: &str) -> String {
    format!("/b/{word}")
}

/// Words are letters and digits as we make them; anything else is not looked up.
fn is_word(word: &str) -> bool {
    word.len() == 43
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Whether the browser behind these headers may look at the place of this word.
async fn check(app: &App, word: &str, headers: &HeaderMap) -> Result<Pass, NoEntry> {
    if !is_word(word) {
        return Err(NoEntry::Closed);
    }
    app.boards.check(word, Sent::of(headers).named(cookie_name(app))).await
}

fn cookie_name(app: &App) -> &'static str {
    if app.config.boards.public_url.is_https() {
        "__Secure-portolan_board"
    } else {
        "portolan_board"
    }
}

/// The cookie of a browser that was let in: for its place only.
fn cookie(app: &App, entered: &Entered) -> Cookie<'static> {
    Cookie::build((cookie_name(app), entered.cookie.as_str().to_owned()))
        .path(format!("{}/", base(&entered.word)))
        .http_only(true)
        .secure(app.config.boards.public_url.is_https())
        .same_site(SameSite::Lax)
        .max_age(time::Duration::seconds(entered.seconds))
        .build()
}
