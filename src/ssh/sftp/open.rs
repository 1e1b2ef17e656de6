//! Opens an SFTP session and holds its slot for as long as the server counts the session.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use openssh::Stdio;
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::SftpError;
use super::session::{SftpFault, SftpSession};
use crate::ssh::connection::{ClusterConnection, RunCommandError};
use crate::ssh::exec::{self, RemoteChild};
use crate::ssh::slots::SessionSlot;

/// How long opening may take once a slot is free.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) type OpenedSftpSender = oneshot::Sender<Result<Arc<SftpSession>, SftpError>>;

/// Opens a session in this slot and tells the caller; closes it when `is_closable` resolves, it breaks, or the
/// connection ends.
pub(super) async fn open_and_hold<Closable: Future<Output = ()>>(
    connection: &ClusterConnection,
    slot: SessionSlot<'_>,
    tell: OpenedSftpSender,
    is_closable: impl FnOnce(Arc<SftpSession>) -> Closable,
) {
    let until = Instant::now() + OPEN_TIMEOUT;
    let command = || {
        let mut command = openssh::Session::to_subsystem(connection.session.clone(), "sftp");
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        command
    };
    // On a silent network not even a session opens, and ssh takes a minute to notice.
    let opened = tokio::time::timeout_at(until, exec::open_session(connection, slot, command)).await;
    let (mut child, _slot) = match opened.unwrap_or(Err(RunCommandError::TimedOut)) {
        Ok(opened) => opened,
        Err(error) => {
            let _ = tell.send(Err(error.into()));
            return;
        }
    };
    let greeted = greet(&mut child, connection.folder_changes.clone(), until).await;
    let mut ended = std::pin::pin!(child.wait());
    match greeted {
        Ok(session) => {
            let session = Arc::new(session);
            let _ = tell.send(Ok(session.clone()));
            let is_gone = tokio::select! {
                () = is_closable(session.clone()) => false,
                () = session.closed().cancelled() => false,
                _ = &mut ended => true,
                () = connection.master().ended().cancelled() => true,
            };
            session.close().await;
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
async fn greet(
    child: &mut RemoteChild,
    folder_changes: Arc<AtomicU64>,
    until: Instant,
) -> Result<SftpSession, SftpError> {
    let (Some(stdin), Some(stdout)) = (child.stdin().take(), child.stdout().take()) else {
        return Err(SftpError::NoService);
    };
    match tokio::time::timeout_at(until, SftpSession::start(stdout, stdin, folder_changes)).await {
        Ok(Ok(session)) => Ok(session),
        Ok(Err(SftpFault::TimedOut)) | Err(_) => Err(RunCommandError::TimedOut.into()),
        Ok(Err(_)) => Err(SftpError::NoService),
    }
}
