//! The rows of a report's tables.

use serde::{Deserialize, Serialize};

use super::formatting::clean_name;
use crate::usage::breakdown::BreakdownSums;
use crate::usage::figures::FiguresBreakdown;
use crate::usage::totals::{UsageTotals, hours};
use crate::usage::units::UsageMeasure;

/// How many partitions, QOS or GPU models have a row.
const MAX_BREAKDOWN_ROWS: usize = 20;

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportTableRow {
    /// The person, job type or account.
    pub name: String,
    /// More detail, such as the cluster.
    pub detail: String,
    /// Whether it stands for all others: it is last, however the table is sorted.
    pub is_rest: bool,
    /// Whether nothing was read of it, so that its figures say nothing. Older reports do not tell.
    pub is_unread: bool,
    pub core_hours: f64,
    pub gpu_hours: f64,
    /// GPU hours by model.
    pub gpus: Vec<(String, f64)>,
    /// Hours of the centre's own unit.
    pub site_hours: f64,
    pub jobs: u64,
    /// The successful fraction of all jobs that were not cancelled.
    pub success: Option<f64>,
    /// Of the jobs, those that did not succeed. Reports of older versions do not have these numbers.
    pub failed: u64,
    pub timed_out: u64,
    pub memory_out: u64,
    pub missed_deadline: u64,
    pub node_failed: u64,
    pub interrupted: u64,
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

impl ReportTableRow {
    pub fn new(name: String, detail: String, totals: &UsageTotals) -> Self {
        let model = |(model, seconds): &(String, u64)| (clean_name(model), hours(*seconds));
        Self {
            name,
            detail,
            is_rest: false,
            is_unread: false,
            core_hours: UsageMeasure::Cores.hours(totals),
            gpu_hours: UsageMeasure::Gpus.hours(totals),
            gpus: totals.gpus.iter().filter(|(name, _)| !name.is_empty()).map(model).collect(),
            site_hours: UsageMeasure::Site.hours(totals),
            jobs: totals.jobs,
            success: totals.success_rate(),
            failed: totals.failed,
            timed_out: totals.timed_out,
            memory_out: totals.memory_out,
            missed_deadline: totals.missed_deadline,
            node_failed: totals.node_failed,
            interrupted: totals.interrupted,
            median_wait_s: totals.waits.median(),
            core_use: totals.core_use(),
            memory_use: totals.memory_use(),
            gpu_use: totals.gpu_use(),
            lost_core_hours: hours(totals.lost_core_s),
            lost_gpu_hours: hours(totals.lost_gpu_s),
        }
    }
}

/// The first rows as they are, and the others as one.
pub fn rows_with_rest(all: Vec<(&str, &UsageTotals)>, most: usize, noun: &str) -> Vec<ReportTableRow> {
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
        let row = ReportTableRow::new(format!("{others} other {noun}"), String::new(), &rest);
        rows.push(ReportTableRow { is_rest: true, ..row });
    }
    rows
}

/// Usage by partition, QOS or GPU model.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportBreakdown {
    /// Such as `By partition`.
    pub title: String,
    /// The heading of the names.
    pub first: String,
    /// Whether core hours and jobs are known by name, not only GPU hours.
    pub has_cores: bool,
    pub rows: Vec<ReportBreakdownRow>,
    /// What is not known, as a sentence; empty for nothing.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ReportBreakdownRow {
    pub name: String,
    /// Whether it stands for what is not known by name.
    pub is_rest: bool,
    pub core_hours: f64,
    pub gpu_hours: f64,
    pub jobs: u64,
}

impl ReportBreakdown {
    /// None if there is nothing to show.
    pub fn new(breakdown: &FiguresBreakdown) -> Option<Self> {
        let row = |name: &str, is_rest: bool, sums: &BreakdownSums| ReportBreakdownRow {
            name: clean_name(name),
            is_rest,
            core_hours: hours(sums.core_s),
            gpu_hours: hours(sums.gpu_s),
            jobs: sums.jobs,
        };
        let mut rest = breakdown.unknown.clone().unwrap_or_default();
        let mut rows = Vec::new();
        for (index, sums) in breakdown.known.iter().enumerate() {
            if index < MAX_BREAKDOWN_ROWS {
                rows.push(row(if sums.name.is_empty() { "Unknown model" } else { &sums.name }, false, sums));
            } else {
                rest.core_s += sums.core_s;
                rest.gpu_s += sums.gpu_s;
                rest.jobs += sums.jobs;
            }
        }
        if rows.is_empty() {
            return None;
        }
        let is_cut = breakdown.known.len() > MAX_BREAKDOWN_ROWS;
        if breakdown.unknown.is_some() || is_cut {
            rows.push(row(if is_cut { "Other or unknown" } else { "Unknown" }, true, &rest));
        }
        Some(Self {
            title: breakdown.kind.heading().to_owned(),
            first: breakdown.kind.title().to_owned(),
            has_cores: breakdown.has_cores(),
            rows,
            note: breakdown.note(),
        })
    }

    /// The sum of all rows; none if there are none.
    pub fn total(&self) -> Option<ReportBreakdownRow> {
        let add = |sum: ReportBreakdownRow, row: ReportBreakdownRow| ReportBreakdownRow {
            core_hours: sum.core_hours + row.core_hours,
            gpu_hours: sum.gpu_hours + row.gpu_hours,
            jobs: sum.jobs + row.jobs,
            ..sum
        };
        let total = self.rows.iter().cloned().reduce(add)?;
        Some(ReportBreakdownRow { name: "Total".to_owned(), is_rest: false, ..total })
    }
}
