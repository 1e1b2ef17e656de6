//! One SFTP session per connection for short operations: opened when first needed, kept for a while because people click
//! through folders, and closed as soon as its slot is wanted, it hangs, or the connection ends.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::SftpError;
use super::open::{OpenedSftpSender, open_and_hold};
use super::session::SftpSession;
use crate::ssh::connection::{ClusterConnection, RunCommandError};
use crate::ssh::slots::CallUrgency;

/// How long a caller waits for a session slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(8);
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often we retry closing a session that is still in use although its slot is wanted.
const EVICT_RETRY: Duration = Duration::from_millis(50);

/// Holds a connection's SFTP session.
#[derive(Default)]
pub struct SftpSessionCache(tokio::sync::Mutex<Option<Arc<SftpSession>>>);

/// The open session, or a new one. Callers who arrive while it is being opened wait for the same one.
pub(super) async fn get_session(connection: &Arc<ClusterConnection>) -> Result<Arc<SftpSession>, SftpError> {
    let mut cache = connection.sftp_sessions.0.lock().await;
    if let Some(session) = cache.as_ref().filter(|session| !session.closed().is_cancelled()) {
        session.touch();
        return Ok(session.clone());
    }
    *cache = None;
    let (tell, reply) = oneshot::channel();
    let this = connection.clone();
    tokio::spawn(async move { open_cached(&this, tell).await });
    let session = reply.await.unwrap_or(Err(RunCommandError::ConnectionLost.into()))?;
    *cache = Some(session.clone());
    Ok(session)
}

/// Runs from taking a session slot until that slot is free again.
async fn open_cached(connection: &ClusterConnection, tell: OpenedSftpSender) {
    let wait = tokio::time::timeout(SLOT_TIMEOUT, connection.slots.acquire(CallUrgency::Interactive));
    let Ok(Some(slot)) = wait.await else {
        let _ = tell.send(Err(RunCommandError::Busy.into()));
        return;
    };
    open_and_hold(connection, slot, tell, |session| wait_until_closable(connection, session)).await;
}

/// Resolves when the session should be closed: unused, and either idle for long or blocking others.
async fn wait_until_closable(connection: &ClusterConnection, session: Arc<SftpSession>) {
    let mut is_wanted = false;
    loop {
        let idle_at = session.used_at() + IDLE_TIMEOUT;
        let look_at = if is_wanted { Instant::now() + EVICT_RETRY } else { idle_at };
        tokio::select! {
            () = connection.slots.release_requested() => is_wanted = true,
            () = tokio::time::sleep_until(look_at) => {}
        }
        let is_due = is_wanted || session.used_at() + IDLE_TIMEOUT <= Instant::now();
        if is_due && evict_if_unused(connection, &session).await {
            return;
        }
    }
}

/// Removes the session from the cache, unless it is in use.
async fn evict_if_unused(connection: &ClusterConnection, session: &Arc<SftpSession>) -> bool {
    /// The cache's, the one of the task that holds the slot, and the one it lent to us.
    const NOT_IN_USE: usize = 3;
    let mut cache = tokio::select! {
        cache = connection.sftp_sessions.0.lock() => cache,
        () = session.closed().cancelled() => return true,
    };
    let is_free = Arc::strong_count(session) <= NOT_IN_USE;
    if is_free && cache.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, session)) {
        *cache = None;
    }
    is_free
}
