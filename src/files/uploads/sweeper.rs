//! Removes uploads that nobody goes on with.

use std::time::Duration;

use super::{EXPIRY_SECS, UploadError, UploadService, remove_temporary};
use crate::clock::SECONDS_PER_DAY;
use crate::store;

const SWEEP_INTERVAL: Duration = Duration::from_mins(10);
/// How many of one person are removed in one go.
const MAX_SWEPT: i64 = 500;
/// Clients may ask for an upload again after it has finished.
const FINISHED_RETENTION_SECS: i64 = SECONDS_PER_DAY;
/// If the owner doesn't connect for so long, the temporary file stays on the cluster.
const FORGET_SECS: i64 = 90 * SECONDS_PER_DAY;

impl UploadService {
    /// Sweeps until the portal stops.
    pub async fn run_sweeper(self) {
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                () = self.core.stop.cancelled() => return,
                _ = ticks.tick() => {
                    if let Err(error) = self.sweep().await {
                        tracing::warn!(%error, "Could not remove expired uploads; will retry in a while");
                    }
                }
            }
        }
    }

    /// Removes what has expired: from the cluster if its owner is connected, and then from the table.
    pub async fn sweep(&self) -> Result<(), UploadError> {
        let now = self.core.clock.now();
        let until = now.plus(-EXPIRY_SECS);
        let mut db = self.core.store.read().await?;
        let accounts = store::uploads::list_expired_accounts(&mut db, until).await?;
        let mut expired = Vec::new();
        for (person, cluster) in accounts {
            // Those of people who aren't connected wait, and don't hold up the others'.
            if let Ok(connection) = self.connection(person, cluster) {
                let uploads = store::uploads::list_expired(&mut db, person, cluster, until, MAX_SWEPT).await?;
                expired.extend(uploads.into_iter().map(|upload| (connection.clone(), upload)));
            }
        }
        drop(db);
        for (connection, upload) in expired {
            match remove_temporary(&connection, &upload).await {
                Ok(()) => self.delete(&upload.id).await?,
                Err(error) => tracing::debug!(%error, "Could not remove an expired upload"),
            }
        }
        let mut tx = self.core.store.write().await?;
        let finished_until = now.plus(-FINISHED_RETENTION_SECS);
        store::uploads::sweep(&mut tx, finished_until, now.plus(-FORGET_SECS)).await?;
        Ok(store::commit(tx).await?)
    }
}
