//! The form of a recipe, with the script that it makes beside it. Doesn't contact any cluster.

use std::sync::Arc;

use askama::Template;
use axum::http::StatusCode;
use serde::Deserialize;

use crate::auth::Permission;
use crate::entropy;
use crate::error::AppError;
use crate::jobs::JobRecord;
use crate::jobs::job_list::record_stage;
use crate::recipes::compose::ComposeProblem;
use crate::recipes::form::{SWEEP_AT_ONCE, SWEEP_HOW, SWEEP_ONLY};
use crate::recipes::request::RequestField;
use crate::recipes::sweep::PARAMETERS_KEY;
use crate::slurm::job::JobStage;
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond, respond_with};
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::fields::{ComposeSection, FieldControl, build_sections};
use crate::web::pages::compose::form_values::{HandEditedScript, JobFormValues};
use crate::web::pages::compose::job_draft::JobDraft;
use crate::web::pages::compose::recipe_lookup;
use crate::web::pages::compose::repeated_job::{self, RepeatedJob};
use crate::web::pages::compose::script_panel::{ComposeTodo, ScriptPanel, build_todos, load_panel};

/// How many jobs are offered as dependencies.
const MAX_RECENT_JOBS: usize = 20;

#[derive(Template)]
#[template(path = "compose/compose.html")]
struct ComposePage<'a> {
    page: PageFrame,
    compose_js: &'static str,
    picker_js: &'static str,
    draft: &'a JobDraft,
    /// Other clusters to compose for: short name, title.
    others: Vec<(String, String)>,
    parts: Vec<ComposeSection>,
    panel: ScriptPanel,
    own: Option<HandEditedScript>,
    sweep_zip: bool,
    at_once: String,
    at_once_error: String,
    /// The tasks of a sweep to run, if not all of them.
    only: String,
    only_error: String,
    can_sweep: bool,
    notice: Option<ComposeNotice>,
    /// What must be fixed, if the form was submitted.
    wrong: Vec<ComposeTodo>,
    /// The earlier job that this one repeats.
    repeated: Option<RepeatedJob>,
    /// Jobs that this one can depend on: number, and what they are.
    recent: Vec<(u64, String)>,
    /// For an older version of a recipe: its number, and where the newest is.
    older: Option<(i64, String)>,
}

#[derive(Default)]
pub struct ComposeNotice {
    /// ok, info, warning or danger.
    pub kind: &'static str,
    pub title: String,
    pub text: String,
    pub said: String,
    /// Accounts to choose from.
    pub accounts: Vec<String>,
}

impl ComposeNotice {
    pub fn new(kind: &'static str, title: &str, text: impl Into<String>) -> Self {
        Self { kind, title: title.to_owned(), text: text.into(), ..Self::default() }
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct PrefilledAnswersQuery {
    /// The other parameters hold initial answers, as `a.key=value`.
    #[serde(flatten)]
    pub rest: std::collections::BTreeMap<String, String>,
}

/// The form, with its initial answers.
pub async fn get(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((slug, address)): PathParams<(String, String)>,
    QueryParams(prefilled): QueryParams<PrefilledAnswersQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let target = compose_target::find_target(&context, &me, &slug).await?;
    let chosen = recipe_lookup::find_recipe(&context, &me, &address).await?;
    let mut draft = JobDraft::new(target, chosen)?;
    fill_last_account(&context, &mut draft).await?;
    // Links may bring answers along. They are shown as if typed; nothing is submitted.
    let given = JobFormValues::parse(prefilled.rest.into_iter().collect());
    draft.values.answers.extend(given.answers);
    respond(&build_page(&context, &me, &draft, ComposePageExtras::default()).await?)
}

/// People with several accounts usually continue with the one they used last.
async fn fill_last_account(context: &RequestContext, draft: &mut JobDraft) -> Result<(), AppError> {
    let form = &draft.chosen.form;
    let question =
        form.find_setting(RequestField::Account).filter(|question| question.default.is_empty() && !form.bare);
    let Some(question) = question.filter(|question| !form.locked.contains(&question.key)) else { return Ok(()) };
    let snapshot = context.app.queue_monitor.snapshot(draft.target.account.id).await?;
    let last = snapshot.records.values().max_by_key(|record| record.job.submitted);
    let used = last.and_then(|record| {
        let name = &record.job.account;
        let mut accounts = draft.target.compose_context.accounts.iter();
        accounts.find(|account| account.name == *name || account.slurm_names.contains(name))
    });
    if let Some(account) = used {
        draft.values.answers.insert(question.key.clone(), account.name.clone());
    }
    Ok(())
}

/// The nonce by which a form that is submitted twice is noticed.
pub fn new_nonce() -> Result<String, AppError> {
    let bytes: [u8; 16] = entropy::random_bytes().map_err(|error| AppError::Internal(error.to_string()))?;
    Ok(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}

/// What the page shows besides the form itself.
#[derive(Default)]
pub struct ComposePageExtras {
    pub notice: Option<ComposeNotice>,
    /// Problems from elsewhere, such as Slurm's refusal.
    pub problems: Vec<ComposeProblem>,
    /// Whether the form was submitted, so that problems are shown at their fields.
    pub was_sent: bool,
}

pub async fn build_page<'a>(
    context: &RequestContext,
    me: &CurrentPerson,
    draft: &'a JobDraft,
    extras: ComposePageExtras,
) -> Result<impl Template + use<'a>, AppError> {
    let JobDraft { target, chosen, values } = draft;
    let job = draft.compose();
    let own = job.edited.as_ref().map(|edited| HandEditedScript { base: job.build_script(), text: edited.script() });
    let panel = load_panel(context, draft, &job).await?;
    let mut problems = if extras.was_sent { job.problems.clone() } else { Vec::new() };
    problems.extend(extras.problems);
    let wrong = build_todos(chosen, &problems);
    let others = compose_target::list_choices(context, me, "").await?.into_iter();
    let others = others
        .filter(|other| other.cluster().id != target.cluster().id)
        .map(|other| (other.cluster().slug.clone(), other.cluster().title.clone()))
        .collect();
    let answer = |key: &str| values.answers.get(key).cloned().unwrap_or_default();
    let questions = || chosen.form.questions();
    let error = |key: &str| {
        let found = problems.iter().find(|problem| problem.key == key);
        found.map(|problem| problem.sentence.clone()).unwrap_or_default()
    };
    let repeated = repeated_job::load(context, me, &target.cluster().slug, &values.repeats).await?;
    let page = PageFrame::for_person(context, &me.0, &chosen.recipe.title, NavSection::Jobs);
    Ok(ComposePage {
        page,
        compose_js: assets::asset_url("compose.js"),
        picker_js: assets::asset_url("picker.js"),
        draft,
        others,
        parts: build_sections(&chosen.form, &values.answers, &target.compose_context, &problems, &job.warnings),
        own,
        sweep_zip: answer(SWEEP_HOW) == "zip",
        at_once: answer(SWEEP_AT_ONCE),
        at_once_error: error(SWEEP_AT_ONCE),
        only: answer(SWEEP_ONLY),
        only_error: error(SWEEP_ONLY),
        can_sweep: questions().any(|question| question.key == PARAMETERS_KEY || chosen.form.can_sweep(question)),
        notice: extras.notice,
        wrong,
        repeated,
        recent: list_open_jobs(context, target).await?,
        older: chosen.version.zip(chosen.newest.clone()),
        panel,
    })
}

/// Running and pending jobs, newest first: Slurm forgets jobs soon after they end, and rejects dependencies on them.
async fn list_open_jobs(context: &RequestContext, target: &ComposeTarget) -> Result<Vec<(u64, String)>, AppError> {
    let snapshot = context.app.queue_monitor.snapshot(target.account.id).await?;
    let open = snapshot.records.values().filter(|record| !record.is_over);
    let label = |record: &Arc<JobRecord>| {
        let state = if record_stage(record) == JobStage::Running { "running" } else { "pending" };
        (record.job.id.number, format!("{}, {state}", record.job.name))
    };
    let mut jobs: Vec<(u64, String)> = open.map(label).collect();
    jobs.sort_by_key(|(number, _)| std::cmp::Reverse(*number));
    jobs.dedup_by_key(|(number, _)| *number);
    jobs.truncate(MAX_RECENT_JOBS);
    Ok(jobs)
}

/// Shows the form again, with the problems at their fields.
pub async fn show_with_problems(
    context: &RequestContext,
    me: &CurrentPerson,
    draft: &JobDraft,
    extras: ComposePageExtras,
) -> HandlerResult {
    let page = build_page(context, me, draft, ComposePageExtras { was_sent: true, ..extras }).await?;
    respond_with(StatusCode::UNPROCESSABLE_ENTITY, &page)
}
