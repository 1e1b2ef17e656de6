//! Where a download gets its connection from. If the connection is lost, the download waits a while for the person's next
//! one: laptops sleep, networks change, and half of 50 GB is worth keeping.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::cluster::ConnectionPool;
use crate::ssh::sftp::SftpError;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store::connections::ConnectionKey;

/// How long a download waits for the connection to come back.
const RECONNECT_TIMEOUT: Duration = Duration::from_mins(1);
const RETRY_PAUSE: Duration = Duration::from_millis(500);

/// A person's connection to a cluster, or the one that replaces it.
#[derive(Clone)]
pub struct ConnectionSource {
    pool: ConnectionPool,
    key: ConnectionKey,
    /// Cancelled when the portal stops.
    stop: CancellationToken,
    is_for_guest: bool,
}

impl ConnectionSource {
    pub const fn new(pool: ConnectionPool, key: ConnectionKey, stop: CancellationToken) -> Self {
        Self { pool, key, stop, is_for_guest: false }
    }

    /// The same for a guest of that person, at whose cost nothing happens.
    pub const fn for_guest(pool: ConnectionPool, key: ConnectionKey, stop: CancellationToken) -> Self {
        Self { pool, key, stop, is_for_guest: true }
    }

    pub const fn stop(&self) -> &CancellationToken {
        &self.stop
    }

    /// The connection, if there is one now.
    pub fn connection(&self) -> Result<Arc<ClusterConnection>, SftpError> {
        Ok(self.pool.connection(self.key)?)
    }

    /// Why something can't be read, for whoever reads it: a guest isn't told what the owner may do there.
    pub fn explain(&self, error: &SftpError) -> String {
        if self.is_for_guest { "It can't be read.".to_owned() } else { error.to_string() }
    }

    /// Why a link to this target isn't in an archive: a guest isn't told what lies outside.
    pub fn explain_link(&self, target: &[u8]) -> String {
        if self.is_for_guest {
            return "It's a symbolic link.".to_owned();
        }
        format!("It's a symbolic link to {}, which isn't in this archive.", String::from_utf8_lossy(target))
    }

    /// Opens the session that a guest's operation is going to use.
    async fn begin(&self, connection: &Arc<ClusterConnection>) -> Result<(), SftpError> {
        if self.is_for_guest { TransferSession::open_for_guest(connection).await.map(|_| ()) } else { Ok(()) }
    }

    /// Runs an operation. If the connection is lost or has no room, tries again for a while.
    pub async fn retry<T, Asked: Future<Output = Result<T, SftpError>>>(
        &self,
        mut operation: impl FnMut(Arc<ClusterConnection>) -> Asked,
    ) -> Result<T, SftpError> {
        let until = Instant::now() + RECONNECT_TIMEOUT;
        loop {
            let result = match self.connection() {
                Ok(connection) => match self.begin(&connection).await {
                    Ok(()) => operation(connection).await,
                    Err(error) => Err(error),
                },
                Err(error) => Err(error),
            };
            match result {
                Err(error) if is_passing(&error) && Instant::now() < until => tokio::select! {
                    () = tokio::time::sleep(RETRY_PAUSE) => {}
                    () = self.stop.cancelled() => return Err(error),
                },
                result => return result,
            }
        }
    }
}

/// Whether the same operation may succeed a little later, perhaps over another connection.
pub fn is_passing(error: &SftpError) -> bool {
    matches!(
        error,
        SftpError::Run(
            RunCommandError::NotConnected
                | RunCommandError::Busy
                | RunCommandError::OverBudget
                | RunCommandError::TimedOut
                | RunCommandError::IncompleteReply
                | RunCommandError::ConnectionLost
        )
    )
}
