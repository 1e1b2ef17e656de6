//! Finds the jobs behind a figure. Whoever does not lead the group finds their own and no others, whatever they ask for.

use std::collections::HashMap;

use super::super::extract::{Context, Me};
use super::Sight;
use super::ask::Ask;
use super::job::{Job, gpus};
use super::rows::{SPARE, member_of};
use crate::clock::Day;
use crate::domain::{PersonId, UsageSourceId};
use crate::error::AppError;
use crate::store;
use crate::store::usage::jobs::{UsageJobFilter, UsageJobTotal};
use crate::usage::figures::{Who, is_chosen};
use crate::usage::{AccountView, Outcome};

/// Jobs in a file, or looked through.
pub const MOST_JOBS: usize = 50_000;
/// Jobs that end some way, but not well.
pub const LOST: &str = "lost";
/// Jobs that ended in any way.
pub const ENDED: &str = "ended";
/// Jobs that held a GPU.
pub const GPUS: &str = "gpus";

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
    /// Whether only those that held a GPU.
    pub with_gpus: bool,
}

/// What all jobs that fit come to.
#[derive(Default)]
pub struct All {
    /// How many.
    pub count: u64,
    /// Seconds of cores that they held.
    pub core_s: u64,
    /// The same since each began, also on other days.
    pub run_core_s: u64,
    /// The same of GPUs.
    pub gpu_s: u64,
    /// Seconds of cores that need not have been asked for; counted only if that is what is looked for.
    pub spare_s: u64,
}

impl All {
    fn add(&mut self, total: &UsageJobTotal) {
        let whole = |number: i64| u64::try_from(number).unwrap_or(0);
        self.count += whole(total.jobs);
        self.core_s += whole(total.core_s);
        self.run_core_s += whole(total.run_core_s);
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
        all.run_core_s += job.run_core_s();
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
    let day = |text: &str, otherwise: Day| Day::parse(text).unwrap_or(otherwise);
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
    let filter = UsageJobFilter {
        from,
        until,
        user: None,
        kind: Some(ask.kind.clone()).filter(|kind| !kind.is_empty()),
        states: states(&ask.outcome),
        with_gpus: ask.with == GPUS,
        // What could be spared is not in the database, so all are looked at then.
        limit: i64::try_from(if is_spare { MOST_JOBS } else { stretch.skip + stretch.most })
            .unwrap_or(i64::MAX),
    };
    let mut jobs = Vec::new();
    let mut all = All::default();
    let _turn = context.app.usage.turn_to_search().await;
    let mut db = context.app.store.read().await?;
    for account in sight.view.accounts.iter().filter(|one| is_chosen(one, choice)) {
        for user in users(sight, account, whose.as_ref()) {
            for book in &account.facts.books {
                let filter = UsageJobFilter { user: user.clone(), ..filter.clone() };
                let rows = store::usage::jobs::find(&mut db, book.id, &filter).await?;
                if rows.is_empty() {
                    continue;
                }
                if !is_spare {
                    for total in store::usage::jobs::sum_by_gpus(&mut db, book.id, &filter).await? {
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
    let (kind, with_gpus) = (ask.kind.clone(), filter.with_gpus);
    Ok(Found { jobs, all, whose, from, until, ended, kind, with_gpus })
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

async fn names(
    db: &mut store::DbConnection,
    book: UsageSourceId,
) -> Result<HashMap<i64, String>, AppError> {
    Ok(store::usage::list_names(db, book).await?)
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

/// As people read it; `you` for the viewer.
pub fn name_of(sight: &Sight, who: &Who) -> String {
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
pub fn outcome_word(word: &str) -> &'static str {
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
