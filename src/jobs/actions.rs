//! Actions on jobs (cancel, hold, requeue …): recorded, run once, and answered in plain words.

use super::queue_monitor::QueueMonitor;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::cluster::ClusterAccountId;
use crate::cluster::job_actions::run_job_action;
pub use crate::cluster::job_actions::{JobAction, JobActionTarget};
use crate::explain::refusals;
use crate::ssh::RunCommandError;
use crate::store::{self, StoreError};

/// The most jobs that one action covers; an array counts as one.
pub const MAX_TARGETS: usize = 100;

#[derive(Debug)]
pub struct JobActionReport {
    /// Each target, and Slurm's refusal in plain words if there was one.
    pub results: Vec<(JobActionTarget, Result<(), refusals::ActionRefusal>)>,
}

/// Why the outcome is unknown.
#[derive(Debug, thiserror::Error)]
pub enum JobActionError {
    /// The connection failed: nothing was sent, or it is unclear whether it arrived.
    #[error(transparent)]
    Run(#[from] RunCommandError),
    /// The database failed; nothing was sent.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueueMonitor {
    /// Acts on jobs over the person's own connection. The action is recorded first, so the record survives whatever
    /// happens next.
    pub async fn act(
        &self,
        key: ClusterAccountId,
        actor: &Actor,
        action: JobAction,
        targets: Vec<JobActionTarget>,
        cluster: &str,
    ) -> Result<JobActionReport, JobActionError> {
        let connection = self.0.connections.connection(key.connection_key())?;
        let ids: Vec<String> = targets.iter().map(JobActionTarget::slurm_id).collect();
        let mut tx = self.0.core.store.write().await?;
        let detail = ids.join(", ");
        let about = ActivityDetails { person: Some(key.person), subject: cluster, detail: &detail };
        record(&mut tx, actor, activity_event(action), about, self.0.core.clock.now()).await?;
        store::commit(tx).await?;
        let results = run_job_action(&connection, action, &targets).await;
        // Whatever the outcome, the next queue read shows it.
        self.refresh_after_action(key);
        let results = results?.into_iter().map(|result| result.map_err(|message| refusals::explain_refusal(&message)));
        Ok(JobActionReport { results: targets.into_iter().zip(results).collect() })
    }
}

const fn activity_event(action: JobAction) -> ActivityEventKind {
    match action {
        JobAction::Cancel => ActivityEventKind::JobsCancelled,
        JobAction::Hold => ActivityEventKind::JobsHeld,
        JobAction::Release => ActivityEventKind::JobsReleased,
        JobAction::Requeue => ActivityEventKind::JobsRequeued,
        JobAction::Top => ActivityEventKind::JobsMovedUp,
    }
}
