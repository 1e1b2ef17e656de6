//! The tables by partition, QOS and GPU model, with links to the jobs behind each row.

use std::cmp::Ordering;

use crate::domain::GroupId;
use crate::format;
use crate::usage::figures::{BreakdownKind, UsageFigures};
use crate::usage::{BreakdownSums, UsageMeasure, hours};
use crate::web::pages::groups::table_sort::{SortColumn, SortHeading, compare_names};
use crate::web::pages::groups::usage::query::UsageFilter;
use crate::web::pages::groups::usage::tables::{jobs_href, sort_href};

/// Query value for GPUs whose model the accounting does not name.
pub const UNKNOWN_MODEL: &str = "unknown";
/// Rows of a table.
const MAX_ROWS: usize = 60;

pub struct BreakdownTable {
    /// Its name in the query string, in the file's name, and in the page.
    pub code: &'static str,
    pub title: &'static str,
    pub headings: Vec<SortHeading>,
    /// Whether the query string sorts this table: then it is open.
    pub is_sorted: bool,
    pub rows: Vec<BreakdownTableRow>,
    pub has_gpus: bool,
    /// Core hours and jobs are not known by GPU model.
    pub has_cores: bool,
    /// What is not known, as a sentence; empty for nothing.
    pub note: String,
}

pub struct BreakdownTableRow {
    pub name: String,
    /// The jobs behind it; empty for none.
    pub href: String,
    pub cores: String,
    pub gpus: String,
    pub jobs: String,
}

/// All tables that have something to show. Only PIs can open everyone's jobs behind them.
pub fn breakdown_tables(
    figures: &UsageFigures,
    group: GroupId,
    filter: &UsageFilter,
    leads: bool,
) -> Vec<BreakdownTable> {
    let table = |kind| breakdown_table(kind, figures, group, filter, leads);
    BreakdownKind::ALL.into_iter().filter_map(table).collect()
}

fn breakdown_table(
    kind: BreakdownKind,
    figures: &UsageFigures,
    group: GroupId,
    filter: &UsageFilter,
    leads: bool,
) -> Option<BreakdownTable> {
    let mut breakdown = figures.breakdown(kind, filter.choice.measure);
    if breakdown.known.is_empty() && breakdown.unknown.is_none() {
        return None;
    }
    let (code, has_gpus) = (kind.as_str(), figures.totals.gpu_s > 0);
    let has_cores = breakdown.has_cores();
    filter.sort.apply(code, &mut breakdown.known, compare_rows);
    let mut columns = vec![SortColumn::text("name", kind.title())];
    if has_cores {
        columns.push(SortColumn::number("cores", "Core hours"));
    }
    if has_gpus {
        columns.push(SortColumn::number("gpus", "GPU hours"));
    }
    if has_cores {
        columns.push(SortColumn::number("jobs", "Jobs ended"));
    }
    let by_gpus = !has_cores || filter.choice.measure == UsageMeasure::Gpus;
    let usual = if by_gpus { "gpus" } else { "cores" };
    let row = |sums: &BreakdownSums| {
        let name = if sums.name.is_empty() { "Unknown model" } else { &sums.name };
        let value = if sums.name.is_empty() { UNKNOWN_MODEL } else { &sums.name };
        let href = if leads { jobs_href(group, filter, &[(code, value)]) } else { String::new() };
        table_row(name, href, sums)
    };
    let mut rows: Vec<BreakdownTableRow> = breakdown.known.iter().take(MAX_ROWS).map(row).collect();
    rows.extend(breakdown.unknown.iter().map(|sums| table_row("Unknown", String::new(), sums)));
    Some(BreakdownTable {
        code,
        title: kind.heading(),
        headings: filter
            .sort
            .headings(code, columns, Some((usual, false)), |sort| sort_href(group, filter, code, sort)),
        is_sorted: filter.sort.is_for(code),
        rows,
        has_gpus,
        has_cores,
        note: breakdown.note(),
    })
}

fn compare_rows(a: &BreakdownSums, b: &BreakdownSums, column: &str) -> Option<Ordering> {
    match column {
        "name" => Some(compare_names(&a.name, &b.name)),
        "cores" => Some(a.core_s.cmp(&b.core_s)),
        "gpus" => Some(a.gpu_s.cmp(&b.gpu_s)),
        "jobs" => Some(a.jobs.cmp(&b.jobs)),
        _ => None,
    }
}

fn table_row(name: &str, href: String, sums: &BreakdownSums) -> BreakdownTableRow {
    BreakdownTableRow {
        name: name.to_owned(),
        href,
        cores: format::amount(hours(sums.core_s)),
        gpus: format::amount(hours(sums.gpu_s)),
        jobs: format::number(sums.jobs),
    }
}
