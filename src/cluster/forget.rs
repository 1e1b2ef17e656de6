//! Forgetting a cluster: a person removes their own account there from the portal.

use super::cluster_account::ClusterAccountId;
use super::connection_pool::{ConnectionPool, RetryBackoff};
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::domain::ConnectionRole;
use crate::store::connections::ConnectionKey;
use crate::store::{self, StoreError};

impl ConnectionPool {
    /// Deletes a person's user name, discovered facts, queue state, favourite folders, folder sizes, uploads and
    /// notifications on a cluster, ends their transfers and links to files there, and closes their connections to it:
    /// under another user name, all that would go on with what isn't theirs. Jobs, dashboards and usage stay stored, and
    /// nothing changes on the cluster. False if there was no account.
    pub async fn forget_account(&self, id: ClusterAccountId, actor: &Actor, cluster: &str) -> Result<bool, StoreError> {
        let mut tx = self.0.core.store.write().await?;
        if !store::connections::remove_account(&mut tx, id.person, id.cluster).await? {
            return Ok(false);
        }
        store::queues::remove(&mut tx, id.person, id.cluster).await?;
        store::file_folders::remove_for_cluster(&mut tx, id.person, id.cluster).await?;
        store::folder_sizes::remove_for_account(&mut tx, id.person, id.cluster).await?;
        let now = self.0.core.clock.now();
        store::transfers::cancel_for_cluster(&mut tx, id.person, id.cluster, now).await?;
        store::uploads::delete_for_account(&mut tx, id.person, id.cluster).await?;
        store::guest_links::revoke_to_cluster(&mut tx, id.person, id.cluster, now).await?;
        // They would lead to pages that are no longer there.
        store::notifications::remove_for_cluster(&mut tx, id.person, id.cluster).await?;
        let about = ActivityDetails { person: Some(id.person), subject: cluster, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::ClusterForgotten, about, now).await?;
        store::commit(tx).await?;
        // After the commit: an attempt that is about to succeed finds no account any more, and ends.
        for role in [ConnectionRole::Login, ConnectionRole::Automation] {
            let key = ConnectionKey { role, ..id.connection_key() };
            self.close(key).await;
            if let Some(entry) = self.entries().get_mut(&key) {
                (entry.last_key_test, entry.backoff) = (None, RetryBackoff::default());
            }
        }
        Ok(true)
    }
}
