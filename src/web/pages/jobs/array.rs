//! The page of a job array: task counts by state, the tasks themselves, and task actions.

use std::sync::Arc;

use askama::Template;

use crate::error::AppError;
use crate::explain::waiting::{WaitExplanation, WaitKind};
use crate::format;
use crate::jobs::JobRecord;
use crate::jobs::job_list::{JobCounts, JobListItem, record_stage};
use crate::recipes::sweep::Sweep;
use crate::slurm::job::JobStage;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::jobs::can_resubmit::can_resubmit;
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;
use crate::web::pages::jobs::job::JobPageQuery;
use crate::web::pages::jobs::job_lookup::JobOfPage;
use crate::web::pages::jobs::list::row_builder;
use crate::web::pages::jobs::list_row::{JobListRow, JobTimeCell};

const TASKS_PER_PAGE: usize = 100;

#[derive(Template)]
#[template(path = "jobs/array.html")]
struct JobArrayPage {
    page: PageFrame,
    array: JobArrayView,
}

#[derive(Template)]
#[template(path = "jobs/array_fragment.html")]
struct JobArrayFragment {
    array: JobArrayView,
}

#[expect(clippy::struct_excessive_bools, reason = "parts of the page that are there or not")]
struct JobArrayView {
    queue: PersonClusterQueue,
    href: String,
    pick: String,
    row: JobListRow,
    why: Option<WaitExplanation>,
    counts: JobCounts,
    is_own: bool,
    /// Whether it can be resubmitted, as far as is known.
    can_resubmit: bool,
    can_act: bool,
    /// Whether only the part that refreshes itself is sent, to a page that is open.
    is_fragment: bool,
    chips: Vec<(String, &'static str, String, bool)>,
    /// Its tasks, each with its sweep point.
    rows: Vec<(JobListRow, String)>,
    /// Whether it is a sweep made by this portal.
    is_sweep: bool,
    part_href: String,
    previous: String,
    next: String,
    page_words: String,
    pages: usize,
}

pub async fn show_page(
    context: &RequestContext,
    me: &CurrentPerson,
    found: &JobOfPage,
    item: &JobListItem,
    query: &JobPageQuery,
) -> HandlerResult {
    let array = load_array_view(context, found, item, query).await?;
    let title = format!("{} ({})", array.row.title(), array.row.id);
    respond(&JobArrayPage { page: PageFrame::for_person(context, &me.0, &title, NavSection::Jobs), array })
}

/// The fragment that refreshes itself.
pub async fn show_fragment(
    context: &RequestContext,
    found: &JobOfPage,
    item: &JobListItem,
    query: &JobPageQuery,
) -> HandlerResult {
    let mut array = load_array_view(context, found, item, query).await?;
    array.is_fragment = true;
    respond(&JobArrayFragment { array })
}

async fn load_array_view(
    context: &RequestContext,
    found: &JobOfPage,
    item: &JobListItem,
    query: &JobPageQuery,
) -> Result<JobArrayView, AppError> {
    let sweep = find_sweep(context, found).await?;
    let details = context.app.job_details.get_cached(found.queue.account.id, &item.head).await?.details;
    let rows = row_builder(&found.queue, context.app.clock.now(), "");
    let row = rows.item_row(item);
    let state = query.state.as_str();
    let wanted: Vec<&Arc<JobRecord>> = item.tasks.iter().filter(|task| matches_state(task, state)).collect();
    let pages = wanted.len().div_ceil(TASKS_PER_PAGE).max(1);
    let page = query.page.clamp(1, pages);
    let shown = wanted.iter().skip((page - 1) * TASKS_PER_PAGE).take(TASKS_PER_PAGE);
    let row_of = |task: &&Arc<JobRecord>| {
        let point = sweep.as_ref().map(|sweep| sweep_point_label(task, sweep)).unwrap_or_default();
        (rows.record_row(task, found.is_own), point)
    };
    let rows = shown.map(row_of).collect();
    let href = found.href();
    let state = if ["waiting", "running", "ended", "problem"].contains(&state) { state } else { "" };
    let at = |state: &str, page: usize| match (state, page) {
        ("", 1) => href.clone(),
        ("", page) => format!("{href}?page={page}"),
        (state, 1) => format!("{href}?state={state}"),
        (state, page) => format!("{href}?state={state}&page={page}"),
    };
    let counts = item.counts;
    let chip = |name: &str, label, count: u64| (at(name, 1), label, format::number(count), state == name);
    Ok(JobArrayView {
        chips: vec![
            chip("", "All", counts.total()),
            chip("running", "Running", counts.running),
            chip("waiting", "Pending", counts.waiting),
            chip("ended", "Ended", counts.ended()),
            chip("problem", "Needs attention", counts.bad),
        ],
        why: row.why.clone(),
        previous: if page > 1 { at(state, page - 1) } else { String::new() },
        next: if page < pages { at(state, page + 1) } else { String::new() },
        page_words: format!("Page {page} of {pages}"),
        part_href: format!("{href}/fragment?state={state}&page={page}"),
        pick: format!("{}/{}", found.queue.cluster().slug, found.id.number),
        can_act: found.is_own && counts.waiting + counts.running > 0,
        is_fragment: false,
        is_own: found.is_own,
        can_resubmit: can_resubmit(context, found, &item.head, &details).await?,
        queue: found.queue.clone(),
        href,
        row,
        counts,
        rows,
        is_sweep: sweep.is_some(),
        pages,
    })
}

/// The sweep point of a task. Tasks that are pending together have no point of their own.
pub fn sweep_point_label(task: &JobRecord, sweep: &Sweep) -> String {
    let number = task.job.id.task.and_then(|task| usize::try_from(task).ok());
    number.filter(|number| *number < sweep.len()).map(|number| sweep.label(number)).unwrap_or_default()
}

/// The sweep point of a task, in words; empty if it isn't part of a sweep.
pub async fn load_sweep_point_label(
    context: &RequestContext,
    found: &JobOfPage,
    record: &JobRecord,
) -> Result<String, AppError> {
    let sweep = find_sweep(context, found).await?;
    Ok(sweep.map(|sweep| sweep_point_label(record, &sweep)).unwrap_or_default())
}

/// The sweep behind a job array, if this portal made it and it is the person's own.
pub async fn find_sweep(context: &RequestContext, found: &JobOfPage) -> Result<Option<Sweep>, AppError> {
    if !found.is_own {
        return Ok(None);
    }
    let key = found.queue.account.id;
    let number = i64::try_from(found.id.number).unwrap_or(-1);
    let mut db = context.app.store.read().await?;
    let submission = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
    Ok(submission.and_then(|submission| serde_json::from_str(&submission.sweep).ok()))
}

fn matches_state(task: &JobRecord, state: &str) -> bool {
    match state {
        "waiting" => record_stage(task) == JobStage::Pending,
        "running" => record_stage(task) == JobStage::Running,
        "ended" => record_stage(task) == JobStage::Ended,
        "problem" => task.job.state.is_failure(),
        _ => true,
    }
}

impl JobArrayView {
    /// All tasks, and how many are in each state in which there are any; what needs attention comes first.
    fn shown_counts(&self) -> Vec<(&'static str, String)> {
        let counts = &self.counts;
        let all = [
            ("Tasks", counts.total()),
            ("Failed", counts.failed()),
            ("Node failed", counts.node_failed),
            ("Running", counts.running),
            ("Pending", counts.waiting),
            ("Completed", counts.done),
            ("Cancelled", counts.cancelled),
        ];
        all.into_iter().filter(|(_, count)| *count > 0).map(|(label, count)| (label, format::number(count))).collect()
    }

    /// Tasks that are pending together have no page of their own.
    fn has_page(&self, row: &JobListRow) -> bool {
        row.href != self.href
    }
}
