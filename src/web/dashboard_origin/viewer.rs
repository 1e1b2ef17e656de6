//! Our own pages on this origin: the bar around a dashboard, the passphrase form, and the messages shown when there
//! is no dashboard to show.

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use serde::Serialize;

use crate::app::{App, AppState};
use crate::auth::guest_links::{GuestAccessError, GuestBrowserAccess, GuestLinkTargetKind};
use crate::clock::UnixTime;
use crate::dashboards::{CheckedDashboardAccess, DashboardKind, DashboardViewer, DashboardWithRuns};
use crate::store::dashboards::runs::{DashboardRun as RunRow, DashboardRunState as Run};
use crate::web::dashboard_origin::check_dashboard_access;
use crate::web::http::assets;
use crate::web::http::extractors::PathParams;

/// What happened and what to do.
pub struct GuestMessage {
    pub title: &'static str,
    pub text: &'static str,
}

/// Shown when the portal itself has a problem.
pub const BAD_REQUEST: GuestMessage = GuestMessage {
    title: "This request isn't valid",
    text: "Go back and try again. If you received a link, open it again from the message.",
};
pub const BUSY: GuestMessage = GuestMessage {
    title: "The portal can't show this right now",
    text: "The portal is busy or has a problem. Try again in a minute.",
};
const DASHBOARD_CLOSED: GuestMessage = GuestMessage {
    title: "You don't have access to this dashboard",
    text: "The link may have expired or been revoked, or it was opened in another browser. If you received a link, open it again. If you have an account, open the dashboard from the portal.",
};
const REPORT_CLOSED: GuestMessage = GuestMessage {
    title: "You don't have access to this report",
    text: "The link may have expired or been revoked, or it was opened in another browser. If you received a link, open it again.",
};
const FILES_CLOSED: GuestMessage = GuestMessage {
    title: "You don't have access to this page",
    text: "The link may have expired or been revoked, or it was opened in another browser. If you received a link, open it again.",
};

#[derive(Template)]
#[template(path = "dashboard_origin/message.html")]
struct GuestMessagePage<'a> {
    assets: DashboardOriginAssetUrls,
    title: &'a str,
    text: &'a str,
}

#[derive(Template)]
#[template(path = "dashboard_origin/passphrase.html")]
struct GuestPassphrasePage<'a> {
    assets: DashboardOriginAssetUrls,
    noun: &'static str,
    base: String,
    owner: &'a str,
    problem: &'a str,
}

#[derive(Template)]
#[template(path = "dashboard_origin/dashboard_frame.html")]
struct DashboardFramePage {
    assets: DashboardOriginAssetUrls,
    base: String,
    /// The code of the dashboard's kind.
    program: &'static str,
    /// The URL fragment that the dashboard opens at, unless the script finds a better one.
    initial_hash: &'static str,
    bar: DashboardBar,
    unavailable: Option<DashboardUnavailability>,
}

/// URLs of styles and scripts.
pub struct DashboardOriginAssetUrls {
    pub css: &'static str,
    pub dashboard_css: &'static str,
    pub js: &'static str,
    pub icon: &'static str,
}

impl DashboardOriginAssetUrls {
    pub fn new() -> Self {
        Self {
            css: assets::asset_url("app.css"),
            dashboard_css: assets::asset_url("dashboard_frame.css"),
            js: assets::asset_url("dashboard_frame.js"),
            icon: assets::asset_url("favicon.svg"),
        }
    }
}

struct DashboardBar {
    kind: &'static str,
    title: String,
    places: Vec<String>,
    /// Who shared it; empty for its owner.
    shared_by: String,
    /// When a guest's access ends.
    until: Option<UnixTime>,
    /// When the run ends, unless a follow-up run takes over.
    ends: Option<UnixTime>,
    is_followed: bool,
    /// Where its owner manages it; empty for guests.
    portal: String,
    is_owner: bool,
    key: String,
}

/// Why there is nothing to show now.
struct DashboardUnavailability {
    title: &'static str,
    text: String,
    since: Option<UnixTime>,
    is_coming: bool,
}

/// The page around a dashboard.
pub async fn get(
    State(app): State<AppState>,
    PathParams(access_key): PathParams<String>,
    headers: HeaderMap,
) -> Response {
    let access = match check_dashboard_access(&app, &access_key, &headers).await {
        Ok(access) => access,
        Err(error) => return show_no_access(GuestLinkTargetKind::Dashboard, &error),
    };
    let Ok(status) = app.dashboards.status_for(&access).await else {
        return show_message(StatusCode::SERVICE_UNAVAILABLE, &BUSY);
    };
    let page = DashboardFramePage {
        assets: DashboardOriginAssetUrls::new(),
        base: GuestLinkTargetKind::Dashboard.base_path(&access.access_key),
        program: access.dashboard.kind.parse().map_or("", DashboardKind::as_str),
        initial_hash: initial_hash(&access),
        bar: build_bar(&app, &access, &status),
        unavailable: (!status.is_live).then(|| describe_unavailable(&status)),
    };
    render_page(StatusCode::OK, &page)
}

/// MLflow opens on its pages for language models, but people here have trained something and want to see
/// their runs.
fn initial_hash(access: &CheckedDashboardAccess) -> &'static str {
    match access.dashboard.kind.parse() {
        Ok(DashboardKind::Mlflow) => "#/experiments?workflowType=machine_learning",
        _ => "",
    }
}

/// What the bar polls for: whether anything has changed.
#[derive(Serialize)]
struct DashboardBarPollReply {
    key: String,
    ends: Option<i64>,
    followed: bool,
}

pub async fn poll_bar(
    State(app): State<AppState>,
    PathParams(access_key): PathParams<String>,
    headers: HeaderMap,
) -> Response {
    let Ok(access) = check_dashboard_access(&app, &access_key, &headers).await else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match app.dashboards.status_for(&access).await {
        Ok(status) => Json(DashboardBarPollReply {
            key: state_key(&status),
            ends: ends_at(&status).map(|at| at.0),
            followed: status.next.is_some(),
        })
        .into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Changes whenever the page would look different.
fn state_key(status: &DashboardWithRuns) -> String {
    let run = status.run.as_ref();
    let state = run.map_or("none", |run| run.state.as_str());
    format!("{}-{state}-{}", run.map_or(0, |run| run.id.0), status.is_live)
}

fn ends_at(status: &DashboardWithRuns) -> Option<UnixTime> {
    status.run.as_ref().filter(|run| run.state != Run::Over).and_then(RunRow::ends_at)
}

fn build_bar(app: &App, access: &CheckedDashboardAccess, status: &DashboardWithRuns) -> DashboardBar {
    let dashboard = &access.dashboard;
    let kind = dashboard.kind.parse::<DashboardKind>().map_or("Dashboard", DashboardKind::title);
    let is_owner = access.viewer == DashboardViewer::Owner;
    let is_guest = access.viewer == DashboardViewer::Guest;
    let portal = app.config.portal.public_url.join(&format!("/dashboards/{}", dashboard.id));
    DashboardBar {
        kind,
        title: dashboard.title.clone(),
        // A guest was shown curves, not the names of someone's folders.
        places: if is_guest { Vec::new() } else { dashboard.places() },
        shared_by: if is_owner { String::new() } else { dashboard.owner_name.clone() },
        until: is_guest.then_some(access.until),
        ends: ends_at(status),
        is_followed: status.next.is_some(),
        portal: if is_guest { String::new() } else { portal },
        is_owner,
        key: state_key(status),
    }
}

fn describe_unavailable(status: &DashboardWithRuns) -> DashboardUnavailability {
    let run = status.run.as_ref();
    match run.map(|run| run.state) {
        Some(Run::Asked | Run::Waiting | Run::Starting) => DashboardUnavailability {
            title: "This dashboard is starting",
            text: "It appears here automatically when it's ready.".to_owned(),
            since: run.map(|run| run.asked_at),
            is_coming: true,
        },
        Some(Run::Ready) => DashboardUnavailability {
            title: "This dashboard can't be reached right now",
            text: "The connection to the cluster was lost. The dashboard reappears here automatically when it's back."
                .to_owned(),
            since: None,
            is_coming: true,
        },
        Some(Run::Over) | None => DashboardUnavailability {
            title: "This dashboard isn't running",
            text: format!("{} can start it again. It then appears here automatically.", status.dashboard.owner_name),
            since: run.and_then(|run| run.over_at),
            is_coming: false,
        },
    }
}

/// Asks for the passphrase if that is all that is missing, else tells a browser why it has no access.
pub fn show_no_access(kind: GuestLinkTargetKind, error: &GuestAccessError) -> Response {
    match error {
        GuestAccessError::Locked(access) => show_passphrase_form(access, ""),
        GuestAccessError::Closed => {
            let message = match kind {
                GuestLinkTargetKind::Dashboard => &DASHBOARD_CLOSED,
                GuestLinkTargetKind::Report => &REPORT_CLOSED,
                GuestLinkTargetKind::Files | GuestLinkTargetKind::DropBox => &FILES_CLOSED,
            };
            show_message(StatusCode::NOT_FOUND, message)
        }
        GuestAccessError::Store(error) => {
            tracing::error!(%error, "Could not check access to a {}", kind.noun());
            show_message(StatusCode::SERVICE_UNAVAILABLE, &BUSY)
        }
    }
}

/// Asks for the passphrase. The page doesn't say what is behind it: the link may have reached someone else.
pub fn show_passphrase_form(access: &GuestBrowserAccess, problem: &str) -> Response {
    let status = if problem.is_empty() { StatusCode::OK } else { StatusCode::FORBIDDEN };
    let kind = access.link.target.kind();
    let page = GuestPassphrasePage {
        assets: DashboardOriginAssetUrls::new(),
        noun: kind.noun(),
        base: kind.base_path(&access.access_key),
        owner: &access.link.maker_name,
        problem,
    };
    render_page(status, &page)
}

pub fn show_expired_link(kind: GuestLinkTargetKind, at: UnixTime) -> Response {
    let text =
        format!("It was valid until {}. Ask the person who shared the {} for a new link.", at.words(), kind.noun());
    show_text(StatusCode::GONE, "This link has expired", &text)
}

pub fn show_message(status: StatusCode, message: &GuestMessage) -> Response {
    show_text(status, message.title, message.text)
}

pub fn show_text(status: StatusCode, title: &str, text: &str) -> Response {
    let assets = DashboardOriginAssetUrls::new();
    render_page(status, &GuestMessagePage { assets, title, text })
}

pub fn render_page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "Could not render a page");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
