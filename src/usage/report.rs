//! A group's month on one page: made from a view, frozen, and read years later. Pure.

mod formatting;

use serde::{Deserialize, Serialize};

use super::figures::{self, COLOUR_COUNT, ChartStep, FiguresSelection, UsageFigures};
use super::group_usage::GroupUsage;
use super::totals::{UsageTotals, hours};
use super::units::{AllocationUnit, SiteUnit, UsageMeasure};
use crate::clock::{Day, Month, UnixTime};
use crate::store::allocations::Allocation;
pub use formatting::clean_name;

/// How many job types have a row of their own; the others share one.
const MAX_KIND_ROWS: usize = 15;
/// How many people have a row of their own; the others share one.
const MAX_MEMBER_ROWS: usize = 30;

/// A month of a group. Every field has a default, so that reports of older versions can still be read.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct UsageReport {
    pub title: String,
    pub group: String,
    /// Such as `2026-11`.
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
    /// What the chart shows: `core hours` or `GPU hours`.
    pub measure: String,
    /// Names in the order of a bar's parts. The last may stand for several people.
    pub series: Vec<String>,
    /// Their colours: a person has the same one in every month. Older reports have none.
    pub colours: Vec<usize>,
    /// One bar per day.
    pub bars: Vec<ReportChartDay>,
    pub allocations: Vec<ReportAllocation>,
    /// What is missing, in sentences.
    pub notes: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportTableRow {
    /// The person, job type or account.
    pub name: String,
    /// More detail, such as the cluster.
    pub detail: String,
    pub core_hours: f64,
    pub gpu_hours: f64,
    /// GPU hours by model.
    pub gpus: Vec<(String, f64)>,
    /// Hours of the centre's own unit.
    pub site_hours: f64,
    pub jobs: u64,
    /// The successful fraction of all jobs that were not cancelled.
    pub success: Option<f64>,
    /// Median wait, in seconds.
    pub median_wait_s: Option<u64>,
    /// Core efficiency: used against allocated.
    pub core_use: Option<f64>,
    /// Memory efficiency: used against allocated.
    pub memory_use: Option<f64>,
    /// GPU utilisation.
    pub gpu_use: Option<f64>,
    /// Wasted core hours: those of jobs that did not succeed.
    pub lost_core_hours: f64,
    /// Wasted GPU hours.
    pub lost_gpu_hours: f64,
}

/// One day of the chart.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportChartDay {
    pub day: Day,
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
    /// Used by the end of the month, in its unit.
    pub used: f64,
    /// The used fraction.
    pub part: f64,
    /// Where it is heading.
    pub sentence: String,
    /// Days of its period that were not read when the report was made.
    pub unread: usize,
}

/// What a report is about.
#[derive(Debug, Clone, Copy)]
pub struct ReportInputs<'a> {
    pub group: &'a str,
    pub month: Month,
    /// The group's allocations.
    pub allocations: &'a [Allocation],
    /// When the report is made.
    pub now: UnixTime,
}

impl ReportTableRow {
    fn new(name: String, detail: String, totals: &UsageTotals) -> Self {
        let model = |(model, seconds): &(String, u64)| (clean_name(model), hours(*seconds));
        Self {
            name,
            detail,
            core_hours: UsageMeasure::Cores.hours(totals),
            gpu_hours: UsageMeasure::Gpus.hours(totals),
            gpus: totals.gpus.iter().filter(|(name, _)| !name.is_empty()).map(model).collect(),
            site_hours: UsageMeasure::Site.hours(totals),
            jobs: totals.jobs,
            success: totals.success_rate(),
            median_wait_s: totals.waits.median(),
            core_use: totals.core_use(),
            memory_use: totals.memory_use(),
            gpu_use: totals.gpu_use(),
            lost_core_hours: hours(totals.lost_core_s),
            lost_gpu_hours: hours(totals.lost_gpu_s),
        }
    }
}

impl UsageReport {
    /// Whether unread days could still change it.
    pub fn is_incomplete(&self) -> bool {
        self.bars.iter().any(|bar| bar.is_missing) || self.allocations.iter().any(|allocation| allocation.unread > 0)
    }

    /// Builds a report. All text from others is truncated and cleaned here; pages escape it.
    pub fn build(view: &GroupUsage, subject: ReportInputs<'_>) -> Self {
        let ReportInputs { month, now, .. } = subject;
        let today = view.accounts.iter().map(|account| account.today).max();
        let until = month.last().min(today.unwrap_or_else(|| Day::from_time(now)));
        let choice = |measure| FiguresSelection {
            from: month.first(),
            until: month.last(),
            step: ChartStep::Day,
            measure,
            account: None,
        };
        let mut all = figures::compute_figures(view, &choice(UsageMeasure::Cores));
        let measure = if all.totals.core_s == 0 && all.totals.gpu_s > 0 {
            all = figures::compute_figures(view, &choice(UsageMeasure::Gpus));
            UsageMeasure::Gpus
        } else {
            UsageMeasure::Cores
        };
        let account = |figures: &figures::AccountFigures| {
            ReportTableRow::new(clean_name(&figures.account), clean_name(&figures.cluster), &figures.totals)
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
            title: format!("{group}: {}", month.words()),
            group,
            month: month.to_string(),
            from: month.first(),
            until,
            made_at: now.0,
            site_unit: site_unit(view),
            totals: ReportTableRow::new("Total".to_owned(), String::new(), &all.totals),
            accounts: all.accounts.iter().map(account).collect(),
            members: rows_with_rest(members, MAX_MEMBER_ROWS, "people"),
            kinds: rows_with_rest(kinds, MAX_KIND_ROWS, "job types"),
            measure: if measure == UsageMeasure::Gpus { "GPU hours" } else { "core hours" }.to_owned(),
            series,
            colours,
            bars,
            allocations: list_allocations(view, subject),
            notes: formatting::list_gaps(view, &all, month, until),
        }
    }
}

/// The first rows as they are, and the others as one.
fn rows_with_rest(all: Vec<(&str, &UsageTotals)>, most: usize, noun: &str) -> Vec<ReportTableRow> {
    // A single extra row needs no row for the others.
    let most = if all.len() == most + 1 { all.len() } else { most };
    let mut rest = UsageTotals::default();
    let mut others = 0_usize;
    let mut rows = Vec::new();
    for (index, (name, totals)) in all.into_iter().enumerate() {
        if index < most {
            rows.push(ReportTableRow::new(clean_name(name), String::new(), totals));
        } else {
            rest.add(totals);
            others += 1;
        }
    }
    if others > 0 {
        rows.push(ReportTableRow::new(format!("{others} other {noun}"), String::new(), &rest));
    }
    rows
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
        ReportChartDay { day: bar.from, parts, is_missing: bar.missing > 0 && bar.from <= until }
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
    let (first, last) = (subject.month.first(), subject.month.last());
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
