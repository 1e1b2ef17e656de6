//! An open connection, and running commands on it: limited in number, time and size.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::{Duration, Instant};

use openssh::Session;
use tokio::sync::{OnceCell, oneshot};

use super::call_budget::CallBudget;
use super::command::{InvalidCommandError, RemoteCommand, RemoteCommandMode};
use super::control_master::ControlMaster;
use super::exec;
use super::sftp::SftpSessionCache;
use super::sftp::transfer::TransferSessionPool;
use super::slots::{CallUrgency, SessionSlots};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandOutput {
    pub code: i32,
    pub stdout: Vec<u8>,
    pub stderr: Vec<u8>,
}

impl CommandOutput {
    /// Standard output as text; invalid UTF-8 is replaced.
    pub fn stdout_text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// Standard error as text; invalid UTF-8 is replaced.
    pub fn stderr_text(&self) -> String {
        String::from_utf8_lossy(&self.stderr).into_owned()
    }
}

impl CommandOutput {
    /// The output of each command of a batch, in order; `None` for a command that did not finish.
    pub fn split_batch(&self, nonce: &str) -> Vec<Option<Self>> {
        let begin = format!("{nonce}\n");
        let complaints: Vec<&[u8]> = split_at_mark(&self.stderr, begin.as_bytes()).skip(1).collect();
        let read = |(place, part): (usize, &[u8])| {
            let end = format!("{nonce}=");
            let at = part.windows(end.len()).rposition(|window| window == end.as_bytes())?;
            let code = std::str::from_utf8(&part[at + end.len()..]).ok()?.trim().parse().ok()?;
            let stderr = complaints.get(place).copied().unwrap_or_default();
            Some(Self { code, stdout: part[..at].to_vec(), stderr: stderr.to_vec() })
        };
        split_at_mark(&self.stdout, begin.as_bytes()).skip(1).enumerate().map(read).collect()
    }
}

fn split_at_mark<'a>(bytes: &'a [u8], mark: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let now = rest?;
        let at = memchr::memmem::find(now, mark);
        rest = at.map(|at| &now[at + mark.len()..]);
        Some(at.map_or(now, |at| &now[..at]))
    })
}

/// What [`RunCommandError::ShellFailed`] means, in words.
pub const SHELL_FAILED: &str = "The login shell on the cluster didn't run the command.";

/// Why a command gave no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RunCommandError {
    /// Nothing was sent.
    #[error("You're not connected to the cluster.")]
    NotConnected,
    /// The cluster's host key has changed; nothing was sent.
    #[error(
        "The cluster's host key has changed. The portal sends nothing to it until an administrator has reviewed it."
    )]
    HostKeyInDoubt,
    /// All sessions are in use; nothing was sent.
    #[error("The cluster is busy with your other requests. Try again in a moment.")]
    Busy,
    /// The budget of calls per minute is used up; nothing was sent.
    #[error("The portal has reached its limit of requests to this cluster. It tries again within a minute.")]
    OverBudget,
    /// It took too long and was ended, both here and on the cluster.
    #[error("The cluster didn't respond in time.")]
    TimedOut,
    #[error("The cluster's reply was too long.")]
    OutputTooLong,
    /// It ran and printed something else than it should.
    #[error("The cluster's reply was incomplete.")]
    IncompleteReply,
    /// The connection broke after the command was sent: it may or may not have run.
    #[error("The connection to the cluster was lost.")]
    ConnectionLost,
    /// The forced command of an automation host does not allow it.
    #[error("The automation host doesn't allow this command: {0}")]
    Rejected(String),
    /// The login shell did not reach the command; what it printed instead.
    #[error("{sentence} It said: {0}", sentence = SHELL_FAILED)]
    ShellFailed(String),
    #[error("This can't be sent to the cluster: {0}.")]
    InvalidCommand(#[from] InvalidCommandError),
}

type SharedRead = Arc<OnceCell<Result<Arc<CommandOutput>, RunCommandError>>>;

/// An open connection.
pub struct ClusterConnection {
    pub(super) session: Arc<Session>,
    pub(super) slots: SessionSlots,
    pub(super) call_budget: CallBudget,
    pub(super) sftp_sessions: SftpSessionCache,
    pub(super) transfer_sessions: TransferSessionPool,
    pub(super) folder_changes: Arc<AtomicU64>,
    master: ControlMaster,
    dialect: RwLock<Arc<RemoteCommandMode>>,
    shared_reads: Mutex<HashMap<String, SharedRead>>,
}

impl ClusterConnection {
    /// Attaches to a control master.
    pub fn new(master: ControlMaster, dialect: RemoteCommandMode, sessions: usize, calls_per_minute: u32) -> Arc<Self> {
        let session = Session::resume_mux(master.folder().control_socket().into(), None);
        Arc::new(Self {
            session: Arc::new(session),
            slots: SessionSlots::new(sessions),
            call_budget: CallBudget::new(calls_per_minute),
            sftp_sessions: SftpSessionCache::default(),
            transfer_sessions: TransferSessionPool::default(),
            folder_changes: Arc::default(),
            master,
            dialect: RwLock::new(Arc::new(dialect)),
            shared_reads: Mutex::default(),
        })
    }

    /// Grows with each change of files over this connection: what was listed before may be outdated.
    pub fn folder_changes(&self) -> u64 {
        self.folder_changes.load(Ordering::Relaxed)
    }

    /// The process that holds the connection.
    pub const fn master(&self) -> &ControlMaster {
        &self.master
    }

    pub const fn call_budget(&self) -> &CallBudget {
        &self.call_budget
    }

    /// How many sessions the server is known to allow.
    pub fn session_limit(&self) -> usize {
        self.slots.limit()
    }

    /// Tries the original number of sessions again once refusals are long past.
    pub fn raise_session_limit(&self) {
        self.slots.raise_limit();
    }

    /// Sets how commands are written from now on.
    pub fn set_dialect(&self, dialect: RemoteCommandMode) {
        *self.dialect.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(dialect);
    }

    pub(super) fn dialect(&self) -> Arc<RemoteCommandMode> {
        self.dialect.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Runs a command. It continues to its end or deadline even if the caller stops waiting, so that its session slot
    /// stays taken for as long as the server counts the session.
    pub async fn run(
        self: &Arc<Self>,
        command: RemoteCommand,
        urgency: CallUrgency,
    ) -> Result<CommandOutput, RunCommandError> {
        let dialect = self.dialect();
        let line = command.to_command_line(&dialect)?;
        self.call_budget.admit(urgency, Instant::now())?;
        let (sender, receiver) = oneshot::channel();
        let this = self.clone();
        tokio::spawn(async move {
            exec::execute(&this, line, command, &dialect, urgency, sender).await;
        });
        let result = receiver.await.unwrap_or(Err(RunCommandError::ConnectionLost));
        self.call_budget.record_result(&result, Instant::now());
        result
    }

    /// Runs a read-only command; callers who run the same command at the same time share one result.
    pub async fn run_shared(
        self: &Arc<Self>,
        command: RemoteCommand,
        urgency: CallUrgency,
    ) -> Result<Arc<CommandOutput>, RunCommandError> {
        let key = command.to_command_line(&self.dialect())?;
        let flight = self.lock_shared_reads().entry(key.clone()).or_default().clone();
        let result = flight.get_or_init(async || self.run(command, urgency).await.map(Arc::new)).await.clone();
        let mut flights = self.lock_shared_reads();
        // The next caller gets a fresh result; a call that started in the meantime is a different one.
        if flights.get(&key).is_some_and(|current| Arc::ptr_eq(current, &flight)) {
            flights.remove(&key);
        }
        result
    }

    /// Whether the local end still answers. The master itself notices a silent network later.
    pub async fn is_open(&self) -> bool {
        const WITHIN: Duration = Duration::from_secs(3);
        matches!(tokio::time::timeout(WITHIN, self.session.check()).await, Ok(Ok(())))
    }

    fn lock_shared_reads(&self) -> std::sync::MutexGuard<'_, HashMap<String, SharedRead>> {
        self.shared_reads.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for ClusterConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ClusterConnection").field("master", &self.master.pid()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a local shell makes of a batch.
    fn carried_out(commands: &[RemoteCommand]) -> Vec<Option<CommandOutput>> {
        let batch = RemoteCommand::batch("k3j9x0ab", commands).unwrap();
        let line = batch.to_command_line(&RemoteCommandMode::Bare).unwrap();
        let done = std::process::Command::new("/bin/sh").args(["-c", &line]).output().unwrap();
        CommandOutput { code: 0, stdout: done.stdout, stderr: done.stderr }.split_batch("k3j9x0ab")
    }

    #[test]
    fn a_batch_tells_each_command_apart() {
        let parts = carried_out(&[
            RemoteCommand::new("printf").arg("no line end, it's $HOME"),
            RemoteCommand::new("sh").args(["-c", "echo out; echo oh >&2; exit 3"]),
            RemoteCommand::new("true"),
            RemoteCommand::new("date").args(["+%Y", "-d", "@0"]),
        ]);
        let parts: Vec<CommandOutput> = parts.into_iter().map(Option::unwrap).collect();
        assert_eq!(parts[0].stdout_text(), "no line end, it's $HOME");
        assert_eq!((parts[1].code, parts[1].stdout_text(), parts[1].stderr_text()), (3, "out\n".into(), "oh\n".into()));
        assert_eq!((parts[2].code, parts[2].stdout_text()), (0, String::new()));
        assert_eq!(parts[3].stdout_text(), "1970\n");
    }

    #[test]
    fn a_batch_that_was_cut_off_has_its_first_parts() {
        let output =
            CommandOutput { code: 0, stdout: b"n0n\nfirst\nn0n=0\nn0n\nhalf of the sec".to_vec(), stderr: Vec::new() };
        let parts = output.split_batch("n0n");
        assert_eq!(parts.len(), 2);
        assert_eq!(parts[0].as_ref().unwrap().stdout_text(), "first\n");
        assert_eq!(parts[1], None);
    }
}
