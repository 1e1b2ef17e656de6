//! A group's month, or any other period, on one page: made from a view, frozen, and read years later. Pure.

mod formatting;
mod period;
mod rows;

use serde::{Deserialize, Serialize};

use self::rows::rows_with_rest;
use super::figures::{self, BreakdownKind, COLOUR_COUNT, ChartStep, FiguresSelection, PeriodBefore, UsageFigures};
use super::group_usage::GroupUsage;
use super::units::{AllocationUnit, SiteUnit, UsageMeasure};
use crate::clock::{Day, UnixTime};
use crate::store::allocations::Allocation;
pub use formatting::clean_name;
pub use period::{MAX_REPORT_DAYS, ReportPeriod};
pub use rows::{ReportBreakdown, ReportBreakdownRow, ReportTableRow};

/// How many job types have a row of their own; the others share one.
const MAX_KIND_ROWS: usize = 15;
/// How many people have a row of their own; the others share one.
const MAX_MEMBER_ROWS: usize = 30;
const CORE_HOURS: &str = "core hours";
const GPU_HOURS: &str = "GPU hours";
/// Instead of a month in a query string: any days.
pub const CUSTOM_PERIOD: &str = "days";

/// A period of a group. Every field has a default, so that reports of older versions can still be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    pub title: String,
    pub group: String,
    /// Such as `2026-11`; empty if the period is no month.
    pub month: String,
    pub from: Day,
    /// The last day that is counted.
    pub until: Day,
    pub made_at: i64,
    /// Name of the centre's own unit, before `hours`; empty if there is none, or several.
    pub site_unit: String,
    pub totals: ReportTableRow,
    pub accounts: Vec<ReportTableRow>,
    /// By person, highest usage first.
    pub members: Vec<ReportTableRow>,
    /// By job type, likewise.
    pub kinds: Vec<ReportTableRow>,
    /// By partition, QOS and GPU model. Older reports have none.
    pub breakdowns: Vec<ReportBreakdown>,
    /// How the period compares with the one before, in one line. Older reports have none.
    pub comparison: String,
    /// What the chart shows: `core hours` or `GPU hours`.
    pub measure: String,
    /// Names in the order of a bar's parts. The last may stand for several people.
    pub series: Vec<String>,
    /// Their colours: a person has the same one in every report. Older reports have none.
    pub colours: Vec<usize>,
    /// One bar per day, or per week if `is_weekly`.
    pub bars: Vec<ReportChartDay>,
    pub is_weekly: bool,
    pub allocations: Vec<ReportAllocation>,
    /// What is missing, in sentences.
    pub notes: Vec<String>,
}

/// One bar of the chart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportChartDay {
    pub day: Day,
    /// Its last day, if it covers several.
    pub until: Option<Day>,
    /// Hours of each of [`UsageReport::series`].
    pub parts: Vec<f64>,
    /// Whether some of this day was not read.
    pub is_missing: bool,
}

impl ReportChartDay {
    pub fn total(&self) -> f64 {
        self.parts.iter().sum()
    }
}

/// An allocation and its usage.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportAllocation {
    pub account: String,
    pub cluster: String,
    /// Such as `core hours` or `RGU years`.
    pub unit: String,
    pub begins: Day,
    pub ends: Day,
    /// The granted amount, in its unit.
    pub granted: f64,
    /// Used by the end of the period, in its unit.
    pub used: f64,
    /// The used fraction.
    pub part: f64,
    /// Where it is heading.
    pub sentence: String,
    /// Days of its period that were not read when the report was made.
    pub unread: usize,
}

impl ReportAllocation {
    /// Whether nothing can be said about its usage, because days were not read.
    pub fn is_unread(&self) -> bool {
        self.unread > 0 && self.used <= 0.0
    }
}

/// What a report is about.
#[derive(Debug, Clone, Copy)]
pub struct ReportInputs<'a> {
    pub group: &'a str,
    pub period: ReportPeriod,
    /// What the chart shows and tables are sorted by.
    pub measure: UsageMeasure,
    /// The group's allocations.
    pub allocations: &'a [Allocation],
    /// When the report is made.
    pub now: UnixTime,
}

impl UsageReport {
    /// What it is about, as a query string of the page for reports.
    pub fn query(&self) -> String {
        let show = if self.measure == GPU_HOURS { UsageMeasure::Gpus } else { UsageMeasure::Cores }.as_str();
        if self.month.is_empty() {
            format!("month={CUSTOM_PERIOD}&first={}&last={}&show={show}", self.from, self.until)
        } else {
            format!("month={}&show={show}", self.month)
        }
    }

    /// Whether unread days could still change it.
    pub fn is_incomplete(&self) -> bool {
        self.bars.iter().any(|bar| bar.is_missing) || self.allocations.iter().any(|allocation| allocation.unread > 0)
    }

    /// Whether nothing of the period was read, so that there are no figures.
    pub fn is_unread(&self) -> bool {
        let mut counted = self.bars.iter().filter(|bar| bar.day <= self.until).peekable();
        counted.peek().is_some() && counted.all(|bar| bar.is_missing && bar.parts.is_empty())
    }

    /// Builds a report. All text from others is truncated and cleaned here; pages escape it.
    pub fn build(view: &GroupUsage, subject: ReportInputs<'_>) -> Self {
        let ReportInputs { period, now, measure, .. } = subject;
        let today = view.accounts.iter().map(|account| account.today).max();
        let until = period.until.min(today.unwrap_or_else(|| Day::from_time(now)));
        let choice =
            FiguresSelection { from: period.from, until: period.until, step: period.step(), measure, account: None };
        let all = figures::compute_figures(view, &choice);
        // A period that is not over is compared with as many days as have passed.
        let before = PeriodBefore::compute(view, &FiguresSelection { until, ..choice });
        let account = |figures: &figures::AccountFigures| {
            let row = ReportTableRow::new(clean_name(&figures.account), clean_name(&figures.cluster), &figures.totals);
            ReportTableRow { is_unread: figures.is_unread, ..row }
        };
        let (series, colours, bars) = build_chart(&all, until);
        // A report has readers elsewhere: who has an account here does not matter to them.
        let members = all.members.iter().map(|member| (member.name.as_str(), &member.totals)).collect();
        let kinds = all
            .kinds
            .iter()
            .map(|kind| (if kind.name.is_empty() { "Everyone else's jobs" } else { kind.name.as_str() }, &kind.totals))
            .collect();
        let group = clean_name(subject.group);
        Self {
            title: format!("{group}: {}", period.words()),
            group,
            month: period.month_code(),
            from: period.from,
            until,
            made_at: now.0,
            site_unit: site_unit(view),
            totals: ReportTableRow::new("Total".to_owned(), String::new(), &all.totals),
            accounts: all.accounts.iter().map(account).collect(),
            members: rows_with_rest(members, MAX_MEMBER_ROWS, "people"),
            kinds: rows_with_rest(kinds, MAX_KIND_ROWS, "job types"),
            breakdowns: BreakdownKind::ALL
                .into_iter()
                .filter_map(|kind| ReportBreakdown::new(&all.breakdown(kind, measure)))
                .collect(),
            comparison: if until < period.from { String::new() } else { before.comparison(&all.totals, all.missing) },
            measure: if measure == UsageMeasure::Gpus { GPU_HOURS } else { CORE_HOURS }.to_owned(),
            series,
            colours,
            bars,
            is_weekly: period.step() == ChartStep::Week,
            allocations: list_allocations(view, subject),
            notes: formatting::list_gaps(view, &all, period, until),
        }
    }
}

/// The chart's series, their colours and its bars: those with a colour of their own one by one, the others together.
fn build_chart(all: &UsageFigures, until: Day) -> (Vec<String>, Vec<usize>, Vec<ReportChartDay>) {
    let used = |index: &usize| all.bars.iter().any(|bar| bar.parts.get(*index).is_some_and(|h| *h > 0.0));
    let colour = |index: &usize| all.members.get(*index).and_then(|member| member.colour);
    let shown: Vec<usize> = (0..all.members.len()).filter(used).collect();
    let (own, others): (Vec<usize>, Vec<usize>) = shown.into_iter().partition(|index| colour(index).is_some());
    let name = |index: &usize| all.members.get(*index).map(|member| clean_name(&member.name));
    let mut series: Vec<String> = own.iter().filter_map(name).collect();
    let mut colours: Vec<usize> = own.iter().filter_map(colour).collect();
    if let [first, rest @ ..] = others.as_slice() {
        let only_name = name(first).filter(|_| rest.is_empty());
        series.push(only_name.unwrap_or_else(|| format!("{} others", others.len())));
        colours.push(COLOUR_COUNT);
    }
    let bar = |bar: &figures::UsagePeriodBar| {
        let of = |index: &usize| bar.parts.get(*index).copied().unwrap_or(0.0);
        let mut parts: Vec<f64> = own.iter().map(of).collect();
        if !others.is_empty() {
            parts.push(others.iter().map(of).sum());
        }
        let is_missing = bar.missing > 0 && bar.from <= until;
        ReportChartDay { day: bar.from, until: Some(bar.until).filter(|last| *last > bar.from), parts, is_missing }
    };
    (series, colours, all.bars.iter().map(bar).collect())
}

/// The name of the accounts' site unit, if they agree.
fn site_unit(view: &GroupUsage) -> String {
    let mut units = view.accounts.iter().map(|account| account.details.site_unit());
    let first = units.next().flatten();
    let same = units.all(|unit| unit == first);
    first.filter(|_| same).map_or("", SiteUnit::title).to_owned()
}

fn list_allocations(view: &GroupUsage, subject: ReportInputs<'_>) -> Vec<ReportAllocation> {
    let (first, last) = (subject.period.from, subject.period.until);
    let report = |allocation: &Allocation| {
        if allocation.begins() > last || allocation.ends() < first {
            return None;
        }
        let unit = AllocationUnit::parse(&allocation.unit)?;
        let account = view.account_of(allocation)?;
        let today = account.today.min(last);
        let forecast = account.forecast(allocation, unit, today);
        let unread = account.unread_days(allocation.begins(), today);
        Some(ReportAllocation {
            account: clean_name(&allocation.account),
            cluster: clean_name(&account.details.title),
            unit: unit.words(account.details.site_unit()),
            begins: allocation.begins(),
            ends: allocation.ends(),
            granted: allocation.amount,
            used: unit.from_hours(forecast.used),
            part: forecast.used_fraction(),
            sentence: formatting::forecast_sentence(&forecast, unread, allocation.ends(), today),
            unread,
        })
    };
    subject.allocations.iter().filter_map(report).collect()
}

#[cfg(test)]
mod tests;
