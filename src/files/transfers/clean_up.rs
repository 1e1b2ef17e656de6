//! Removes what transfers that are over left on a cluster under hidden names, as soon as their owner is connected; gives
//! what a deletion left its name back.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::worker::MAX_RUNNING;
use super::{TransferError, TransferWorker, delete, login_key, partial_file, words};
use crate::cluster::ClusterAccountId;
use crate::core::lock;
use crate::domain::TransferId;
use crate::jobs::notification_digest::TRANSFER_FAILED;
use crate::ssh::ClusterConnection;
use crate::store::transfers::{OpenTransfer, Transfer, TransferKind, TransferState};
use crate::store::{self, StoreError};

/// When names that couldn't be given back are tried again.
const RETRY_AFTER: Duration = Duration::from_hours(1);
/// How often to look whether everything is cleaned up.
const LOOK_EVERY: Duration = Duration::from_millis(200);

impl TransferWorker {
    /// Begins to clean up wherever that is possible now.
    pub(super) async fn clean_up_due(&self) -> Result<(), StoreError> {
        let mut db = self.0.core.store.read().await?;
        let due = store::transfers::list_to_clean_up(&mut db).await?;
        drop(db);
        lock(&self.0.clean_up_retries).retain(|id, _| due.iter().any(|over| over.id == *id));
        for over in due {
            let key = login_key(over.person_id, over.target_cluster_id.unwrap_or(over.cluster_id));
            let Ok(connection) = self.0.connections.connection(key) else { continue };
            if self.can_clean_up(&over) {
                let this = self.clone();
                self.0.core.tasks.spawn(async move { this.clean_up_one(over.id, &connection).await });
            }
        }
        Ok(())
    }

    fn can_clean_up(&self, over: &OpenTransfer) -> bool {
        // Its work may still be stopping.
        if lock(&self.0.active).contains_key(&over.id) {
            return false;
        }
        if lock(&self.0.clean_up_retries).get(&over.id).is_some_and(|at| *at > Instant::now()) {
            return false;
        }
        let mut cleaning = lock(&self.0.cleaning);
        let running = cleaning.values().filter(|person| **person == over.person_id).count();
        if running >= MAX_RUNNING || cleaning.contains_key(&over.id) {
            return false;
        }
        cleaning.insert(over.id, over.person_id);
        true
    }

    async fn clean_up_one(&self, id: TransferId, connection: &Arc<ClusterConnection>) {
        let stop = self.0.core.stop.clone();
        let cleaned = tokio::select! {
            () = stop.cancelled() => Ok(None),
            cleaned = self.try_to_clean_up(id, connection) => cleaned,
        };
        let person = lock(&self.0.cleaning).remove(&id);
        match (cleaned, person) {
            (Ok(Some(())), Some(person)) => self.changed(person).await,
            // What was interrupted is tried again at the next look.
            (Ok(_), _) => {}
            (Err(error), _) => {
                tracing::warn!(%error, transfer.id = id.0, "Could not clean up after a transfer; will retry");
            }
        }
    }

    /// Returns `None` if the cluster couldn't be reached.
    async fn try_to_clean_up(
        &self,
        id: TransferId,
        connection: &Arc<ClusterConnection>,
    ) -> Result<Option<()>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let Some(row) = store::transfers::get(&mut db, id).await? else { return Ok(None) };
        drop(db);
        let message = match clean_up(&row, connection).await {
            Ok(message) => message,
            Err(TransferError::Interrupted(_)) => return Ok(None),
            Err(TransferError::Store(error)) => return Err(error),
            // What is left is the person's own: it isn't forgotten under a name that nobody sees.
            Err(TransferError::Failed(reason) | TransferError::NeedsOwner(reason))
                if row.kind() == Some(TransferKind::Delete) =>
            {
                return self.postpone(&row, &reason).await.map(Some);
            }
            // It isn't possible, and won't be the next time.
            Err(TransferError::Failed(_) | TransferError::NeedsOwner(_)) => String::new(),
        };
        let mut tx = self.0.core.store.write().await?;
        let is_unseen = row.is_dismissed && !message.is_empty();
        if is_unseen {
            self.add_notification(&mut tx, &row, &message).await?;
        }
        store::transfers::finish_clean_up(&mut tx, id, &message).await?;
        store::commit(tx).await?;
        if is_unseen {
            self.notify_owner(row.person_id);
        }
        Ok(Some(()))
    }

    /// Tries again later to give items their names back; tells the owner once.
    async fn postpone(&self, row: &Transfer, reason: &str) -> Result<(), StoreError> {
        lock(&self.0.clean_up_retries).insert(row.id, Instant::now() + RETRY_AFTER);
        let message = format!(
            "What wasn't deleted has a hidden name (it begins with .portolan-) until the portal can rename it back. It will keep trying. {reason}"
        );
        if row.message == message {
            return Ok(());
        }
        let mut tx = self.0.core.store.write().await?;
        store::transfers::set_message(&mut tx, row.id, &message).await?;
        self.add_notification(&mut tx, row, &message).await?;
        store::commit(tx).await?;
        self.notify_owner(row.person_id);
        Ok(())
    }

    async fn add_notification(
        &self,
        db: &mut store::DbConnection,
        row: &Transfer,
        message: &str,
    ) -> Result<(), StoreError> {
        let text = words::notification_text(row, TransferState::Failed, message);
        store::notifications::add_transfer(db, row.person_id, TRANSFER_FAILED, &text, self.0.core.clock.now()).await
    }

    /// Waits until nothing of an account's transfers is left to clean up, while that is possible.
    pub async fn wait_until_clean(&self, account: ClusterAccountId) -> Result<(), StoreError> {
        while self.is_connected(account.person, account.cluster) {
            let mut db = self.0.core.store.read().await?;
            let due = store::transfers::list_to_clean_up(&mut db).await?;
            drop(db);
            let is_left = |over: &OpenTransfer| {
                let cluster = over.target_cluster_id.unwrap_or(over.cluster_id);
                (over.person_id, cluster) == (account.person, account.cluster)
            };
            if !due.iter().any(is_left) {
                break;
            }
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }
}

/// Returns what its owner has to know about it.
async fn clean_up(row: &Transfer, connection: &Arc<ClusterConnection>) -> Result<String, TransferError> {
    if row.kind() != Some(TransferKind::Delete) {
        partial_file::remove_left(connection, &row.checkpoint).await?;
        return Ok(String::new());
    }
    let restored = delete::restore(connection, row).await?;
    // Nobody looks at the result of one that was removed from the list, unless something is wrong.
    Ok(if row.is_dismissed { restored.stuck_sentence() } else { restored.sentences() })
}
