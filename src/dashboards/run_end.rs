//! How a run ends: on request, because nobody views it, or because its job is over.

use std::time::{Duration, Instant};

use super::reconciler::DashboardRetryTimers;
use super::service::{Dashboards, lock, queue_key};
use crate::auth::activity::Actor;
use crate::cluster::job_actions::{JobAction, JobActionTarget};
use crate::jobs::JobRecord;
use crate::slurm::job::{JobId, JobState};
use crate::store::dashboards::Dashboard;
use crate::store::dashboards::runs::{self, DashboardRun};
use crate::store::{self, StoreError};

/// Cancelling is repeated after this long if it had no effect.
const CANCEL_RETRY: Duration = Duration::from_secs(20);

impl Dashboards {
    pub(super) async fn stop_run(
        &self,
        dashboard: &Dashboard,
        run: &DashboardRun,
        why: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        runs::request_stop(&mut tx, run.id, why).await?;
        store::commit(tx).await?;
        self.notify_changed(dashboard.id);
        Ok(())
    }

    /// Asks Slurm to cancel the job of a run that should stop; again if that had no effect.
    pub(super) async fn cancel_job(&self, dashboard: &Dashboard, run: &DashboardRun, number: u64) {
        let now = Instant::now();
        {
            let mut retries = lock(&self.0.retries);
            let entry = retries.entry(run.id).or_insert(DashboardRetryTimers { next_reach: None, last_cancel: None });
            if entry.last_cancel.is_some_and(|at| now.saturating_duration_since(at) < CANCEL_RETRY) {
                return;
            }
            entry.last_cancel = Some(now);
        }
        self.set_unreachable(dashboard, run).await;
        let actor = Actor::portal();
        let target = vec![JobActionTarget { id: JobId::without_task(number), tasks: None }];
        let queues = &self.0.queues;
        let result = queues.act(queue_key(dashboard), &actor, JobAction::Cancel, target, &dashboard.cluster).await;
        if let Err(error) = result {
            tracing::info!(%error, run = run.id.0, "Could not cancel a dashboard's job yet");
        }
    }

    /// Ends a run whose job is over, with the reason.
    pub(super) async fn end_by_job_state(
        &self,
        dashboard: &Dashboard,
        run: &DashboardRun,
        record: &JobRecord,
    ) -> Result<(), StoreError> {
        let job = record.job.state;
        let was_ready = run.ready_at.is_some();
        let end = match (run.stop.as_str(), job) {
            ("idle", _) => "idle",
            ("replaced", _) => "replaced",
            ("person" | "removed", _) => "stopped",
            (_, JobState::Timeout) => "time",
            (_, JobState::Cancelled) => "cancelled",
            (_, JobState::NodeFail | JobState::BootFail) => "node",
            (_, JobState::OutOfMemory) => "memory",
            (_, JobState::Completed) if was_ready => "time",
            _ => "failed",
        };
        self.end_run(dashboard, run, end, &run.message).await
    }

    /// Records that a run has ended, or never started.
    pub(super) async fn end_run(
        &self,
        dashboard: &Dashboard,
        run: &DashboardRun,
        end: &str,
        message: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        runs::mark_over(&mut tx, run.id, end, message, self.0.core.clock.now()).await?;
        store::commit(tx).await?;
        self.set_unreachable(dashboard, run).await;
        lock(&self.0.last_used).remove(&run.id);
        self.notify_changed(dashboard.id);
        Ok(())
    }
}
