//! The worker of one person and cluster: finds what is to be done, does it one after the other, rests in between.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use super::doubt::Doubt;
use super::{Submission, SubmissionState, Submissions};
use crate::domain::{ConnectionRole, SubmissionId};
use crate::jobs::QueueKey;
use crate::store::{StoreError, submissions};

/// What a worker remembers between its rounds.
#[derive(Default)]
pub(super) struct Memory {
    /// What may have arrived.
    pub(super) doubts: HashMap<SubmissionId, Doubt>,
    /// When something was last sent.
    pub(super) sent: Option<Instant>,
    /// What was found missing by a look just now and may be sent without another one.
    pub(super) cleared: Option<SubmissionId>,
}

impl Submissions {
    /// Goes on with what the run before has left, and hurries when a connection comes back.
    pub async fn keep(self) {
        let stop = self.0.parts.stop.clone();
        let mut lines = self.0.parts.lines.subscribe();
        match self.all_open().await {
            Ok(keys) => keys.into_iter().for_each(|key| self.wake(key)),
            Err(error) => {
                tracing::error!(%error, "Submissions of the run before could not be read");
            }
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                changed = lines.recv() => match changed {
                    Ok(line) if line.role == ConnectionRole::Login => {
                        let key = QueueKey { person: line.person, cluster: line.cluster };
                        if let Some(worker) = self.workers().get(&key) {
                            worker.notify_one();
                        }
                    }
                    Ok(_) | Err(RecvError::Lagged(_)) => {}
                    Err(RecvError::Closed) => return,
                },
            }
        }
    }

    async fn all_open(&self) -> Result<Vec<QueueKey>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let open = submissions::list_open_accounts(&mut db).await?;
        Ok(open.into_iter().map(|(person, cluster)| QueueKey { person, cluster }).collect())
    }

    /// There is something to do: starts the worker, or tells it.
    pub(super) fn wake(&self, key: QueueKey) {
        let mut workers = self.workers();
        if let Some(worker) = workers.get(&key) {
            worker.notify_one();
            return;
        }
        let bell = Arc::new(Notify::new());
        workers.insert(key, bell.clone());
        drop(workers);
        let this = self.clone();
        self.0.parts.tasks.spawn(async move { this.work(key, bell).await });
    }

    async fn work(self, key: QueueKey, bell: Arc<Notify>) {
        let stop = self.0.parts.stop.clone();
        let mut memory = Memory::default();
        loop {
            // What is under way when the portal stops is in doubt, and looked for by the next run.
            let round = tokio::select! {
                () = stop.cancelled() => return,
                round = self.round(key, &mut memory) => round,
            };
            let rest = match round {
                Ok(Some(rest)) => rest,
                Ok(None) => {
                    // An order that came in the meantime has rung the bell; nobody can ring while the list is locked.
                    let mut workers = self.workers();
                    let rung = std::pin::pin!(bell.notified()).enable();
                    if rung {
                        continue;
                    }
                    workers.remove(&key);
                    return;
                }
                Err(error) => {
                    tracing::warn!(%error, "Submissions cannot be carried out; tried again soon");
                    self.0.parts.pace.retry_pause
                }
            };
            tokio::select! {
                () = stop.cancelled() => return,
                () = tokio::time::sleep(rest) => {}
                () = bell.notified() => memory.hurry(),
            }
        }
    }

    /// Does what is due. Gives how long to rest; nothing if all is settled.
    async fn round(
        &self,
        key: QueueKey,
        memory: &mut Memory,
    ) -> Result<Option<Duration>, StoreError> {
        let open = self.open(key).await?;
        memory.doubts.retain(|id, _| open.iter().any(|one| one.id == *id && is_in_doubt(one)));
        if open.is_empty() {
            return Ok(None);
        }
        let mut rest: Option<Duration> = None;
        for one in open.iter().filter(|one| one.state == SubmissionState::Ready) {
            if let Some(wait) = self.send(key, one, memory).await? {
                // What keeps this one from being sent keeps the others as well, and they come after it.
                rest = Some(wait);
                break;
            }
        }
        // Those that were just sent among them.
        let in_doubt: Vec<Submission> =
            self.open(key).await?.into_iter().filter(is_in_doubt).collect();
        if !in_doubt.is_empty() {
            let wait = self.look_for(key, &in_doubt, memory).await?;
            rest = Some(rest.map_or(wait, |rest| rest.min(wait)));
        }
        Ok(Some(rest.unwrap_or_default()))
    }

    async fn open(&self, key: QueueKey) -> Result<Vec<Submission>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        submissions::list_open(&mut db, key.person, key.cluster).await
    }
}

impl Memory {
    /// Something has changed: whatever waits for its time is looked at again. What counts stays as it is.
    fn hurry(&mut self) {
        let now = Instant::now();
        for doubt in self.doubts.values_mut() {
            doubt.due = doubt.due.min(now);
        }
    }
}

/// One that was sent and of which nothing was heard is in doubt: the worker does one thing at a time, so nobody is
/// waiting for its answer.
fn is_in_doubt(one: &Submission) -> bool {
    matches!(one.state, SubmissionState::Sent | SubmissionState::Checking)
}
