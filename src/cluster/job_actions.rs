//! What a person does to jobs: cancel, hold, release, put back, move to the front. Slurm decides whether they may.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::slurm::job::JobId;
use crate::slurm::tasks::TaskSet;
use crate::slurm::text::plain;
use crate::ssh::{CallUrgency, ClusterConnection, CommandOutput, RemoteCommand, RunCommandError};

/// One job needs a moment; a controller that is busy needs more.
const WITHIN: Duration = Duration::from_secs(20);

/// What is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verb {
    /// End it, or take it out of the queue.
    Cancel,
    /// Keep it from starting.
    Hold,
    /// Let it start again.
    Release,
    /// Stop it and put it back into the queue.
    Requeue,
    /// Before all other waiting jobs of the same person.
    Top,
}

/// What it is done to: a job, an array, a task, or some tasks of an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// The job or task.
    pub id: JobId,
    /// Some tasks of the array.
    pub tasks: Option<TaskSet>,
}

impl Target {
    /// As Slurm wants it: `123`, `123_4`, `123_[5-9,20]`.
    pub fn words(&self) -> String {
        match &self.tasks {
            Some(tasks) => format!("{}_[{tasks}]", self.id.number),
            None => self.id.to_string(),
        }
    }
}

/// Carries it out for each target, with one command; gives for each what Slurm said against it.
pub async fn carry_out(
    line: &Arc<ClusterConnection>,
    verb: Verb,
    targets: &[Target],
) -> Result<Vec<Result<(), String>>, RunCommandError> {
    let marks = nonce()?;
    let commands: Vec<RemoteCommand> =
        targets.iter().map(|target| command(verb, target).with_deadline(WITHIN)).collect();
    let batch = RemoteCommand::batch(&marks, &commands)?.with_deadline(WITHIN * 3);
    let output = line.run(batch, CallUrgency::Interactive).await?;
    let mut parts = output.split_batch(&marks).into_iter();
    let mut results = Vec::new();
    for _ in targets {
        let part = parts.next().flatten().ok_or(RunCommandError::ConnectionLost)?;
        results.push(result(&part));
    }
    Ok(results)
}

fn command(verb: Verb, target: &Target) -> RemoteCommand {
    let id = target.words();
    match verb {
        // Only when it is told to be talkative does it say that a job had ended already.
        Verb::Cancel => RemoteCommand::new("scancel").args(["-v", &id]),
        Verb::Hold => RemoteCommand::new("scontrol").args(["hold", &id]),
        Verb::Release => RemoteCommand::new("scontrol").args(["release", &id]),
        Verb::Requeue => RemoteCommand::new("scontrol").args(["requeue", &id]),
        Verb::Top => RemoteCommand::new("scontrol").args(["top", &id]),
    }
}

/// Some versions complain and still say that all is well.
fn result(part: &CommandOutput) -> Result<(), String> {
    let complaint = part.stderr_text();
    let telling = complaint.lines().filter(|line| !line.starts_with("scancel: Terminating"));
    let said = plain(&telling.collect::<Vec<_>>().join(" "), 300);
    // For some tasks of an array it may be too late while the others took it.
    let took = complaint.lines().any(|line| line.trim_end().ends_with(": No error"));
    let is_error = !took && (part.code != 0 || said.contains("error"));
    if is_error { Err(said) } else { Ok(()) }
}
