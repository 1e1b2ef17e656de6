//! Opens a connection, with the person's help if the server asks questions: starts ssh, signs with the key from
//! memory, and passes questions on.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::agent::SshAgent;
use super::askpass::{ASKPASS_SOCKET_VARIABLE, AskpassListener, AskpassQuestion, MAX_ANSWER_BYTES};
use super::control_master::{self, ControlMaster};
use super::keys::PrivateKey;
use super::login_error::{ConnectError, SshLoginError, SshLoginFacts};
use super::process;
use super::route::{ConnectionFolder, SshRoute, read_head_and_tail};

/// How often to check whether the login is complete: the control socket appears then.
const POLL_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum size of ssh's own log.
const MAX_LOG_BYTES: u32 = 1024 * 1024;
/// How much is kept of what a server prints besides its questions.
const MAX_NOTICE_BYTES: usize = 16 * 1024;

/// Whether a person is there to answer questions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LoginAttendance {
    Attended,
    /// A question ends the attempt.
    Unattended,
}

pub struct SshLoginRequest {
    pub folder: ConnectionFolder,
    pub route: SshRoute,
    /// The keys to offer, in this order.
    pub keys: Vec<PrivateKey>,
    /// This program, which ssh starts for questions.
    pub askpass_program: PathBuf,
    /// When the server is expected to give up.
    pub timeout: Duration,
    pub attendance: LoginAttendance,
    /// Cancels the attempt.
    pub cancel: CancellationToken,
}

/// A question from the server, for whoever can answer it.
#[derive(Debug)]
pub struct LoginQuestion {
    /// Counts the questions of this attempt.
    pub number: u32,
    /// Unchanged from the server: do not trust it.
    pub text: String,
    /// What the server printed besides the question, unchanged.
    pub notices: String,
    /// Accepts an answer that passes [`is_valid_answer`]. Dropping it without an answer cancels the attempt.
    pub answer: oneshot::Sender<SecretString>,
}

/// Whether ssh can pass an answer on: one line of reasonable length.
pub fn is_valid_answer(answer: &str) -> bool {
    answer.len() <= MAX_ANSWER_BYTES && !answer.contains(['\n', '\r', '\0'])
}

/// The result of a successful login.
#[derive(Debug)]
pub struct CompletedSshLogin {
    pub master: ControlMaster,
    /// Which of the keys was used, if any.
    pub signing_key_index: Option<usize>,
    /// How many questions were asked.
    pub questions: u32,
    /// What the server printed besides its questions, unchanged.
    pub notices: String,
}

/// Opens a connection; each of the server's questions goes to `ask`.
pub async fn log_in(
    request: SshLoginRequest,
    ask: impl Fn(LoginQuestion) + Send,
) -> Result<CompletedSshLogin, ConnectError> {
    let notices = SshServerNotices::default();
    let folder = request.folder.clone();
    let attempt =
        SshLoginAttempt { ask, cancel: request.cancel.clone(), notices: notices.clone(), questions: 0, answered: 0 };
    attempt.run(request).await.map_err(|failure| {
        folder.remove();
        ConnectError { failure, notices: notices.text() }
    })
}

struct SshLoginAttempt<Ask> {
    ask: Ask,
    cancel: CancellationToken,
    notices: SshServerNotices,
    questions: u32,
    answered: u32,
}

impl<Ask: Fn(LoginQuestion)> SshLoginAttempt<Ask> {
    async fn run(mut self, request: SshLoginRequest) -> Result<CompletedSshLogin, SshLoginError> {
        let local_fault = |error: io::Error| SshLoginError::LocalFault(error.to_string());
        let folder = request.folder;
        folder.prepare(&request.route).map_err(local_fault)?;
        let ssh = Arc::new(AtomicI32::new(0));
        let is_allowed = {
            let ssh = ssh.clone();
            move |pid| process::is_self_or_descendant(pid, ssh.load(Ordering::SeqCst))
        };
        let askpass = AskpassListener::bind(&folder.askpass_socket(), is_allowed.clone()).map_err(local_fault)?;
        let agent = SshAgent::start(&folder.agent_socket(), request.keys, is_allowed).map_err(local_fault)?;
        let mut child = spawn_ssh(&folder, &request.route, &request.askpass_program).map_err(local_fault)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        ssh.store(pid, Ordering::SeqCst);
        self.notices.collect(&mut child);
        let signed_in = self.drive(&mut child, pid, &folder, askpass, request.timeout, request.attendance);
        let signed_in = signed_in.await.and_then(|()| Ok(ControlMaster::watch(folder.clone(), pid)?));
        let signed = agent.signing_key_index();
        drop(agent);
        let _ = std::fs::remove_file(folder.askpass_socket());
        match signed_in {
            Ok(master) => {
                // Reaps the process when it ends; it does not end with this program.
                tokio::spawn(async move { child.wait().await });
                Ok(CompletedSshLogin {
                    master,
                    signing_key_index: signed,
                    questions: self.questions,
                    notices: self.notices.text(),
                })
            }
            Err(LoginWaitError::Failed(failure)) => {
                // In case it still runs: the master could not be watched.
                let _ = child.kill().await;
                Err(failure)
            }
            Err(LoginWaitError::Exited) => {
                let read = |path: PathBuf| read_head_and_tail(&path);
                let traces = SshLoginFacts { has_signed: signed.is_some(), answers: self.answered };
                Err(SshLoginError::from_logs(&read(folder.log_file()), &read(folder.jump_log_file()), traces))
            }
        }
    }

    async fn drive(
        &mut self,
        child: &mut Child,
        ssh: i32,
        folder: &ConnectionFolder,
        mut askpass: AskpassListener,
        timeout: Duration,
        attendance: LoginAttendance,
    ) -> Result<(), LoginWaitError> {
        // Recorded so that the process can be ended if this program dies in between.
        folder.write("pid", &ssh.to_string())?;
        let deadline = tokio::time::Instant::now() + timeout;
        let mut poll = tokio::time::interval(POLL_INTERVAL);
        let mut waiting: Option<AskpassQuestion> = None;
        let mut reply = oneshot::channel().1;
        let end = loop {
            tokio::select! {
                _ = child.wait() => break Err(LoginWaitError::Exited),
                () = self.cancel.cancelled() => break Err(SshLoginError::Cancelled.into()),
                () = tokio::time::sleep_until(deadline) => break Err(SshLoginError::AnswerTimedOut.into()),
                _ = poll.tick() => {
                    if folder.control_socket().exists() && control_master::find_master_pid(folder).await == Some(ssh) {
                        break Ok(());
                    }
                }
                Some(question) = askpass.next_question(), if waiting.is_none() => {
                    let text = question.text.clone();
                    // It stays open without an answer until ssh is gone.
                    waiting = Some(question);
                    if attendance == LoginAttendance::Unattended {
                        break Err(SshLoginError::NeedsPerson.into());
                    }
                    self.questions += 1;
                    let notices = self.notices.text();
                    // Each question has its own answer channel: a late answer must not reach the next question.
                    let (answer, answered) = oneshot::channel();
                    reply = answered;
                    (self.ask)(LoginQuestion { number: self.questions, text, notices, answer });
                }
                answer = &mut reply, if waiting.is_some() => {
                    let Ok(answer) = answer else { break Err(SshLoginError::Cancelled.into()) };
                    if let Some(question) = waiting.take() {
                        self.answered += 1;
                        // If it does not arrive, ssh has ended, which is detected above.
                        let _ = question.answer(&answer).await;
                    }
                }
            }
        };
        if matches!(end, Err(LoginWaitError::Failed(_))) {
            // This comes first: if a question is dropped, ssh sends an empty answer, and the server counts that as a
            // failed attempt.
            let _ = child.kill().await;
        }
        drop(waiting);
        end
    }
}

enum LoginWaitError {
    Exited,
    Failed(SshLoginError),
}

impl From<io::Error> for LoginWaitError {
    fn from(error: io::Error) -> Self {
        Self::Failed(SshLoginError::LocalFault(error.to_string()))
    }
}

impl From<SshLoginError> for LoginWaitError {
    fn from(failure: SshLoginError) -> Self {
        Self::Failed(failure)
    }
}

/// Starts ssh in its own session, so that it outlives this program, with a minimal environment.
fn spawn_ssh(folder: &ConnectionFolder, route: &SshRoute, program: &std::path::Path) -> io::Result<Child> {
    // A server can make ssh write to its log without end; ssh is killed at this size instead.
    Command::new("prlimit")
        .arg(format!("--fsize={MAX_LOG_BYTES}"))
        .args(["setsid", "ssh", "-M", "-N", "-T", "-F"])
        .arg(folder.config_file())
        .arg("-S")
        .arg(folder.control_socket())
        .arg("-E")
        .arg(folder.log_file())
        .args(["--", route.alias()])
        .current_dir("/")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder.path())
        // Otherwise questions in other scripts arrive as escape sequences.
        .env("LC_ALL", "C.UTF-8")
        .env("SSH_ASKPASS", program)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env(ASKPASS_SOCKET_VARIABLE, folder.askpass_socket())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
}

/// What a server prints besides its questions: banners and notices. Untrusted and bounded.
#[derive(Debug, Clone, Default)]
struct SshServerNotices(Arc<Mutex<Vec<u8>>>);

impl SshServerNotices {
    fn collect(&self, child: &mut Child) {
        let Some(mut stderr) = child.stderr.take() else { return };
        let collected = self.0.clone();
        tokio::spawn(async move {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut piece).await {
                let mut collected = collected.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MAX_NOTICE_BYTES.saturating_sub(collected.len());
                collected.extend_from_slice(&piece[..length.min(room)]);
            }
        });
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
