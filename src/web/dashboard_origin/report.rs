//! Guests who view one frozen report by a guest link: read-only, and nothing else.

use askama::Template;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::app::{App, AppState};
use crate::clock::UnixTime;
use crate::usage::report::UsageReport;
use crate::usage::report_guest_links::{CheckedReportAccess, ReportAccessError};
use crate::web::dashboard_origin::enter::{
    self, GuestPassphraseForm, respond_to_link, respond_to_unlock, see_other, visitor_from_parts,
};
use crate::web::dashboard_origin::viewer::{self, DashboardOriginAssetUrls, GuestMessage, LockedGuestPage};
use crate::web::dashboard_origin::{GuestContentKind, is_token};
use crate::web::http::assets;
use crate::web::http::cookies::RequestCookies;
use crate::web::http::extractors::{FormBody, PathParams};
use crate::web::pages::groups::reports::chart::draw_report_chart;
use crate::web::pages::groups::reports::report_format;
use crate::web::pages::groups::stacked_bar_chart::StackedBarChart;

const CLOSED: GuestMessage = GuestMessage {
    title: "This report is not open to you",
    text: "The link may have ended or been taken back, or this address belongs to another browser. If you got a link, open that link again.",
};

#[derive(Template)]
#[template(path = "dashboard_origin/guest_report.html")]
struct GuestReportPage {
    assets: DashboardOriginAssetUrls,
    report_css: &'static str,
    owner: String,
    group: String,
    until: UnixTime,
    report: UsageReport,
    chart: StackedBarChart,
}

/// Lets a guest in with a guest link.
pub async fn by_link(State(app): State<AppState>, PathParams(token): PathParams<String>, parts: Parts) -> Response {
    // A token of another length isn't ours, and counts as a try like any other guess.
    let opened = app.usage.open_report_link(&token, &visitor_from_parts(&app, &parts)).await;
    respond_to_link(&app, GuestContentKind::Report, opened)
}

async fn check_report_access(
    app: &App,
    word: &str,
    headers: &HeaderMap,
) -> Result<CheckedReportAccess, ReportAccessError> {
    if !is_token(word) {
        return Err(ReportAccessError::Closed);
    }
    let sent = RequestCookies::from_headers(headers);
    app.usage.check_report_access(word, sent.get_by_name(GuestContentKind::Report.cookie_name(app))).await
}

pub async fn get(State(app): State<AppState>, PathParams(word): PathParams<String>, headers: HeaderMap) -> Response {
    let pass = match check_report_access(&app, &word, &headers).await {
        Ok(pass) => pass,
        Err(ReportAccessError::Locked(pass)) => return show_report_passphrase(&pass, ""),
        Err(error) => return show_no_access(&app, &error),
    };
    let report = match app.usage.load_shared_report(&pass).await {
        Ok(report) => report,
        Err(error) => return enter::show_auth_error(&app, &error),
    };
    let page = GuestReportPage {
        assets: DashboardOriginAssetUrls::new(),
        report_css: assets::asset_url("report.css"),
        owner: pass.link.owner_name.clone(),
        group: pass.link.group_name.clone(),
        until: pass.link.terms.expires_at,
        chart: draw_report_chart(&report),
        report,
    };
    viewer::render_page(StatusCode::OK, &page)
}

/// Checks a guest's passphrase.
pub async fn unlock(
    State(app): State<AppState>,
    PathParams(word): PathParams<String>,
    parts: Parts,
    FormBody(form): FormBody<GuestPassphraseForm>,
) -> Response {
    let to = format!("{}/", GuestContentKind::Report.base_path(&word));
    let pass = match check_report_access(&app, &word, &parts.headers).await {
        Err(ReportAccessError::Locked(pass)) => pass,
        Ok(_) => return see_other(&to),
        Err(error) => return show_no_access(&app, &error),
    };
    let visitor = visitor_from_parts(&app, &parts);
    let tried = app.usage.unlock_report(&pass, &form.passphrase, &visitor).await;
    respond_to_unlock(&app, &to, tried, |problem| show_report_passphrase(&pass, problem))
}

fn show_report_passphrase(pass: &CheckedReportAccess, problem: &str) -> Response {
    let owner = &pass.link.owner_name;
    viewer::show_passphrase_form(
        &LockedGuestPage { kind: GuestContentKind::Report, word: &pass.access_key, owner },
        problem,
    )
}

fn show_no_access(app: &App, error: &ReportAccessError) -> Response {
    match error {
        ReportAccessError::Closed | ReportAccessError::Locked(_) => {
            viewer::show_message(app, StatusCode::NOT_FOUND, &CLOSED)
        }
        ReportAccessError::Store(error) => {
            tracing::error!(%error, "It could not be decided who may look at a report");
            viewer::show_message(app, StatusCode::SERVICE_UNAVAILABLE, &viewer::BUSY)
        }
    }
}
