//! Removes what transfers that are over left on a cluster under hidden names, as soon as their owner is connected; gives
//! what a deletion left its name back.

use std::sync::Arc;

use super::worker::MAX_RUNNING;
use super::{TransferError, TransferWorker, delete, login_key, partial_file};
use crate::core::lock;
use crate::domain::TransferId;
use crate::ssh::ClusterConnection;
use crate::store::transfers::{OpenTransfer, Transfer, TransferKind, TransferState};
use crate::store::{self, StoreError};

impl TransferWorker {
    /// Begins to clean up wherever that is possible now.
    pub(super) async fn clean_up_due(&self) -> Result<(), StoreError> {
        let mut db = self.0.core.store.read().await?;
        let due = store::transfers::list_to_clean_up(&mut db).await?;
        drop(db);
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
            // It isn't possible, and won't be the next time.
            Err(TransferError::Failed(_) | TransferError::NeedsOwner(_)) => String::new(),
        };
        let mut tx = self.0.core.store.write().await?;
        store::transfers::finish_clean_up(&mut tx, id, &message).await?;
        store::commit(tx).await?;
        Ok(Some(()))
    }
}

/// Returns what to know about it, for one that was cancelled.
async fn clean_up(row: &Transfer, connection: &Arc<ClusterConnection>) -> Result<String, TransferError> {
    if row.kind() != Some(TransferKind::Delete) {
        partial_file::remove_left(connection, &row.checkpoint).await?;
        return Ok(String::new());
    }
    let message = delete::restore(connection, row).await?;
    Ok(if row.state == TransferState::Cancelled { message } else { String::new() })
}
