//! A group's monthly report on one page: to print, freeze and share.

pub mod chart;
pub mod frozen;
pub mod report_format;

use askama::Template;
use serde::Deserialize;

use self::chart::draw_report_chart;
use crate::auth::Permission;
use crate::clock::{Day, Month};
use crate::domain::{GroupId, ReportId};
use crate::error::AppError;
use crate::usage::frozen_reports::FrozenReport;
use crate::usage::report::UsageReport;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::GroupRequest;
use crate::web::pages::groups::stacked_bar_chart::StackedBarChart;

/// Months on offer: as far back as usage is read.
const MONTHS_OFFERED: usize = 12;

#[derive(Template)]
#[template(path = "groups/reports/month.html")]
struct MonthReportPage {
    page: PageFrame,
    report_css: &'static str,
    group: GroupId,
    report: UsageReport,
    chart: StackedBarChart,
    /// Each month as its URL value and its label, and whether it is selected.
    months: Vec<(String, String, bool)>,
    frozen: Vec<FrozenReport>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ReportMonthQuery {
    month: String,
}

pub async fn get(request: GroupRequest, QueryParams(choice): QueryParams<ReportMonthQuery>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageUsage(group))?;
    let now = Day::from_time(context.app.clock.now()).month();
    // Default to the last complete month.
    let month = if choice.month.is_empty() { Some(now.previous()) } else { parse_month(&choice.month, now) };
    let month = month.ok_or(AppError::NotFound)?;
    context.app.usage.record_named_view(&me.actor(&context), group, None).await?;
    let report = context.app.usage.build_report(&me.0.viewer, group, month).await?;
    let frozen = context.app.usage.list_reports(group).await?;
    let months = std::iter::successors(Some(now), |month| Some(month.previous())).take(MONTHS_OFFERED + 1);
    let mut months: Vec<(String, String, bool)> =
        months.map(|offered| (offered.to_string(), offered.words(), offered == month)).collect();
    if !months.iter().any(|(_, _, is_chosen)| *is_chosen) {
        months.push((month.to_string(), month.words(), true));
    }
    respond(&MonthReportPage {
        page: PageFrame::for_person(&context, &me.0, &report.title, NavSection::Groups),
        report_css: assets::asset_url("report.css"),
        group,
        chart: draw_report_chart(&report),
        report,
        months,
        frozen,
    })
}

/// Saves the month's report as it is now.
pub async fn freeze(request: GroupRequest, FormBody(choice): FormBody<ReportMonthQuery>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageUsage(group))?;
    let now = Day::from_time(context.app.clock.now()).month();
    let month = parse_month(&choice.month, now)
        .ok_or_else(|| AppError::BadRequest("Choose a month, such as 2026-11.".to_owned()))?;
    let actor = me.actor(&context);
    let frozen = context.app.usage.freeze_report(&actor, &me.0.viewer, group, month).await?;
    if let Some(id) = frozen {
        return Ok(flash::redirect(context, &report_path(group, id), FlashMessage::ReportFrozen));
    }
    let to = format!("/groups/{group}/report?month={month}");
    Ok(flash::redirect(context, &to, FlashMessage::TooManyReports))
}

/// Accepts months from 2000 on; next month counts too, as it may have begun in another time zone.
fn parse_month(text: &str, now: Month) -> Option<Month> {
    let earliest = Month::parse("2000-01")?;
    Month::parse(text).filter(|month| *month >= earliest && *month <= now.next())
}

fn report_path(group: GroupId, id: ReportId) -> String {
    format!("/groups/{group}/reports/{id}")
}
