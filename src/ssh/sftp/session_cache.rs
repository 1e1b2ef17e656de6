//! One SFTP session per connection: opened when first needed, kept for a while because people click through folders,
//! and closed as soon as its slot is wanted, it hangs, or the connection ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openssh::Stdio;
use russh_sftp::client::error::Error as Fault;
use russh_sftp::client::{Config, RawSftpSession};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::SftpError;
use crate::ssh::connection::{ClusterConnection, RunCommandError};
use crate::ssh::exec::{self, RemoteChild};
use crate::ssh::slots::CallUrgency;

/// How long a caller waits for a session slot.
const SLOT_TIMEOUT: Duration = Duration::from_secs(8);
/// How long opening may take after that.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);
const IDLE_TIMEOUT: Duration = Duration::from_mins(1);
/// How often we retry closing a session that is still in use although its slot is wanted.
const EVICT_RETRY: Duration = Duration::from_millis(50);
/// The limit for one reply of the server.
const MAX_PACKET_BYTES: u32 = 256 * 1024;

/// Holds a connection's SFTP session.
#[derive(Default)]
pub struct SftpSessionCache(tokio::sync::Mutex<Option<Arc<SftpSession>>>);

pub(super) struct SftpSession {
    pub(super) raw: RawSftpSession,
    used_at: Mutex<Instant>,
    closed: CancellationToken,
}

impl SftpSession {
    /// Marks the session as unusable.
    pub(super) fn invalidate(&self) {
        self.closed.cancel();
    }

    fn touch(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn idle_at(&self) -> Instant {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) + IDLE_TIMEOUT
    }
}

/// The open session, or a new one. Callers who arrive while it is being opened wait for the same one.
pub(super) async fn get_session(connection: &Arc<ClusterConnection>) -> Result<Arc<SftpSession>, SftpError> {
    let mut cache = connection.sftp_sessions.0.lock().await;
    if let Some(session) = cache.as_ref().filter(|session| !session.closed.is_cancelled()) {
        session.touch();
        return Ok(session.clone());
    }
    *cache = None;
    let (tell, reply) = oneshot::channel();
    let this = connection.clone();
    tokio::spawn(async move { open_and_hold(&this, tell).await });
    let session = reply.await.unwrap_or(Err(RunCommandError::ConnectionLost.into()))?;
    *cache = Some(session.clone());
    Ok(session)
}

type OpenedSftpSender = oneshot::Sender<Result<Arc<SftpSession>, SftpError>>;

/// Runs from taking a session slot until that slot is free again.
async fn open_and_hold(connection: &ClusterConnection, tell: OpenedSftpSender) {
    let wait = tokio::time::timeout(SLOT_TIMEOUT, connection.slots.acquire(CallUrgency::Interactive));
    let Ok(Some(slot)) = wait.await else {
        let _ = tell.send(Err(RunCommandError::Busy.into()));
        return;
    };
    let until = Instant::now() + OPEN_TIMEOUT;
    let command = || {
        let mut command = openssh::Session::to_subsystem(connection.session.clone(), "sftp");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    // On a silent network not even a session opens, and ssh takes a minute to notice.
    let opened = tokio::time::timeout_at(until, exec::open_session(connection, slot, command)).await;
    let (mut child, _place) = match opened.unwrap_or(Err(RunCommandError::TimedOut)) {
        Ok(opened) => opened,
        Err(error) => {
            let _ = tell.send(Err(error.into()));
            return;
        }
    };
    let greeted = init_protocol(&mut child, until).await;
    let mut ended = std::pin::pin!(child.wait());
    match greeted {
        Ok(raw) => {
            let over = CancellationToken::new();
            let session = Arc::new(SftpSession { raw, used_at: Mutex::new(Instant::now()), closed: over });
            let _ = tell.send(Ok(session.clone()));
            let is_gone = tokio::select! {
                () = wait_until_closable(connection, &session) => false,
                _ = &mut ended => true,
                () = connection.master().ended().cancelled() => true,
            };
            session.closed.cancel();
            let _ = session.raw.close_session();
            if is_gone {
                return;
            }
        }
        Err(error) => {
            let _ = tell.send(Err(error));
        }
    }
    exec::wait_for_session_end(connection, ended).await;
}

/// Negotiates the protocol version with the SFTP service.
async fn init_protocol(child: &mut RemoteChild, until: Instant) -> Result<RawSftpSession, SftpError> {
    let (Some(stdin), Some(stdout)) = (child.stdin().take(), child.stdout().take()) else {
        return Err(SftpError::NoService);
    };
    let config = Config {
        max_packet_len: MAX_PACKET_BYTES,
        request_timeout_secs: super::REPLY_TIMEOUT.as_secs(),
        ..Config::default()
    };
    let raw = RawSftpSession::new_with_config(tokio::io::join(stdout, stdin), config);
    match tokio::time::timeout_at(until, raw.init()).await {
        Ok(Ok(_)) => Ok(raw),
        Ok(Err(Fault::Timeout)) | Err(_) => Err(RunCommandError::TimedOut.into()),
        Ok(Err(_)) => Err(SftpError::NoService),
    }
}

/// Resolves when the session should be closed: broken, or unused and either idle for long or blocking others.
async fn wait_until_closable(connection: &ClusterConnection, session: &Arc<SftpSession>) {
    let mut is_wanted = false;
    loop {
        let look_at = if is_wanted { Instant::now() + EVICT_RETRY } else { session.idle_at() };
        tokio::select! {
            () = session.closed.cancelled() => return,
            () = connection.slots.release_requested() => is_wanted = true,
            () = tokio::time::sleep_until(look_at) => {}
        }
        let is_due = is_wanted || session.idle_at() <= Instant::now();
        if is_due && evict_if_unused(connection, session).await {
            return;
        }
    }
}

/// Removes the session from the cache, unless it is in use.
async fn evict_if_unused(connection: &ClusterConnection, session: &Arc<SftpSession>) -> bool {
    const OWN_AND_CACHED: usize = 2;
    let mut cache = tokio::select! {
        cache = connection.sftp_sessions.0.lock() => cache,
        () = session.closed.cancelled() => return true,
    };
    let is_free = Arc::strong_count(session) <= OWN_AND_CACHED;
    if is_free && cache.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, session)) {
        *cache = None;
    }
    is_free
}
