//! Running something again: a submission as it was filled in, or any earlier job from its script.

use std::time::Duration;

use serde::Deserialize;

use crate::auth::Permission;
use crate::cluster::ClusterAccountId;
use crate::domain::SubmissionId;
use crate::error::AppError;
use crate::explain::sbatch;
use crate::jobs::JobRecord;
use crate::jobs::submissions::{Submission, SubmissionState};
use crate::recipes::compose::ComposeProblem;
use crate::recipes::question::QuestionKind;
use crate::recipes::request::RequestField;
use crate::recipes::script_import;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::flash;
use crate::web::http::flash::FlashMessage;
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::cost_and_start::question_key;
use crate::web::pages::compose::form::{ComposeNotice, ComposePageExtras, build_page, initial_values, new_nonce};
use crate::web::pages::compose::form_values::JobFormValues;
use crate::web::pages::compose::recipe_lookup::{self, ChosenRecipe};
use crate::web::pages::jobs::job_lookup::{JobOrArray, find_job};

/// The recipe that takes any script.
const OWN_SCRIPT_RECIPE: &str = "own-script";
/// How often, and with which pause, to ask for a script that isn't there yet.
const SCRIPT_ATTEMPTS: u32 = 8;
const SCRIPT_RETRY_DELAY: Duration = Duration::from_secs(1);

/// The form of a submission as it was filled in, with Slurm's message if it was refused.
pub async fn show_submission(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<i64>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let one = context.app.submissions.get(me.0.person.id, SubmissionId(id)).await?;
    let one = one.ok_or(AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let cluster = store::clusters::get(&mut db, one.cluster_id).await?.ok_or(AppError::NotFound)?;
    drop(db);
    let spot = compose_target::find_target(&context, &me, &cluster.slug).await?;
    let (chosen, filled) = restore_form(&context, &me, &one, &spot).await?;
    let mut shown =
        ComposePageExtras { repeats: one.number.map(|number| number.to_string()), ..ComposePageExtras::default() };
    if one.state == SubmissionState::Refused {
        add_refusal(&one, &chosen, &mut shown);
    }
    respond(&build_page(&context, &me, &spot, &chosen, &filled, shown).await?)
}

/// What to change in a job's earlier request.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ResubmitQuery {
    /// Options to change, as the job's verdict suggests them: `--mem=24G`.
    option: String,
}

/// The form of an earlier job, submitted from the portal or from anywhere else.
pub async fn show_job(
    context: RequestContext,
    me: CurrentPerson,
    PathParams((slug, id)): PathParams<(String, String)>,
    QueryParams(ask): QueryParams<ResubmitQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let found = find_job(&context, &me, &slug, &id).await?;
    let key = found.queue.account.id;
    let spot = compose_target::find_target(&context, &me, &slug).await?;
    let number = i64::try_from(found.id.number).map_err(|_| AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let known = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
    drop(db);
    let known = known.filter(|_| found.is_own);
    let (chosen, mut filled) = if let Some(one) = known {
        restore_form(&context, &me, &one, &spot).await?
    } else {
        let record = match &found.job_or_array {
            JobOrArray::Job(record) => record,
            JobOrArray::Array(entry) => &entry.head,
        };
        let script = load_script(&context, key, record).await?;
        if script.trim().is_empty() {
            return Ok(flash::redirect(context, &found.href(), FlashMessage::NoScript));
        }
        form_from_script(&context, &me, &script, &spot).await?
    };
    let options: Vec<script_import::SbatchOption> =
        ask.option.split(' ').filter_map(script_import::parse_option).collect();
    let mut shown = ComposePageExtras { repeats: Some(found.id.number.to_string()), ..ComposePageExtras::default() };
    if !options.is_empty() {
        // A hand-edited script would keep the old request.
        filled.own = None;
        let rest = script_import::fill_answers(&chosen.form, &mut filled.answers, &options, &spot.compose_context);
        if rest.is_empty() {
            shown.notice = Some(ComposeNotice {
                kind: "info",
                title: "The request was changed as proposed".to_owned(),
                text: format!("{} is in the form now. Look at it, and submit.", ask.option),
                said: String::new(),
                accounts: Vec::new(),
            });
        }
    }
    respond(&build_page(&context, &me, &spot, &chosen, &filled, shown).await?)
}

/// The script of a job. Usually the job's page has read it already; otherwise this asks the cluster, since the person
/// wants exactly that. Accounting has a job only a moment after its end.
async fn load_script(context: &RequestContext, key: ClusterAccountId, record: &JobRecord) -> Result<String, AppError> {
    let mut paper = context.app.job_details.get_cached(key, record).await?.details;
    for _ in 0..SCRIPT_ATTEMPTS {
        if !paper.script.trim().is_empty() {
            break;
        }
        let sheet = context.app.job_details.get_fresh(key, record).await?;
        if sheet.trouble.is_some() {
            break;
        }
        paper = sheet.details;
        tokio::time::sleep(SCRIPT_RETRY_DELAY).await;
    }
    Ok(paper.script.clone())
}

/// The form as it was. The recipe may be gone; the script never is.
async fn restore_form(
    context: &RequestContext,
    me: &CurrentPerson,
    one: &Submission,
    spot: &ComposeTarget,
) -> Result<(ChosenRecipe, JobFormValues), AppError> {
    let filled: JobFormValues = serde_json::from_str(&one.answers).unwrap_or_default();
    match recipe_lookup::find_for_submission(context, me, one).await? {
        Some(chosen) if !filled.answers.is_empty() => {
            let mut new = initial_values(&chosen, spot)?;
            new.answers.extend(filled.answers);
            new.own = filled.own;
            Ok((chosen, new))
        }
        _ => form_from_script(context, me, &one.script, spot).await,
    }
}

/// A form around any script.
async fn form_from_script(
    context: &RequestContext,
    me: &CurrentPerson,
    script: &str,
    spot: &ComposeTarget,
) -> Result<(ChosenRecipe, JobFormValues), AppError> {
    let chosen = recipe_lookup::find_recipe(context, me, OWN_SCRIPT_RECIPE).await?;
    let mut filled = initial_values(&chosen, spot)?;
    let options = script_import::parse_directives(script);
    let rest = script_import::fill_answers(&chosen.form, &mut filled.answers, &options, &spot.compose_context);
    if let Some(question) = chosen.form.questions().find(|one| one.kind == QuestionKind::Script) {
        filled.answers.insert(question.key.clone(), script_import::strip_directives(script));
    }
    if let Some(other) = chosen.form.find_setting(RequestField::Other) {
        let lines: Vec<String> = rest.iter().map(script_import::format_option).collect();
        filled.answers.insert(other.key.clone(), lines.join("\n"));
    }
    filled.nonce = new_nonce()?;
    Ok((chosen, filled))
}

fn add_refusal(one: &Submission, chosen: &ChosenRecipe, shown: &mut ComposePageExtras) {
    let said = sbatch::explain_sbatch(&one.refusal);
    for sets in &said.fields {
        let key = question_key(chosen, *sets);
        if !key.is_empty() {
            shown.problems.push(ComposeProblem { key, sentence: said.sentence.clone() });
        }
    }
    shown.notice = Some(ComposeNotice {
        kind: "danger",
        title: "The cluster did not take it".to_owned(),
        text: said.sentence,
        said: said.slurm,
        accounts: said.accounts,
    });
}
