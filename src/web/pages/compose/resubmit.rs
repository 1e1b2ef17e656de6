//! Running something again: a submission as it was filled in, or any earlier job from its script.

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;

use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::domain::SubmissionId;
use crate::error::AppError;
use crate::explain::sbatch;
use crate::format;
use crate::jobs::submissions::{Submission, SubmissionState};
use crate::jobs::{JobDetails, JobRecord};
use crate::recipes::compose::ComposeProblem;
use crate::recipes::script_import::{self, SbatchOption, SubmitLineOptions};
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::respond;
use crate::web::pages::compose::compose_target::{self, ComposeTarget};
use crate::web::pages::compose::cost_and_start::question_key;
use crate::web::pages::compose::form::{ComposeNotice, ComposePageExtras, build_page};
use crate::web::pages::compose::form_values::JobFormValues;
use crate::web::pages::compose::job_draft::JobDraft;
use crate::web::pages::compose::recipe_lookup::{self, ChosenRecipe};
use crate::web::pages::jobs::job_lookup::{JobOrArray, JobPageRequest};
use crate::web::pages::jobs::submissions::load_own;

/// The recipe that takes any script.
const OWN_SCRIPT_RECIPE: &str = "own-script";
/// How often, and with which pause, to ask for a script that isn't there yet.
const SCRIPT_ATTEMPTS: u32 = 8;
const SCRIPT_RETRY_DELAY: Duration = Duration::from_secs(1);
/// How long after a job's end its script may still be missing from the accounting, in seconds.
const ACCOUNTING_DELAY_SECONDS: i64 = 120;
/// What a verdict may suggest to change.
const SUGGESTED_OPTIONS: [&str; 3] = ["--mem=", "--time=", "--cpus-per-task="];

/// The form of a submission as it was filled in, with Slurm's message if it was refused.
pub async fn show_submission(
    context: RequestContext,
    me: CurrentPerson,
    PathParams(id): PathParams<i64>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let (submission, cluster) = load_own(&context, &me, SubmissionId(id)).await?;
    let target = compose_target::find_target(&context, &me, &cluster.slug).await?;
    let mut draft = restore_form(&context, &me, &submission, target).await?;
    draft.values.repeats = submission.number.map(|number| number.to_string()).unwrap_or_default();
    let mut extras = ComposePageExtras::default();
    if submission.state == SubmissionState::Refused {
        add_refusal(&submission, &draft.chosen, &mut extras);
    }
    respond(&build_page(&context, &me, &draft, extras).await?)
}

/// What to change in a job's earlier request.
#[derive(Deserialize, Default)]
#[serde(default)]
pub struct ResubmitChangesQuery {
    /// Options to change, as the job's verdict suggests them: `--mem=24G`.
    option: String,
    /// `failed` to run only the tasks of an array that failed.
    tasks: String,
}

/// The form of an earlier job, submitted from the portal or from anywhere else.
pub async fn show_job(request: JobPageRequest, QueryParams(query): QueryParams<ResubmitChangesQuery>) -> HandlerResult {
    let found = request.find_job().await?;
    let JobPageRequest { context, me, path: (slug, _) } = request;
    let key = found.queue.account.id;
    let target = compose_target::find_target(&context, &me, &slug).await?;
    let number = i64::try_from(found.id.number).map_err(|_| AppError::NotFound)?;
    let mut db = context.app.store.read().await?;
    let submission = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
    drop(db);
    let mut on_line = SubmitLineOptions::default();
    let mut draft = if let Some(submission) = submission.filter(|_| found.is_own) {
        restore_form(&context, &me, &submission, target).await?
    } else {
        let record = match &found.job_or_array {
            JobOrArray::Job(record) => record,
            JobOrArray::Array(array) => &array.head,
        };
        // Slurm shows a script only to its owner.
        let attempts = if found.is_own { script_attempts(record, context.app.clock.now()) } else { 1 };
        let details = load_details(&context, key, record, attempts).await?;
        if details.script.trim().is_empty() {
            return Ok(flash::redirect(context, &found.href(), FlashMessage::NoScript));
        }
        let line = if details.submit_line.is_empty() { &record.submit_line } else { &details.submit_line };
        on_line = script_import::parse_submit_line(line, &record.job.name, &details.command);
        form_from_script(&context, &me, &details.script, &on_line.options, target).await?
    };
    let options = parse_suggestion(&query.option);
    draft.values.repeats = found.id.to_string();
    let mut extras = ComposePageExtras::default();
    if query.tasks == "failed" {
        extras.notice = Some(choose_failed_tasks(&mut draft, &found.job_or_array));
    }
    if !options.is_empty() {
        // A hand-edited script would keep the old request.
        draft.values.own = None;
        if draft.fill_options(&options).is_empty() {
            let applied: Vec<String> = options.iter().map(script_import::format_option).collect();
            let text = format!("The form now has {}. Check it, then submit.", applied.join(" "));
            extras.notice = Some(ComposeNotice::new("info", "Suggestion applied", text));
        }
    }
    add_submit_line_notice(&on_line, &mut extras);
    respond(&build_page(&context, &me, &draft, extras).await?)
}

/// The options of a verdict's suggestion. Anything else that a link may hold counts for nothing: it must not change the
/// form, nor speak to the person in our name.
fn parse_suggestion(text: &str) -> Vec<SbatchOption> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-=:.".contains(c);
    let is_suggested = |word: &str| {
        SUGGESTED_OPTIONS.iter().any(|name| word.starts_with(name)) && word.chars().all(is_plain) && word.len() <= 40
    };
    let words: Vec<&str> = text.split(' ').collect();
    if words.len() > SUGGESTED_OPTIONS.len() || !words.iter().all(|word| is_suggested(word)) {
        return Vec::new();
    }
    words.into_iter().filter_map(script_import::parse_option).collect()
}

/// Says that the form has the options of the command line, and which of them it hasn't.
fn add_submit_line_notice(on_line: &SubmitLineOptions, extras: &mut ComposePageExtras) {
    let mut sentences = Vec::new();
    if !on_line.options.is_empty() {
        sentences.push("The form also includes the options given on this job's command line.".to_owned());
    }
    if !on_line.left_out.is_empty() {
        sentences.push(format!("Left out, because the portal can't set them: {}.", on_line.left_out.join(", ")));
    }
    if on_line.is_uncertain {
        sentences.push("Part of the command line couldn't be read. Check the fields before you submit.".to_owned());
    }
    if sentences.is_empty() {
        return;
    }
    let kind = if on_line.left_out.is_empty() && !on_line.is_uncertain { "info" } else { "warning" };
    let text = sentences.join(" ");
    match &mut extras.notice {
        Some(notice) => notice.text = format!("{} {text}", notice.text),
        None => extras.notice = Some(ComposeNotice::new(kind, "Options from the command line", text)),
    }
}

/// Fills in the tasks that failed, so that only these run again.
fn choose_failed_tasks(draft: &mut JobDraft, job_or_array: &JobOrArray) -> ComposeNotice {
    let records = match job_or_array {
        JobOrArray::Array(array) => array.tasks.as_slice(),
        JobOrArray::Job(record) => std::slice::from_ref(record),
    };
    let failed = records.iter().filter(|record| record.job.state.is_failure());
    let Some(tasks) = ArrayTaskSet::from_tasks(failed.filter_map(|record| record.job.id.task)) else {
        let text = "No task of this job array has failed, so the form has all of them.";
        return ComposeNotice::new("info", "No failed tasks", text);
    };
    let count = format::count(tasks.len(), "task");
    if draft.fill_array_tasks(&tasks) {
        let text = format!("The job array now has only the {count} that failed: {tasks}. Check the form, then submit.");
        ComposeNotice::new("info", "Only failed tasks", text)
    } else {
        let text = "The tasks of this job array are consecutive parts of one run, so the form has all of them.";
        ComposeNotice::new("info", "Failed tasks can't run alone", text)
    }
}

/// The details of a job, with its script. Usually the job's page has read it already; otherwise this asks the cluster,
/// since the person wants exactly that. Accounting has a job only a moment after its end.
async fn load_details(
    context: &RequestContext,
    key: ClusterAccountId,
    record: &JobRecord,
    attempts: u32,
) -> Result<Arc<JobDetails>, AppError> {
    let mut details = context.app.job_details.get_cached(key, record).await?.details;
    for attempt in 0..attempts {
        let has_script = !details.script.trim().is_empty();
        let has_line = !details.submit_line.is_empty() || !record.submit_line.is_empty();
        // Not every cluster stores command lines: asking once is enough.
        if has_script && (has_line || attempt > 0) {
            break;
        }
        let fresh = context.app.job_details.get_fresh(key, record).await?;
        if fresh.trouble.is_some() {
            break;
        }
        details = fresh.details;
        if details.script.trim().is_empty() && attempt + 1 < attempts {
            tokio::time::sleep(SCRIPT_RETRY_DELAY).await;
        }
    }
    Ok(details)
}

/// How often to ask for a job's script: once, unless the job ended just now or is still there.
fn script_attempts(record: &JobRecord, now: UnixTime) -> u32 {
    let ended_long_ago = record.job.end.is_some_and(|end| now.since(end) > ACCOUNTING_DELAY_SECONDS);
    if record.is_over && ended_long_ago { 1 } else { SCRIPT_ATTEMPTS }
}

/// The form as it was. The recipe may be gone; the script never is.
async fn restore_form(
    context: &RequestContext,
    me: &CurrentPerson,
    submission: &Submission,
    target: ComposeTarget,
) -> Result<JobDraft, AppError> {
    let values: JobFormValues = serde_json::from_str(&submission.answers).unwrap_or_default();
    match recipe_lookup::find_for_submission(context, me, submission).await? {
        Some(chosen) if !values.answers.is_empty() => {
            let mut draft = JobDraft::new(target, chosen)?;
            draft.values.answers.extend(values.answers);
            draft.values.own = values.own;
            Ok(draft)
        }
        _ => form_from_script(context, me, &submission.script, &[], target).await,
    }
}

/// A form around any script, with options that were not in it.
async fn form_from_script(
    context: &RequestContext,
    me: &CurrentPerson,
    script: &str,
    more: &[SbatchOption],
    target: ComposeTarget,
) -> Result<JobDraft, AppError> {
    let chosen = recipe_lookup::find_recipe(context, me, OWN_SCRIPT_RECIPE).await?;
    let mut draft = JobDraft::new(target, chosen)?;
    let mut options = script_import::parse_directives(script);
    script_import::override_options(&mut options, more);
    draft.fill_from_script(script, &options);
    Ok(draft)
}

fn add_refusal(submission: &Submission, chosen: &ChosenRecipe, extras: &mut ComposePageExtras) {
    let refusal = sbatch::explain_sbatch(&submission.refusal);
    for sets in &refusal.fields {
        let key = question_key(chosen, *sets);
        if !key.is_empty() {
            extras.problems.push(ComposeProblem { key, sentence: refusal.sentence.clone() });
        }
    }
    extras.notice = Some(ComposeNotice {
        said: refusal.slurm,
        accounts: refusal.accounts,
        ..ComposeNotice::new("danger", "The cluster rejected this job", refusal.sentence)
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_can_only_hold_what_verdicts_suggest() {
        let words =
            |text: &str| -> Vec<String> { parse_suggestion(text).iter().map(script_import::format_option).collect() };
        assert_eq!(words("--mem=24G --time=1-12:00:00"), ["--mem=24G", "--time=1-12:00:00"]);
        assert_eq!(words("--cpus-per-task=4"), ["--cpus-per-task=4"]);
        for foreign in [
            "",
            "--mem=1G . Your session has ended",
            "--time=6-0 --bogus=1",
            "--wrap=id --mem=1G",
            "--mem=1G\u{202e}",
            "--mem=1G --mem=1G --mem=1G --mem=1G",
        ] {
            assert!(words(foreign).is_empty(), "{foreign}");
        }
    }

    #[test]
    fn a_script_is_waited_for_only_while_it_may_still_appear() {
        let mut record = JobRecord::new(crate::slurm::job::SlurmJob::default(), UnixTime(0));
        assert_eq!(script_attempts(&record, UnixTime(5000)), SCRIPT_ATTEMPTS);
        record.is_over = true;
        record.job.end = Some(UnixTime(4990));
        assert_eq!(script_attempts(&record, UnixTime(5000)), SCRIPT_ATTEMPTS);
        assert_eq!(script_attempts(&record, UnixTime(6000)), 1);
    }
}
