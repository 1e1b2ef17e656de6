//! The jobs behind a figure. Whoever does not lead the group finds their own and no others, whatever they ask for.

use std::collections::HashMap;

use askama::Template;
use axum::response::{IntoResponse as _, Redirect};

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use super::super::page::{Page, Section, show};
use super::ask::Ask;
use super::job::{Job, gpus};
use super::rows::{SPARE, jobs_href, member_of, member_word};
use super::words::{amount, exact};
use super::{Pairs, Sight, sight};
use crate::auth::Action;
use crate::clock::Day;
use crate::domain::{BookId, GroupId, PersonId};
use crate::error::AppError;
use crate::explain::sizes;
use crate::store;
use crate::store::usage::jobs::{Filter, Total};
use crate::usage::figures::{Who, is_chosen};
use crate::usage::{AccountView, Outcome, hours};

/// Jobs on a page.
const A_PAGE: usize = 50;
/// Pages; whoever wants more takes the file.
const MOST_PAGES: usize = 200;
/// Jobs in a file, or looked through.
pub const MOST_JOBS: usize = 50_000;
/// Jobs that end some way, but not well.
const LOST: &str = "lost";
/// Jobs that ended in any way.
const ENDED: &str = "ended";

/// What was found.
pub struct Found {
    /// Those that are shown, of all that fit; the ones that held most first.
    pub jobs: Vec<Job>,
    /// All that fit.
    pub all: All,
    /// Of whom alone, if of one person.
    pub whose: Option<Who>,
    /// From this day …
    pub from: Day,
    /// … to this one.
    pub until: Day,
    /// How they ended, in words; empty for all.
    pub ended: &'static str,
    /// Of which sort alone; empty for all.
    pub kind: String,
}

/// What all jobs that fit come to.
#[derive(Default)]
pub struct All {
    count: u64,
    core_s: u64,
    gpu_s: u64,
    /// Seconds of cores that need not have been asked for; counted only if that is what is looked for.
    spare_s: u64,
}

impl All {
    fn add(&mut self, total: &Total) {
        let whole = |number: i64| u64::try_from(number).unwrap_or(0);
        self.count += whole(total.jobs);
        self.core_s += whole(total.core_s);
        self.gpu_s += whole(total.seconds).saturating_mul(gpus(&total.gpus));
    }
}

/// Keeps those that could have asked for fewer cores, those that could have spared most first.
fn only_spare(jobs: &mut Vec<Job>) -> All {
    jobs.retain(|job| job.spare_s > 0);
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.spare_s), job.row.raw));
    let mut all = All { count: u64::try_from(jobs.len()).unwrap_or(u64::MAX), ..All::default() };
    for job in jobs {
        all.core_s += job.core_s;
        all.spare_s += job.spare_s;
    }
    all
}

/// Which of those that fit are shown.
#[derive(Clone, Copy)]
pub struct Stretch {
    /// So many are passed over.
    pub skip: usize,
    /// So many are shown at most.
    pub most: usize,
}

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
    me.may(Action::SeeUsage(group))?;
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
        may_manage: me.may(Action::ManageUsage(group)).is_ok(),
        whose: found.whose.as_ref().map(|who| name_of(&sight, who)).unwrap_or_default(),
        days: format!("{} to {}", found.from.words(), found.until.words()),
        counted: sizes::count(found.all.count, "job"),
        core_hours: amount(hours(found.all.core_s)),
        core_exact: exact(hours(found.all.core_s)),
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

/// Finds the jobs that are asked for, among those that the viewer may see. That someone's jobs were looked at is
/// recorded.
pub async fn find(
    context: &Context,
    me: &Me,
    sight: &Sight,
    ask: &Ask,
    stretch: Stretch,
) -> Result<Found, AppError> {
    let choice = &sight.looked.choice;
    let day = |text: &str, otherwise: Day| Day::read(text).unwrap_or(otherwise);
    let (mut from, mut until) = (day(&ask.from, choice.from), day(&ask.until, choice.until));
    if from > until {
        (from, until) = (choice.from, choice.until);
    }
    let whose = if sight.view.leads {
        someone(sight, &ask.member)
    } else {
        Some(Who::Person(me.0.person.id))
    };
    let is_spare = ask.outcome == SPARE;
    let filter = Filter {
        from,
        until,
        user: None,
        kind: Some(ask.kind.clone()).filter(|kind| !kind.is_empty()),
        states: states(&ask.outcome),
        // What could be spared is not in the database, so all are looked at then.
        most: i64::try_from(if is_spare { MOST_JOBS } else { stretch.skip + stretch.most })
            .unwrap_or(i64::MAX),
    };
    let mut jobs = Vec::new();
    let mut all = All::default();
    let _turn = context.app.usage.turn_to_search().await;
    let mut db = context.app.store.read().await?;
    for account in sight.view.accounts.iter().filter(|one| is_chosen(one, choice)) {
        for user in users(sight, account, whose.as_ref()) {
            for book in &account.facts.books {
                let filter = Filter { user: user.clone(), ..filter.clone() };
                let rows = store::usage::jobs::find(&mut db, book.id, &filter).await?;
                if rows.is_empty() {
                    continue;
                }
                if !is_spare {
                    for total in store::usage::jobs::totals(&mut db, book.id, &filter).await? {
                        all.add(&total);
                    }
                }
                let names = names(&mut db, book.id).await?;
                jobs.extend(rows.into_iter().map(|row| Job::of(sight, account, row, &names)));
            }
        }
    }
    drop(db);
    if !jobs.is_empty() {
        note_looked(context, me, sight, whose.as_ref()).await?;
    }
    if is_spare {
        all = only_spare(&mut jobs);
    } else {
        jobs.sort_by_key(|job| (std::cmp::Reverse(job.core_s), job.row.raw));
    }
    jobs.drain(..stretch.skip.min(jobs.len()));
    jobs.truncate(stretch.most);
    let ended = match outcome_word(&ask.outcome) {
        "" => "",
        ENDED => "that ended",
        LOST => "that did not end well",
        SPARE => "that ended well and could have asked for fewer cores",
        "failed" => "that failed or were interrupted by the cluster",
        word => Outcome::from_word(word).map_or("", Outcome::title),
    };
    Ok(Found { jobs, all, whose, from, until, ended, kind: ask.kind.clone() })
}

/// Whom an address means: a name that someone of the group connected under is that person.
fn someone(sight: &Sight, word: &str) -> Option<Who> {
    let who = member_of(word)?;
    let Who::User(cluster, user) = &who else { return Some(who) };
    let mut accounts = sight.view.accounts.iter();
    if accounts
        .any(|one| one.facts.cluster == *cluster && one.facts.own_user.as_ref() == Some(user))
    {
        return Some(Who::Person(sight.view.me));
    }
    let person = sight.view.people.get(&(*cluster, user.clone()));
    Some(person.map_or(who, |person| Who::Person(person.id)))
}

/// Records whose jobs were looked at. A name under which nothing was found is nobody's, and is not written down.
async fn note_looked(
    context: &Context,
    me: &Me,
    sight: &Sight,
    whose: Option<&Who>,
) -> Result<(), AppError> {
    let Some(who) = whose else { return super::note_names(context, me, &sight.view).await };
    let person = match who {
        Who::Person(id) if *id == me.0.person.id => return Ok(()),
        Who::Person(id) => Some(*id),
        Who::User(..) | Who::Others => None,
    };
    let name = name_of(sight, who);
    let usage = &context.app.usage;
    Ok(usage.note_seen(&me.actor(context), sight.group.id, Some((person, &name))).await?)
}

async fn names(db: &mut store::Connection, book: BookId) -> Result<HashMap<i64, String>, AppError> {
    Ok(store::usage::names(db, book).await?)
}

/// The names on an account's cluster whose jobs are looked for; one `None` for everybody's.
fn users(sight: &Sight, account: &AccountView, whose: Option<&Who>) -> Vec<Option<String>> {
    let facts = &account.facts;
    match whose {
        None => vec![None],
        Some(Who::Person(id)) if *id == sight.view.me => {
            facts.own_user.iter().map(|user| Some(user.clone())).collect()
        }
        Some(Who::Person(id)) => {
            let theirs = sight.view.people.iter();
            let theirs = theirs.filter(|((cluster, user), person)| {
                *cluster == facts.cluster
                    && person.id == *id
                    // One's own name is one's own, whoever else once used it.
                    && facts.own_user.as_ref() != Some(user)
            });
            theirs.map(|((_, user), _)| Some(user.clone())).collect()
        }
        Some(Who::User(cluster, user)) if *cluster == facts.cluster => vec![Some(user.clone())],
        Some(Who::User(..) | Who::Others) => Vec::new(),
    }
}

fn name_of(sight: &Sight, who: &Who) -> String {
    match who {
        Who::Person(id) if *id == sight.view.me => "you".to_owned(),
        Who::Person(id) => person_name(sight, *id).unwrap_or_default(),
        Who::User(_, user) => user.clone(),
        Who::Others => String::new(),
    }
}

fn person_name(sight: &Sight, id: PersonId) -> Option<String> {
    sight.view.people.values().find(|person| person.id == id).map(|person| person.name.clone())
}

/// The word, if it is one.
fn outcome_word(word: &str) -> &'static str {
    match word {
        ENDED => ENDED,
        LOST => LOST,
        SPARE => SPARE,
        other => Outcome::from_word(other).map_or("", Outcome::word),
    }
}

/// The numbers of the ends that are looked for; none for all.
fn states(word: &str) -> Vec<i64> {
    let all = Outcome::ALL.into_iter();
    let wanted: Vec<Outcome> = match word {
        ENDED => all.filter(|one| *one != Outcome::Running).collect(),
        LOST => all.filter(|one| one.is_lost()).collect(),
        SPARE => vec![Outcome::Done],
        // As figures count them.
        "failed" => vec![Outcome::Failed, Outcome::Interrupted],
        other => Outcome::from_word(other).into_iter().collect(),
    };
    wanted.into_iter().map(Outcome::number).collect()
}
