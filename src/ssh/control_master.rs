//! A running ssh control master: a separate process that outlives the portal, so that nobody has to enter a code
//! again after a restart.

use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio_util::sync::CancellationToken;

use super::route::{ConnectionFolder, read_head_and_tail};

const CLOSE_TIMEOUT: Duration = Duration::from_secs(2);

#[derive(Debug)]
pub struct ControlMaster {
    folder: ConnectionFolder,
    pid: i32,
    /// Identifies the process itself: its ID may be reused by another one.
    handle: OwnedFd,
    ended: CancellationToken,
}

impl ControlMaster {
    /// The master with this process ID, which must be our child or found by [`ControlMaster::find`].
    pub(super) fn watch(folder: ConnectionFolder, pid: i32) -> io::Result<Self> {
        let handle = open_pidfd(pid)?;
        let ended = CancellationToken::new();
        let (watched, ended_signal) = (async_pidfd(handle.try_clone()?)?, ended.clone());
        tokio::spawn(async move {
            // A process handle becomes readable when the process has ended.
            let _ = watched.readable().await;
            ended_signal.cancel();
        });
        Ok(Self { folder, pid, handle, ended })
    }

    /// The master that serves a folder's control socket, if there is one and it is really ours.
    pub async fn find(folder: &ConnectionFolder) -> Option<Self> {
        let pid = find_master_pid(folder).await?;
        is_master_of(pid, folder).then(|| Self::watch(folder.clone(), pid).ok()).flatten()
    }

    pub const fn folder(&self) -> &ConnectionFolder {
        &self.folder
    }

    pub const fn pid(&self) -> i32 {
        self.pid
    }

    /// Cancelled when the process ends.
    pub const fn ended(&self) -> &CancellationToken {
        &self.ended
    }

    /// Has the process look at the size of each terminal that it serves.
    pub(super) fn announce_window_size(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::WINCH);
    }

    /// Ends the process and removes its folder.
    pub async fn close(&self) {
        let _ = pidfd_send_signal(&self.handle, Signal::TERM);
        if tokio::time::timeout(CLOSE_TIMEOUT, self.ended.cancelled()).await.is_err() {
            let _ = pidfd_send_signal(&self.handle, Signal::KILL);
            self.ended.cancelled().await;
        }
        self.folder.remove();
    }

    /// The last line of ssh's own log: why a connection was lost.
    pub fn last_log_line(&self) -> String {
        let log = read_head_and_tail(&self.folder.log_file());
        log.lines().last().unwrap_or_default().trim().to_owned()
    }
}

/// Ends a master that no longer answers but left its folder behind, and removes the folder.
pub async fn close_stale_master(folder: &ConnectionFolder) {
    let pid = std::fs::read_to_string(folder.file("pid")).ok().and_then(|text| text.trim().parse().ok());
    if let Some(pid) = pid
        && is_master_of(pid, folder)
        && let Ok(master) = ControlMaster::watch(folder.clone(), pid)
    {
        master.close().await;
    }
    folder.remove();
}

/// The master's process ID, if the control socket exists and answers.
pub(super) async fn find_master_pid(folder: &ConnectionFolder) -> Option<i32> {
    let control = folder.control_socket();
    if !control.exists() {
        return None;
    }
    let ask = async {
        let mut connection = openssh_mux_client::Connection::connect(&control).await.ok()?;
        connection.send_alive_check().await.ok()
    };
    let pid = tokio::time::timeout(CLOSE_TIMEOUT, ask).await.ok()??;
    i32::try_from(pid.get()).ok()
}

fn open_pidfd(pid: i32) -> io::Result<OwnedFd> {
    let pid = Pid::from_raw(pid).ok_or(io::ErrorKind::InvalidInput)?;
    Ok(pidfd_open(pid, PidfdFlags::empty())?)
}

#[expect(deprecated, reason = "the successor is unsafe, for descriptors that are not owned; this one is")]
fn async_pidfd(handle: OwnedFd) -> io::Result<AsyncFd<OwnedFd>> {
    AsyncFd::with_interest(handle, Interest::READABLE)
}

/// Whether a process is an ssh that was started with this folder's control socket.
fn is_master_of(pid: i32, folder: &ConnectionFolder) -> bool {
    let Ok(command) = std::fs::read(format!("/proc/{pid}/cmdline")) else { return false };
    let control = folder.control_socket();
    let mut words = command.split(|byte| *byte == 0);
    words.next().is_some_and(|program| program.ends_with(b"ssh"))
        && words.any(|word| word == control.as_os_str().as_encoded_bytes())
}
