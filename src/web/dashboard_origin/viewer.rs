//! Our own pages on this origin: the bar around a dashboard, the passphrase form, and the messages shown when there
//! is no dashboard to show.

use askama::Template;
use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{Html, IntoResponse as _, Response};
use serde::Serialize;

use crate::app::{App, AppState};
use crate::clock::UnixTime;
use crate::dashboards::{
    CheckedDashboardAccess, DashboardAccessError, DashboardKind, DashboardStatus, DashboardViewer,
};
use crate::store::dashboards::runs::{DashboardRun as RunRow, DashboardRunState as Run};
use crate::web::dashboard_origin::{GuestContentKind, check_access, dashboard_base_path};
use crate::web::http::assets;
use crate::web::http::extractors::PathParams;

/// What happened and what to do.
pub struct GuestMessage {
    pub title: &'static str,
    pub text: &'static str,
}

/// Shown when the portal itself has a problem.
pub const BUSY: GuestMessage = GuestMessage {
    title: "The portal cannot show this now",
    text: "It is busy or has a problem of its own. Try again in a minute.",
};
const CLOSED: GuestMessage = GuestMessage {
    title: "This dashboard is not open to you",
    text: "The link may have ended or been taken back, or this address belongs to another browser. If you got a link, open that link again. If you have an account, open the dashboard from the portal.",
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
    /// The URL fragment that the dashboard opens at.
    initial_hash: &'static str,
    bar: DashboardBar,
    unavailable: Option<UnavailableDashboard>,
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
struct UnavailableDashboard {
    title: &'static str,
    text: String,
    since: Option<UnixTime>,
    is_coming: bool,
}

/// The page around a dashboard.
pub async fn get(State(app): State<AppState>, PathParams(word): PathParams<String>, headers: HeaderMap) -> Response {
    let pass = match check_access(&app, &word, &headers).await {
        Ok(pass) => pass,
        Err(DashboardAccessError::Locked(pass)) => return show_dashboard_passphrase(&pass, ""),
        Err(error) => return show_no_access(&app, &error),
    };
    let Ok(standing) = app.dashboards.status_for(&pass).await else {
        return show_message(&app, StatusCode::SERVICE_UNAVAILABLE, &BUSY);
    };
    let resting = (!standing.is_live).then(|| describe_unavailable(&standing));
    let bar = build_bar(&app, &pass, &standing);
    let begin = initial_hash(&pass);
    let look = DashboardOriginAssetUrls::new();
    render_page(
        StatusCode::OK,
        &DashboardFramePage {
            assets: look,
            base: dashboard_base_path(&pass.word),
            initial_hash: begin,
            bar,
            unavailable: resting,
        },
    )
}

/// MLflow opens on its pages for language models, but people here have trained something and want to see
/// their runs.
fn initial_hash(pass: &CheckedDashboardAccess) -> &'static str {
    match pass.dashboard.kind.parse() {
        Ok(DashboardKind::Mlflow) => "#/experiments?workflowType=machine_learning",
        _ => "",
    }
}

/// What the bar polls for: whether anything has changed.
#[derive(Serialize)]
struct DashboardBarUpdate {
    key: String,
    ends: Option<i64>,
    followed: bool,
}

pub async fn poll_bar(
    State(app): State<AppState>,
    PathParams(word): PathParams<String>,
    headers: HeaderMap,
) -> Response {
    let Ok(pass) = check_access(&app, &word, &headers).await else {
        return StatusCode::NOT_FOUND.into_response();
    };
    match app.dashboards.status_for(&pass).await {
        Ok(standing) => Json(DashboardBarUpdate {
            key: state_key(&standing),
            ends: ends_at(&standing).map(|at| at.0),
            followed: standing.next.is_some(),
        })
        .into_response(),
        Err(_) => StatusCode::SERVICE_UNAVAILABLE.into_response(),
    }
}

/// Changes whenever the page would look different.
fn state_key(standing: &DashboardStatus) -> String {
    let run = standing.run.as_ref();
    let state = run.map_or("none", |run| run.state.as_str());
    format!("{}-{state}-{}", run.map_or(0, |run| run.id.0), standing.is_live)
}

fn ends_at(standing: &DashboardStatus) -> Option<UnixTime> {
    standing.run.as_ref().filter(|run| run.state != Run::Over).and_then(RunRow::ends_at)
}

fn build_bar(app: &App, pass: &CheckedDashboardAccess, standing: &DashboardStatus) -> DashboardBar {
    let board = &pass.dashboard;
    let kind = board.kind.parse::<DashboardKind>().map_or("Dashboard", DashboardKind::title);
    let is_owner = pass.viewer == DashboardViewer::Owner;
    let is_guest = matches!(pass.viewer, DashboardViewer::Guest(_));
    let portal = app.config.portal.public_url.join(&format!("/dashboards/{}", board.id));
    DashboardBar {
        kind,
        title: board.title.clone(),
        // A guest was shown curves, not the names of someone's folders.
        places: if is_guest { Vec::new() } else { board.places() },
        shared_by: if is_owner { String::new() } else { board.owner_name.clone() },
        until: is_guest.then_some(pass.until),
        ends: ends_at(standing),
        is_followed: standing.next.is_some(),
        portal: if is_guest { String::new() } else { portal },
        is_owner,
        key: state_key(standing),
    }
}

fn describe_unavailable(standing: &DashboardStatus) -> UnavailableDashboard {
    let run = standing.run.as_ref();
    match run.map(|run| run.state) {
        Some(Run::Asked | Run::Waiting | Run::Starting) => UnavailableDashboard {
            title: "This dashboard is being started",
            text: "It appears here by itself once it is ready.".to_owned(),
            since: run.map(|run| run.asked_at),
            is_coming: true,
        },
        Some(Run::Ready) => UnavailableDashboard {
            title: "This dashboard cannot be reached at the moment",
            text: "The connection to the cluster is interrupted. It comes back here by itself when that is over."
                .to_owned(),
            since: None,
            is_coming: true,
        },
        Some(Run::Over) | None => UnavailableDashboard {
            title: "This dashboard is not running",
            text: format!("{} can start it again; it then appears here by itself.", standing.dashboard.owner_name),
            since: run.and_then(|run| run.over_at),
            is_coming: false,
        },
    }
}

/// Tells a browser why it has no access.
pub fn show_no_access(app: &App, error: &DashboardAccessError) -> Response {
    match error {
        DashboardAccessError::Closed | DashboardAccessError::Locked(_) => {
            show_message(app, StatusCode::NOT_FOUND, &CLOSED)
        }
        DashboardAccessError::Store(error) => {
            tracing::error!(%error, "It could not be decided who may look at a dashboard");
            show_message(app, StatusCode::SERVICE_UNAVAILABLE, &BUSY)
        }
    }
}

/// Who shared what, for a guest who has yet to enter the passphrase.
pub struct LockedGuestPage<'a> {
    pub kind: GuestContentKind,
    /// The token in the browser's path.
    pub word: &'a str,
    pub owner: &'a str,
}

/// Asks for the passphrase. The page doesn't say what is behind it: the link may have reached someone else.
pub fn show_passphrase_form(behind: &LockedGuestPage<'_>, problem: &str) -> Response {
    let status = if problem.is_empty() { StatusCode::OK } else { StatusCode::FORBIDDEN };
    let LockedGuestPage { kind: thing, word, owner } = *behind;
    let (look, noun, base) = (DashboardOriginAssetUrls::new(), thing.noun(), thing.base_path(word));
    render_page(status, &GuestPassphrasePage { assets: look, noun, base, owner, problem })
}

/// Like `show_passphrase_form`, for a dashboard.
pub fn show_dashboard_passphrase(pass: &CheckedDashboardAccess, problem: &str) -> Response {
    let owner = &pass.dashboard.owner_name;
    show_passphrase_form(&LockedGuestPage { kind: GuestContentKind::Dashboard, word: &pass.word, owner }, problem)
}

pub fn show_expired_link(_: &App, thing: GuestContentKind, at: UnixTime) -> Response {
    let text = format!("It worked until {}. Ask whoever shared the {} for a new link.", at.words(), thing.noun());
    render_page(
        StatusCode::GONE,
        &GuestMessagePage { assets: DashboardOriginAssetUrls::new(), title: "This link has ended", text: &text },
    )
}

pub fn show_message(_: &App, status: StatusCode, words: &GuestMessage) -> Response {
    render_page(
        status,
        &GuestMessagePage { assets: DashboardOriginAssetUrls::new(), title: words.title, text: words.text },
    )
}

pub fn render_page(status: StatusCode, template: &impl Template) -> Response {
    match template.render() {
        Ok(text) => (status, Html(text)).into_response(),
        Err(error) => {
            tracing::error!(%error, "A page could not be made");
            StatusCode::INTERNAL_SERVER_ERROR.into_response()
        }
    }
}
