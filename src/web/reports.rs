//! A month of a group on one page: to print, to freeze, and to share.

pub mod chart;
pub mod frozen;
pub mod sheet;

use askama::Template;
use serde::Deserialize;

use self::chart::Chart;
use super::extract::{Context, Form, Me, Path, Query};
use super::flash::{self, Flash};
use super::page::{Page, Section, show};
use super::{Answer, assets};
use crate::auth::Permission;
use crate::clock::{Day, Month};
use crate::domain::{GroupId, ReportId};
use crate::error::AppError;
use crate::usage::frozen::FrozenReport;
use crate::usage::report::Report;

/// Months that can be chosen: as far back as figures are read.
const MONTHS: usize = 12;

#[derive(Template)]
#[template(path = "reports/month.html")]
struct MonthPage {
    page: Page,
    report_css: &'static str,
    group: GroupId,
    report: Report,
    chart: Chart,
    /// Months by their words in addresses and for people, and whether it is the one that is shown.
    months: Vec<(String, String, bool)>,
    frozen: Vec<FrozenReport>,
}

/// Which month.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Choice {
    month: String,
}

/// The report of a month.
pub async fn get(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(choice): Query<Choice>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    let now = Day::from_time(context.app.clock.now()).month();
    // The last one that is over, unless another is asked for.
    let month =
        if choice.month.is_empty() { Some(now.previous()) } else { read(&choice.month, now) };
    let month = month.ok_or(AppError::NotFound)?;
    context.app.usage.note_seen(&me.actor(&context), group, None).await?;
    let report = context.app.usage.report(&me.0.viewer, group, month).await?;
    let frozen = context.app.usage.reports(group).await?;
    let months = std::iter::successors(Some(now), |month| Some(month.previous())).take(MONTHS + 1);
    let mut months: Vec<(String, String, bool)> =
        months.map(|one| (one.to_string(), one.words(), one == month)).collect();
    if !months.iter().any(|(_, _, is_chosen)| *is_chosen) {
        months.push((month.to_string(), month.words(), true));
    }
    show(&MonthPage {
        page: Page::for_person(&context, &me.0, &report.title, Section::Groups),
        report_css: assets::address("report.css"),
        group,
        chart: Chart::of(&report),
        report,
        months,
        frozen,
    })
}

/// Keeps the report of a month as it is now.
pub async fn freeze(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Form(choice): Form<Choice>,
) -> Answer {
    me.may(Permission::ManageUsage(group))?;
    let now = Day::from_time(context.app.clock.now()).month();
    let month = read(&choice.month, now)
        .ok_or_else(|| AppError::BadRequest("Choose a month, such as 2026-11.".to_owned()))?;
    let actor = me.actor(&context);
    let frozen = context.app.usage.freeze(&actor, &me.0.viewer, group, month).await?;
    if let Some(id) = frozen {
        return Ok(flash::redirect(context, &address(group, id), Flash::ReportFrozen));
    }
    let to = format!("/groups/{group}/report?month={month}");
    Ok(flash::redirect(context, &to, Flash::ReportsEnough))
}

/// A month that has begun, anywhere on earth, and of which something can be known.
fn read(text: &str, now: Month) -> Option<Month> {
    let earliest = Month::parse("2000-01")?;
    Month::parse(text).filter(|month| *month >= earliest && *month <= now.next())
}

/// A frozen report's address.
fn address(group: GroupId, id: ReportId) -> String {
    format!("/groups/{group}/reports/{id}")
}
