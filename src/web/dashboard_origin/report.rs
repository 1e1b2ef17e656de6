//! Guests who view one frozen report by a guest link: read-only, and nothing else.

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;

use crate::app::AppState;
use crate::auth::guest_links::{GuestAccessError, GuestLinkTarget, GuestLinkTargetKind};
use crate::clock::UnixTime;
use crate::usage::report::UsageReport;
use crate::web::dashboard_origin::viewer::{self, DashboardOriginAssetUrls};
use crate::web::dashboard_origin::{check_guest_access, enter};
use crate::web::http::assets;
use crate::web::http::extractors::{PathParams, QueryParams};
use crate::web::pages::groups::reports::ReportQuery;
use crate::web::pages::groups::reports::chart::draw_report_chart;
use crate::web::pages::groups::reports::report_format;
use crate::web::pages::groups::reports::report_tables::ReportTables;
use crate::web::pages::groups::stacked_bar_chart::StackedBarChart;

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
    tables: ReportTables,
}

pub async fn get(
    State(app): State<AppState>,
    PathParams(access_key): PathParams<String>,
    QueryParams(query): QueryParams<ReportQuery>,
    headers: HeaderMap,
) -> Response {
    let link = match check_guest_access(&app, GuestLinkTargetKind::Report, &access_key, &headers).await {
        Ok(access) => access.link,
        Err(error) => return viewer::show_no_access(GuestLinkTargetKind::Report, &error),
    };
    let GuestLinkTarget::Report(group, id) = link.target else {
        return viewer::show_no_access(GuestLinkTargetKind::Report, &GuestAccessError::Closed);
    };
    let (frozen, report) = match app.usage.load_frozen_report(group, id).await {
        Ok(loaded) => loaded,
        Err(error) => return enter::show_auth_error(&error),
    };
    let page = GuestReportPage {
        assets: DashboardOriginAssetUrls::new(),
        report_css: assets::asset_url("report.css"),
        owner: link.maker_name,
        group: frozen.group_name,
        until: link.expires_at,
        chart: draw_report_chart(&report),
        tables: ReportTables::new(&report, "", &query.sort),
        report,
    };
    viewer::render_page(StatusCode::OK, &page)
}
