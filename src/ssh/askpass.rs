//! Passes a server's questions on to the browser. ssh starts a helper program for each question. The helper is this
//! same program (an environment variable tells it so): it sends the question over a private socket and prints the
//! answer.

use std::io::{self, Read as _, Write as _};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream as BlockingStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use secrecy::{ExposeSecret as _, SecretString};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;
use zeroize::Zeroizing;

use super::process::is_allowed_peer;

/// Tells the helper which socket to use. If it is set, this program acts as the helper.
pub const ASKPASS_SOCKET_VARIABLE: &str = "PORTOLAN_ASKPASS_SOCKET";

/// ssh cannot pass more in one argument anyway.
const MAX_QUESTION_BYTES: u64 = 128 * 1024;
/// The helper writes its question immediately.
const READ_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest answer that ssh accepts.
pub const MAX_ANSWER_BYTES: usize = 1023;

/// Runs the helper: asks the portal and prints the answer. `None` if this process is not the helper.
pub fn run_askpass_helper() -> Option<ExitCode> {
    let socket = std::env::var_os(ASKPASS_SOCKET_VARIABLE)?;
    let question = std::env::args_os().nth(1).unwrap_or_default();
    let asked = ask_portal(Path::new(&socket), question.as_encoded_bytes());
    // No answer arrived. The portal ends ssh in that case.
    Some(if asked.is_ok() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn ask_portal(socket: &Path, question: &[u8]) -> io::Result<()> {
    let mut stream = BlockingStream::connect(socket)?;
    stream.write_all(question)?;
    stream.shutdown(Shutdown::Write)?;
    let mut answer = Zeroizing::new(Vec::with_capacity(MAX_ANSWER_BYTES + 1));
    stream.read_to_end(&mut answer)?;
    if answer.is_empty() {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    io::stdout().write_all(&answer)
}

/// The portal's end of the socket. A separate task accepts questions, so that the caller can wait for other things at
/// the same time without losing one.
pub(super) struct AskpassListener {
    questions: mpsc::Receiver<AskpassQuestion>,
    task: AbortHandle,
}

/// A question that waits for its answer.
pub(super) struct AskpassQuestion {
    /// The server's question, unchanged.
    pub text: String,
    stream: UnixStream,
}

impl AskpassListener {
    /// Opens the socket for processes that `allowed` accepts by their process ID.
    pub(super) fn bind(path: &Path, allowed: impl Fn(i32) -> bool + Send + Sync + 'static) -> io::Result<Self> {
        let listener = UnixListener::bind(path)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        let (sender, questions) = mpsc::channel(1);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                if let Some(question) = read_question(stream, &allowed).await
                    && sender.send(question).await.is_err()
                {
                    return;
                }
            }
        });
        Ok(Self { questions, task: task.abort_handle() })
    }

    pub(super) async fn next_question(&mut self) -> Option<AskpassQuestion> {
        self.questions.recv().await
    }
}

impl Drop for AskpassListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Reads a question from our own ssh; rejects everyone else.
async fn read_question(mut stream: UnixStream, allowed: &impl Fn(i32) -> bool) -> Option<AskpassQuestion> {
    if !is_allowed_peer(&stream, allowed) {
        tracing::warn!(peer = ?stream.peer_cred(), "An unknown process connected to the socket for login prompts");
        return None;
    }
    let mut text = Vec::new();
    let mut bounded = (&mut stream).take(MAX_QUESTION_BYTES);
    tokio::time::timeout(READ_TIMEOUT, bounded.read_to_end(&mut text)).await.ok()?.ok()?;
    Some(AskpassQuestion { text: String::from_utf8_lossy(&text).into_owned(), stream })
}

impl AskpassQuestion {
    /// Sends the answer. ssh would cut it off at a line break, so such answers are refused earlier.
    pub(super) async fn answer(mut self, answer: &SecretString) -> io::Result<()> {
        let line = Zeroizing::new(format!("{}\n", answer.expose_secret()));
        self.stream.write_all(line.as_bytes()).await?;
        self.stream.shutdown().await
    }
}
