//! The page that lists the jobs behind a figure.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect};

use crate::auth::Permission;
use crate::format;
use crate::store::usage::jobs::UsageJobColumn;
use crate::usage::hours;
use crate::web::HandlerResult;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::table_sort::{SortColumn, SortHeading};
use crate::web::pages::groups::usage::formatting::format_exact;
use crate::web::pages::groups::usage::job_search::{
    JOB_TABLE, OUTCOME_ENDED, OUTCOME_LOST, SORT_OVERSIZED, UsageJobRange, UsageJobSearchResults, UsageJobTotals,
    WITH_GPUS, canonical_outcome, find_jobs, member_name,
};
use crate::web::pages::groups::usage::tables::{OUTCOME_OVERSIZED, jobs_href, member_query_value};
use crate::web::pages::groups::usage::{GroupUsageRequest, UsagePageData, usage_path};

const JOBS_PER_PAGE: usize = 50;
/// Pages on offer; the CSV file has the rest.
const MAX_PAGES: usize = 200;

#[derive(Template)]
#[template(path = "groups/usage/jobs.html")]
struct UsageJobsPage {
    page: PageFrame,
    heading: &'static str,
    data: UsagePageData,
    may_manage: bool,
    found: UsageJobSearchResults,
    member_name: String,
    /// How many jobs match, as text.
    counted: String,
    core_hours: String,
    core_exact: String,
    /// Core hours since each job began; empty if they all ran within the period.
    run_hours: String,
    /// Empty if no job had a GPU.
    gpu_hours: String,
    /// Over-requested core hours; empty unless the filter asks for them.
    spare_hours: String,
    spare_exact: String,
    chips: Vec<(String, &'static str, bool)>,
    headings: Vec<SortHeading>,
    /// What they are sorted by, as text.
    sorted_by: String,
    /// The partition, QOS and GPU model that the filter names, as text; empty for none.
    only: String,
    /// Links to the previous and next page, and the range shown; all empty if everything fits on one page.
    pages: (String, String, String),
    back: String,
    csv: String,
}

pub async fn get(request: GroupUsageRequest) -> HandlerResult {
    let data = request.load().await?;
    let page_number = data.query.page.parse().unwrap_or(1).clamp(1, MAX_PAGES);
    let paging = UsageJobRange { skip: (page_number - 1) * JOBS_PER_PAGE, limit: JOBS_PER_PAGE };
    let found = find_jobs(&request, &data, paging).await?;
    let GroupUsageRequest { context, me, group, .. } = request;
    let filter = &data.filter;
    let (from, until) = (found.from.to_string(), found.until.to_string());
    let member = found.member.as_ref().and_then(member_query_value).unwrap_or_default();
    let sort = filter.sort.query_value();
    let linked = |outcome: &str, page: &str, sort: &str| {
        let changes = [
            ("from", from.as_str()),
            ("until", until.as_str()),
            ("member", member.as_str()),
            ("kind", found.kind.as_str()),
            ("with", if found.with_gpus { WITH_GPUS } else { "" }),
            ("partition", data.query.partition.as_str()),
            ("qos", data.query.qos.as_str()),
            ("gpu", data.query.gpu.as_str()),
            ("outcome", outcome),
            ("sort", sort),
            ("page", page),
        ];
        jobs_href(group, filter, &changes)
    };
    let same = |outcome: &str, page: &str| linked(outcome, page, &sort);
    let outcome = canonical_outcome(&data.query.outcome);
    if found.jobs.is_empty() && found.totals.count > 0 {
        // The list has become shorter since the link was made.
        return Ok(Redirect::to(&same(outcome, "")).into_response());
    }
    let chip = |(word, label): (&'static str, &'static str)| (same(word, ""), label, outcome == word);
    let chips = [
        ("", "All"),
        (OUTCOME_ENDED, "Ended"),
        ("done", "Completed"),
        (OUTCOME_LOST, "Unsuccessful"),
        ("failed", "Failed"),
        ("out-of-time", "Timed out"),
        ("out-of-memory", "Out of memory"),
        ("missed-deadline", "Missed deadline"),
        ("node-failed", "Node failed"),
        ("interrupted", "Interrupted"),
        ("cancelled", "Cancelled"),
        ("running", "Running"),
        (OUTCOME_OVERSIZED, "Over-requested"),
    ];
    let to_page = |page: usize| {
        let is_there = (1..=MAX_PAGES).contains(&page) && page <= page_count(found.totals.count);
        if is_there { same(outcome, &page.to_string()) } else { String::new() }
    };
    let pages = if page_count(found.totals.count) > 1 {
        (to_page(page_number - 1), to_page(page_number + 1), range_label(paging, &found))
    } else {
        Default::default()
    };
    let columns = job_columns(data.view.is_leader, found.totals.gpu_s > 0, outcome == OUTCOME_OVERSIZED);
    let headings = filter.sort.headings(JOB_TABLE, columns, Some(found.order), |sort| linked(outcome, "", sort));
    let csv = same(outcome, "").replacen("/jobs?", "/jobs.csv?", 1);
    let heading = if data.view.is_leader { "Jobs in these figures" } else { "Your jobs in these figures" };
    respond(&UsageJobsPage {
        page: PageFrame::for_person(&context, &me.0, heading, NavSection::Groups),
        heading,
        may_manage: me.may(Permission::ManageUsage(group)).is_ok(),
        member_name: found.member.as_ref().map(|who| member_name(&data, who)).unwrap_or_default(),
        counted: format::count(found.totals.count, "job"),
        core_hours: format::amount(hours(found.totals.core_s)),
        core_exact: format_exact(hours(found.totals.core_s)),
        run_hours: total_run_hours(&found.totals),
        gpu_hours: if found.totals.gpu_s == 0 { String::new() } else { format::amount(hours(found.totals.gpu_s)) },
        spare_hours: if outcome == OUTCOME_OVERSIZED {
            format::amount(hours(found.totals.spare_s))
        } else {
            String::new()
        },
        spare_exact: format_exact(hours(found.totals.spare_s)),
        chips: chips.map(chip).into(),
        sorted_by: sorted_by(&headings),
        headings,
        only: only_label(&data),
        pages,
        back: format!("{}?{}", usage_path(group), filter.to_query_string(&[("sort", "")])),
        csv,
        data,
        found,
    })
}

fn job_columns(has_members: bool, has_gpus: bool, has_spare: bool) -> Vec<SortColumn> {
    let all = [
        (true, SortColumn::text(UsageJobColumn::Job.as_str(), "Job")),
        (has_members, SortColumn::text(UsageJobColumn::User.as_str(), "Member")),
        (true, SortColumn::text(UsageJobColumn::Outcome.as_str(), "Outcome")),
        (true, SortColumn::text(UsageJobColumn::Started.as_str(), "Started")),
        (true, SortColumn::number(UsageJobColumn::CoreHours.as_str(), "Core\nhours")),
        (has_gpus, SortColumn::number(UsageJobColumn::GpuHours.as_str(), "GPU\nhours")),
        (has_spare, SortColumn::number(SORT_OVERSIZED, "Over-\nrequested")),
        (true, SortColumn::number(UsageJobColumn::RunTime.as_str(), "Run time")),
        (true, SortColumn::number(UsageJobColumn::Wait.as_str(), "Wait")),
        (true, SortColumn::text(UsageJobColumn::Cores.as_str(), "Allocated")),
        (true, SortColumn::number(UsageJobColumn::CpuEfficiency.as_str(), "CPU\nefficiency")),
        (true, SortColumn::number(UsageJobColumn::MemoryEfficiency.as_str(), "Memory\nefficiency")),
    ];
    all.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, column)| column).collect()
}

/// For example `GPU hours, highest first`.
fn sorted_by(headings: &[SortHeading]) -> String {
    let Some(heading) = headings.iter().find(|heading| !heading.direction.is_empty()) else { return String::new() };
    let first = match (heading.column.is_number, heading.direction) {
        (true, "ascending") => ", lowest first",
        (true, _) => ", highest first",
        (false, "ascending") => ", in ascending order",
        (false, _) => ", in descending order",
    };
    let label = heading.column.label.replace("-\n", "-").replace('\n', " ");
    // Only the first word begins with a capital that is not an abbreviation's.
    let is_abbreviation = label.chars().nth(1).is_some_and(char::is_uppercase);
    let label = if is_abbreviation { label } else { label.to_lowercase() };
    format!("{label}{first}")
}

fn only_label(data: &UsagePageData) -> String {
    let query = &data.query;
    let parts = [("partition", &query.partition), ("QOS", &query.qos), ("GPU model", &query.gpu)];
    let parts = parts.into_iter().filter(|(_, name)| !name.is_empty());
    parts.map(|(what, name)| format!("{what} {name}")).collect::<Vec<_>>().join(", ")
}

/// Core hours over the jobs' whole run time, if that is more than within the period.
fn total_run_hours(all: &UsageJobTotals) -> String {
    // Ignore small differences: suspended jobs have rounded seconds per day.
    let is_more = all.run_core_s > all.core_s + all.core_s / 1000;
    if is_more { format::amount(hours(all.run_core_s)) } else { String::new() }
}

fn page_count(jobs: u64) -> usize {
    usize::try_from(jobs).unwrap_or(usize::MAX).div_ceil(JOBS_PER_PAGE)
}

/// For example `51 to 100 of 1,234`.
fn range_label(paging: UsageJobRange, found: &UsageJobSearchResults) -> String {
    let number = |count: usize| format::number(u64::try_from(count).unwrap_or(u64::MAX));
    let last = paging.skip + found.jobs.len();
    format!("{} to {} of {}", number(paging.skip + 1), number(last), format::number(found.totals.count))
}
