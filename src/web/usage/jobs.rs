//! The page of the jobs behind a figure.

use askama::Template;
use axum::response::{IntoResponse as _, Redirect};

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use super::super::page::{Page, Section, show};
use super::rows::{SPARE, jobs_href, member_word};
use super::search::{All, ENDED, Found, GPUS, LOST, Stretch, find, name_of, outcome_word};
use super::words::{amount, exact};
use super::{Pairs, sight};
use crate::auth::Permission;
use crate::domain::GroupId;
use crate::explain::sizes;
use crate::usage::hours;

/// Jobs on a page.
const A_PAGE: usize = 50;
/// Pages; whoever wants more takes the file.
const MOST_PAGES: usize = 200;

#[derive(Template)]
#[template(path = "usage/jobs.html")]
struct JobsPage {
    page: Page,
    group: GroupId,
    name: String,
    may_manage: bool,
    found: Found,
    whose: String,
    days: String,
    /// How many fit, in words.
    counted: String,
    core_hours: String,
    core_exact: String,
    /// Core hours since each began; empty if they held the cores on these days only.
    run_hours: String,
    /// The account that is looked at; empty for all.
    account: String,
    /// Empty if none of them had a GPU.
    gpu_hours: String,
    /// Core hours that need not have been asked for; empty if that is not what is looked for.
    spare_hours: String,
    spare_exact: String,
    chips: Vec<(String, &'static str, bool)>,
    /// The pages before and after this one, and what this one shows; all empty if it shows all.
    pages: (String, String, String),
    back: String,
    csv: String,
    leads: bool,
}

/// The page.
pub async fn get(
    context: Context,
    me: Me,
    Path(group): Path<GroupId>,
    Query(pairs): Query<Pairs>,
) -> Answer {
    me.may(Permission::SeeUsage(group))?;
    let (sight, ask) = sight(&context, &me, group, pairs).await?;
    let here = ask.page.parse().unwrap_or(1).clamp(1, MOST_PAGES);
    let stretch = Stretch { skip: (here - 1) * A_PAGE, most: A_PAGE };
    let found = find(&context, &me, &sight, &ask, stretch).await?;
    let looked = &sight.looked;
    let (from, until) = (found.from.to_string(), found.until.to_string());
    let member = found.whose.as_ref().and_then(member_word).unwrap_or_default();
    let same = |outcome: &str, page: &str| {
        let changes = [
            ("from", from.as_str()),
            ("until", until.as_str()),
            ("member", member.as_str()),
            ("kind", found.kind.as_str()),
            ("with", if found.with_gpus { GPUS } else { "" }),
            ("outcome", outcome),
            ("page", page),
        ];
        jobs_href(group, looked, &changes)
    };
    let known = outcome_word(&ask.outcome);
    if found.jobs.is_empty() && found.all.count > 0 {
        // There are fewer pages by now.
        return Ok(Redirect::to(&same(known, "")).into_response());
    }
    let chip = |(word, label): (&'static str, &'static str)| (same(word, ""), label, known == word);
    let chips = [
        ("", "All"),
        (ENDED, "Ended"),
        ("done", "Done"),
        (LOST, "Did not end well"),
        ("failed", "Failed or interrupted"),
        ("out-of-time", "Out of time"),
        ("out-of-memory", "Out of memory"),
        ("cancelled", "Cancelled"),
        ("running", "Running"),
        (SPARE, "Could ask for less"),
    ];
    let to_page = |page: usize| {
        let is_there = (1..=MOST_PAGES).contains(&page) && page <= pages(found.all.count);
        if is_there { same(known, &page.to_string()) } else { String::new() }
    };
    let pages = if pages(found.all.count) > 1 {
        (to_page(here - 1), to_page(here + 1), shown(stretch, &found))
    } else {
        Default::default()
    };
    let csv = same(known, "").replacen("/jobs?", "/jobs.csv?", 1);
    show(&JobsPage {
        page: Page::for_person(&context, &me.0, "Jobs behind a figure", Section::Groups),
        group,
        name: sight.group.name.clone(),
        may_manage: me.may(Permission::ManageUsage(group)).is_ok(),
        whose: found.whose.as_ref().map(|who| name_of(&sight, who)).unwrap_or_default(),
        days: format!("{} to {}", found.from.words(), found.until.words()),
        counted: sizes::count(found.all.count, "job"),
        core_hours: amount(hours(found.all.core_s)),
        core_exact: exact(hours(found.all.core_s)),
        run_hours: run_hours(&found.all),
        account: looked.account_words(&sight.view),
        gpu_hours: if found.all.gpu_s == 0 {
            String::new()
        } else {
            amount(hours(found.all.gpu_s))
        },
        spare_hours: if known == SPARE { amount(hours(found.all.spare_s)) } else { String::new() },
        spare_exact: exact(hours(found.all.spare_s)),
        chips: chips.map(chip).into(),
        pages,
        back: format!("{}?{}", super::address(group), looked.query(&[])),
        csv,
        leads: sight.view.leads,
        found,
    })
}

/// What jobs held in all, if that is more than on the days that are looked at.
fn run_hours(all: &All) -> String {
    // Where one stood still, seconds of days are rounded.
    let is_more = all.run_core_s > all.core_s + all.core_s / 1000;
    if is_more { amount(hours(all.run_core_s)) } else { String::new() }
}

/// Pages that so many jobs take.
fn pages(jobs: u64) -> usize {
    usize::try_from(jobs).unwrap_or(usize::MAX).div_ceil(A_PAGE)
}

/// `51 to 100 of 1,234`
fn shown(stretch: Stretch, found: &Found) -> String {
    let number = |count: usize| sizes::number(u64::try_from(count).unwrap_or(u64::MAX));
    let last = stretch.skip + found.jobs.len();
    format!(
        "{} to {} of {}",
        number(stretch.skip + 1),
        number(last),
        sizes::number(found.all.count)
    )
}
