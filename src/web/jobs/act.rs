//! Doing something to jobs: first a page that says what will happen, then the deed, then what came of it.

use askama::Template;

use super::super::Answer;
use super::super::extract::{Context, Form, Me};
use super::super::page::{Page, Section, show};
use super::choices::own_address;
use super::queues::{Place, places};
use crate::auth::Permission;
use crate::error::AppError;
use crate::explain::sizes;
use crate::jobs::QueueKey;
use crate::jobs::actions::{JobAction, JobActionTarget, MOST_TARGETS, Undone};
use crate::jobs::entry::stage;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::{JobId, JobStage};
use crate::ssh::RunCommandError;

/// Most jobs that are named one by one.
const MOST_NAMED: usize = 50;

/// A job that was chosen.
struct Chosen {
    place: Place,
    target: JobActionTarget,
    name: String,
    /// What the form sends for it.
    pick: String,
}

/// What the form asks for.
struct Asked {
    verb: JobAction,
    picks: Vec<String>,
    tasks: String,
    back: String,
    is_sure: bool,
}

impl Asked {
    /// Whether someone wrote something else than numbers of tasks.
    fn has_unreadable_tasks(&self) -> bool {
        !self.tasks.is_empty() && ArrayTaskSet::parse(&self.tasks).is_none()
    }
}

#[derive(Template)]
#[template(path = "jobs/confirm.html")]
struct ConfirmPage {
    page: Page,
    words: Words,
    named: Vec<(String, String, String)>,
    more: usize,
    picks: Vec<String>,
    verb: &'static str,
    tasks: String,
    back: String,
    problem: &'static str,
}

#[derive(Template)]
#[template(path = "jobs/done.html")]
struct DonePage {
    page: Page,
    heading: String,
    is_good: bool,
    outcomes: Vec<Outcome>,
    /// What takes it back: a verb and its button; empty if nothing does.
    undo: (&'static str, &'static str),
    picks: Vec<String>,
    tasks: String,
    back: String,
}

/// What came of one.
struct Outcome {
    name: String,
    id: String,
    href: String,
    sentence: String,
    said: String,
    kind: &'static str,
}

/// A verb in words.
struct Words {
    title: String,
    button: &'static str,
    effect: &'static str,
    kind: &'static str,
}

/// Asks first, then does it.
pub async fn post(context: Context, me: Me, Form(fields): Form<Vec<(String, String)>>) -> Answer {
    me.may(Permission::UseClusters)?;
    let asked = asked(&fields)?;
    let places = places(&context, &me).await?;
    let chosen = chosen(&asked, &places)?;
    if chosen.is_empty() || !asked.is_sure || asked.has_unreadable_tasks() {
        return confirm(&context, &me, asked, &chosen);
    }
    act(&context, &me, asked, chosen).await
}

fn asked(fields: &[(String, String)]) -> Result<Asked, AppError> {
    let value = |wanted: &str| {
        fields.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str())
    };
    let verb = verb(value("verb")).ok_or_else(|| AppError::BadRequest("no such verb".into()))?;
    let mut picks: Vec<String> =
        fields.iter().filter(|(name, _)| name == "job").map(|(_, value)| value.clone()).collect();
    let mut seen = std::collections::HashSet::new();
    picks.retain(|pick| seen.insert(pick.clone()));
    Ok(Asked {
        verb,
        picks,
        tasks: value("tasks").trim().chars().take(500).collect(),
        back: own_page(value("back")).to_owned(),
        is_sure: value("sure") == "yes",
    })
}

/// Where to go afterwards: the list or a job's page.
fn own_page(back: &str) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    let is_job = back.starts_with("/jobs/") && back.len() < 100 && back.chars().all(plain);
    if is_job { back } else { own_address(back) }
}

/// The jobs that are meant. One that this person cannot see is one that does not exist.
fn chosen(asked: &Asked, places: &[Place]) -> Result<Vec<Chosen>, AppError> {
    let tasks = ArrayTaskSet::parse(&asked.tasks);
    let mut found = Vec::new();
    for pick in &asked.picks {
        let (slug, id) = pick.split_once('/').ok_or(AppError::NotFound)?;
        let id: JobId = id.parse().map_err(|_| AppError::NotFound)?;
        let place = places.iter().find(|place| place.cluster.slug == slug);
        let place = place.ok_or(AppError::NotFound)?;
        let name = name_of(place, id).ok_or(AppError::NotFound)?;
        let target = JobActionTarget { id, tasks: tasks.clone() };
        found.push(Chosen { place: place.clone(), target, name, pick: pick.clone() });
    }
    Ok(found)
}

/// The name of a job that this person can see here.
fn name_of(place: &Place, id: JobId) -> Option<String> {
    let picture = &place.picture;
    let own = picture.records.get(&id).or_else(|| {
        // An array is meant as a whole, or by a task that has not begun.
        picture.of_number(id.number).find(|record| {
            id.task.is_none_or(|task| {
                record.job.tasks.as_ref().is_some_and(|tasks| tasks.contains(task))
            })
        })
    });
    let group = || {
        let group = picture.group.as_ref()?;
        group.jobs.iter().find(|job| job.id == id).map(|job| job.name.clone())
    };
    own.map(|record| record.job.name.clone()).or_else(group)
}

fn confirm(context: &Context, me: &Me, asked: Asked, chosen: &[Chosen]) -> Answer {
    let problem = if asked.has_unreadable_tasks() {
        "These numbers of tasks cannot be read. Write them like 5-9,20 and try again. Nothing was changed."
    } else if chosen.is_empty() {
        "Choose at least one job first: go back and tick the boxes in front of the jobs."
    } else if chosen.len() > MOST_TARGETS {
        "These are too many at once. Choose at most 100 jobs; an array counts as one."
    } else {
        ""
    };
    let count = chosen.len();
    let named = chosen.iter().take(MOST_NAMED).map(|one| {
        let state =
            one.place.picture.records.get(&one.target.id).map_or("", |record| {
                match stage(record) {
                    JobStage::Pending => "waits",
                    JobStage::Running => "runs",
                    JobStage::Ended => "has ended",
                }
            });
        let id = format!("{} on {}", one.target.slurm_id(), one.place.cluster.title);
        (one.name.clone(), id, state.to_owned())
    });
    show(&ConfirmPage {
        words: words(asked.verb, count, chosen),
        named: named.collect(),
        more: count.saturating_sub(MOST_NAMED),
        picks: chosen.iter().map(|one| one.pick.clone()).collect(),
        verb: verb_word(asked.verb),
        tasks: asked.tasks,
        back: asked.back,
        problem,
        page: Page::for_person(context, &me.0, "Are you sure?", Section::Jobs),
    })
}

async fn act(context: &Context, me: &Me, asked: Asked, chosen: Vec<Chosen>) -> Answer {
    if chosen.len() > MOST_TARGETS {
        return confirm(context, me, asked, &chosen);
    }
    let actor = me.actor(context);
    let mut outcomes = Vec::new();
    let mut places: Vec<Place> = Vec::new();
    for one in &chosen {
        if !places.iter().any(|place| place.cluster.id == one.place.cluster.id) {
            places.push(one.place.clone());
        }
    }
    for place in places {
        let here = |one: &&Chosen| one.place.cluster.id == place.cluster.id;
        let targets: Vec<JobActionTarget> =
            chosen.iter().filter(here).map(|one| one.target.clone()).collect();
        let key = QueueKey { person: me.0.person.id, cluster: place.cluster.id };
        let done = context
            .app
            .queue_monitor
            .act(key, &actor, asked.verb, targets, &place.cluster.title)
            .await;
        match done {
            Ok(done) => {
                for (one, (_, result)) in chosen.iter().filter(here).zip(done.results) {
                    outcomes.push(outcome(
                        one,
                        result.map_err(|refusal| {
                            (refusal.sentence.to_owned(), refusal.slurm, refusal.is_unsure)
                        }),
                    ));
                }
            }
            Err(undone) => {
                let (sentence, is_unsure) = undone_words(undone)?;
                for one in chosen.iter().filter(here) {
                    outcomes.push(outcome(one, Err((sentence.clone(), String::new(), is_unsure))));
                }
            }
        }
    }
    let good = outcomes.iter().filter(|one| one.kind == "ok").count();
    let is_good = good == outcomes.len();
    show(&DonePage {
        heading: heading(asked.verb, good, outcomes.len()),
        is_good,
        outcomes,
        undo: match asked.verb {
            JobAction::Hold if good > 0 => ("release", "Undo: release"),
            JobAction::Release if good > 0 => ("hold", "Undo: hold again"),
            _ => ("", ""),
        },
        picks: chosen.into_iter().map(|one| one.pick).collect(),
        tasks: asked.tasks,
        back: asked.back,
        page: Page::for_person(context, &me.0, "Jobs", Section::Jobs),
    })
}

fn outcome(one: &Chosen, result: Result<(), (String, String, bool)>) -> Outcome {
    let (sentence, said, kind) = match result {
        Ok(()) => ("The cluster accepted this.".to_owned(), String::new(), "ok"),
        Err((sentence, said, true)) => (sentence, said, "unknown"),
        Err((sentence, said, false)) => (sentence, said, "failed"),
    };
    Outcome {
        name: one.name.clone(),
        id: format!("{} on {}", one.target.slurm_id(), one.place.cluster.title),
        href: format!("/jobs/{}/{}", one.place.cluster.slug, one.target.id),
        sentence,
        said,
        kind,
    }
}

/// Why nobody knows, or why nothing was sent; and whether it may have been done.
fn undone_words(undone: Undone) -> Result<(String, bool), AppError> {
    match undone {
        Undone::Store(error) => Err(error.into()),
        Undone::Run(
            error @ (RunCommandError::ConnectionLost
            | RunCommandError::TimedOut
            | RunCommandError::OutputTooLong),
        ) => Ok((
            format!(
                "{error} It may have been done all the same: look at the job's state in a moment before you try again."
            ),
            true,
        )),
        Undone::Run(RunCommandError::NotConnected) => Ok((
            "You are not connected to this cluster, so nothing was sent. Connect and try again."
                .to_owned(),
            false,
        )),
        Undone::Run(error) => Ok((format!("{error} Nothing was changed."), false)),
    }
}

fn verb(word: &str) -> Option<JobAction> {
    [JobAction::Cancel, JobAction::Hold, JobAction::Release, JobAction::Requeue, JobAction::Top]
        .into_iter()
        .find(|verb| verb_word(*verb) == word)
}

const fn verb_word(verb: JobAction) -> &'static str {
    match verb {
        JobAction::Cancel => "cancel",
        JobAction::Hold => "hold",
        JobAction::Release => "release",
        JobAction::Requeue => "requeue",
        JobAction::Top => "top",
    }
}

fn words(verb: JobAction, count: usize, chosen: &[Chosen]) -> Words {
    let jobs = match chosen {
        [Chosen { name, target: JobActionTarget { tasks: Some(tasks), .. }, .. }] => {
            format!("{} ({tasks}) of {name}", sizes::count(tasks.len(), "task"))
        }
        [one] => one.name.clone(),
        _ => sizes::count(u64::try_from(count).unwrap_or(0), "job"),
    };
    match verb {
        JobAction::Cancel => Words {
            title: format!("Cancel {jobs}?"),
            button: "Yes, cancel",
            effect: "What runs is ended at once, what waits leaves the queue. Files that were written stay. This cannot be undone; a cancelled job has to be submitted again.",
            kind: "danger",
        },
        JobAction::Hold => Words {
            title: format!("Hold {jobs}?"),
            button: "Yes, hold",
            effect: "What waits stays in the queue but does not start until you release it. What runs already goes on.",
            kind: "primary",
        },
        JobAction::Release => Words {
            title: format!("Release {jobs}?"),
            button: "Yes, release",
            effect: "It may start again as soon as its turn comes.",
            kind: "primary",
        },
        JobAction::Requeue => Words {
            title: format!("Put {jobs} back into the queue?"),
            button: "Yes, put back",
            effect: "What runs is stopped and starts again from its beginning later, under the same number. What it has computed so far is lost unless the program saved it.",
            kind: "danger",
        },
        JobAction::Top => Words {
            title: format!("Move {jobs} before your other jobs?"),
            button: "Yes, move up",
            effect: "Among your own waiting jobs it comes first; your others wait longer in exchange. Jobs of other people keep their places. Many sites switch this off.",
            kind: "primary",
        },
    }
}

fn heading(verb: JobAction, good: usize, all: usize) -> String {
    let jobs = sizes::count(u64::try_from(good).unwrap_or(0), "job");
    let done = match verb {
        JobAction::Cancel => format!("Cancelling {jobs}"),
        JobAction::Hold => format!("{jobs} held"),
        JobAction::Release => format!("{jobs} released"),
        JobAction::Requeue => format!("{jobs} put back into the queue"),
        JobAction::Top => format!("{jobs} moved up"),
    };
    match good {
        0 => "Nothing was changed".to_owned(),
        _ if good < all => format!("{done}, {} refused", all - good),
        _ => done,
    }
}
