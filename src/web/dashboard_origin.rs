//! The dashboards' own origin. It serves programs that aren't ours, so nothing of the portal is reachable here, not
//! even its cookies. A browser enters with a ticket or a guest link, gets its own path and cookie for one dashboard,
//! and sees a slim bar around it. Guests also view frozen reports and files here, and upload some, with the same kind of
//! link, and the portal's own pages show a person's PDF from here in a frame.

mod drop_box;
mod enter;
mod files;
mod link_end;
mod pdf;
mod proxy_request;
mod report;
mod viewer;

use axum::extract::{DefaultBodyLimit, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{any, get, patch, post};
use axum::{Extension, Router};
use axum_extra::extract::cookie::{Cookie, SameSite};
use tower_http::timeout::RequestBodyTimeoutLayer;

use crate::app::{App, AppState};
use crate::auth::guest_links::{GuestAccessError, GuestBrowserAccess, GuestLinkTargetKind, NewViewerAccess};
use crate::dashboards::CheckedDashboardAccess;
use crate::probe::DASHBOARD_ORIGIN_HEADER;
use crate::web::http::assets;
use crate::web::http::cookies::RawRequestCookies;
use crate::web::http::middleware::BODY_TIMEOUT;
use crate::web::http::stream_limits::{MAX_DOWNLOADS, OpenResponseLimiter};
use crate::web::pages::files::uploads;

/// The largest form on our own pages here holds only a passphrase.
const MAX_BODY_BYTES: usize = 4 * 1024;

pub fn routes() -> Router<AppState> {
    let dashboard_links = Router::new()
        .route("/s/{token}", get(enter::by_link))
        .route("/b/{word}/unlock", post(enter::unlock))
        .layer(Extension(GuestLinkTargetKind::Dashboard));
    let report_links = Router::new()
        .route("/r/{token}", get(enter::by_link))
        .route("/report/{word}/unlock", post(enter::unlock))
        .layer(Extension(GuestLinkTargetKind::Report));
    let previews =
        Router::new().route("/pdf/{token}", get(pdf::get)).layer(Extension(OpenResponseLimiter::new(MAX_DOWNLOADS)));
    let file_links = Router::new()
        .route("/f/{token}", get(enter::by_link))
        .route("/files/{word}/unlock", post(enter::unlock))
        .route("/files/{word}/", get(files::get))
        .route("/files/{word}/content", get(files::get_content))
        .route("/files/{word}/download", get(files::downloads::get_file))
        .route("/files/{word}/picture", get(files::downloads::get_picture))
        .route("/files/{word}/archive", get(files::downloads::get_archive))
        .layer((
            Extension(GuestLinkTargetKind::Files),
            Extension(OpenResponseLimiter::new(files::MAX_GUEST_DOWNLOADS)),
        ));
    let drop_boxes = Router::new()
        .route("/d/{token}", get(enter::by_link))
        .route("/drop-box/{word}/unlock", post(enter::unlock))
        .route("/drop-box/{word}/", get(drop_box::get))
        .route("/drop-box/{word}/uploads", post(drop_box::create).options(uploads::options))
        .route(
            "/drop-box/{word}/uploads/{id}",
            patch(drop_box::patch).head(drop_box::head).delete(drop_box::delete).options(uploads::options),
        )
        .route("/drop-box/{word}/uploads/{id}/finish", post(drop_box::finish))
        .layer(Extension(GuestLinkTargetKind::DropBox));
    let own = Router::new()
        .route("/enter/{ticket}", get(enter::by_ticket))
        .route("/b/{word}/", get(viewer::get))
        .route("/b/{word}/bar", get(viewer::poll_bar))
        .route("/report/{word}/", get(report::get))
        .route("/assets/{name}", get(assets::get))
        .merge(dashboard_links)
        .merge(report_links)
        .merge(previews)
        .merge(file_links)
        .merge(drop_boxes)
        .layer((DefaultBodyLimit::max(MAX_BODY_BYTES), RequestBodyTimeoutLayer::new(BODY_TIMEOUT)));
    Router::new()
        .route("/b/{word}/app/", any(proxy_request::handle))
        .route("/b/{word}/app/{*rest}", any(proxy_request::handle))
        .merge(own)
        .fallback(not_found)
}

/// Answers any path that isn't a dashboard or a guest's page. The text is static: it repeats nothing from the request.
async fn not_found(State(_): State<AppState>) -> Response {
    (
        StatusCode::NOT_FOUND,
        [(header::CONTENT_TYPE.as_str(), "text/plain; charset=utf-8"), (DASHBOARD_ORIGIN_HEADER, "1")],
        "There is no dashboard at this address. Open your dashboards from the portal.\n",
    )
        .into_response()
}

/// Answers a request that no page of ours sends.
pub fn show_bad_request(status: StatusCode) -> Response {
    viewer::show_message(status, &viewer::BAD_REQUEST)
}

/// Marks a response that comes from a dashboard rather than from the portal.
#[derive(Debug, Clone, Copy)]
pub struct ProxiedResponseMarker;

/// Our tokens consist of letters and digits; anything else isn't looked up.
fn is_token(text: &str) -> bool {
    text.len() == 43 && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
}

/// Checks whether the browser that sent these headers may view the dashboard of this access key.
async fn check_dashboard_access(
    app: &App,
    access_key: &str,
    headers: &HeaderMap,
) -> Result<CheckedDashboardAccess, GuestAccessError> {
    let cookie = read_cookie(app, GuestLinkTargetKind::Dashboard, access_key, headers)?;
    app.dashboards.check_access(access_key, &cookie).await
}

/// The same for anything else that guests see: a report, files.
async fn check_guest_access(
    app: &App,
    kind: GuestLinkTargetKind,
    access_key: &str,
    headers: &HeaderMap,
) -> Result<GuestBrowserAccess, GuestAccessError> {
    let cookie = read_cookie(app, kind, access_key, headers)?;
    app.auth.check_guest_access(kind, access_key, &cookie).await
}

/// The cookie that goes with an access key.
fn read_cookie(
    app: &App,
    kind: GuestLinkTargetKind,
    access_key: &str,
    headers: &HeaderMap,
) -> Result<String, GuestAccessError> {
    let cookies = RawRequestCookies::from_headers(headers);
    let cookie = cookies.get_by_name(kind.cookie_name(app)).filter(|_| is_token(access_key));
    cookie.map(str::to_owned).ok_or(GuestAccessError::Closed)
}

/// Each kind has its own cookies and paths, so that neither opens the other.
impl GuestLinkTargetKind {
    const fn noun(self) -> &'static str {
        match self {
            Self::Dashboard => "dashboard",
            Self::Report => "report",
            Self::Files => "link",
            Self::DropBox => "drop-box",
        }
    }

    /// What stands before the secret part of a link.
    pub(in crate::web) const fn link_prefix(self) -> &'static str {
        match self {
            Self::Dashboard => "/s",
            Self::Report => "/r",
            Self::Files => "/f",
            Self::DropBox => "/d",
        }
    }

    /// The path of a browser's viewing session.
    fn base_path(self, access_key: &str) -> String {
        match self {
            Self::Dashboard => format!("/b/{access_key}"),
            Self::Report => format!("/report/{access_key}"),
            Self::Files => format!("/files/{access_key}"),
            Self::DropBox => format!("/drop-box/{access_key}"),
        }
    }

    fn cookie_name(self, app: &App) -> &'static str {
        match (self, app.config.dashboards.public_url.is_https()) {
            (Self::Dashboard, true) => "__Secure-portolan_board",
            (Self::Dashboard, false) => "portolan_board",
            (Self::Report, true) => "__Secure-portolan_report",
            (Self::Report, false) => "portolan_report",
            (Self::Files, true) => "__Secure-portolan_files",
            (Self::Files, false) => "portolan_files",
            (Self::DropBox, true) => "__Secure-portolan_drop_box",
            (Self::DropBox, false) => "portolan_drop_box",
        }
    }
}

/// The cookie of a browser that was let in, valid only under the path of its viewing session.
fn access_cookie(app: &App, kind: GuestLinkTargetKind, session: &NewViewerAccess) -> Cookie<'static> {
    Cookie::build((kind.cookie_name(app), session.cookie.as_str().to_owned()))
        .path(format!("{}/", kind.base_path(&session.access_key)))
        .http_only(true)
        .secure(app.config.dashboards.public_url.is_https())
        .same_site(SameSite::Lax)
        .max_age(time::Duration::seconds(session.lifetime_secs))
        .build()
}
