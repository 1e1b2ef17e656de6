//! The tables of a group's usage as CSV. Their totals match the page.

use crate::auth::Permission;
use crate::domain::GroupId;
use crate::error::AppError;
use crate::usage::{AllocationUnit, UsageMeasure, UsageTotals, hours};
use crate::web::HandlerResult;
use crate::web::http::csv::{download_response, format_row};
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::pages::groups::usage::formatting::format_exact;
use crate::web::pages::groups::usage::job_search::{MAX_JOBS, UsageJobPaging, UsageJobResults, find_jobs};
use crate::web::pages::groups::usage::tables::kind_label;
use crate::web::pages::groups::usage::{UsagePageData, UsageQuery, UsageQueryPairs, load_page_data, record_names_seen};

/// The columns after the first one, in tables of totals.
const COLUMNS: [&str; 21] = [
    "core hours",
    "GPU hours",
    "site unit hours",
    "GPU hours by model",
    "jobs ended",
    "done",
    "failed",
    "out of time",
    "out of memory",
    "cancelled",
    "median wait s",
    "core hours measured",
    "core hours used of them",
    "GB hours measured",
    "GB hours used of them",
    "GPU hours measured",
    "GPU hours used of them",
    "core hours in jobs that did not end well",
    "GPU hours in jobs that did not end well",
    "core hours that could have been asked for less",
    "GB hours that could have been asked for less",
];

fn sum_columns(sums: &UsageTotals) -> Vec<String> {
    let of = |seconds: u64| format_exact(hours(seconds));
    let memory = |mb_s: u64| format_exact(hours(mb_s) / 1024.0);
    let models = sums.gpus.iter().map(|(model, seconds)| format!("{model} {}", of(*seconds)));
    vec![
        of(sums.core_s),
        of(sums.gpu_s),
        format_exact(UsageMeasure::Site.hours(sums)),
        models.collect::<Vec<_>>().join("; "),
        sums.jobs.to_string(),
        sums.done.to_string(),
        sums.failed.to_string(),
        sums.timed_out.to_string(),
        sums.memory_out.to_string(),
        sums.cancelled.to_string(),
        sums.waits.median().map(|wait| wait.to_string()).unwrap_or_default(),
        of(sums.held_core_s),
        of(sums.used_core_s),
        memory(sums.held_mb_s),
        memory(sums.used_mb_s),
        of(sums.held_gpu_s),
        of(sums.used_gpu_s),
        of(sums.lost_core_s),
        of(sums.lost_gpu_s),
        of(sums.spare_core_s),
        memory(sums.spare_mb_s),
    ]
}

fn render_table<'a>(first: &str, rows: impl Iterator<Item = (&'a str, &'a UsageTotals)>) -> String {
    let head: Vec<&str> = std::iter::once(first).chain(COLUMNS).collect();
    let mut text = format_row(&head);
    for (name, sums) in rows {
        let mut row = vec![name.to_owned()];
        row.extend(sum_columns(sums));
        text.push_str(&format_row(&row));
    }
    text
}

/// Every file starts here: check permissions, load the figures, record that names were seen.
async fn load_and_record(
    context: &RequestContext,
    me: &CurrentPerson,
    group: GroupId,
    pairs: UsageQueryPairs,
) -> Result<(UsagePageData, UsageQuery), AppError> {
    let (sight, ask) = load_page_data(context, me, group, pairs).await?;
    record_names_seen(context, me, &sight.view).await?;
    Ok((sight, ask))
}

fn file_name(sight: &UsagePageData, what: &str) -> String {
    let choice = &sight.filter.choice;
    format!("group-{}-{what}-{}-{}.csv", sight.group.id, choice.from, choice.until)
}

pub async fn members(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(group): PathParams<GroupId>,
    QueryParams(pairs): QueryParams<UsageQueryPairs>,
) -> HandlerResult {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = load_and_record(&context, &me, group, pairs).await?;
    let figures = &sight.figures;
    let rows = figures.members.iter().map(|one| (one.name.as_str(), &one.totals));
    Ok(download_response(&file_name(&sight, "members"), render_table("member", rows)))
}

pub async fn accounts(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(group): PathParams<GroupId>,
    QueryParams(pairs): QueryParams<UsageQueryPairs>,
) -> HandlerResult {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = load_and_record(&context, &me, group, pairs).await?;
    let names: Vec<String> = sight.figures.accounts.iter().map(|one| format!("{}/{}", one.slug, one.account)).collect();
    let sums = sight.figures.accounts.iter().map(|one| &one.totals);
    let rows = names.iter().map(String::as_str).zip(sums);
    Ok(download_response(&file_name(&sight, "accounts"), render_table("account", rows)))
}

/// Each allocation and its usage.
pub async fn allocations(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(group): PathParams<GroupId>,
    QueryParams(pairs): QueryParams<UsageQueryPairs>,
) -> HandlerResult {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = load_page_data(&context, &me, group, pairs).await?;
    let mut text =
        format_row(&["cluster", "account", "unit", "granted", "used", "first day", "last day", "days not read yet"]);
    for one in &sight.allocations {
        let Some(account) = sight.view.account_of(one) else { continue };
        let Some(unit) = AllocationUnit::parse(&one.unit) else { continue };
        let found = account.forecast(one, unit, account.today);
        text.push_str(&format_row(&[
            account.details.slug.clone(),
            one.account.clone(),
            one.unit.clone(),
            format_exact(one.amount),
            format_exact(unit.from_hours(found.used)),
            one.begins().to_string(),
            one.ends().to_string(),
            account.unread_days(one.begins(), one.ends()).to_string(),
        ]));
    }
    Ok(download_response(&format!("group-{group}-allocations.csv"), text))
}

/// Usage by job type.
pub async fn kinds(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(group): PathParams<GroupId>,
    QueryParams(pairs): QueryParams<UsageQueryPairs>,
) -> HandlerResult {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = load_and_record(&context, &me, group, pairs).await?;
    let figures = &sight.figures;
    let rows = figures.kinds.iter().map(|one| (kind_label(&one.name), &one.totals));
    Ok(download_response(&file_name(&sight, "kinds"), render_table("sort of job", rows)))
}

/// The charted measure by day, week or month, with a column per person.
pub async fn days(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(group): PathParams<GroupId>,
    QueryParams(pairs): QueryParams<UsageQueryPairs>,
) -> HandlerResult {
    me.may(Permission::SeeUsage(group))?;
    let (sight, _) = load_and_record(&context, &me, group, pairs).await?;
    let figures = &sight.figures;
    let unit =
        crate::web::pages::groups::usage::formatting::measure_label(sight.filter.choice.measure, sight.filter.unit);
    let mut head = vec!["from".to_owned(), "until".to_owned(), format!("{unit} in all")];
    head.extend(figures.members.iter().map(|one| one.name.clone()));
    head.push("days not read yet".to_owned());
    let mut text = format_row(&head);
    for bar in &figures.bars {
        let mut row = vec![bar.from.to_string(), bar.until.to_string(), format_exact(bar.total)];
        row.extend(bar.parts.iter().map(|part| format_exact(*part)));
        row.push(bar.missing.to_string());
        text.push_str(&format_row(&row));
    }
    Ok(download_response(&file_name(&sight, "days"), text))
}

pub async fn jobs(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(group): PathParams<GroupId>,
    QueryParams(pairs): QueryParams<UsageQueryPairs>,
) -> HandlerResult {
    me.may(Permission::SeeUsage(group))?;
    let (sight, ask) = load_and_record(&context, &me, group, pairs).await?;
    let found = find_jobs(&context, &me, &sight, &ask, UsageJobPaging { skip: 0, limit: MAX_JOBS }).await?;
    Ok(download_response(&file_name(&sight, "jobs"), render_jobs_table(&found)))
}

fn render_jobs_table(found: &UsageJobResults) -> String {
    let mut text = format_row(&[
        "cluster",
        "account",
        "job",
        "member",
        "user",
        "sort of job",
        "outcome",
        "began",
        "core hours in this time",
        "GPU hours in this time",
        "seconds in this time",
        "seconds in all",
        "seconds waited",
        "cores",
        "memory MB",
        "GPUs",
        "processor seconds used",
        "memory MB used",
        "core hours that could be asked less",
    ]);
    for job in &found.jobs {
        let known = |number: i64| if number < 0 { String::new() } else { number.to_string() };
        let row = &job.row;
        text.push_str(&format_row(&[
            job.slug.clone(),
            job.account.clone(),
            job.id.clone(),
            job.member.clone(),
            job.user.clone(),
            job.kind.clone(),
            job.outcome.as_str().to_owned(),
            job.began.iso(),
            format_exact(hours(job.core_s)),
            format_exact(hours(job.gpu_s)),
            row.seconds.to_string(),
            row.elapsed_s.to_string(),
            row.wait_s.to_string(),
            row.cores.to_string(),
            row.memory_mb.to_string(),
            row.gpus.clone(),
            known(row.cpu_s),
            known(row.rss_mb),
            format_exact(hours(job.spare_s)),
        ]));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_as_long_as_the_head_and_hold_no_formulas() {
        let mut sums = UsageTotals { core_s: 5400, jobs: 2, done: 1, ..UsageTotals::default() };
        sums.add_gpus("v100", 1800);
        let text = render_table("member", [("=cmd()", &sums), ("Bob", &UsageTotals::default())].into_iter());
        let mut lines = text.lines();
        let head = lines.next().unwrap().matches("\",\"").count();
        for row in lines {
            assert_eq!(row.matches("\",\"").count(), head);
        }
        assert!(text.contains("\"'=cmd()\",\"1.5000\",\"0.0000\""), "{text}");
        assert!(text.contains("\"v100 0.5000\""), "{text}");
    }
}
