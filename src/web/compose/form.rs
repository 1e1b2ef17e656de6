//! The form of a recipe, with the script that it makes beside it. Nothing here asks a cluster.

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use super::super::extract::{Context, Me, Path, Query};
use super::super::page::{Page, Section, show, show_with};
use super::super::{Answer, assets};
use super::chosen::{self, Chosen};
use super::fields::{Control, Part, parts};
use super::filled::{Filled, Job, Own};
use super::panel::{Panel, Todo, panel, todo, told};
use super::place::{self, Spot};
use crate::auth::Permission;
use crate::entropy;
use crate::error::AppError;
use crate::jobs::QueueKey;
use crate::recipes::compose::Problem;
use crate::recipes::form::{SWEEP_AT_ONCE, SWEEP_HOW};
use crate::recipes::request::Sets;
use crate::recipes::sweep::PARAMETERS;

/// So many jobs are offered to wait for.
const RECENT_JOBS: usize = 20;

#[derive(Template)]
#[template(path = "compose/form.html")]
struct FormPage {
    page: Page,
    compose_js: &'static str,
    picker_js: &'static str,
    title: String,
    summary: String,
    spot: Spot,
    /// Other clusters to compose for: short name, title.
    others: Vec<(String, String)>,
    recipe: String,
    nonce: String,
    parts: Vec<Part>,
    panel: Panel,
    own: Option<Own>,
    sweep_zip: bool,
    at_once: String,
    at_once_error: String,
    can_sweep: bool,
    /// Whether the script can be read into the fields.
    can_read: bool,
    notice: Option<Notice>,
    /// What must be mended, if the form was sent.
    wrong: Vec<Todo>,
    /// Where what earlier runs used is asked for.
    sizes: String,
    /// Jobs that this one may wait for: number and name.
    recent: Vec<(u64, String)>,
    /// An older version of a recipe: which, and where the newest is.
    older: Option<(i64, String)>,
}

/// A message above the form.
pub struct Notice {
    /// ok, info, warning or danger.
    pub kind: &'static str,
    /// In a few words.
    pub title: String,
    /// What it means.
    pub text: String,
    /// Slurm's own words.
    pub said: String,
    /// Projects to choose from.
    pub accounts: Vec<String>,
}

/// What a page is asked with.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct Ask {
    /// Answers to begin with, as `a.key=value`, are in the rest of the address.
    #[serde(flatten)]
    pub rest: std::collections::BTreeMap<String, String>,
}

/// The form, as it begins.
pub async fn get(
    context: Context,
    me: Me,
    Path((slug, address)): Path<(String, String)>,
    Query(ask): Query<Ask>,
) -> Answer {
    me.may(Permission::UseClusters)?;
    let spot = place::one(&context, &me, &slug).await?;
    let chosen = chosen::find(&context, &me, &address).await?;
    let mut filled = begin(&chosen, &spot)?;
    usual_account(&context, &me, &spot, &chosen, &mut filled).await?;
    // Links may bring answers along: they are shown like typed ones, and nothing happens by itself.
    let given = Filled::read(ask.rest.into_iter().collect());
    filled.answers.extend(given.answers);
    show(&page(&context, &me, &spot, &chosen, &filled, Shown::default()).await?)
}

/// A form as it begins.
pub fn begin(chosen: &Chosen, spot: &Spot) -> Result<Filled, AppError> {
    Ok(Filled { answers: chosen.form.defaults(&spot.place), nonce: nonce()?, ..Filled::default() })
}

/// Whoever has several projects mostly goes on with the one they used last.
async fn usual_account(
    context: &Context,
    me: &Me,
    spot: &Spot,
    chosen: &Chosen,
    filled: &mut Filled,
) -> Result<(), AppError> {
    let question = chosen
        .form
        .that_sets(Sets::Account)
        .filter(|one| one.default.is_empty() && !chosen.form.bare);
    let Some(question) = question.filter(|one| !chosen.form.locked.contains(&one.key)) else {
        return Ok(());
    };
    let key = QueueKey { person: me.0.person.id, cluster: spot.cluster.id };
    let picture = context.app.queue_monitor.picture(key).await?;
    let last = picture.records.values().max_by_key(|record| record.job.submitted);
    let accounts = &spot.place.accounts;
    let used = last.and_then(|record| {
        let behind = &record.job.account;
        accounts.iter().find(|one| one.name == *behind || one.slurm_names.contains(behind))
    });
    if let Some(account) = used {
        filled.answers.insert(question.key.clone(), account.name.clone());
    }
    Ok(())
}

/// The word by which a form that is sent twice is noticed.
pub fn nonce() -> Result<String, AppError> {
    let bytes: [u8; 16] =
        entropy::random_bytes().map_err(|error| AppError::Internal(error.to_string()))?;
    Ok(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}

/// What is shown besides the form itself.
#[derive(Default)]
pub struct Shown {
    /// A message.
    pub notice: Option<Notice>,
    /// Problems from elsewhere, such as Slurm's refusal.
    pub problems: Vec<Problem>,
    /// Whether the form was sent, so that problems are shown at their fields.
    pub was_sent: bool,
    /// Own changes to take back.
    pub back: Vec<usize>,
    /// The earlier job that this repeats.
    pub repeats: Option<String>,
}

/// The page with a form on it.
pub async fn page(
    context: &Context,
    me: &Me,
    spot: &Spot,
    chosen: &Chosen,
    filled: &Filled,
    shown: Shown,
) -> Result<impl Template + use<>, AppError> {
    let job = Job::of(&chosen.form, filled, &spot.place, &shown.back);
    let own = job
        .edited
        .as_ref()
        .map(|edited| Own { base: job.composed.script(), text: edited.script() });
    let told = told(context, me, spot).await?;
    let panel = panel(chosen, filled, spot, &job, told.as_ref());
    let mut problems = if shown.was_sent { job.composed.problems.clone() } else { Vec::new() };
    problems.extend(shown.problems);
    let wrong = todo(chosen, &problems);
    let others = place::all(context, me).await?.into_iter();
    let others = others
        .filter(|other| other.cluster.id != spot.cluster.id)
        .map(|other| (other.cluster.slug.clone(), other.cluster.title.clone()))
        .collect();
    let answer = |key: &str| filled.answers.get(key).cloned().unwrap_or_default();
    let questions = || chosen.form.questions();
    let sizes = match shown.repeats {
        Some(job) => format!("{}/sizes?job={job}", panel.base),
        None => format!("{}/sizes", panel.base),
    };
    let page = Page::for_person(context, &me.0, &chosen.recipe.title, Section::Jobs);
    Ok(FormPage {
        page,
        compose_js: assets::address("compose.js"),
        picker_js: assets::address("picker.js"),
        title: chosen.recipe.title.clone(),
        summary: chosen.recipe.summary.clone(),
        spot: spot.clone(),
        others,
        recipe: chosen.address.clone(),
        nonce: filled.nonce.clone(),
        parts: parts(&chosen.form, &filled.answers, &spot.place, &problems),
        own,
        sweep_zip: answer(SWEEP_HOW) == "zip",
        at_once: answer(SWEEP_AT_ONCE),
        at_once_error: problems
            .iter()
            .find(|problem| problem.key == SWEEP_AT_ONCE)
            .map(|problem| problem.sentence.clone())
            .unwrap_or_default(),
        can_sweep: questions().any(|one| one.key == PARAMETERS || chosen.form.can_sweep(one)),
        can_read: chosen.form.bare,
        notice: shown.notice,
        wrong,
        recent: recent(context, me, spot).await?,
        sizes,
        older: chosen.version.zip(chosen.newest.clone()),
        panel,
    })
}

/// Jobs that run or wait, the newest first.
async fn recent(context: &Context, me: &Me, spot: &Spot) -> Result<Vec<(u64, String)>, AppError> {
    let key = QueueKey { person: me.0.person.id, cluster: spot.cluster.id };
    let picture = context.app.queue_monitor.picture(key).await?;
    let open = picture.records.values().filter(|record| !record.is_over);
    let mut jobs: Vec<(u64, String)> =
        open.map(|record| (record.job.id.number, record.job.name.clone())).collect();
    jobs.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    jobs.dedup_by_key(|(number, _)| *number);
    jobs.truncate(RECENT_JOBS);
    Ok(jobs)
}

/// The form again, with what must be mended at its fields.
pub async fn wrong(
    context: &Context,
    me: &Me,
    spot: &Spot,
    chosen: &Chosen,
    filled: &Filled,
    shown: Shown,
) -> Answer {
    let shown = Shown { was_sent: true, ..shown };
    let page = page(context, me, spot, chosen, filled, shown).await?;
    show_with(StatusCode::UNPROCESSABLE_ENTITY, &page)
}
