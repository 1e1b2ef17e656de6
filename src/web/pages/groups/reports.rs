//! A group's report on a month, or on any other period, on one page: to print, freeze and share.

pub mod chart;
pub mod frozen;
pub mod report_format;
pub mod report_tables;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use self::chart::draw_report_chart;
use self::report_tables::ReportTables;
use crate::auth::Permission;
use crate::clock::{Day, Month};
use crate::domain::{GroupId, ReportId};
use crate::error::AppError;
use crate::usage::UsageMeasure;
use crate::usage::frozen_reports::FrozenReport;
use crate::usage::report::{CUSTOM_PERIOD, MAX_REPORT_DAYS, ReportPeriod, UsageReport};
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::form_errors::echo_input;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::pages::groups::GroupRequest;
use crate::web::pages::groups::stacked_bar_chart::StackedBarChart;

/// Months on offer: as far back as usage is read.
const MONTHS_OFFERED: usize = 12;

#[derive(Template)]
#[template(path = "groups/reports/page.html")]
struct GroupReportPage {
    page: PageFrame,
    report_css: &'static str,
    group: GroupId,
    report: UsageReport,
    chart: StackedBarChart,
    tables: ReportTables,
    /// Each month as its URL value and its label, and whether it is selected; and any other days.
    months: Vec<(String, String, bool)>,
    /// The first and last day that are chosen, as typed if there is no such period.
    days: (String, String),
    /// Why the days can't be shown; empty if they are.
    problem: String,
    units: Vec<(String, String, bool)>,
    /// What was chosen, to freeze just that.
    chosen: ReportQuery,
    frozen: Vec<FrozenReport>,
}

/// What a report is about, in the query string and in forms.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ReportQuery {
    /// A month, or [`CUSTOM_PERIOD`] for any days.
    pub month: String,
    pub first: String,
    pub last: String,
    /// The unit of the chart: `cores` or `gpus`.
    pub show: String,
    pub sort: String,
}

impl ReportQuery {
    /// The chosen period; none if there is no such period.
    fn period(&self, today: Day) -> Option<ReportPeriod> {
        let now = today.month();
        if self.month != CUSTOM_PERIOD {
            return parse_month(&self.month, now).map(ReportPeriod::month);
        }
        let (first, last) = (Day::parse(&self.first)?, Day::parse(&self.last)?);
        let is_in_range = is_month_accepted(first.month(), now) && is_month_accepted(last.month(), now);
        ReportPeriod::days(first, last).filter(|_| is_in_range && last <= today)
    }

    /// The period and the unit as a query string.
    fn query_string(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("month", &self.month);
        if self.month == CUSTOM_PERIOD {
            query.append_pair("first", &self.first).append_pair("last", &self.last);
        }
        query.append_pair("show", self.measure().as_str()).finish()
    }

    fn measure(&self) -> UsageMeasure {
        if self.show == UsageMeasure::Gpus.as_str() { UsageMeasure::Gpus } else { UsageMeasure::Cores }
    }
}

/// Says which days can be chosen.
fn days_problem() -> String {
    format!(
        "Enter a first and a last day. The last day can't be before the first, or later than today. A report covers at most {MAX_REPORT_DAYS} days."
    )
}

pub async fn get(request: GroupRequest, QueryParams(choice): QueryParams<ReportQuery>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageUsage(group))?;
    let today = Day::from_time(context.app.clock.now());
    let now = today.month();
    // Default to the last complete month.
    let default = ReportPeriod::month(now.previous());
    let (period, problem) = match (choice.month.as_str(), choice.period(today)) {
        (_, Some(period)) => (period, String::new()),
        ("", None) => (default, String::new()),
        (CUSTOM_PERIOD, None) => (default, days_problem()),
        (_, None) => return Err(AppError::NotFound),
    };
    let measure = choice.measure();
    context.app.usage.record_named_view(&me.actor(&context), group, None).await?;
    let report = context.app.usage.build_report(&me.0.viewer, group, period, measure).await?;
    let frozen = context.app.usage.list_reports(group).await?;
    let months = std::iter::successors(Some(now), |month| Some(month.previous())).take(MONTHS_OFFERED + 1);
    let mut months: Vec<(String, String, bool)> = months
        .map(|offered| (offered.to_string(), offered.words(), offered.to_string() == period.month_code()))
        .collect();
    let is_custom = period.month_code().is_empty();
    if is_custom || !problem.is_empty() {
        for (_, _, is_chosen) in &mut months {
            *is_chosen = false;
        }
    } else if !months.iter().any(|(_, _, is_chosen)| *is_chosen) {
        months.push((period.month_code(), period.words(), true));
    }
    months.push((CUSTOM_PERIOD.to_owned(), "Custom dates…".to_owned(), is_custom || !problem.is_empty()));
    let unit = |(unit, label): (UsageMeasure, &str)| (unit.as_str().to_owned(), label.to_owned(), unit == measure);
    let chosen = ReportQuery {
        month: if is_custom { CUSTOM_PERIOD.to_owned() } else { period.month_code() },
        first: period.from.to_string(),
        last: period.until.to_string(),
        show: measure.as_str().to_owned(),
        sort: String::new(),
    };
    let status = if problem.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = GroupReportPage {
        page: PageFrame::for_person(&context, &me.0, &report.title, NavSection::Groups),
        report_css: assets::asset_url("report.css"),
        group,
        chart: draw_report_chart(&report),
        tables: ReportTables::new(&report, &chosen.query_string(), &choice.sort),
        report,
        months,
        days: if problem.is_empty() {
            (chosen.first.clone(), chosen.last.clone())
        } else {
            (echo_input(&choice.first), echo_input(&choice.last))
        },
        problem,
        units: [(UsageMeasure::Cores, "Core hours"), (UsageMeasure::Gpus, "GPU hours")].map(unit).into(),
        chosen,
        frozen,
    };
    respond_with(status, &page)
}

/// Saves the report as it is now.
pub async fn freeze(request: GroupRequest, FormBody(choice): FormBody<ReportQuery>) -> HandlerResult {
    let GroupRequest { context, me, group } = request;
    me.may(Permission::ManageUsage(group))?;
    let period = choice.period(Day::from_time(context.app.clock.now())).ok_or_else(|| match choice.month.as_str() {
        CUSTOM_PERIOD => AppError::BadRequest(days_problem()),
        _ => AppError::BadRequest("Choose a month, such as 2026-11.".to_owned()),
    })?;
    let actor = me.actor(&context);
    let frozen = context.app.usage.freeze_report(&actor, &me.0.viewer, group, period, choice.measure()).await?;
    if let Some(id) = frozen {
        return Ok(flash::redirect(context, &report_path(group, id), FlashMessage::ReportFrozen));
    }
    let to = format!("/groups/{group}/report?{}", choice.query_string());
    Ok(flash::redirect(context, &to, FlashMessage::TooManyReports))
}

fn parse_month(text: &str, now: Month) -> Option<Month> {
    Month::parse(text).filter(|month| is_month_accepted(*month, now))
}

/// Accepts months from 2000 on; next month counts too, as it may have begun in another time zone.
fn is_month_accepted(month: Month, now: Month) -> bool {
    month.year() >= 2000 && month <= now.next()
}

fn report_path(group: GroupId, id: ReportId) -> String {
    format!("/groups/{group}/reports/{id}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_days_up_to_a_year_can_be_chosen() {
        let today = Day::parse("2026-11-18").unwrap();
        let query = |month: &str, first: &str, last: &str| ReportQuery {
            month: month.into(),
            first: first.into(),
            last: last.into(),
            ..ReportQuery::default()
        };
        let year = query("days", "2025-04-01", "2026-03-31");
        assert_eq!(year.period(today).unwrap().words(), "1 Apr 2025 to 31 Mar 2026");
        assert_eq!(year.query_string(), "month=days&first=2025-04-01&last=2026-03-31&show=cores");
        assert_eq!(query("2026-10", "x", "").period(today), Some(ReportPeriod::month(today.month().previous())));
        for (first, last) in [
            ("2025-04-01", "2026-04-02"),
            ("2026-03-31", "2025-04-01"),
            ("1999-12-31", "2000-01-05"),
            ("2026-12-31", "2027-01-01"),
            ("2026-11-01", "2026-11-19"),
            ("", "2026-01-01"),
            ("<b>", "2026-13-01"),
        ] {
            assert_eq!(query("days", first, last).period(today), None, "{first} {last}");
        }
    }
}
