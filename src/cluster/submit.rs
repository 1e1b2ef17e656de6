//! Submits a script to Slurm so that it arrives whole and in time or not at all, and finds out afterwards whether it
//! did. One command each.
//!
//! The command reads the whole script before it does anything, creates the folders, and reports that it is ready.
//! Only then does it receive the go word, for which it waits a few seconds. So a connection that breaks in the middle
//! of a script submits nothing, a command that was delayed for minutes submits nothing either, and as long as the go
//! word was not sent, there is certainly no job.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::slurm::submit::{self, SbatchAnswer};
use crate::slurm::{accounting, queue};
use crate::ssh::{
    CallUrgency, ClusterConnection, CommandOutput, DeferredInputSentFlag, RemoteCommand, RunCommandError,
};

/// For reading the script and creating the folders.
const PREPARE_TIMEOUT: Duration = Duration::from_secs(30);
/// `sbatch` hardly ever prints more than this about one job.
const MAX_OUTPUT_BYTES: usize = 256 * 1024;
/// All jobs of a person with their submit command lines.
const MAX_LIST_BYTES: usize = 32 * 1024 * 1024;
/// Clocks differ, and so may what counts as the start of a job.
const SEARCH_MARGIN_S: i64 = SECONDS_PER_DAY;

/// Its arguments: a mark, the size of the script, seconds to wait for the go word, seconds for `sbatch`, how many
/// folders, the folders, then the arguments of `sbatch`. It contains no single quotes, backslashes or exclamation
/// marks, so that it survives quoting for any login shell. Options of `sbatch` in the environment would override
/// those in the script, and variables meant only for us must not reach the job.
const SUBMIT_SCRIPT: &str = concat!(
    "m=$1 size=$2 wait=$3 limit=$4 folders=$5; shift 5; ",
    "text=$(head -c \"$size\"; echo \"$m\"); text=${text%\"$m\"}; ",
    "first=yes; while [ \"$folders\" -gt 0 ]; do ",
    "mkdir -p -- \"$1\" || { echo \"$m folder\"; exit 0; }; ",
    "if [ $first = yes ]; then cd -- \"$1\" 2>/dev/null; first=no; fi; ",
    "shift; folders=$((folders-1)); done; ",
    "unset SLURM_TIME_FORMAT; ",
    "for v in $(env | grep -o \"^SBATCH_[A-Z0-9_]*\"); do unset \"$v\"; done; ",
    "echo \"$m ready\"; ",
    "[ \"$(timeout \"$wait\" head -n 1)\" = \"$m go\" ] || { echo \"$m unasked\"; exit 0; }; ",
    "echo \"$m begin\"; ",
    "printf %s \"$text\" | timeout -s KILL \"$limit\" sbatch \"$@\"; ",
    "echo \"$m=$?\""
);

#[derive(Debug, Clone, Copy)]
pub struct SbatchTimeouts {
    /// How long the cluster waits for the go word.
    pub go: Duration,
    /// How long `sbatch` may take.
    pub sbatch: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SbatchOutcome {
    Answered(SbatchAnswer),
    /// Nothing was submitted, but the same may work in a moment. With the reason.
    RetryLater(String),
    /// Nothing was submitted, and the same never will be. With the reason.
    Impossible(String),
    /// It may or may not have been submitted. With the reason why that is unknown.
    Unconfirmed(String),
}

/// Submits a script to `sbatch` with these arguments, from the first of the folders, which are created first.
pub async fn submit(
    connection: &Arc<ClusterConnection>,
    script: &str,
    folders: &[String],
    args: Vec<String>,
    timeouts: SbatchTimeouts,
) -> SbatchOutcome {
    let mark = match nonce() {
        Ok(mark) => mark,
        Err(error) => return SbatchOutcome::RetryLater(error.to_string()),
    };
    let (command, sent_flag) = sbatch_command(&mark, script, folders, args, timeouts);
    let result = connection.run(command, CallUrgency::Interactive).await;
    parse_outcome(&mark, sent_flag.is_sent(), result)
}

fn sbatch_command(
    mark: &str,
    script: &str,
    folders: &[String],
    args: Vec<String>,
    timeouts: SbatchTimeouts,
) -> (RemoteCommand, DeferredInputSentFlag) {
    let seconds = |duration: Duration| duration.as_secs().max(1).to_string();
    RemoteCommand::new("/bin/sh")
        .args(["-c", SUBMIT_SCRIPT, "sh", mark, &script.len().to_string()])
        .args([seconds(timeouts.go), seconds(timeouts.sbatch)])
        .arg(folders.len().to_string())
        .args(folders.iter().cloned())
        .args(args)
        .input(script.as_bytes().to_vec())
        .with_deadline(PREPARE_TIMEOUT + timeouts.go + timeouts.sbatch)
        .with_max_output(MAX_OUTPUT_BYTES)
        .hold_back_input(&format!("{mark} ready"), format!("{mark} go\n").into_bytes())
}

fn parse_outcome(mark: &str, is_sent: bool, result: Result<CommandOutput, RunCommandError>) -> SbatchOutcome {
    let output = match result {
        Err(error) if is_sent => return SbatchOutcome::Unconfirmed(error.to_string()),
        Err(error @ (RunCommandError::InvalidCommand(_) | RunCommandError::Rejected(_))) => {
            return SbatchOutcome::Impossible(error.to_string());
        }
        Err(error) => return SbatchOutcome::RetryLater(error.to_string()),
        Ok(output) => output,
    };
    let (printed, stderr) = (output.stdout_text(), output.stderr_text());
    let has = |word: &str| printed.contains(&format!("{mark} {word}\n"));
    if has("folder") {
        return SbatchOutcome::Answered(SbatchAnswer::Refused(submit::combine_output("", &stderr)));
    }
    if !is_sent || has("unasked") {
        return SbatchOutcome::RetryLater("The connection was too slow to send the script.".to_owned());
    }
    let ended = printed.split_once(&format!("{mark} begin\n")).and_then(|(_, rest)| {
        let (printed, code) = rest.rsplit_once(&format!("{mark}="))?;
        Some((printed, code.trim().parse().ok()?))
    });
    match ended {
        Some((printed, code)) => SbatchOutcome::Answered(submit::parse_sbatch_answer(code, printed, &stderr)),
        None => SbatchOutcome::Unconfirmed("The cluster's reply was cut off.".to_owned()),
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmissionSearchResult {
    /// The ID of the job.
    Found(u64),
    /// Neither the queue nor the accounting knows it, and both have answered.
    Absent,
    /// One of them did not answer properly.
    Unknown,
}

/// The results of one search, in which any number of tokens can be found.
#[derive(Debug)]
pub struct SubmissionSearchOutput {
    fields: String,
    queue: CommandOutput,
    history: CommandOutput,
}

/// Reads all jobs of a person since a given time, with one command.
pub async fn search_submissions(
    connection: &Arc<ClusterConnection>,
    user: &str,
    since: UnixTime,
    timeout: Duration,
) -> Result<SubmissionSearchOutput, RunCommandError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let since = since.plus(-SEARCH_MARGIN_S);
    let commands = [
        (queue::PROGRAM, submit::queue_args(&fields, user)),
        (accounting::PROGRAM, submit::history_args(&fields, user, since)),
    ];
    // User names were checked when they were entered, so there are always arguments.
    let commands = commands
        .map(|(program, args)| RemoteCommand::new(program).args(args.unwrap_or_default()).with_deadline(timeout));
    let batch = RemoteCommand::batch(&marks, &commands)?.with_max_output(MAX_LIST_BYTES);
    let output = connection.run(batch, CallUrgency::Background).await?;
    let mut parts = output.split_batch(&marks).into_iter();
    let mut part = || parts.next().flatten().ok_or(RunCommandError::ConnectionLost);
    Ok(SubmissionSearchOutput { fields, queue: part()?, history: part()? })
}

impl SubmissionSearchOutput {
    /// Looks for the job with this token.
    pub fn find(&self, token: &str) -> SubmissionSearchResult {
        let found = submit::find_in_queue(&self.queue.stdout, &self.fields, token)
            .or_else(|| submit::find_in_history(&self.history.stdout, &self.fields, token));
        match found {
            Some(number) => SubmissionSearchResult::Found(number),
            None if is_complete_answer(&self.queue) && is_complete_history(&self.history) => {
                SubmissionSearchResult::Absent
            }
            None => SubmissionSearchResult::Unknown,
        }
    }

    /// What was printed instead of a proper answer, bounded.
    pub fn error_text(&self) -> String {
        let bad = [&self.queue, &self.history].into_iter().find(|part| !is_complete_answer(part));
        bad.map(|part| submit::combine_output("", &part.stderr_text())).unwrap_or_default()
    }
}

fn is_complete_answer(part: &CommandOutput) -> bool {
    part.code == 0 && !part.stderr_text().to_lowercase().contains("error")
}

/// A cluster without accounting knows its jobs from the queue alone.
fn is_complete_history(part: &CommandOutput) -> bool {
    is_complete_answer(part) || part.stderr_text().contains("accounting storage is disabled")
}

#[cfg(test)]
mod tests;
