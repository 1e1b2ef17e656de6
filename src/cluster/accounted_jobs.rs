//! Single jobs as the accounting tells of them, however old: one command.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::slurm::accounting::{self, AccountingExtra};
use crate::slurm::job::{JobId, SlurmJob};
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

const SACCT_TIMEOUT: Duration = Duration::from_secs(20);

/// Finds a job; none if the accounting doesn't have it, or doesn't show it to this user.
pub async fn load_accounted_job(
    connection: &Arc<ClusterConnection>,
    id: JobId,
) -> Result<Option<(SlurmJob, AccountingExtra)>, RunCommandError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let args = accounting::args_for_jobs(&fields, &[id]).unwrap_or_default();
    let sacct = RemoteCommand::new(accounting::PROGRAM).args(args).with_deadline(SACCT_TIMEOUT);
    let batch = RemoteCommand::batch(&marks, &[sacct])?;
    let output = connection.run(batch, CallUrgency::Interactive).await?;
    let reply = output.split_batch(&marks).into_iter().next().flatten().ok_or(RunCommandError::ConnectionLost)?;
    let found = accounting::parse_accounting(&reply.stdout, &fields);
    Ok(found.into_iter().rev().find(|(job, _)| job.id == id))
}
