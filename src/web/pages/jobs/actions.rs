//! Job actions: first a question that says what will happen, then the action, then its outcome. With JavaScript all of it
//! is on the page where the action was chosen; without it, each is a page of its own.

use askama::Template;

use crate::auth::Permission;
use crate::error::AppError;
use crate::format;
use crate::jobs::PersonQueueSnapshot;
use crate::jobs::actions::{JobAction, JobActionError, JobActionTarget, MAX_TARGETS};
use crate::jobs::job_list::record_stage;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::{JobId, JobStage};
use crate::ssh::RunCommandError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, FormBody, RequestContext};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::jobs::action_words::{
    JobActionPrompt, SelectionName, SelectionStages, confirmation_prompt, result_heading,
};
use crate::web::pages::jobs::cluster_queues::{PersonClusterQueue, list_cluster_queues};
use crate::web::pages::jobs::list_options::safe_list_path;

/// The most jobs that are named one by one.
const MAX_NAMED_JOBS: usize = 50;

struct SelectedJob {
    queue: PersonClusterQueue,
    target: JobActionTarget,
    name: String,
}

struct JobActionForm {
    verb: JobAction,
    /// The selected jobs, as `cluster/id`.
    picks: Vec<String>,
    tasks: String,
    back: String,
    is_confirmed: bool,
}

impl JobActionForm {
    /// Whether someone typed something other than task numbers.
    fn has_unreadable_tasks(&self) -> bool {
        // Cutting a list would choose other tasks.
        !self.tasks.is_empty() && (self.tasks.len() > MAX_TASKS_LEN || ArrayTaskSet::parse(&self.tasks).is_none())
    }

    const fn verb_name(&self) -> &'static str {
        self.verb.as_str()
    }
}

/// A longer list of tasks is refused.
const MAX_TASKS_LEN: usize = 4000;

#[derive(Template)]
#[template(path = "jobs/action_confirm.html")]
struct JobActionConfirmPage {
    page: PageFrame,
    question: JobActionQuestion,
}

/// The question on the page where the action was chosen.
#[derive(Template)]
#[template(path = "jobs/action_confirm_fragment.html")]
struct JobActionConfirmFragment {
    question: JobActionQuestion,
}

#[derive(Template)]
#[template(path = "jobs/action_result.html")]
struct JobActionResultPage {
    page: PageFrame,
    report: JobActionReportView,
}

#[derive(Template)]
#[template(path = "jobs/action_result_fragment.html")]
struct JobActionResultFragment {
    report: JobActionReportView,
}

/// What is asked before an action runs.
struct JobActionQuestion {
    words: JobActionPrompt,
    /// Name, number and state.
    named: Vec<(String, String, &'static str)>,
    more: usize,
    form: JobActionForm,
    problem: &'static str,
}

/// What became of an action.
struct JobActionReportView {
    heading: String,
    is_good: bool,
    outcomes: Vec<JobActionOutcomeRow>,
    /// The action that undoes it and its button; empty if nothing does.
    undo: (&'static str, &'static str),
    form: JobActionForm,
}

/// The outcome for one job.
struct JobActionOutcomeRow {
    name: String,
    id: String,
    href: String,
    sentence: String,
    said: String,
    kind: &'static str,
}

/// Asks for confirmation first, then runs the action.
pub async fn post(
    context: RequestContext,
    me: CurrentPerson,
    FormBody(fields): FormBody<Vec<(String, String)>>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let form = parse_form(&fields)?;
    let queues = list_cluster_queues(&context, &me).await?;
    let selected = find_selected_jobs(&form, &queues)?;
    let is_ready = form.is_confirmed && !form.has_unreadable_tasks() && (1..=MAX_TARGETS).contains(&selected.len());
    if !is_ready {
        return show_confirmation(&context, &me, form, &selected);
    }
    perform_action(&context, &me, form, &selected).await
}

fn parse_form(fields: &[(String, String)]) -> Result<JobActionForm, AppError> {
    let value = |wanted: &str| fields.iter().find(|(name, _)| name == wanted).map_or("", |(_, value)| value.as_str());
    let verb = JobAction::parse(value("verb")).ok_or_else(|| AppError::BadRequest("unknown action".into()))?;
    let mut picks: Vec<String> =
        fields.iter().filter(|(name, _)| name == "job").map(|(_, value)| value.clone()).collect();
    let mut seen = std::collections::HashSet::new();
    picks.retain(|pick| seen.insert(pick.clone()));
    Ok(JobActionForm {
        verb,
        picks,
        tasks: value("tasks").trim().to_owned(),
        back: safe_return_path(value("back")).to_owned(),
        is_confirmed: value("sure") == "yes",
    })
}

/// Where to go afterwards: the list or a job's page.
fn safe_return_path(back: &str) -> &str {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_/".contains(c);
    let is_job = back.starts_with("/jobs/") && back.len() < 100 && back.chars().all(plain);
    if is_job { back } else { safe_list_path(back) }
}

/// The selected jobs. One that this person can't see is treated as missing.
fn find_selected_jobs(form: &JobActionForm, queues: &[PersonClusterQueue]) -> Result<Vec<SelectedJob>, AppError> {
    let tasks = ArrayTaskSet::parse(&form.tasks);
    let mut found = Vec::new();
    for pick in &form.picks {
        let (slug, id) = pick.split_once('/').ok_or(AppError::NotFound)?;
        let id: JobId = id.parse().map_err(|_| AppError::NotFound)?;
        let queue = queues.iter().find(|queue| queue.cluster().slug == slug).ok_or(AppError::NotFound)?;
        let name = find_job_name(&queue.snapshot, id).ok_or(AppError::NotFound)?;
        found.push(SelectedJob { queue: queue.clone(), target: JobActionTarget { id, tasks: tasks.clone() }, name });
    }
    Ok(found)
}

/// The name of a job that this person can see here.
fn find_job_name(snapshot: &PersonQueueSnapshot, id: JobId) -> Option<String> {
    let own = snapshot.records.get(&id).or_else(|| {
        // The id means the whole array, or a task that hasn't started.
        snapshot.records_of_number(id.number).find(|record| {
            id.task.is_none_or(|task| record.job.tasks.as_ref().is_some_and(|tasks| tasks.contains(task)))
        })
    });
    let group = || {
        let group = snapshot.group.as_ref()?;
        group.jobs.iter().find(|job| job.id == id).map(|job| job.name.clone())
    };
    own.map(|record| record.job.name.clone()).or_else(group)
}

/// The selection in words: what the question calls it, and what its button does.
fn name_selection(selected: &[SelectedJob]) -> SelectionName {
    let stages = selection_stages(selected);
    match selected {
        [SelectedJob { name, target: JobActionTarget { tasks: Some(tasks), .. }, .. }] => {
            let count = format::count(tasks.len(), "task");
            SelectionName { title: format!("{count} ({tasks}) of {name}"), button: count, stages }
        }
        [job] => SelectionName { title: job.name.clone(), button: "job".to_owned(), stages },
        _ => {
            let count = format::count(u64::try_from(selected.len()).unwrap_or(0), "job");
            SelectionName { title: count.clone(), button: count, stages }
        }
    }
}

fn selection_stages(selected: &[SelectedJob]) -> SelectionStages {
    let all_in = |stage| selected.iter().all(|job| job.stage() == Some(stage));
    match selected {
        [_] if all_in(JobStage::Pending) => SelectionStages::OnePending,
        [_] if all_in(JobStage::Running) => SelectionStages::OneRunning,
        _ if all_in(JobStage::Pending) => SelectionStages::AllPending,
        _ if all_in(JobStage::Running) => SelectionStages::AllRunning,
        _ => SelectionStages::Mixed,
    }
}

fn show_confirmation(
    context: &RequestContext,
    me: &CurrentPerson,
    form: JobActionForm,
    selected: &[SelectedJob],
) -> HandlerResult {
    let problem = if form.has_unreadable_tasks() {
        "The task numbers aren't valid. Write them like 5-9,20 and try again. Nothing was changed."
    } else if selected.is_empty() {
        "No jobs are selected. Go back and tick at least one job."
    } else if selected.len() > MAX_TARGETS {
        "Too many jobs are selected. Select at most 100; a job array counts as one."
    } else if form.verb == JobAction::Cancel && selected.iter().all(SelectedJob::is_over) {
        "There is nothing left to cancel: everything you selected has ended."
    } else {
        ""
    };
    let named = selected.iter().take(MAX_NAMED_JOBS).map(|job| {
        let state = job.stage().map_or("", |stage| match stage {
            JobStage::Pending => "pending",
            JobStage::Running => "running",
            JobStage::Ended => "ended",
        });
        (job.name.clone(), job.label(), state)
    });
    let question = JobActionQuestion {
        words: confirmation_prompt(form.verb, &name_selection(selected)),
        named: named.collect(),
        more: selected.len().saturating_sub(MAX_NAMED_JOBS),
        form,
        problem,
    };
    if context.is_fragment {
        return respond(&JobActionConfirmFragment { question });
    }
    respond(&JobActionConfirmPage {
        page: PageFrame::for_person(context, &me.0, "Confirm", NavSection::Jobs),
        question,
    })
}

async fn perform_action(
    context: &RequestContext,
    me: &CurrentPerson,
    form: JobActionForm,
    selected: &[SelectedJob],
) -> HandlerResult {
    let actor = me.actor(context);
    let mut outcomes: Vec<JobActionOutcomeRow> = Vec::new();
    let mut queues: Vec<&PersonClusterQueue> = Vec::new();
    for job in selected {
        if !queues.iter().any(|queue| queue.cluster().id == job.queue.cluster().id) {
            queues.push(&job.queue);
        }
    }
    for queue in queues {
        let here: Vec<_> = selected.iter().filter(|job| job.queue.cluster().id == queue.cluster().id).collect();
        let targets = here.iter().map(|job| job.target.clone()).collect();
        let monitor = &context.app.queue_monitor;
        match monitor.act(queue.account.id, &actor, form.verb, targets, &queue.cluster().title).await {
            Ok(report) => {
                let results = report.results.into_iter().map(|(_, result)| result);
                let results = results.map(|result| {
                    result.map_err(|refusal| (refusal.sentence.to_owned(), refusal.slurm, refusal.is_unsure))
                });
                outcomes.extend(here.into_iter().zip(results).map(|(job, result)| job.outcome_row(result)));
            }
            Err(error) => {
                let (sentence, is_unsure) = describe_failure(error)?;
                let failure = || Err((sentence.clone(), String::new(), is_unsure));
                outcomes.extend(here.into_iter().map(|job| job.outcome_row(failure())));
            }
        }
    }
    let good = outcomes.iter().filter(|outcome| outcome.kind == "ok").count();
    let report = JobActionReportView {
        heading: result_heading(form.verb, good, outcomes.len()),
        is_good: good == outcomes.len(),
        outcomes,
        undo: match form.verb {
            JobAction::Hold if good > 0 => ("release", "Undo hold"),
            JobAction::Release if good > 0 => ("hold", "Undo release"),
            _ => ("", ""),
        },
        form,
    };
    if context.is_fragment {
        return respond(&JobActionResultFragment { report });
    }
    respond(&JobActionResultPage { page: PageFrame::for_person(context, &me.0, "Jobs", NavSection::Jobs), report })
}

impl SelectedJob {
    /// Whether it has ended with all its tasks, as far as is known. The portal knows the person's own jobs only.
    fn is_over(&self) -> bool {
        let snapshot = &self.queue.snapshot;
        if let Some(record) = snapshot.records.get(&self.target.id) {
            return record.is_over;
        }
        let mut records = snapshot.records_of_number(self.target.id.number).peekable();
        self.target.id.task.is_none() && records.peek().is_some() && records.all(|record| record.is_over)
    }

    /// The stage of a job of the person's own; none for tasks of an array and where it isn't known.
    fn stage(&self) -> Option<JobStage> {
        let record = self.queue.snapshot.records.get(&self.target.id);
        record
            .filter(|record| self.target.tasks.is_none() && record.job.tasks.is_none())
            .map(|record| record_stage(record))
    }

    fn label(&self) -> String {
        format!("{} on {}", self.target.slurm_id(), self.queue.cluster().title)
    }

    /// What became of it; a failure has a sentence, Slurm's own words, and whether it may have been done all the same.
    fn outcome_row(&self, result: Result<(), (String, String, bool)>) -> JobActionOutcomeRow {
        let (sentence, said, kind) = match result {
            Ok(()) => ("Accepted by the cluster.".to_owned(), String::new(), "ok"),
            Err((sentence, said, true)) => (sentence, said, "unknown"),
            Err((sentence, said, false)) => (sentence, said, "failed"),
        };
        JobActionOutcomeRow {
            name: self.name.clone(),
            id: self.label(),
            href: format!("/jobs/{}/{}", self.queue.cluster().slug, self.target.id),
            sentence,
            said,
            kind,
        }
    }
}

/// Why the outcome is unknown, or why nothing was sent; and whether the action may have run.
fn describe_failure(error: JobActionError) -> Result<(String, bool), AppError> {
    match error {
        JobActionError::Store(error) => Err(error.into()),
        JobActionError::Run(
            error @ (RunCommandError::ConnectionLost | RunCommandError::TimedOut | RunCommandError::OutputTooLong),
        ) => Ok((
            format!("{error} The action may still have gone through, so check the job's state before you try again."),
            true,
        )),
        JobActionError::Run(RunCommandError::NotConnected) => {
            Ok(("You're not connected to this cluster, so nothing was sent. Connect and try again.".to_owned(), false))
        }
        JobActionError::Run(error) => Ok((format!("{error} Nothing was changed."), false)),
    }
}
