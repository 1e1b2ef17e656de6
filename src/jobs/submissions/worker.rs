//! The worker of one cluster account: finds what is due, does it one by one, and waits in between.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use super::unconfirmed::UnconfirmedSubmission;
use super::{Submission, SubmissionState, SubmissionWorker};
use crate::cluster::ClusterAccountId;
use crate::core::lock;
use crate::domain::{ConnectionRole, SubmissionId};
use crate::store::{StoreError, submissions};

/// What a worker remembers between rounds.
#[derive(Default)]
pub(super) struct SubmissionWorkerState {
    /// Submissions that may have arrived.
    pub(super) unconfirmed: HashMap<SubmissionId, UnconfirmedSubmission>,
    /// When something was last sent.
    pub(super) last_sent_at: Option<Instant>,
    /// A submission that a search has just shown to be absent, so it can be sent without another search.
    pub(super) known_absent: Option<SubmissionId>,
}

impl SubmissionWorker {
    /// Resumes what the previous run left open, and hurries when a connection comes back.
    pub async fn run(self) {
        let stop = self.0.core.stop.clone();
        let mut connections = self.0.connections.subscribe();
        match self.list_open_accounts().await {
            Ok(keys) => keys.into_iter().for_each(|key| self.wake(key)),
            Err(error) => {
                tracing::error!(%error, "Could not read submissions from before the restart");
            }
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = connections.recv() => match changed {
                    Ok(connection) if connection.role == ConnectionRole::Login => {
                        let key = ClusterAccountId { person: connection.person, cluster: connection.cluster };
                        if let Some(worker) = lock(&self.0.workers).get(&key) {
                            worker.notify_one();
                        }
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    async fn list_open_accounts(&self) -> Result<Vec<ClusterAccountId>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let open = submissions::list_open_accounts(&mut db).await?;
        Ok(open.into_iter().map(|(person, cluster)| ClusterAccountId { person, cluster }).collect())
    }

    /// There is work: starts the worker, or notifies it.
    pub(super) fn wake(&self, key: ClusterAccountId) {
        let mut workers = lock(&self.0.workers);
        if let Some(worker) = workers.get(&key) {
            worker.notify_one();
            return;
        }
        let notify = Arc::new(Notify::new());
        workers.insert(key, notify.clone());
        drop(workers);
        let this = self.clone();
        self.0.core.tasks.spawn(async move { this.run_account(key, notify).await });
    }

    async fn run_account(self, key: ClusterAccountId, notify: Arc<Notify>) {
        let stop = self.0.core.stop.clone();
        let mut state = SubmissionWorkerState::default();
        loop {
            // A submission in progress when the portal stops is unconfirmed, and the next run searches for it.
            let round = tokio::select! {
                () = stop.cancelled() => return,
                round = self.run_round(key, &mut state) => round,
            };
            let pause = match round {
                Ok(Some(pause)) => pause,
                Ok(None) => {
                    // A request that arrived meanwhile has already notified this worker; nobody can notify while the
                    // list is locked.
                    let mut workers = lock(&self.0.workers);
                    let was_notified = std::pin::pin!(notify.notified()).enable();
                    if was_notified {
                        continue;
                    }
                    workers.remove(&key);
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "Could not process submissions; will retry");
                    self.0.core.config.submit_pace.retry_pause
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(pause) => {}
                () = notify.notified() => state.check_all_now(),
            }
        }
    }

    /// Does what is due. Returns how long to wait, or nothing if everything is settled.
    async fn run_round(
        &self,
        key: ClusterAccountId,
        state: &mut SubmissionWorkerState,
    ) -> Result<Option<Duration>, StoreError> {
        let open = self.list_open(key).await?;
        state
            .unconfirmed
            .retain(|id, _| open.iter().any(|submission| submission.id == *id && is_unconfirmed(submission)));
        if open.is_empty() {
            return Ok(None);
        }
        let mut pause: Option<Duration> = None;
        for submission in open.iter().filter(|submission| submission.state == SubmissionState::Ready) {
            if let Some(wait) = self.send(key, submission, state).await? {
                // Whatever blocks this submission blocks the later ones, too.
                pause = Some(wait);
                break;
            }
        }
        // Includes those that were just sent.
        let unconfirmed: Vec<Submission> = self.list_open(key).await?.into_iter().filter(is_unconfirmed).collect();
        if !unconfirmed.is_empty() {
            let wait = self.find_unconfirmed(key, &unconfirmed, state).await?;
            pause = Some(pause.map_or(wait, |pause| pause.min(wait)));
        }
        Ok(Some(pause.unwrap_or_default()))
    }

    async fn list_open(&self, key: ClusterAccountId) -> Result<Vec<Submission>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        submissions::list_open(&mut db, key.person, key.cluster).await
    }
}

impl SubmissionWorkerState {
    /// Something changed: checks everything that waits right away. Counters stay as they are.
    fn check_all_now(&mut self) {
        let now = Instant::now();
        for unconfirmed in self.unconfirmed.values_mut() {
            unconfirmed.due_at = unconfirmed.due_at.min(now);
        }
    }
}

/// A submission that was sent without an answer is unconfirmed: the worker does one thing at a time, so nothing is
/// waiting for that answer.
fn is_unconfirmed(submission: &Submission) -> bool {
    matches!(submission.state, SubmissionState::Sent | SubmissionState::Checking)
}
