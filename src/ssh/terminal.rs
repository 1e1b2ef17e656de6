//! A terminal on a cluster: a session with a tty over the control master, without an ssh process of its own. It holds
//! a session slot for as long as the server counts the session.

use std::borrow::Cow;
use std::io;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use openssh_mux_client::{Connection, EstablishedSession, NonZeroByteSlice, Session, SessionStatus};
use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};
use rustix::pty::{OpenptFlags, grantpt, ioctl_tiocgptpeer, openpt, unlockpt};
use rustix::termios::{InputModes, OptionalActions, Winsize, tcgetattr, tcsetattr, tcsetwinsize};
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe;
use tokio::sync::{oneshot, watch};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::command::RemoteCommand;
use super::connection::{ClusterConnection, RunCommandError};
use super::exec::{self, SHORT_PAUSE};
use super::slots::{CallUrgency, SessionSlot};

/// How long opening may take once a slot is free.
const OPEN_TIMEOUT: Duration = Duration::from_secs(20);
/// The terminal that programs are told they have.
const TERM: &[u8] = b"xterm-256color";

/// How many columns and rows a terminal has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TerminalSize {
    cols: u16,
    rows: u16,
}

impl TerminalSize {
    /// The nearest size that a terminal can have.
    pub fn clamped(cols: u16, rows: u16) -> Self {
        Self { cols: cols.clamp(8, 500), rows: rows.clamp(2, 200) }
    }

    pub const fn cols(self) -> u16 {
        self.cols
    }

    pub const fn rows(self) -> u16 {
        self.rows
    }

    const fn to_winsize(self) -> Winsize {
        Winsize { ws_row: self.rows, ws_col: self.cols, ws_xpixel: 0, ws_ypixel: 0 }
    }
}

/// What runs in a terminal.
#[derive(Debug, Clone)]
pub enum TerminalProgram {
    LoginShell,
    Command(RemoteCommand),
}

/// Why no terminal was opened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenTerminalError {
    /// All sessions that terminals may use are taken.
    #[error(
        "This cluster allows no further terminal on your connection. Close one that you no longer need, then try again."
    )]
    NoFreeSession,
    #[error(transparent)]
    Run(#[from] RunCommandError),
    /// This machine has no free terminals or files.
    #[error("The portal couldn't open a terminal. Try again in a moment.")]
    Local,
}

/// How a terminal ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TerminalEnd {
    /// The program ended, with its exit code if it wasn't killed.
    Exited(Option<u32>),
    /// The server gives no terminals.
    Refused,
    ConnectionLost,
    /// We closed it.
    Closed,
}

/// What the program prints. Dropping it closes the terminal: the program is told to end, as when a window is closed.
#[derive(Debug)]
pub struct TerminalOutput {
    pipe: pipe::Receiver,
    end: watch::Receiver<Option<TerminalEnd>>,
    _hang_up: DropGuard,
}

/// What the person types.
#[derive(Debug)]
pub struct TerminalInput {
    /// Our side of a pty. The type is that of a pipe, because it reads and writes any descriptor that can be polled.
    pty: pipe::Sender,
    connection: Arc<ClusterConnection>,
}

/// The descriptors of a session. The server's output doesn't pass through the pty: a pipe holds more, loses nothing when
/// it ends, and never blocks the ssh process, which serves the person's other sessions as well.
struct LocalEnds {
    pty: OwnedFd,
    stdin: OwnedFd,
    stdout: OwnedFd,
    stderr: OwnedFd,
    output: OwnedFd,
    /// Closed by the ssh process when it forgets the session.
    forgotten: OwnedFd,
}

/// Opens a terminal of this size.
pub async fn open(
    connection: &Arc<ClusterConnection>,
    program: &TerminalProgram,
    size: TerminalSize,
) -> Result<(TerminalOutput, TerminalInput), OpenTerminalError> {
    let line = match program {
        TerminalProgram::LoginShell => String::new(),
        TerminalProgram::Command(command) => {
            command.to_terminal_line(&connection.dialect()).map_err(RunCommandError::from)?
        }
    };
    if !connection.slots.has_room_for_terminal() {
        return Err(OpenTerminalError::NoFreeSession);
    }
    connection.call_budget.admit(CallUrgency::Terminal, Instant::now())?;
    let (sender, receiver) = oneshot::channel();
    let this = connection.clone();
    tokio::spawn(async move { open_and_hold(&this, line, size, sender).await });
    receiver.await.unwrap_or(Err(OpenTerminalError::Run(RunCommandError::ConnectionLost)))
}

type OpenedTerminalSender = oneshot::Sender<Result<(TerminalOutput, TerminalInput), OpenTerminalError>>;

/// Opens a session and tells the caller; then keeps the slot until the server's session is over.
async fn open_and_hold(
    connection: &Arc<ClusterConnection>,
    line: String,
    size: TerminalSize,
    tell: OpenedTerminalSender,
) {
    let opened = match connection.slots.acquire(CallUrgency::Terminal).await {
        None => Err(OpenTerminalError::NoFreeSession),
        // On a silent network not even a session opens, and ssh takes a minute to notice.
        Some(slot) => tokio::time::timeout(OPEN_TIMEOUT, open_session(connection, slot, &line, size))
            .await
            .unwrap_or(Err(RunCommandError::TimedOut.into())),
    };
    let (session, ends, _slot) = match opened {
        Ok(opened) => opened,
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    let hang_up = CancellationToken::new();
    let (end_sender, end) = watch::channel(None);
    let (parts, forgotten) = match ends.into_parts(connection, &hang_up, end) {
        Ok(parts) => parts,
        Err(error) => {
            tracing::warn!(%error, "Could not use a terminal's descriptors");
            let _ = tell.send(Err(OpenTerminalError::Local));
            return;
        }
    };
    // If the caller is gone, this drops the output, which hangs up.
    let _ = tell.send(Ok(parts));
    let ended = tokio::select! {
        status = wait_for_exit(session) => match status {
            TerminalEnd::Exited(None) if !connection.is_open().await => TerminalEnd::ConnectionLost,
            ended => ended,
        },
        () = connection.master().ended().cancelled() => TerminalEnd::ConnectionLost,
        // The session is dropped with the other branch: the ssh process then closes it.
        () = hang_up.cancelled() => TerminalEnd::Closed,
    };
    let _ = end_sender.send(Some(ended));
    exec::wait_for_session_end(connection, wait_until_closed(forgotten)).await;
}

async fn wait_for_exit(session: EstablishedSession) -> TerminalEnd {
    match session.wait().await {
        // Without a tty the shell would wait for input that never comes: it is closed with the session.
        Ok(SessionStatus::TtyAllocFail(_)) => TerminalEnd::Refused,
        Ok(SessionStatus::Exited { exit_value }) => TerminalEnd::Exited(exit_value),
        Err((error, _)) => {
            tracing::debug!(%error, "A terminal's session broke");
            TerminalEnd::Exited(None)
        }
    }
}

async fn wait_until_closed(mut pipe: pipe::Receiver) {
    let mut nothing = [0; 256];
    while pipe.read(&mut nothing).await.is_ok_and(|count| count > 0) {}
}

async fn open_session<'a>(
    connection: &'a ClusterConnection,
    mut slot: SessionSlot<'a>,
    line: &str,
    size: TerminalSize,
) -> Result<(EstablishedSession, LocalEnds, SessionSlot<'a>), OpenTerminalError> {
    let mut pause = SHORT_PAUSE;
    loop {
        let ends = LocalEnds::new(size).map_err(|error| {
            tracing::warn!(%error, "Could not open a local terminal");
            OpenTerminalError::Local
        })?;
        match request_session(connection, line, &ends).await {
            Ok(session) => return Ok((session, ends, slot)),
            Err(error) if exec::is_mux_refusal(&error) => {
                slot = exec::wait_after_refusal(connection, slot, &mut pause).await?;
            }
            Err(error) => {
                tracing::debug!(%error, "Could not open a terminal's session");
                return Err(RunCommandError::NotConnected.into());
            }
        }
    }
}

async fn request_session(
    connection: &ClusterConnection,
    line: &str,
    ends: &LocalEnds,
) -> Result<EstablishedSession, openssh_mux_client::Error> {
    let (Some(term), Some(command)) = (NonZeroByteSlice::new(TERM), NonZeroByteSlice::new(line.as_bytes())) else {
        return Err(openssh_mux_client::Error::IOError(io::ErrorKind::InvalidInput.into()));
    };
    let session = Session::builder().tty(true).term(Cow::Borrowed(term)).cmd(Cow::Borrowed(command)).build();
    let master = Connection::connect(connection.master().folder().control_socket()).await?;
    let descriptors = [ends.stdin.as_raw_fd(), ends.stdout.as_raw_fd(), ends.stderr.as_raw_fd()];
    master.open_new_session(&session, &descriptors).await
}

impl LocalEnds {
    fn new(size: TerminalSize) -> io::Result<Self> {
        let flags = OpenptFlags::RDWR | OpenptFlags::NOCTTY | OpenptFlags::CLOEXEC;
        let pty = openpt(flags)?;
        grantpt(&pty)?;
        unlockpt(&pty)?;
        let stdin = ioctl_tiocgptpeer(&pty, flags)?;
        for end in [&pty, &stdin] {
            fcntl_setfl(end, fcntl_getfl(end)? | OFlags::NONBLOCK)?;
        }
        tcsetwinsize(&pty, size.to_winsize())?;
        // The remote terminal begins with the modes that this one has when the session is requested.
        let mut modes = tcgetattr(&stdin)?;
        modes.input_modes |= InputModes::IUTF8;
        tcsetattr(&stdin, OptionalActions::Now, &modes)?;
        let (output, stdout) = io::pipe()?;
        let (forgotten, stderr) = io::pipe()?;
        Ok(Self {
            pty,
            stdin,
            stdout: stdout.into(),
            stderr: stderr.into(),
            output: output.into(),
            forgotten: forgotten.into(),
        })
    }

    /// Our ends, and the one that tells when the ssh process has forgotten the session. Its own ends are closed here.
    fn into_parts(
        self,
        connection: &Arc<ClusterConnection>,
        hang_up: &CancellationToken,
        end: watch::Receiver<Option<TerminalEnd>>,
    ) -> io::Result<((TerminalOutput, TerminalInput), pipe::Receiver)> {
        // From here on every byte passes unchanged. Nothing has been typed yet.
        let mut modes = tcgetattr(&self.stdin)?;
        modes.make_raw();
        tcsetattr(&self.stdin, OptionalActions::Now, &modes)?;
        let output = TerminalOutput {
            pipe: pipe::Receiver::from_owned_fd(self.output)?,
            end,
            _hang_up: hang_up.clone().drop_guard(),
        };
        let input =
            TerminalInput { pty: pipe::Sender::from_owned_fd_unchecked(self.pty)?, connection: connection.clone() };
        Ok(((output, input), pipe::Receiver::from_owned_fd(self.forgotten)?))
    }
}

impl TerminalOutput {
    /// Waits until there is something to read, or the end: a quiet terminal needs no buffer.
    pub async fn readable(&self) {
        // A pipe that can't be waited for is read, which tells.
        let _ = self.pipe.readable().await;
    }

    /// Reads what is there, and waits if there is nothing; zero bytes at the end.
    pub async fn read(&mut self, buffer: &mut [u8]) -> usize {
        self.pipe.read(buffer).await.unwrap_or(0)
    }

    /// Waits until the terminal has ended.
    pub async fn ended(&mut self) -> TerminalEnd {
        let end = self.end.wait_for(Option::is_some).await;
        end.ok().and_then(|end| *end).unwrap_or(TerminalEnd::ConnectionLost)
    }
}

impl TerminalInput {
    /// Types these bytes, as fast as the program reads them.
    pub async fn write(&self, bytes: &[u8]) -> io::Result<()> {
        let mut rest = bytes;
        while !rest.is_empty() {
            self.pty.writable().await?;
            match self.pty.try_write(rest) {
                Ok(count) => rest = &rest[count..],
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    pub fn resize(&self, size: TerminalSize) {
        if tcsetwinsize(&self.pty, size.to_winsize()).is_ok() {
            self.connection.master().announce_window_size();
        }
    }

    /// Someone uses the connection, although no command runs.
    pub fn record_use(&self) {
        self.connection.call_budget.record_use(Instant::now());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_a_terminal_can_have() {
        let size = |cols, rows| {
            let size = TerminalSize::clamped(cols, rows);
            (size.cols(), size.rows())
        };
        assert_eq!(size(80, 24), (80, 24));
        assert_eq!(size(0, 0), (8, 2));
        assert_eq!(size(u16::MAX, u16::MAX), (500, 200));
    }
}
