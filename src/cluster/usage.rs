//! What whole accounts spent on a day of the cluster's own calendar: one command, more only where a day has very many
//! jobs.

use std::sync::Arc;
use std::time::Duration;

use super::queue::{complaint, nonce};
use crate::clock::{Day, UnixTime};
use crate::slurm::accounting::{self, spent};
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

pub use crate::slurm::accounting::spent::Spent;

/// The accounting may take its time over a busy day.
const WITHIN: Duration = Duration::from_mins(1);
/// The cluster's clock answers at once.
const CLOCK_WITHIN: Duration = Duration::from_secs(10);
/// About thirty thousand jobs with their steps.
const MOST_OUTPUT: usize = 32 * 1024 * 1024;
/// The shortest pieces of a day that are asked for, in hours.
const SHORTEST_HOURS: u32 = 3;

/// A day as the cluster told of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DaySpent {
    /// Its first moment.
    pub from: UnixTime,
    /// The first moment after it: 23 or 25 hours later where clocks are changed.
    pub until: UnixTime,
    /// All runs of jobs that were there on it.
    pub runs: Vec<Spent>,
    /// Whether there was more than can be read.
    pub is_cut: bool,
}

/// Why a day gave nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotTold {
    /// The command did not come back.
    #[error(transparent)]
    Run(#[from] RunCommandError),
    /// Slurm's accounting did not answer; what it said.
    #[error("Slurm's accounting did not answer.")]
    Accounting(String),
    /// The cluster's clock could not be read.
    #[error("The cluster did not tell when its days begin.")]
    Clock,
    /// No such account can be asked for.
    #[error("These accounts cannot be asked for.")]
    Accounts,
}

/// Asks for a day.
pub async fn day_spent(
    line: &Arc<ClusterConnection>,
    accounts: &[String],
    day: Day,
) -> Result<DaySpent, NotTold> {
    let whole = stretch(line, accounts, day, 0, 24).await;
    if !matches!(whole, Err(NotTold::Run(RunCommandError::OutputTooLong))) {
        return whole;
    }
    // More than is read at once: piece by piece. A run that is in several pieces is told in each.
    let mut all: Option<DaySpent> = None;
    let mut from = 0;
    let mut hours = 24;
    while from < 24 {
        hours = hours.min(24 - from);
        match stretch(line, accounts, day, from, from + hours).await {
            Err(NotTold::Run(RunCommandError::OutputTooLong)) if hours > SHORTEST_HOURS => {
                hours = (hours / 2).max(SHORTEST_HOURS);
                continue;
            }
            Err(NotTold::Run(RunCommandError::OutputTooLong)) => {
                if let Some(all) = &mut all {
                    all.is_cut = true;
                }
            }
            Err(other) => return Err(other),
            Ok(piece) => match &mut all {
                None => all = Some(piece),
                Some(all) => {
                    all.until = piece.until;
                    all.is_cut |= piece.is_cut;
                    all.runs.extend(piece.runs);
                }
            },
        }
        from += hours;
    }
    let mut all = all.ok_or(NotTold::Run(RunCommandError::OutputTooLong))?;
    // The latest word on each run is kept.
    all.runs.reverse();
    let mut seen = std::collections::HashSet::new();
    all.runs.retain(|run| seen.insert((run.raw, run.start)));
    Ok(all)
}

/// Asks for the hours of a day from one to another.
async fn stretch(
    line: &Arc<ClusterConnection>,
    accounts: &[String],
    day: Day,
    from: u32,
    until: u32,
) -> Result<DaySpent, NotTold> {
    let (marks, fields) = (nonce()?, nonce()?);
    let begin = spent::clock_time(day, from);
    let end =
        if until < 24 { spent::clock_time(day, until) } else { spent::clock_time(day.plus(1), 0) };
    let args = spent::args(&fields, accounts, &begin, &end).ok_or(NotTold::Accounts)?;
    let moment = |text: &str| {
        RemoteCommand::new("date").args(["-d", text, "+%s"]).with_deadline(CLOCK_WITHIN)
    };
    let sacct = RemoteCommand::new(accounting::PROGRAM).args(args).with_deadline(WITHIN);
    let batch = RemoteCommand::batch(&marks, &[moment(&begin), moment(&end), sacct])
        .map_err(RunCommandError::from)?
        .with_max_output(MOST_OUTPUT);
    let output = line.run(batch, CallUrgency::Background).await?;
    let mut parts = output.split_batch(&marks).into_iter();
    let mut next = || parts.next().flatten().ok_or(RunCommandError::ConnectionLost);
    let (from, until, told) = (next()?, next()?, next()?);
    let seconds = |text: String| text.trim().parse().ok().map(UnixTime);
    let (from, until) =
        seconds(from.stdout_text()).zip(seconds(until.stdout_text())).ok_or(NotTold::Clock)?;
    if told.code != 0 {
        return Err(NotTold::Accounting(complaint(&told)));
    }
    let (runs, is_cut) = spent::read(&told.stdout, &fields);
    Ok(DaySpent { from, until, runs, is_cut })
}
