//! What people do to their jobs: written down, carried out once, and answered in words.

use super::queue_monitor::QueueMonitor;
use crate::auth::activity::{ActivityDetails, ActivityEvent, Actor, record};
use crate::cluster::ClusterAccountId;
use crate::cluster::job_actions::run_job_action;
pub use crate::cluster::job_actions::{JobAction, JobActionTarget};
use crate::explain::refusals;
use crate::ssh::RunCommandError;
use crate::store::{self, StoreError};

/// More jobs than this are not acted on at once; an array counts as one.
pub const MAX_TARGETS: usize = 100;

/// What came of it.
#[derive(Debug)]
pub struct JobActionReport {
    /// What it was done to, and what Slurm said against it, in words.
    pub results: Vec<(JobActionTarget, Result<(), refusals::ActionRefusal>)>,
}

/// Why nothing can be said of what came of it.
#[derive(Debug, thiserror::Error)]
pub enum JobActionError {
    /// The connection: nothing was sent, or it is not known whether it arrived.
    #[error(transparent)]
    Run(#[from] RunCommandError),
    /// The database; nothing was sent.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueueMonitor {
    /// Acts on jobs, over the person's own connection. The record comes first: whatever happens afterwards, it says
    /// that it was wanted.
    pub async fn act(
        &self,
        key: ClusterAccountId,
        actor: &Actor,
        verb: JobAction,
        targets: Vec<JobActionTarget>,
        cluster: &str,
    ) -> Result<JobActionReport, JobActionError> {
        let line = self.0.connections.connection(key.connection_key())?;
        let words: Vec<String> = targets.iter().map(JobActionTarget::slurm_id).collect();
        let mut tx = self.0.core.store.write().await?;
        let detail = words.join(", ");
        let about = ActivityDetails { person: Some(key.person), subject: cluster, detail: &detail };
        record(&mut tx, actor, activity_event(verb), about, self.0.core.clock.now()).await?;
        store::commit(tx).await?;
        let results = run_job_action(&line, verb, &targets).await;
        // Whatever came of it, the queue tells.
        self.refresh_after_action(key);
        let results = results?
            .into_iter()
            .map(|result| result.map_err(|said| refusals::explain_refusal(&said)));
        Ok(JobActionReport { results: targets.into_iter().zip(results).collect() })
    }
}

const fn activity_event(verb: JobAction) -> ActivityEvent {
    match verb {
        JobAction::Cancel => ActivityEvent::JobsCancelled,
        JobAction::Hold => ActivityEvent::JobsHeld,
        JobAction::Release => ActivityEvent::JobsReleased,
        JobAction::Requeue => ActivityEvent::JobsRequeued,
        JobAction::Top => ActivityEvent::JobsMovedUp,
    }
}
