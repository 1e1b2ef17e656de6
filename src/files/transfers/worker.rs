//! Runs transfers: a few of each person at once, the rest in their order, each only while its owner is connected. What is
//! interrupted goes on from where it was.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::broadcast::error::RecvError;
use tokio::task::JoinSet;

use super::progress::TransferProgress;
use super::{
    ActiveTransfer, TransferError, TransferWorker, compress, copy, delete, extract, fetch, login_key, partial_file,
    words,
};
use crate::cluster::ConnectionPool;
use crate::core::{Core, lock};
use crate::domain::{PersonId, TransferId};
use crate::jobs::notification_digest::TRANSFER_FAILED;
use crate::ssh::ClusterConnection;
use crate::store::transfers::{OpenTransfer, Transfer, TransferKind, TransferState};
use crate::store::{self, StoreError};

/// How many transfers of one person run at once; they share the sessions of a connection.
pub(super) const MAX_RUNNING: usize = 2;
/// How often progress is saved, and shown on open pages.
const SAVE_EVERY: Duration = Duration::from_secs(2);
/// How often to look for work, besides when something happens.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// A transfer that is done this soon, in seconds, needs no notification: the page it was started from says so.
const BRIEF_SECS: i64 = 30;
/// The first pause after an interruption; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const MAX_PAUSE: Duration = Duration::from_mins(1);
/// After so many interruptions in a row without any progress, it fails.
const MAX_INTERRUPTIONS: u32 = 30;

/// When an interrupted transfer goes on.
pub(super) struct TransferRetry {
    at: Instant,
    interruptions: u32,
    /// What was done by the last interruption.
    units: u64,
}

/// What the work on a transfer has at hand.
#[derive(Clone)]
pub(super) struct TransferRun {
    pub(super) core: Core,
    pub(super) connections: ConnectionPool,
    pub(super) transfer: Arc<Transfer>,
    /// To the cluster where the items are.
    pub(super) connection: Arc<ClusterConnection>,
    /// To the cluster where copies go; often the same.
    pub(super) target: Arc<ClusterConnection>,
    pub(super) progress: Arc<TransferProgress>,
}

impl TransferRun {
    /// Saves how far it is.
    pub(super) async fn save(&self) -> Result<(), StoreError> {
        let (counts, checkpoint) = self.progress.to_saved();
        let mut tx = self.core.store.write().await?;
        store::transfers::save_progress(&mut tx, self.transfer.id, &counts, &checkpoint).await?;
        store::commit(tx).await
    }

    async fn perform(self) -> Result<String, TransferError> {
        match self.transfer.kind() {
            Some(TransferKind::Delete) => delete::run(&self).await,
            Some(TransferKind::Copy) => copy::run(&self).await,
            Some(TransferKind::Fetch) => fetch::run(&self).await,
            Some(TransferKind::Compress) => compress::run(&self).await,
            Some(TransferKind::Extract) => extract::run(&self).await,
            None => Err(TransferError::Failed(
                "This version of the portal doesn't support this type of transfer.".to_owned(),
            )),
        }
    }
}

/// How the work on a transfer came to its end.
enum RunEnd {
    /// Its owner or the portal stopped it.
    Stopped,
    Worked(Result<String, TransferError>),
}

impl TransferWorker {
    /// Takes up what the previous run left, and whatever comes.
    pub async fn run(self) {
        let stop = self.0.core.stop.clone();
        let mut connections = self.0.connections.subscribe();
        let mut ticks = tokio::time::interval(LOOK_EVERY);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        if let Err(error) = self.load_counts().await {
            tracing::warn!(%error, "Could not count open transfers");
        }
        loop {
            if let Err(error) = self.start_due().await {
                tracing::warn!(%error, "Could not look for transfers; will retry");
            }
            if let Err(error) = self.clean_up_due().await {
                tracing::warn!(%error, "Could not look for what transfers left; will retry");
            }
            let next_retry = lock(&self.0.retries).values().map(|retry| retry.at).min();
            let next_retry =
                next_retry.unwrap_or_else(|| Instant::now() + LOOK_EVERY).max(Instant::now() + FIRST_PAUSE);
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
                () = self.0.wake.notified() => {}
                () = tokio::time::sleep_until(next_retry.into()) => {}
                changed = connections.recv() => if let Err(RecvError::Closed) = changed { return },
            }
        }
    }

    async fn load_counts(&self) -> Result<(), StoreError> {
        let mut db = self.0.core.store.read().await?;
        let counts = store::transfers::count_open(&mut db).await?;
        let counts = counts.into_iter().map(|(person, count)| (person, u64::try_from(count).unwrap_or(0)));
        lock(&self.0.open_counts).extend(counts);
        Ok(())
    }

    /// Starts what can run now.
    async fn start_due(&self) -> Result<(), StoreError> {
        let mut db = self.0.core.store.read().await?;
        let due = store::transfers::list_due(&mut db).await?;
        drop(db);
        lock(&self.0.retries).retain(|id, _| due.iter().any(|open| open.id == *id));
        for open in due {
            if self.can_start(&open) {
                self.start_one(open.id).await?;
            }
        }
        Ok(())
    }

    fn can_start(&self, open: &OpenTransfer) -> bool {
        let active = lock(&self.0.active);
        let running = active.values().filter(|active| active.person == open.person_id).count();
        if running >= MAX_RUNNING || active.contains_key(&open.id) {
            return false;
        }
        drop(active);
        let is_due = lock(&self.0.retries).get(&open.id).is_none_or(|retry| retry.at <= Instant::now());
        let clusters = [Some(open.cluster_id), open.target_cluster_id];
        is_due && clusters.into_iter().flatten().all(|cluster| self.is_connected(open.person_id, cluster))
    }

    async fn start_one(&self, id: TransferId) -> Result<(), StoreError> {
        let core = &self.0.core;
        let mut db = core.store.read().await?;
        let Some(transfer) = store::transfers::get(&mut db, id).await? else { return Ok(()) };
        drop(db);
        let person = transfer.person_id;
        let connection = |cluster| self.0.connections.connection(login_key(person, cluster));
        let connections = (connection(transfer.cluster_id), connection(transfer.target_cluster()));
        // One that was lost just now comes back, and then it runs.
        let (Ok(connection), Ok(target)) = connections else { return Ok(()) };
        let progress = Arc::new(TransferProgress::from_row(&transfer));
        let stop = core.stop.child_token();
        let active = ActiveTransfer { person, stop: stop.clone(), progress: progress.clone() };
        // Before it is marked as running: whoever pauses it from then on finds it here.
        lock(&self.0.active).insert(id, active);
        let is_marked = self.mark_running(id).await;
        if !matches!(is_marked, Ok(true)) {
            lock(&self.0.active).remove(&id);
            return is_marked.map(|_| ());
        }
        let (core, connections) = (core.clone(), self.0.connections.clone());
        let tasks = core.tasks.clone();
        let run = TransferRun { core, connections, transfer: Arc::new(transfer), connection, target, progress };
        let this = self.clone();
        tasks.spawn(async move {
            let end = this.work(&run, &stop).await;
            if let Err(error) = this.settle(&run, end).await {
                tracing::warn!(%error, transfer.id = run.transfer.id.0, "Could not save how a transfer ended");
            }
            lock(&this.0.active).remove(&id);
            this.changed(person).await;
        });
        self.notify(person);
        Ok(())
    }

    async fn mark_running(&self, id: TransferId) -> Result<bool, StoreError> {
        let mut tx = self.0.core.store.write().await?;
        let is_marked = store::transfers::mark_running(&mut tx, id, self.0.core.clock.now()).await?;
        store::commit(tx).await?;
        Ok(is_marked)
    }

    /// Works until it is done or stopped, and saves progress meanwhile.
    async fn work(&self, run: &TransferRun, stop: &tokio_util::sync::CancellationToken) -> RunEnd {
        // A task of its own: it may be waiting for the database while its progress is saved.
        let mut work = JoinSet::new();
        work.spawn(run.clone().perform());
        let mut saves = tokio::time::interval(SAVE_EVERY);
        loop {
            tokio::select! {
                biased;
                () = stop.cancelled() => {
                    work.shutdown().await;
                    return RunEnd::Stopped;
                }
                ended = work.join_next() => {
                    let broken = || Err(TransferError::Failed("The portal had an internal error. Try again.".to_owned()));
                    return RunEnd::Worked(ended.and_then(Result::ok).unwrap_or_else(broken));
                }
                _ = saves.tick() => {
                    if let Err(error) = run.save().await {
                        tracing::warn!(%error, "Could not save the progress of a transfer; will retry");
                    }
                    self.notify(run.transfer.person_id);
                }
            }
        }
    }

    async fn settle(&self, run: &TransferRun, end: RunEnd) -> Result<(), StoreError> {
        let id = run.transfer.id;
        run.save().await?;
        let result = match end {
            RunEnd::Stopped if self.0.core.stop.is_cancelled() => return Ok(()),
            RunEnd::Stopped => {
                self.remove_temporaries(run).await;
                return Ok(());
            }
            RunEnd::Worked(result) => result,
        };
        if let Err(TransferError::Failed(_)) = &result {
            self.remove_temporaries(run).await;
        }
        match result {
            Ok(message) => self.finish(run, TransferState::Done, &message).await,
            Err(TransferError::Failed(message)) => self.finish(run, TransferState::Failed, &message).await,
            Err(TransferError::NeedsOwner(message)) => self.pause_for_owner(run, &message).await,
            Err(TransferError::Interrupted(sentence)) => {
                if self.is_given_up(id, run.progress.units()) {
                    let left = match run.transfer.kind() {
                        Some(TransferKind::Delete) => {
                            " The items that are left have hidden names until you try again or remove this transfer from the list."
                        }
                        _ => "",
                    };
                    return self.finish(run, TransferState::Failed, &format!("{sentence}{left}")).await;
                }
                self.put_back(id).await
            }
            Err(TransferError::Store(error)) => {
                tracing::warn!(%error, transfer.id = id.0, "A transfer was interrupted; will retry");
                self.is_given_up(id, run.progress.units());
                self.put_back(id).await
            }
        }
    }

    /// Removes the small files that a transfer was writing; it doesn't go on with them.
    async fn remove_temporaries(&self, run: &TransferRun) {
        let temporaries = run.progress.take_temporaries();
        if let Err(error) = partial_file::remove_files(&run.target, temporaries).await {
            tracing::debug!(?error, transfer.id = run.transfer.id.0, "Could not remove temporary files");
        }
    }

    /// Pauses a transfer that its owner has to look at, and notifies them.
    async fn pause_for_owner(&self, run: &TransferRun, message: &str) -> Result<(), StoreError> {
        let (core, person) = (&self.0.core, run.transfer.person_id);
        let mut tx = core.store.write().await?;
        if !store::transfers::pause(&mut tx, person, run.transfer.id).await? {
            return Ok(());
        }
        store::transfers::set_message(&mut tx, run.transfer.id, message).await?;
        let text = words::notification_text(&run.transfer, TransferState::Failed, message);
        store::notifications::add_transfer(&mut tx, person, TRANSFER_FAILED, &text, core.clock.now()).await?;
        store::commit(tx).await?;
        self.notify_owner(person);
        Ok(())
    }

    async fn put_back(&self, id: TransferId) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        store::transfers::mark_waiting(&mut tx, id).await?;
        store::commit(tx).await
    }

    /// Plans the next try of an interrupted transfer. Returns whether there were too many without progress.
    fn is_given_up(&self, id: TransferId, units: u64) -> bool {
        let mut retries = lock(&self.0.retries);
        let before = retries.get(&id).filter(|retry| retry.units == units).map_or(0, |retry| retry.interruptions);
        let retry = TransferRetry { at: Instant::now() + retry_pause(before), interruptions: before + 1, units };
        retries.insert(id, retry);
        before >= MAX_INTERRUPTIONS
    }

    /// Ends a transfer and notifies its owner, unless all went well and they still have its page before them.
    async fn finish(&self, run: &TransferRun, state: TransferState, message: &str) -> Result<(), StoreError> {
        let (core, person) = (&self.0.core, run.transfer.person_id);
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        if !store::transfers::finish(&mut tx, run.transfer.id, state, message, now).await? {
            return Ok(());
        }
        let is_brief = now.since(run.transfer.created_at) < BRIEF_SECS;
        if is_brief && state == TransferState::Done && message.is_empty() {
            return store::commit(tx).await;
        }
        let word = if state == TransferState::Failed { TRANSFER_FAILED } else { "done" };
        let text = words::notification_text(&run.transfer, state, message);
        store::notifications::add_transfer(&mut tx, person, word, &text, now).await?;
        store::commit(tx).await?;
        self.notify_owner(person);
        Ok(())
    }

    pub(super) fn notify_owner(&self, person: PersonId) {
        self.0.notifications.notify(person);
    }
}

/// The pause after an interruption, given how many came before it.
fn retry_pause(before: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(2_u32.saturating_pow(before.min(10))).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_to_a_minute() {
        let pauses: Vec<u64> = (0..9).map(|before| retry_pause(before).as_secs()).collect();
        assert_eq!(pauses, [1, 2, 4, 8, 16, 32, 60, 60, 60]);
        assert_eq!(retry_pause(u32::MAX), MAX_PAUSE);
    }
}
