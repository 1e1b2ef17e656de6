//! The page that lists the jobs behind a figure.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect};

use crate::auth::Permission;
use crate::format;
use crate::usage::hours;
use crate::web::HandlerResult;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::groups::usage::formatting::format_exact;
use crate::web::pages::groups::usage::job_search::{
    OUTCOME_ENDED, OUTCOME_LOST, UsageJobRange, UsageJobSearchResults, UsageJobTotals, WITH_GPUS, canonical_outcome,
    find_jobs, member_name,
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
    let same = |outcome: &str, page: &str| {
        let changes = [
            ("from", from.as_str()),
            ("until", until.as_str()),
            ("member", member.as_str()),
            ("kind", found.kind.as_str()),
            ("with", if found.with_gpus { WITH_GPUS } else { "" }),
            ("outcome", outcome),
            ("page", page),
        ];
        jobs_href(group, filter, &changes)
    };
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
        ("failed", "Failed or interrupted"),
        ("out-of-time", "Timed out"),
        ("out-of-memory", "Out of memory"),
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
        pages,
        back: format!("{}?{}", usage_path(group), filter.to_query_string(&[])),
        csv,
        data,
        found,
    })
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
