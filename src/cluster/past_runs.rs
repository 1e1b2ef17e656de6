//! What past runs used of what they had requested, with one command for all of them.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::slurm::accounting::{self, PastJobRun};
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// The accounting database can be slow.
const SACCT_TIMEOUT: Duration = Duration::from_secs(20);
pub const MAX_PAST_JOBS: usize = 10;

/// Reads past runs; jobs that the accounting does not know are left out, and those beyond [`MAX_PAST_JOBS`] are
/// skipped.
pub async fn load_past_runs(
    connection: &Arc<ClusterConnection>,
    numbers: &[u64],
) -> Result<Vec<PastJobRun>, RunCommandError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let numbers = &numbers[..numbers.len().min(MAX_PAST_JOBS)];
    let Some(args) = accounting::past_runs_args(&fields, numbers) else { return Ok(Vec::new()) };
    let command = RemoteCommand::new(accounting::PROGRAM).args(args).with_deadline(SACCT_TIMEOUT);
    let batch = RemoteCommand::batch(&marks, &[command])?;
    let output = connection.run(batch, CallUrgency::Background).await?;
    let part = output.split_batch(&marks).into_iter().next().flatten().ok_or(RunCommandError::ConnectionLost)?;
    Ok(accounting::parse_past_runs(&part.stdout, &fields))
}
