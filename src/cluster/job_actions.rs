//! Job actions: cancel, hold, release, requeue, move to the top. Slurm decides whether the person may.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::domain::codes;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::JobId;
use crate::ssh::{CallUrgency, ClusterConnection, CommandOutput, RemoteCommand, RunCommandError};
use crate::text::sanitize;

/// One job needs a moment; a busy controller needs longer.
const ACTION_TIMEOUT: Duration = Duration::from_secs(20);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobAction {
    /// End it, or remove it from the queue.
    Cancel,
    Hold,
    Release,
    /// Stop it and put it back into the queue.
    Requeue,
    /// Move it before all other pending jobs of the same person.
    Top,
}
codes!(JobAction { Cancel = "cancel", Hold = "hold", Release = "release", Requeue = "requeue", Top = "top" });

/// The target of an action: a job, an array, a task, or some tasks of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobActionTarget {
    pub id: JobId,
    pub tasks: Option<ArrayTaskSet>,
}

impl JobActionTarget {
    /// In Slurm's notation: `123`, `123_4`, `123_[5-9,20]`.
    pub fn slurm_id(&self) -> String {
        match &self.tasks {
            Some(tasks) => format!("{}_[{tasks}]", self.id.number),
            None => self.id.to_string(),
        }
    }
}

/// Runs the action on every target, with one command; returns Slurm's objection for each, if any.
pub async fn run_job_action(
    connection: &Arc<ClusterConnection>,
    verb: JobAction,
    targets: &[JobActionTarget],
) -> Result<Vec<Result<(), String>>, RunCommandError> {
    let marks = nonce()?;
    let commands: Vec<RemoteCommand> =
        targets.iter().map(|target| action_command(verb, target).with_deadline(ACTION_TIMEOUT)).collect();
    let batch = RemoteCommand::batch(&marks, &commands)?.with_deadline(ACTION_TIMEOUT * 3);
    let output = connection.run(batch, CallUrgency::Interactive).await?;
    let mut parts = output.split_batch(&marks).into_iter();
    let mut results = Vec::new();
    for _ in targets {
        let part = parts.next().flatten().ok_or(RunCommandError::ConnectionLost)?;
        results.push(action_result(&part));
    }
    Ok(results)
}

fn action_command(verb: JobAction, target: &JobActionTarget) -> RemoteCommand {
    let id = target.slurm_id();
    match verb {
        // Only with `-v` does it report that a job had already ended.
        JobAction::Cancel => RemoteCommand::new("scancel").args(["-v", &id]),
        JobAction::Hold => RemoteCommand::new("scontrol").args(["hold", &id]),
        JobAction::Release => RemoteCommand::new("scontrol").args(["release", &id]),
        JobAction::Requeue => RemoteCommand::new("scontrol").args(["requeue", &id]),
        JobAction::Top => RemoteCommand::new("scontrol").args(["top", &id]),
    }
}

/// Some versions print an error and still exit with success.
fn action_result(part: &CommandOutput) -> Result<(), String> {
    let stderr = part.stderr_text();
    let relevant = stderr.lines().filter(|line| !line.starts_with("scancel: Terminating"));
    let message = sanitize(&relevant.collect::<Vec<_>>().join(" "), 300);
    // It may be too late for some tasks of an array although the others accepted it.
    let is_accepted = stderr.lines().any(|line| line.trim_end().ends_with(": No error"));
    let is_error = !is_accepted && (part.code != 0 || message.contains("error"));
    if is_error { Err(message) } else { Ok(()) }
}
