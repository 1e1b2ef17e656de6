//! Runs one command: from a free session slot to its output, with every way it can end.

use std::sync::Arc;
use std::time::{Duration, Instant};

use openssh::{Child, Error, OwningCommand, Session, Stdio};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::oneshot;

use crate::text::{is_hidden, strip_hidden};

use super::command::{CommandInput, HeldInputSender, OUTPUT_MARK, RemoteCommand, RemoteCommandMode};
use super::connection::{ClusterConnection, CommandOutput, RunCommandError};
use super::slots::{CallUrgency, SessionSlot};

/// How much longer than the remote deadline we wait: the reply takes time as well.
const GRACE: Duration = Duration::from_secs(8);
/// The first pause after a refused session, and the longest before we assume that the server allows fewer.
pub(super) const SHORT_PAUSE: Duration = Duration::from_millis(2);
const LONG_PAUSE: Duration = Duration::from_millis(256);
/// How much is kept of what a login shell prints instead of running the command.
const MAX_CHATTER: usize = 400;

type CommandResultSender = oneshot::Sender<Result<CommandOutput, RunCommandError>>;
/// The process at the remote end of a session.
pub(super) type RemoteChild = Child<Arc<Session>>;

/// Runs a command and reports to the caller; then keeps the slot until the server's session is over.
pub(super) async fn execute(
    connection: &ClusterConnection,
    text: String,
    mut command: RemoteCommand,
    dialect: &RemoteCommandMode,
    urgency: CallUrgency,
    tell: CommandResultSender,
) {
    let started = Instant::now();
    let Some(slot) = connection.slots.acquire(urgency).await else {
        let _ = tell.send(Err(RunCommandError::Busy));
        return;
    };
    let until = tokio::time::Instant::now() + command.deadline() + GRACE;
    let (input, handover) = command.take_input();
    // On a silent network not even a session opens, and ssh takes a minute to notice.
    let opened = tokio::time::timeout_at(until, start_command(connection, &text, slot, input)).await;
    let (mut child, _slot) = match opened.unwrap_or(Err(RunCommandError::TimedOut)) {
        Ok(started) => started,
        Err(error) => {
            let _ = tell.send(Err(error));
            return;
        }
    };
    let pipes = (child.stdout().take(), child.stderr().take());
    let collecting = collect_output(pipes, command.max_output(), handover.map(|sender| (sender, &tell)));
    match tokio::time::timeout_at(until, collecting).await {
        Ok(Ok((stdout, stderr))) => {
            let ended = tokio::time::timeout(GRACE, child.wait()).await;
            let result = match ended {
                Ok(status) => interpret_exit(connection, status, started, &command, dialect, stdout, stderr).await,
                Err(_) => Err(RunCommandError::ConnectionLost),
            };
            metrics::histogram!("portolan_cluster_command_seconds").record(started.elapsed().as_secs_f64());
            let _ = tell.send(result);
        }
        Ok(Err(problem)) => {
            let _ = tell.send(Err(problem));
            wait_for_session_end(connection, child.wait()).await;
        }
        Err(_) => {
            let _ = tell.send(Err(RunCommandError::TimedOut));
            wait_for_session_end(connection, child.wait()).await;
        }
    }
}

/// The caller has moved on, but the server still counts the session.
pub(super) async fn wait_for_session_end(connection: &ClusterConnection, ended: impl Future) {
    tokio::select! {
        _ = ended => {}
        () = connection.master().ended().cancelled() => {}
    }
}

async fn start_command<'a>(
    connection: &'a ClusterConnection,
    text: &str,
    slot: SessionSlot<'a>,
    input: Option<CommandInput>,
) -> Result<(RemoteChild, SessionSlot<'a>), RunCommandError> {
    let has_input = input.is_some();
    let command = || {
        let mut command = connection.session.clone().arc_raw_command(text);
        let stdin = if has_input { Stdio::piped() } else { Stdio::null() };
        command.stdin(stdin).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    };
    let (mut child, slot) = open_session(connection, slot, command).await?;
    if let (Some(input), Some(mut stdin)) = (input, child.stdin().take()) {
        // A program that does not read all its input is not an error.
        tokio::spawn(async move {
            let _ = stdin.write_all(&input.bytes).await;
            // Nothing arrives if the output reader is gone.
            if let Some(rest) = input.rest
                && let Ok(bytes) = rest.await
            {
                let _ = stdin.write_all(&bytes).await;
            }
            let _ = stdin.shutdown().await;
        });
    }
    Ok((child, slot))
}

/// The server counts an ended session for a moment longer than we do, so we first wait briefly after a refusal; if it
/// persists, we queue again with one slot fewer. The first `pause` is [`SHORT_PAUSE`].
pub(super) async fn wait_after_refusal<'a>(
    connection: &'a ClusterConnection,
    slot: SessionSlot<'a>,
    pause: &mut Duration,
) -> Result<SessionSlot<'a>, RunCommandError> {
    metrics::counter!("portolan_cluster_sessions_refused_total").increment(1);
    connection.slots.request_release();
    if *pause <= LONG_PAUSE {
        tokio::time::sleep(*pause).await;
        *pause *= 2;
        return Ok(slot);
    }
    *pause = SHORT_PAUSE;
    connection.slots.retry_after_refusal(slot).await.ok_or(RunCommandError::Busy)
}

/// Opens a session, as often as the server refuses it.
pub(super) async fn open_session<'a>(
    connection: &'a ClusterConnection,
    mut slot: SessionSlot<'a>,
    command: impl Fn() -> OwningCommand<Arc<Session>>,
) -> Result<(RemoteChild, SessionSlot<'a>), RunCommandError> {
    let mut pause = SHORT_PAUSE;
    loop {
        match command().spawn().await {
            Ok(child) => return Ok((child, slot)),
            Err(error) if is_refusal(&error) => slot = wait_after_refusal(connection, slot, &mut pause).await?,
            Err(error) => {
                tracing::debug!(%error, "Could not open a session");
                // Interrupted halfway: the command may already have been sent.
                let cut = matches!(&error, Error::SshMux(openssh_mux_client::Error::IOError(_)));
                return Err(if cut { RunCommandError::ConnectionLost } else { RunCommandError::NotConnected });
            }
        }
    }
}

fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::SshMux(error) if is_mux_refusal(error))
}

/// Whether the server, or a master that is busy, refused a session.
pub(super) fn is_mux_refusal(error: &openssh_mux_client::Error) -> bool {
    match error {
        openssh_mux_client::Error::RequestFailure(reason) => reason.contains("refused"),
        openssh_mux_client::Error::IOError(error) => error.kind() == std::io::ErrorKind::WouldBlock,
        _ => false,
    }
}

async fn collect_output(
    (stdout, stderr): (Option<openssh::ChildStdout>, Option<openssh::ChildStderr>),
    most: usize,
    handover: Option<(HeldInputSender, &CommandResultSender)>,
) -> Result<(Vec<u8>, Vec<u8>), RunCommandError> {
    tokio::try_join!(read_bounded(stdout, most, handover), read_bounded(stderr, most, None))
}

/// Reads to the end or to the size limit. Sends the held-back input once the program asks for it, if a caller still
/// waits for the result.
async fn read_bounded(
    pipe: Option<impl AsyncRead + Unpin>,
    most: usize,
    mut handover: Option<(HeldInputSender, &CommandResultSender)>,
) -> Result<Vec<u8>, RunCommandError> {
    let mut bytes = Vec::new();
    if let Some(pipe) = pipe {
        let limit = u64::try_from(most).unwrap_or(u64::MAX).saturating_add(1);
        let mut pipe = pipe.take(limit);
        while pipe.read_buf(&mut bytes).await.map_err(|_| RunCommandError::ConnectionLost)? > 0 {
            if let Some((due, tell)) = handover.take_if(|(handover, _)| handover.is_due(&bytes))
                && !tell.is_closed()
            {
                due.send();
            }
        }
    }
    if bytes.len() > most { Err(RunCommandError::OutputTooLong) } else { Ok(bytes) }
}

async fn interpret_exit(
    connection: &ClusterConnection,
    status: Result<std::process::ExitStatus, Error>,
    started: Instant,
    command: &RemoteCommand,
    dialect: &RemoteCommandMode,
    stdout: Vec<u8>,
    stderr: Vec<u8>,
) -> Result<CommandOutput, RunCommandError> {
    const TIMED_OUT: i32 = 124;
    const NOT_FOUND: i32 = 127;
    const KILLED: i32 = 137;
    let code = match status {
        Ok(status) => status.code().unwrap_or(KILLED),
        // The library treats 127 as its own failure.
        Err(Error::Remote(_)) => NOT_FOUND,
        // Ended by a signal, or the connection broke: the library cannot tell them apart.
        Err(_) if connection.master().ended().is_cancelled() || !connection.is_open().await => {
            return Err(RunCommandError::ConnectionLost);
        }
        Err(_) => KILLED,
    };
    if matches!(code, TIMED_OUT | KILLED) && started.elapsed() >= command.deadline() {
        return Err(RunCommandError::TimedOut);
    }
    if *dialect == RemoteCommandMode::Automation {
        return match find_rejection(&stdout).or_else(|| find_rejection(&stderr)) {
            Some(words) => Err(RunCommandError::Rejected(words)),
            None => Ok(CommandOutput { code, stdout, stderr }),
        };
    }
    let Some(output) = after_mark(&stdout) else {
        let mut chatter = String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned();
        chatter.retain(|c| !is_hidden(c) || c == '\n');
        return Err(RunCommandError::ShellFailed(chatter.chars().take(MAX_CHATTER).collect()));
    };
    let stderr = after_mark(&stderr).unwrap_or(&stderr).to_vec();
    Ok(CommandOutput { code, stdout: output.to_vec(), stderr })
}

/// What follows the mark: the login shell's own output comes before it.
fn after_mark(bytes: &[u8]) -> Option<&[u8]> {
    let mark = OUTPUT_MARK.as_bytes();
    let at = bytes.windows(mark.len()).position(|window| window == mark)?;
    let rest = &bytes[at + mark.len()..];
    Some(rest.strip_prefix(b"\n").unwrap_or(rest))
}

/// Automation hosts refuse in words, often with exit code 0.
fn find_rejection(output: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(&output[..output.len().min(2000)]).into_owned();
    let line = text.lines().next()?;
    line.starts_with("Command rejected by ").then(|| strip_hidden(line, 300))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chatter_before_the_mark_is_cut_off() {
        assert_eq!(after_mark(b"Welcome!\n::portolan::\nout\n"), Some(&b"out\n"[..]));
        assert_eq!(after_mark(b"::portolan::\n"), Some(&b""[..]));
        assert_eq!(after_mark(b"This account is currently not available.\n"), None);
    }

    #[test]
    fn rejections_are_seen_in_the_text() {
        assert_eq!(
            find_rejection(b"Command rejected by slurm_commands.sh: sacct\n").as_deref(),
            Some("Command rejected by slurm_commands.sh: sacct")
        );
        assert_eq!(find_rejection(b"JOBID\n"), None);
        assert_eq!(find_rejection(b""), None);
    }
}
