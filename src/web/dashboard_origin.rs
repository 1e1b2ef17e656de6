//! The dashboards' own origin. It serves programs that aren't ours, so nothing of the portal is reachable here, not
//! even its cookies. A browser enters with a ticket or a guest link, gets its own path and cookie for one dashboard,
//! and sees a slim bar around it. Guests also view frozen reports here, with the same kind of link.

mod enter;
mod proxy_request;
mod report;
mod viewer;

use axum::Router;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, post};
use axum_extra::extract::cookie::{Cookie, SameSite};

use crate::app::{App, AppState};
use crate::auth::guest_links::GuestViewingSession;
use crate::dashboards::{CheckedDashboardAccess, DashboardAccessError};
use crate::probe::DASHBOARD_ORIGIN_HEADER;
use crate::web::http::assets;
use crate::web::http::cookies::RequestCookies;

/// The largest form on our own pages here holds only a passphrase.
const MAX_BODY_BYTES: usize = 4 * 1024;

pub fn routes() -> Router<AppState> {
    let own = Router::new()
        .route("/enter/{ticket}", get(enter::by_ticket))
        .route("/s/{token}", get(enter::by_link))
        .route("/b/{word}/", get(viewer::get))
        .route("/b/{word}/bar", get(viewer::poll_bar))
        .route("/b/{word}/unlock", post(enter::unlock))
        .route("/r/{token}", get(report::by_link))
        .route("/report/{word}/", get(report::get))
        .route("/report/{word}/unlock", post(report::unlock))
        .route("/assets/{name}", get(assets::get))
        .layer(DefaultBodyLimit::max(MAX_BODY_BYTES));
    Router::new()
        .route("/b/{word}/app/", any(proxy_request::handle))
        .route("/b/{word}/app/{*rest}", any(proxy_request::handle))
        .merge(own)
        .fallback(not_found)
}

/// Answers any path that isn't a dashboard. The text is static: it repeats nothing from the request.
async fn not_found(State(_): State<AppState>) -> Response {
    (
        StatusCode::NOT_FOUND,
        [(header::CONTENT_TYPE.as_str(), "text/plain; charset=utf-8"), (DASHBOARD_ORIGIN_HEADER, "1")],
        "There is no dashboard at this address. Open dashboards from the portal.\n",
    )
        .into_response()
}

/// Marks a response that comes from a dashboard rather than from the portal.
#[derive(Debug, Clone, Copy)]
pub struct ProxiedResponseMarker;

/// The path of a browser's viewing session.
fn dashboard_base_path(word: &str) -> String {
    format!("/b/{word}")
}

/// Our tokens consist of letters and digits; anything else isn't looked up.
fn is_token(word: &str) -> bool {
    word.len() == 43 && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Checks whether the browser that sent these headers may use the viewing session of this token.
async fn check_access(
    app: &App,
    word: &str,
    headers: &HeaderMap,
) -> Result<CheckedDashboardAccess, DashboardAccessError> {
    if !is_token(word) {
        return Err(DashboardAccessError::Closed);
    }
    app.dashboards
        .check_access(
            word,
            RequestCookies::from_headers(headers).get_by_name(GuestContentKind::Dashboard.cookie_name(app)),
        )
        .await
}

/// What guests can view here. Each kind has its own cookies and paths, so that neither opens the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum GuestContentKind {
    Dashboard,
    Report,
}

impl GuestContentKind {
    const fn noun(self) -> &'static str {
        match self {
            Self::Dashboard => "dashboard",
            Self::Report => "report",
        }
    }

    /// The path of a browser's viewing session.
    fn base_path(self, word: &str) -> String {
        match self {
            Self::Dashboard => dashboard_base_path(word),
            Self::Report => format!("/report/{word}"),
        }
    }

    fn cookie_name(self, app: &App) -> &'static str {
        match (self, app.config.dashboards.public_url.is_https()) {
            (Self::Dashboard, true) => "__Secure-portolan_board",
            (Self::Dashboard, false) => "portolan_board",
            (Self::Report, true) => "__Secure-portolan_report",
            (Self::Report, false) => "portolan_report",
        }
    }
}

/// The cookie of a browser that was let in, valid only under the path of its viewing session.
fn access_cookie(app: &App, thing: GuestContentKind, entered: &GuestViewingSession) -> Cookie<'static> {
    Cookie::build((thing.cookie_name(app), entered.cookie.as_str().to_owned()))
        .path(format!("{}/", thing.base_path(&entered.path_token)))
        .http_only(true)
        .secure(app.config.dashboards.public_url.is_https())
        .same_site(SameSite::Lax)
        .max_age(time::Duration::seconds(entered.lifetime_secs))
        .build()
}
