//! The page of an array: how many of its tasks do what, the tasks themselves, and doing something to some of them.

use std::sync::Arc;

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me};
use super::super::page::{Page, Section, show};
use super::found::Found;
use super::job::Having;
use super::list::frame;
use super::queues::Place;
use super::row::{Row, Time};
use crate::error::AppError;
use crate::explain::sizes;
use crate::explain::waiting::{Kind, Why};
use crate::jobs::Record;
use crate::jobs::entry::{Counts, Entry, stage};
use crate::recipes::sweep::Sweep;
use crate::slurm::job::JobStage;
use crate::store;

/// Tasks on a page.
const PER_PAGE: usize = 100;

#[derive(Template)]
#[template(path = "jobs/array.html")]
struct ArrayPage {
    page: Page,
    array: Array,
}

#[derive(Template)]
#[template(path = "jobs/array_part.html")]
struct ArrayPart {
    array: Array,
}

/// Everything that the page says.
struct Array {
    place: Place,
    href: String,
    pick: String,
    row: Row,
    why: Option<Why>,
    counts: Counts,
    is_own: bool,
    can_act: bool,
    chips: Vec<(String, &'static str, String, bool)>,
    /// Its tasks, each with what it tries.
    rows: Vec<(Row, String)>,
    /// Whether it is a sweep of this portal.
    is_sweep: bool,
    part_href: String,
    previous: String,
    next: String,
    page_words: String,
    pages: usize,
}

/// The page.
pub async fn page(
    context: &Context,
    me: &Me,
    found: &Found,
    entry: &Entry,
    having: &Having,
) -> Answer {
    let sweep = sweep_of(context, me, found).await?;
    let array = array(context, found, entry, having, sweep.as_ref());
    let title = format!("{} ({})", array.name(), array.row.id);
    show(&ArrayPage { page: Page::for_person(context, &me.0, &title, Section::Jobs), array })
}

/// The part that renews itself.
pub async fn part(
    context: &Context,
    me: &Me,
    found: &Found,
    entry: &Entry,
    having: &Having,
) -> Answer {
    let sweep = sweep_of(context, me, found).await?;
    show(&ArrayPart { array: array(context, found, entry, having, sweep.as_ref()) })
}

fn array(
    context: &Context,
    found: &Found,
    entry: &Entry,
    having: &Having,
    sweep: Option<&Sweep>,
) -> Array {
    let frame = frame(&found.place, context.app.clock.now(), "");
    let row = frame.row(entry);
    let state = having.state.as_str();
    let wanted: Vec<&Arc<Record>> = entry.tasks.iter().filter(|task| fits(task, state)).collect();
    let pages = wanted.len().div_ceil(PER_PAGE).max(1);
    let page = having.page.clamp(1, pages);
    let shown = wanted.iter().skip((page - 1) * PER_PAGE).take(PER_PAGE);
    let row_of = |task: &&Arc<Record>| {
        let point = sweep.map(|sweep| point(task, sweep)).unwrap_or_default();
        (frame.record(task, found.is_own), point)
    };
    let rows = shown.map(row_of).collect();
    let href = found.href();
    let state =
        if ["waiting", "running", "ended", "problem"].contains(&state) { state } else { "" };
    let at = |state: &str, page: usize| match (state, page) {
        ("", 1) => href.clone(),
        ("", page) => format!("{href}?page={page}"),
        (state, 1) => format!("{href}?state={state}"),
        (state, page) => format!("{href}?state={state}&page={page}"),
    };
    let counts = entry.counts;
    let chip =
        |name: &str, label, count: u64| (at(name, 1), label, sizes::number(count), state == name);
    Array {
        chips: vec![
            chip("", "All", counts.total()),
            chip("running", "Running", counts.running),
            chip("waiting", "Waiting", counts.waiting),
            chip("ended", "Ended", counts.ended()),
            chip("problem", "Problems", counts.bad),
        ],
        why: row.why.clone(),
        previous: if page > 1 { at(state, page - 1) } else { String::new() },
        next: if page < pages { at(state, page + 1) } else { String::new() },
        page_words: format!("Page {page} of {pages}"),
        part_href: format!("{href}/part?state={state}&page={page}"),
        pick: format!("{}/{}", found.place.cluster.slug, found.id.number),
        can_act: found.is_own && counts.waiting + counts.running > 0,
        is_own: found.is_own,
        place: found.place.clone(),
        href,
        row,
        counts,
        rows,
        is_sweep: sweep.is_some(),
        pages,
    }
}

/// What a task tries; tasks that wait together have no point of their own.
fn point(task: &Record, sweep: &Sweep) -> String {
    let number = task.job.id.task.and_then(|task| usize::try_from(task).ok());
    number
        .filter(|number| *number < sweep.len())
        .map(|number| sweep.label(number))
        .unwrap_or_default()
}

/// What a task tries, in words; empty if it is part of no sweep.
pub async fn point_of(
    context: &Context,
    me: &Me,
    found: &Found,
    record: &Record,
) -> Result<String, AppError> {
    let sweep = sweep_of(context, me, found).await?;
    Ok(sweep.map(|sweep| point(record, &sweep)).unwrap_or_default())
}

/// The sweep that an array is, if this portal made it and it is one's own.
pub async fn sweep_of(
    context: &Context,
    me: &Me,
    found: &Found,
) -> Result<Option<Sweep>, AppError> {
    if !found.is_own {
        return Ok(None);
    }
    let key = found.key(me);
    let number = i64::try_from(found.id.number).unwrap_or(-1);
    let mut db = context.app.store.read().await?;
    let one = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
    Ok(one.and_then(|one| serde_json::from_str(&one.sweep).ok()))
}

fn fits(task: &Record, state: &str) -> bool {
    match state {
        "waiting" => stage(task) == JobStage::Pending,
        "running" => stage(task) == JobStage::Running,
        "ended" => stage(task) == JobStage::Ended,
        "problem" => task.job.state.is_failure(),
        _ => true,
    }
}

impl Array {
    fn name(&self) -> &str {
        if self.row.name.is_empty() { "(no name)" } else { &self.row.name }
    }

    /// Tasks that wait together have no page of their own.
    fn has_page(&self, row: &Row) -> bool {
        row.href != self.href
    }
}
