//! The usage of whole accounts on one day of the cluster's own calendar: one command, more only for days with very
//! many jobs.

use std::sync::Arc;
use std::time::Duration;

use super::queue::{error_text, nonce};
use crate::clock::{Day, UnixTime};
use crate::slurm::accounting::{self, account_runs};
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

pub use crate::slurm::accounting::account_runs::AccountedRun;

/// The accounting database can be slow on a busy day.
const SACCT_TIMEOUT: Duration = Duration::from_mins(1);
const CLOCK_TIMEOUT: Duration = Duration::from_secs(10);
/// Enough for about thirty thousand jobs with their steps.
const MAX_OUTPUT_BYTES: usize = 32 * 1024 * 1024;
/// The smallest part of a day that is requested, in hours.
const MIN_CHUNK_HOURS: u32 = 3;

/// One day of the cluster's accounting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccountingDay {
    pub from: UnixTime,
    /// The first moment after the day: 23 or 25 hours later when the clocks change.
    pub until: UnixTime,
    /// All job runs that overlap the day.
    pub runs: Vec<AccountedRun>,
    /// Whether there was more than can be read.
    pub is_cut: bool,
}

/// Why a day could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AccountingDayError {
    #[error(transparent)]
    Run(#[from] RunCommandError),
    /// Slurm's accounting did not answer; what it printed instead.
    #[error("Slurm's accounting database isn't responding.")]
    Accounting(String),
    #[error("The cluster didn't report its time zone.")]
    Clock,
    /// None of the accounts has a name that can be sent.
    #[error("Usage can't be read for these accounts.")]
    Accounts,
}

pub async fn load_accounting_day(
    connection: &Arc<ClusterConnection>,
    accounts: &[String],
    day: Day,
) -> Result<AccountingDay, AccountingDayError> {
    let whole = load_hours(connection, accounts, day, 0, 24).await;
    if !matches!(whole, Err(AccountingDayError::Run(RunCommandError::OutputTooLong))) {
        return whole;
    }
    // Too much to read at once: part by part. A run that overlaps several parts is reported in each.
    let mut all: Option<AccountingDay> = None;
    let mut from = 0;
    let mut hours = 24;
    while from < 24 {
        hours = hours.min(24 - from);
        match load_hours(connection, accounts, day, from, from + hours).await {
            Err(AccountingDayError::Run(RunCommandError::OutputTooLong)) if hours > MIN_CHUNK_HOURS => {
                hours = (hours / 2).max(MIN_CHUNK_HOURS);
                continue;
            }
            Err(AccountingDayError::Run(RunCommandError::OutputTooLong)) => {
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
    let mut all = all.ok_or(AccountingDayError::Run(RunCommandError::OutputTooLong))?;
    // Keep the latest report of each run.
    all.runs.reverse();
    let mut seen = std::collections::HashSet::new();
    all.runs.retain(|run| seen.insert((run.raw_id, run.start)));
    Ok(all)
}

/// Reads some hours of a day.
async fn load_hours(
    connection: &Arc<ClusterConnection>,
    accounts: &[String],
    day: Day,
    from: u32,
    until: u32,
) -> Result<AccountingDay, AccountingDayError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let begin = account_runs::clock_time(day, from);
    let end = if until < 24 { account_runs::clock_time(day, until) } else { account_runs::clock_time(day.plus(1), 0) };
    let args = account_runs::account_runs_args(&fields, accounts, &begin, &end).ok_or(AccountingDayError::Accounts)?;
    let moment = |text: &str| RemoteCommand::new("date").args(["-d", text, "+%s"]).with_deadline(CLOCK_TIMEOUT);
    let sacct = RemoteCommand::new(accounting::PROGRAM).args(args).with_deadline(SACCT_TIMEOUT);
    let batch = RemoteCommand::batch(&marks, &[moment(&begin), moment(&end), sacct])
        .map_err(RunCommandError::from)?
        .with_max_output(MAX_OUTPUT_BYTES);
    let output = connection.run(batch, CallUrgency::Background).await?;
    let mut parts = output.split_batch(&marks).into_iter();
    let mut next = || parts.next().flatten().ok_or(RunCommandError::ConnectionLost);
    let (from, until, reply) = (next()?, next()?, next()?);
    let seconds = |text: String| text.trim().parse().ok().map(UnixTime);
    let (from, until) =
        seconds(from.stdout_text()).zip(seconds(until.stdout_text())).ok_or(AccountingDayError::Clock)?;
    if reply.code != 0 {
        return Err(AccountingDayError::Accounting(error_text(&reply)));
    }
    let (runs, is_cut) = account_runs::parse_account_runs(&reply.stdout, &fields);
    Ok(AccountingDay { from, until, runs, is_cut })
}
