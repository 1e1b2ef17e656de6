//! The tables of a group's usage as CSV. Their totals match the page.

use axum::response::Response;

use crate::clock::UnixTime;
use crate::usage::figures::{BreakdownKind, UsageFigures};
use crate::usage::{AllocationUnit, UsageMeasure, UsageTotals, hours};
use crate::web::HandlerResult;
use crate::web::http::csv::{download_response, format_row};
use crate::web::pages::groups::usage::formatting::{format_exact, measure_label};
use crate::web::pages::groups::usage::job_search::{MAX_JOBS, UsageJobRange, find_jobs};
use crate::web::pages::groups::usage::tables::kind_label;
use crate::web::pages::groups::usage::usage_job::UsageJobView;
use crate::web::pages::groups::usage::{GroupUsageRequest, UsagePageData};

/// A column: its heading, and its cell in a row.
type CsvColumn<T> = (&'static str, fn(&T) -> String);

/// The column of hours in the site's own unit. Its cells are empty where there is no such unit.
const SITE_UNIT_HEADING: &str = "site unit hours";

/// The columns after the first one, in tables of totals.
const TOTALS_COLUMNS: [CsvColumn<UsageTotals>; 25] = [
    ("core hours", |sums| exact_hours(sums.core_s)),
    ("GPU hours", |sums| exact_hours(sums.gpu_s)),
    (SITE_UNIT_HEADING, |sums| format_exact(UsageMeasure::Site.hours(sums))),
    ("GPU hours by model", |sums| {
        let models = sums.gpus.iter().map(|(model, seconds)| format!("{model} {}", exact_hours(*seconds)));
        models.collect::<Vec<_>>().join("; ")
    }),
    ("jobs ended", |sums| sums.jobs.to_string()),
    ("completed", |sums| sums.done.to_string()),
    ("failed", |sums| sums.failed.to_string()),
    ("timed out", |sums| sums.timed_out.to_string()),
    ("out of memory", |sums| sums.memory_out.to_string()),
    ("missed deadline", |sums| sums.missed_deadline.to_string()),
    ("node failed", |sums| sums.node_failed.to_string()),
    ("interrupted by the cluster", |sums| sums.interrupted.to_string()),
    ("cancelled", |sums| sums.cancelled.to_string()),
    ("approximate median wait s", |sums| sums.waits.median().map(|wait| wait.to_string()).unwrap_or_default()),
    ("core hours measured", |sums| exact_hours(sums.held_core_s)),
    ("core hours used of measured", |sums| exact_hours(sums.used_core_s)),
    ("GB hours measured", |sums| exact_gb_hours(sums.held_mb_s)),
    ("GB hours used of measured", |sums| exact_gb_hours(sums.used_mb_s)),
    ("GPU hours measured", |sums| exact_hours(sums.held_gpu_s)),
    ("GPU hours used of measured", |sums| exact_hours(sums.used_gpu_s)),
    ("wasted core hours", |sums| exact_hours(sums.lost_core_s)),
    ("wasted GPU hours", |sums| exact_hours(sums.lost_gpu_s)),
    ("over-requested core hours", |sums| of_measured(sums.held_core_s, exact_hours(sums.spare_core_s))),
    ("over-requested GPU hours", |sums| of_measured(sums.held_gpu_s, exact_hours(sums.spare_gpu_s))),
    ("over-requested GB hours", |sums| of_measured(sums.held_mb_s, exact_gb_hours(sums.spare_mb_s))),
];

const JOB_COLUMNS: [CsvColumn<UsageJobView>; 22] = [
    ("cluster", |job| job.slug.clone()),
    ("account", |job| job.account.clone()),
    ("job", |job| job.id.clone()),
    ("member", |job| job.member.clone()),
    ("user", |job| job.user.clone()),
    ("job type", |job| job.kind.clone()),
    ("outcome", |job| job.end().to_owned()),
    ("started", |job| job.began.iso()),
    ("core hours in period", |job| exact_hours(job.core_s)),
    ("GPU hours in period", |job| exact_hours(job.gpu_s)),
    ("seconds in period", |job| job.row.seconds.to_string()),
    ("run time s", |job| job.row.elapsed_s.to_string()),
    ("wait s", |job| job.row.wait_s.to_string()),
    ("cores", |job| job.row.cores.to_string()),
    ("memory MB", |job| job.row.memory_mb.to_string()),
    ("GPUs", |job| job.row.gpus.clone()),
    ("CPU seconds used", |job| if_measured(job.row.cpu_s)),
    ("memory MB used", |job| if_measured(job.row.rss_mb)),
    ("over-requested core hours", |job| exact_hours(job.spare_s)),
    ("submitted", |job| job.submitted().map(UnixTime::iso).unwrap_or_default()),
    ("partition", |job| job.row.partition.clone()),
    ("QOS", |job| job.row.qos.clone()),
];

fn exact_hours(seconds: u64) -> String {
    format_exact(hours(seconds))
}

fn exact_gb_hours(mb_seconds: u64) -> String {
    format_exact(hours(mb_seconds) / 1024.0)
}

/// Empty where nothing was measured.
fn of_measured(measured: u64, cell: String) -> String {
    if measured == 0 { String::new() } else { cell }
}

/// What Slurm did not measure is stored as a negative number.
fn if_measured(number: i64) -> String {
    if number < 0 { String::new() } else { number.to_string() }
}

/// A row of a table of totals. Without totals, its cells are empty.
struct CsvTotalsRow<'a> {
    name: String,
    totals: Option<&'a UsageTotals>,
    /// Whether hours are counted in a unit of the site's own.
    has_site_unit: bool,
}

/// A table of totals; `first` is the heading of the names.
fn render_totals<'a>(first: &str, rows: impl Iterator<Item = CsvTotalsRow<'a>>) -> String {
    let head: Vec<&str> = std::iter::once(first).chain(TOTALS_COLUMNS.map(|(heading, _)| heading)).collect();
    let mut text = format_row(&head);
    for row in rows {
        let cells = TOTALS_COLUMNS.map(|(heading, cell)| {
            let is_known = heading != SITE_UNIT_HEADING || row.has_site_unit;
            row.totals.filter(|_| is_known).map(cell).unwrap_or_default()
        });
        text.push_str(&format_row(&std::iter::once(row.name).chain(cells).collect::<Vec<String>>()));
    }
    text
}

/// A file for the selected period.
fn file_response(data: &UsagePageData, what: &str, text: String) -> Response {
    let choice = &data.filter.choice;
    let name = format!("group-{}-{what}-{}-{}.csv", data.group.id, choice.from, choice.until);
    download_response(&name, text)
}

pub async fn members(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    let has_site_unit = data.filter.unit.is_some();
    let rows = data.figures.members.iter().map(|member| CsvTotalsRow {
        name: member.name.clone(),
        totals: Some(&member.totals),
        has_site_unit,
    });
    Ok(file_response(&data, "members", render_totals("member", rows)))
}

pub async fn accounts(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    let rows = data.figures.accounts.iter().map(|account| {
        let details = data.view.accounts.iter().map(|one| &one.details);
        let mut own = details.filter(|details| details.slug == account.slug && details.account == account.account);
        CsvTotalsRow {
            name: format!("{}/{}", account.slug, account.account),
            totals: Some(&account.totals).filter(|_| !account.is_unread),
            has_site_unit: own.any(|details| details.site_unit().is_some()),
        }
    });
    Ok(file_response(&data, "accounts", render_totals("account", rows)))
}

/// Usage by job type.
pub async fn kinds(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    let has_site_unit = data.filter.unit.is_some();
    let rows = data.figures.kinds.iter().map(|kind| CsvTotalsRow {
        name: kind_label(&kind.name).into(),
        totals: Some(&kind.totals),
        has_site_unit,
    });
    Ok(file_response(&data, "kinds", render_totals("job type", rows)))
}

/// Usage by partition, QOS and GPU model; the first column says which.
pub async fn breakdown(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    Ok(file_response(&data, "breakdown", render_breakdown(&data.figures, data.filter.choice.measure)))
}

fn render_breakdown(figures: &UsageFigures, measure: UsageMeasure) -> String {
    let mut text = format_row(&["by", "name", "core hours", "GPU hours", "jobs ended"]);
    for kind in BreakdownKind::ALL {
        let breakdown = figures.breakdown(kind, measure);
        let unknown = breakdown.unknown.iter().map(|sums| ("unknown", sums));
        let known = breakdown.known.iter().map(|sums| match sums.name.as_str() {
            "" => ("unknown model", sums),
            name => (name, sums),
        });
        for (name, sums) in known.chain(unknown) {
            // Cores and jobs are not counted by GPU model.
            let counted = |cell: String| if kind == BreakdownKind::GpuModel { String::new() } else { cell };
            let (cores, jobs) = (counted(exact_hours(sums.core_s)), counted(sums.jobs.to_string()));
            text.push_str(&format_row(&[kind.title(), name, &cores, &exact_hours(sums.gpu_s), &jobs]));
        }
    }
    text
}

/// Each allocation and its usage.
pub async fn allocations(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load().await?;
    let mut text =
        format_row(&["cluster", "account", "unit", "granted", "used", "first day", "last day", "days not loaded yet"]);
    for allocation in &data.allocations {
        let Some(account) = data.view.account_of(allocation) else { continue };
        let Some(unit) = AllocationUnit::parse(&allocation.unit) else { continue };
        let forecast = account.forecast(allocation, unit, account.today);
        text.push_str(&format_row(&[
            account.details.slug.clone(),
            allocation.account.clone(),
            allocation.unit.clone(),
            format_exact(allocation.amount),
            format_exact(unit.from_hours(forecast.used)),
            allocation.begins().to_string(),
            allocation.ends().to_string(),
            account.unread_days(allocation.begins(), allocation.ends()).to_string(),
        ]));
    }
    Ok(download_response(&format!("group-{}-allocations.csv", request.group), text))
}

/// The charted measure by day, week or month, with a column per person.
pub async fn days(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    let unit = measure_label(data.filter.choice.measure, data.filter.unit);
    let mut head = vec!["from".to_owned(), "until".to_owned(), format!("total {unit}")];
    head.extend(data.figures.members.iter().map(|member| member.name.clone()));
    head.push("days not loaded yet".to_owned());
    let mut text = format_row(&head);
    for bar in &data.figures.bars {
        let mut row = vec![bar.from.to_string(), bar.until.to_string(), format_exact(bar.total)];
        row.extend(bar.parts.iter().map(|part| format_exact(*part)));
        row.push(bar.missing.to_string());
        text.push_str(&format_row(&row));
    }
    Ok(file_response(&data, "days", text))
}

pub async fn jobs(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load_with_names().await?;
    let found = find_jobs(&request, &data, UsageJobRange { skip: 0, limit: MAX_JOBS }).await?;
    let mut text = format_row(&JOB_COLUMNS.map(|(heading, _)| heading));
    text.extend(found.jobs.iter().map(|job| format_row(&JOB_COLUMNS.map(|(_, cell)| cell(job)))));
    Ok(file_response(&data, "jobs", text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_the_head_and_hold_no_formulas() {
        let mut sums = UsageTotals { core_s: 5400, jobs: 2, done: 1, ..UsageTotals::default() };
        sums.add_gpus("v100", 1800);
        let row = |name: &str, totals| CsvTotalsRow { name: name.into(), totals, has_site_unit: true };
        let text = render_totals("member", [row("=cmd()", Some(&sums)), row("Bob", None)].into_iter());
        let mut lines = text.lines();
        let head = lines.next().unwrap().matches("\",\"").count();
        for row in lines {
            assert_eq!(row.matches("\",\"").count(), head);
        }
        assert!(text.contains("\"'=cmd()\",\"1.5000\",\"0.0000\""), "{text}");
        assert!(text.contains("\"v100 0.5000\""), "{text}");
        assert!(text.contains("\"Bob\",\"\",\"\""), "nothing is known of Bob: {text}");
    }

    #[test]
    fn site_unit_is_empty_where_the_site_has_none() {
        let sums = UsageTotals { core_s: 3600, ..UsageTotals::default() };
        for (has_site_unit, cell) in [(true, "0.0000"), (false, "")] {
            let row = CsvTotalsRow { name: "Bob".into(), totals: Some(&sums), has_site_unit };
            let text = render_totals("member", std::iter::once(row));
            let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
            let at = head.iter().position(|heading| heading.contains(SITE_UNIT_HEADING)).unwrap();
            assert_eq!(row[at], format!("\"{cell}\""), "{text}");
            assert_eq!((row[1], row[2]), ("\"1.0000\"", "\"0.0000\""), "only that one");
        }
    }
}
