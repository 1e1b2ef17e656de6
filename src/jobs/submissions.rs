//! Submits jobs exactly once. Each request is stored first, with a unique token that travels with the job. A
//! background worker for each cluster account sends it. Whenever it is unclear whether a submission arrived, the
//! worker searches for the token before it does anything else.

mod send;
mod submit_request;
mod submitted_job;
mod unconfirmed;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{Notify, broadcast};

pub use submit_request::SubmitRequestError;

use super::queue_monitor::QueueMonitor;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission};
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::Core;
use crate::domain::{PersonId, SubmissionId};
use crate::entropy;
use crate::slurm::submit::SubmitTokenField;
use crate::store::submissions;
pub use crate::store::submissions::{Submission, SubmissionState, SubmitRequest};
use crate::store::{self, StoreError};

/// The most open submissions for one person.
const MAX_OPEN: i64 = 200;

/// Why a request was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum SubmitError {
    #[error(transparent)]
    Invalid(#[from] SubmitRequestError),
    /// The person has no connection to this cluster, or the cluster is disabled.
    #[error("You haven't connected to this cluster yet. Connect to it first, then submit again.")]
    NotConnected,
    #[error("Too many of your submissions are waiting to be sent. Wait until some of them have gone through.")]
    TooMany,
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The database failed; nothing was saved.
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Clone)]
pub struct SubmissionWorker(Arc<SubmissionWorkerInner>);

struct SubmissionWorkerInner {
    core: Core,
    connections: ConnectionPool,
    /// Refreshed after each new job.
    queues: QueueMonitor,
    /// One for each cluster account with open submissions; notified when there is more to do or a reason to hurry.
    workers: Mutex<HashMap<ClusterAccountId, Arc<Notify>>>,
    changes: broadcast::Sender<SubmissionChangedEvent>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SubmissionChangedEvent {
    pub person: PersonId,
    pub id: SubmissionId,
}

impl SubmissionWorker {
    /// Nothing is sent before [`SubmissionWorker::run`] or the next request.
    pub fn new(core: Core, connections: ConnectionPool, queues: QueueMonitor) -> Self {
        Self(Arc::new(SubmissionWorkerInner {
            core,
            connections,
            queues,
            workers: Mutex::default(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Receives every change.
    pub fn subscribe(&self) -> broadcast::Receiver<SubmissionChangedEvent> {
        self.0.changes.subscribe()
    }

    /// Accepts a request: from now on it becomes exactly one job, or a clear refusal. Sending the same form again
    /// returns the same submission, whatever the form contains.
    pub async fn submit(&self, actor: &Actor, request: SubmitRequest) -> Result<SubmissionId, SubmitError> {
        request.validate()?;
        if actor.id.is_some_and(|id| id != request.person) {
            return Err(AuthError::Denied.into());
        }
        let core = &self.0.core;
        let key = request.account_id();
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        if let Some(existing) = submissions::find_by_form(&mut tx, request.person, &request.form_token).await? {
            return Ok(existing);
        }
        core.auth.authorise(&mut tx, actor, Permission::UseClusters).await?;
        if submissions::count_open(&mut tx, request.person).await? >= MAX_OPEN {
            return Err(SubmitError::TooMany);
        }
        let account = self.0.connections.accounts().get_with(&mut tx, key).await?;
        let account =
            account.filter(|account| account.cluster().retired_at().is_none()).ok_or(SubmitError::NotConnected)?;
        let is_kept = account.discovered.keeps_comments && !account.site().jobs.comment_lost;
        let carrier = if is_kept { SubmitTokenField::Comment } else { SubmitTokenField::JobName };
        let token = new_token()?;
        let id = submissions::add(&mut tx, &request, &token, carrier.as_str(), now).await?;
        let about = ActivityDetails {
            person: Some(request.person),
            subject: &account.cluster().title,
            detail: &request.job_name,
        };
        record(&mut tx, actor, ActivityEventKind::JobSubmitted, about, now).await?;
        store::commit(tx).await?;
        self.notify(request.person, id);
        self.wake(key);
        Ok(id)
    }

    /// Loads one of the person's own submissions.
    pub async fn get(&self, person: PersonId, id: SubmissionId) -> Result<Option<Submission>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        Ok(submissions::get(&mut db, id).await?.filter(|submission| submission.person_id == person))
    }

    /// Waits until the outcome is known or the time is up, and returns the submission as it is then.
    pub async fn wait(&self, id: SubmissionId, at_most: Duration) -> Result<Option<Submission>, StoreError> {
        let until = tokio::time::Instant::now() + at_most;
        let mut changes = self.subscribe();
        loop {
            let mut db = self.0.core.store.read().await?;
            let submission = submissions::get(&mut db, id).await?;
            drop(db);
            if submission.as_ref().is_none_or(|submission| submission.state.is_settled()) {
                return Ok(submission);
            }
            let update = async { while changes.recv().await.is_ok_and(|change| change.id != id) {} };
            if tokio::time::timeout_at(until, update).await.is_err() {
                return Ok(submission);
            }
        }
    }

    /// Retries a submission that could not be sent. Returns false if it is not in that state.
    pub async fn retry(&self, person: PersonId, id: SubmissionId) -> Result<bool, StoreError> {
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        let Some(submission) = submissions::get(&mut tx, id).await? else { return Ok(false) };
        let done = submissions::retry(&mut tx, id, person, now).await?;
        store::commit(tx).await?;
        if done {
            self.notify(person, id);
            self.wake(ClusterAccountId { person, cluster: submission.cluster_id });
        }
        Ok(done)
    }

    /// Cancels a submission that was not sent. Returns false if it may already be a job, or is settled.
    pub async fn give_up(&self, person: PersonId, id: SubmissionId) -> Result<bool, StoreError> {
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        let done = submissions::give_up(&mut tx, id, person, now).await?;
        store::commit(tx).await?;
        if done {
            self.notify(person, id);
        }
        Ok(done)
    }

    fn notify(&self, person: PersonId, id: SubmissionId) {
        // There may be no subscribers.
        let _ = self.0.changes.send(SubmissionChangedEvent { person, id });
    }
}

/// A unique token for one submission: 80 random bits.
fn new_token() -> Result<String, StoreError> {
    const LETTERS: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";
    let bytes = entropy::random_bytes::<16>().map_err(|_| StoreError::Busy)?;
    Ok(bytes.iter().map(|byte| char::from(LETTERS[usize::from(byte % 32)])).collect())
}
