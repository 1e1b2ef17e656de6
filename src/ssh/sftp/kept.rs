//! One file session for each connection: opened when it is first needed, kept for a moment because people click through
//! folders, and given up at once when its place is wanted, when it hangs, or when the connection ends.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use openssh::Stdio;
use russh_sftp::client::error::Error as Fault;
use russh_sftp::client::{Config, RawSftpSession};
use tokio::sync::oneshot;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::super::exec::{self, Handle};
use super::super::line::{Line, RunError};
use super::super::slots::Urgency;
use super::SftpError;

/// How long someone waits for a place on the connection.
const PLACE_WITHIN: Duration = Duration::from_secs(8);
/// How long opening may take after that.
const OPEN_WITHIN: Duration = Duration::from_secs(10);
/// A session that nobody uses for so long is closed.
const IDLE: Duration = Duration::from_mins(1);
/// How often it is tried to give up one that is wanted but still in use.
const AGAIN: Duration = Duration::from_millis(50);
/// Of how much one answer of the server may consist.
const MOST_PACKET: u32 = 256 * 1024;

/// Where a connection keeps its file session.
#[derive(Default)]
pub struct Shelf(tokio::sync::Mutex<Option<Arc<Session>>>);

/// A session that is open.
pub(super) struct Session {
    /// The protocol.
    pub(super) raw: RawSftpSession,
    used_at: Mutex<Instant>,
    over: CancellationToken,
}

impl Session {
    /// It is not to be used again.
    pub(super) fn spoil(&self) {
        self.over.cancel();
    }

    fn touch(&self) {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn idle_at(&self) -> Instant {
        *self.used_at.lock().unwrap_or_else(PoisonError::into_inner) + IDLE
    }
}

/// The session that is open, or a new one. Those who come while it is being opened wait for the same one.
pub(super) async fn session(line: &Arc<Line>) -> Result<Arc<Session>, SftpError> {
    let mut shelf = line.shelf.0.lock().await;
    if let Some(session) = shelf.as_ref().filter(|session| !session.over.is_cancelled()) {
        session.touch();
        return Ok(session.clone());
    }
    *shelf = None;
    let (tell, told) = oneshot::channel();
    let this = line.clone();
    tokio::spawn(async move { open_and_keep(&this, tell).await });
    let session = told.await.unwrap_or(Err(RunError::Lost.into()))?;
    *shelf = Some(session.clone());
    Ok(session)
}

type Tell = oneshot::Sender<Result<Arc<Session>, SftpError>>;

/// From a free place on the connection until that place is free again.
async fn open_and_keep(line: &Line, tell: Tell) {
    let wait = tokio::time::timeout(PLACE_WITHIN, line.slots.take(Urgency::Interactive));
    let Ok(Some(place)) = wait.await else {
        let _ = tell.send(Err(RunError::Busy.into()));
        return;
    };
    let until = Instant::now() + OPEN_WITHIN;
    let command = || {
        let mut command = openssh::Session::to_subsystem(line.session.clone(), "sftp");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    // Over a silent network not even a session opens, and ssh takes a minute to notice.
    let opened = tokio::time::timeout_at(until, exec::open(line, place, command)).await;
    let (mut child, _place) = match opened.unwrap_or(Err(RunError::Late)) {
        Ok(opened) => opened,
        Err(error) => {
            let _ = tell.send(Err(error.into()));
            return;
        }
    };
    let greeted = greet(&mut child, until).await;
    let mut ended = std::pin::pin!(child.wait());
    match greeted {
        Ok(raw) => {
            let over = CancellationToken::new();
            let session = Arc::new(Session { raw, used_at: Mutex::new(Instant::now()), over });
            let _ = tell.send(Ok(session.clone()));
            let is_gone = tokio::select! {
                () = keep(line, &session) => false,
                _ = &mut ended => true,
                () = line.master().ended().cancelled() => true,
            };
            session.over.cancel();
            let _ = session.raw.close_session();
            if is_gone {
                return;
            }
        }
        Err(error) => {
            let _ = tell.send(Err(error));
        }
    }
    // We have let go of it, but the server still counts it.
    tokio::select! {
        _ = ended => {}
        () = line.master().ended().cancelled() => {}
    }
}

/// Says hello to the file service.
async fn greet(child: &mut Handle, until: Instant) -> Result<RawSftpSession, SftpError> {
    let (Some(stdin), Some(stdout)) = (child.stdin().take(), child.stdout().take()) else {
        return Err(SftpError::NoService);
    };
    let config = Config {
        max_packet_len: MOST_PACKET,
        request_timeout_secs: super::WITHIN.as_secs(),
        ..Config::default()
    };
    let raw = RawSftpSession::new_with_config(tokio::io::join(stdout, stdin), config);
    match tokio::time::timeout_at(until, raw.init()).await {
        Ok(Ok(_)) => Ok(raw),
        Ok(Err(Fault::Timeout)) | Err(_) => Err(RunError::Late.into()),
        Ok(Err(_)) => Err(SftpError::NoService),
    }
}

/// Comes when the session is to be closed: spoilt, or not in use and either idle for long or in someone's way.
async fn keep(line: &Line, session: &Arc<Session>) {
    let mut is_wanted = false;
    loop {
        let look_at = if is_wanted { Instant::now() + AGAIN } else { session.idle_at() };
        tokio::select! {
            () = session.over.cancelled() => return,
            () = line.slots.room_wanted() => is_wanted = true,
            () = tokio::time::sleep_until(look_at) => {}
        }
        let is_due = is_wanted || session.idle_at() <= Instant::now();
        if is_due && take_off(line, session).await {
            return;
        }
    }
}

/// Takes the session off the shelf, unless someone uses it.
async fn take_off(line: &Line, session: &Arc<Session>) -> bool {
    const OURS_AND_THE_SHELFS: usize = 2;
    let mut shelf = tokio::select! {
        shelf = line.shelf.0.lock() => shelf,
        () = session.over.cancelled() => return true,
    };
    let is_free = Arc::strong_count(session) <= OURS_AND_THE_SHELFS;
    if is_free && shelf.as_ref().is_some_and(|kept| Arc::ptr_eq(kept, session)) {
        *shelf = None;
    }
    is_free
}
