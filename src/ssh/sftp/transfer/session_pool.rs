//! The sessions that the transfers of one connection share: opened when first needed, closed when idle.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, oneshot};

use super::super::SftpError;
use super::super::open::{OpenedSftpSender, open_and_hold};
use super::super::session::SftpSession;
use crate::ssh::connection::{ClusterConnection, RunCommandError};
use crate::ssh::slots::CallUrgency;

/// How many sessions transfers use if the server allows them.
const MAX_SESSIONS: usize = 2;
const IDLE_TIMEOUT: Duration = Duration::from_secs(20);
/// With so few sessions, transfers give theirs up when someone else waits; they go on from where they were.
const SCARCE_SESSIONS: usize = 2;

/// Holds a connection's sessions for transfers.
#[derive(Default)]
pub struct TransferSessionPool(Mutex<Vec<Arc<SftpSession>>>);

/// A session to work with: the first open one, or a new one.
pub(super) async fn get_session(connection: &Arc<ClusterConnection>) -> Result<Arc<SftpSession>, SftpError> {
    get_session_for(connection, CallUrgency::Interactive).await
}

/// The same for someone in particular: a new one counts as their call.
pub(super) async fn get_session_for(
    connection: &Arc<ClusterConnection>,
    urgency: CallUrgency,
) -> Result<Arc<SftpSession>, SftpError> {
    let mut pool = connection.transfer_sessions.0.lock().await;
    pool.retain(|session| !session.closed().is_cancelled());
    // The one with the fewest users.
    if let Some(session) = pool.iter().min_by_key(|session| Arc::strong_count(session)) {
        session.touch();
        return Ok(session.clone());
    }
    let session = open_one(connection, urgency, SessionSlotWait::UntilFree).await?;
    pool.push(session.clone());
    Ok(session)
}

/// The other sessions that a large file goes over; opens them if that needs no waiting.
pub(super) async fn get_other_sessions(
    connection: &Arc<ClusterConnection>,
    first: &Arc<SftpSession>,
) -> Vec<Arc<SftpSession>> {
    let mut pool = connection.transfer_sessions.0.lock().await;
    pool.retain(|session| !session.closed().is_cancelled());
    while pool.len() < MAX_SESSIONS && connection.slots.limit() > SCARCE_SESSIONS {
        let Ok(session) = open_one(connection, CallUrgency::Bulk, SessionSlotWait::NotAtAll).await else { break };
        pool.push(session);
    }
    pool.iter().filter(|session| !Arc::ptr_eq(session, first)).cloned().collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum SessionSlotWait {
    UntilFree,
    NotAtAll,
}

async fn open_one(
    connection: &Arc<ClusterConnection>,
    urgency: CallUrgency,
    wait: SessionSlotWait,
) -> Result<Arc<SftpSession>, SftpError> {
    connection.call_budget.admit(urgency, Instant::now())?;
    let (tell, reply) = oneshot::channel();
    let this = connection.clone();
    tokio::spawn(async move { open_pooled(&this, wait, tell).await });
    reply.await.unwrap_or(Err(RunCommandError::ConnectionLost.into()))
}

/// Runs from taking a session slot until that slot is free again.
async fn open_pooled(connection: &ClusterConnection, wait: SessionSlotWait, tell: OpenedSftpSender) {
    let slot = match wait {
        SessionSlotWait::UntilFree => connection.slots.acquire(CallUrgency::Bulk).await,
        SessionSlotWait::NotAtAll => connection.slots.try_acquire_bulk(),
    };
    let Some(slot) = slot else {
        let _ = tell.send(Err(RunCommandError::Busy.into()));
        return;
    };
    open_and_hold(connection, slot, tell, |session| wait_until_closable(connection, session)).await;
}

/// Resolves when the session is idle, or others wait for one of very few sessions.
async fn wait_until_closable(connection: &ClusterConnection, session: Arc<SftpSession>) {
    /// The pool's, the one of the task that holds the slot, and the one it lent to us.
    const NOT_IN_USE: usize = 3;
    loop {
        let idle_at = session.used_at() + IDLE_TIMEOUT;
        let is_scarce = connection.slots.limit() <= SCARCE_SESSIONS;
        tokio::select! {
            () = connection.slots.release_requested(), if is_scarce => return,
            () = tokio::time::sleep_until(idle_at) => {}
        }
        if session.used_at() + IDLE_TIMEOUT > tokio::time::Instant::now() {
            continue;
        }
        let mut pool = connection.transfer_sessions.0.lock().await;
        if Arc::strong_count(&session) <= NOT_IN_USE {
            pool.retain(|pooled| !Arc::ptr_eq(pooled, &session));
            return;
        }
        session.touch();
    }
}
