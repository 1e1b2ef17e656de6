//! The jobs behind a figure. Whoever does not lead the group finds their own and no others, whatever they ask for.

use std::collections::HashMap;

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Me, Path, Query};
use super::super::page::{Page, Section, show};
use super::ask::Ask;
use super::job::Job;
use super::rows::{jobs_href, member_of, member_word};
use super::words::{amount, exact};
use super::{Pairs, Sight, sight};
use crate::auth::Action;
use crate::clock::Day;
use crate::domain::{BookId, GroupId, PersonId};
use crate::error::AppError;
use crate::store;
use crate::store::usage::jobs::Filter;
use crate::usage::figures::{Who, is_chosen};
use crate::usage::{AccountView, Outcome, hours};

/// Jobs that are shown.
const MOST: usize = 500;
/// Jobs that end some way, but not well.
const LOST: &str = "lost";
/// Jobs that ended in any way.
const ENDED: &str = "ended";

/// What was found.
pub struct Found {
    /// The jobs, those that held most first.
    pub jobs: Vec<Job>,
    /// Whether there are more.
    pub has_more: bool,
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
    core_hours: String,
    core_exact: String,
    /// Empty if none of them had a GPU.
    gpu_hours: String,
    chips: Vec<(String, &'static str, bool)>,
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
    let found = find(&context, &me, &sight, &ask).await?;
    let core_s = found.jobs.iter().map(|job| job.core_s).sum();
    let gpu_s: u64 = found.jobs.iter().map(|job| job.gpu_s).sum();
    let looked = &sight.looked;
    let (from, until) = (found.from.to_string(), found.until.to_string());
    let member = found.whose.as_ref().and_then(member_word).unwrap_or_default();
    let same = |outcome: &str| {
        let changes = [
            ("from", from.as_str()),
            ("until", until.as_str()),
            ("member", member.as_str()),
            ("kind", found.kind.as_str()),
            ("outcome", outcome),
        ];
        jobs_href(group, looked, &changes)
    };
    let known = outcome_word(&ask.outcome);
    let chip = |(word, label): (&'static str, &'static str)| (same(word), label, known == word);
    let chips = [
        ("", "All"),
        (ENDED, "Ended"),
        ("done", "Done"),
        (LOST, "Did not end well"),
        ("failed", "Failed"),
        ("out-of-time", "Out of time"),
        ("out-of-memory", "Out of memory"),
        ("cancelled", "Cancelled"),
        ("running", "Running"),
    ];
    let csv = same(known).replacen("/jobs?", "/jobs.csv?", 1);
    show(&JobsPage {
        page: Page::for_person(&context, &me.0, "Jobs behind a figure", Section::Groups),
        group,
        name: sight.group.name.clone(),
        may_manage: me.may(Action::ManageUsage(group)).is_ok(),
        whose: found.whose.as_ref().map(|who| name_of(&sight, who)).unwrap_or_default(),
        days: format!("{} to {}", found.from.words(), found.until.words()),
        core_hours: amount(hours(core_s)),
        core_exact: exact(hours(core_s)),
        gpu_hours: if gpu_s == 0 { String::new() } else { amount(hours(gpu_s)) },
        chips: chips.map(chip).into(),
        back: format!("{}?{}", super::address(group), looked.query(&[])),
        csv,
        leads: sight.view.leads,
        found,
    })
}

/// Finds the jobs that are asked for, among those that the viewer may see. That someone's jobs were looked at is
/// recorded.
pub async fn find(context: &Context, me: &Me, sight: &Sight, ask: &Ask) -> Result<Found, AppError> {
    let choice = &sight.looked.choice;
    let day = |text: &str, otherwise: Day| Day::read(text).unwrap_or(otherwise);
    let (mut from, mut until) = (day(&ask.from, choice.from), day(&ask.until, choice.until));
    if from > until {
        (from, until) = (choice.from, choice.until);
    }
    let whose =
        if sight.view.leads { member_of(&ask.member) } else { Some(Who::Person(me.0.person.id)) };
    let filter = Filter {
        from,
        until,
        user: None,
        kind: Some(ask.kind.clone()).filter(|kind| !kind.is_empty()),
        states: states(&ask.outcome),
        most: i64::try_from(MOST + 1).unwrap_or(i64::MAX),
    };
    let mut jobs = Vec::new();
    let mut db = context.app.store.read().await?;
    for account in sight.view.accounts.iter().filter(|one| is_chosen(one, choice)) {
        for user in users(sight, account, whose.as_ref()) {
            for book in &account.facts.books {
                let filter = Filter { user: user.clone(), ..filter.clone() };
                let rows = store::usage::jobs::find(&mut db, book.id, &filter).await?;
                if rows.is_empty() {
                    continue;
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
    jobs.sort_by_key(|job| (std::cmp::Reverse(job.core_s), job.row.raw));
    let has_more = jobs.len() > MOST;
    jobs.truncate(MOST);
    let ended = match outcome_word(&ask.outcome) {
        "" => "",
        ENDED => "that ended",
        LOST => "that did not end well",
        word => Outcome::from_word(word).map_or("", Outcome::title),
    };
    Ok(Found { jobs, has_more, whose, from, until, ended, kind: ask.kind.clone() })
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
        other => Outcome::from_word(other).map_or("", Outcome::word),
    }
}

/// The numbers of the ends that are looked for; none for all.
fn states(word: &str) -> Vec<i64> {
    let all = Outcome::ALL.into_iter();
    let wanted: Vec<Outcome> = match word {
        ENDED => all.filter(|one| *one != Outcome::Running).collect(),
        LOST => all.filter(|one| one.is_lost()).collect(),
        other => Outcome::from_word(other).into_iter().collect(),
    };
    wanted.into_iter().map(Outcome::number).collect()
}
