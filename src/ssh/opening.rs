//! Opening a connection, with the person if the server asks for one: starts ssh, signs with the key from memory,
//! passes questions on, and tells how far it got.

use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicI32, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use secrecy::SecretString;
use tokio::io::AsyncReadExt as _;
use tokio::process::{Child, Command};
use tokio::sync::{mpsc, watch};
use tokio_util::sync::CancellationToken;

use super::agent::Agent;
use super::failure::{Failure, Traces};
use super::keys::PrivateKey;
use super::master::{self, Master};
use super::process;
use super::prompts::{Desk, LONGEST_ANSWER, Question, SOCKET_VARIABLE};
use super::route::{Folder, Route, read_ends};

/// How often to look whether the sign-in is through: its control socket appears then.
const LOOK_EVERY: Duration = Duration::from_millis(20);
/// Bytes of ssh's own log.
const MOST_LOG: u32 = 1024 * 1024;
/// Most that is kept of what a server says besides its questions.
const MOST_NOTICES: usize = 16 * 1024;

/// Whether somebody sits in front of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attended {
    /// Questions can be answered.
    Yes,
    /// A question ends the attempt.
    No,
}

/// What is needed to open a connection.
pub struct Plan {
    /// Its private folder.
    pub folder: Folder,
    /// The way.
    pub route: Route,
    /// The keys to offer, in this order.
    pub keys: Vec<PrivateKey>,
    /// This program, for questions.
    pub program: PathBuf,
    /// When the server will have lost patience.
    pub patience: Duration,
    /// Whether somebody can answer.
    pub attended: Attended,
}

/// How far an attempt got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Stage {
    /// On the way to the host.
    Reaching,
    /// The server asks something.
    Asked {
        /// The how many-th question.
        number: u32,
        /// Its words, as they came: hostile text.
        text: String,
        /// What the server said besides, as it came.
        notices: String,
    },
    /// The answer is with the server.
    Checking {
        /// Which question was answered.
        number: u32,
    },
}

/// The handle of whoever answers.
#[derive(Debug, Clone)]
pub struct Answers {
    sender: mpsc::Sender<(u32, SecretString)>,
    cancel: CancellationToken,
}

impl Answers {
    /// Answers question `number`. False if it is no longer asked, or the answer is not one line of sane length.
    pub async fn give(&self, number: u32, answer: SecretString) -> bool {
        use secrecy::ExposeSecret as _;
        let text = answer.expose_secret();
        if text.len() > LONGEST_ANSWER || text.contains(['\n', '\r', '\0']) {
            return false;
        }
        self.sender.send((number, answer)).await.is_ok()
    }

    /// Gives the attempt up.
    pub fn give_up(&self) {
        self.cancel.cancel();
    }
}

/// A connection that stands.
#[derive(Debug)]
pub struct Opened {
    /// The master.
    pub master: Master,
    /// Which of the keys was used, if any.
    pub signed: Option<usize>,
    /// How many questions were asked.
    pub questions: u32,
    /// What the server said besides, as it came.
    pub notices: String,
}

/// An attempt that did not lead to a connection.
#[derive(Debug)]
pub struct Failed {
    /// Why.
    pub failure: Failure,
    /// What the server said besides, as it came.
    pub notices: String,
}

/// An attempt: the handle to answer with, how far it got, and its end.
pub struct Opening {
    /// For answers.
    pub answers: Answers,
    /// How far it got.
    pub stage: watch::Receiver<Stage>,
    /// Its end.
    pub end: tokio::task::JoinHandle<Result<Opened, Failed>>,
}

/// Begins to open a connection.
pub fn open(plan: Plan) -> Opening {
    let (stages, stage) = watch::channel(Stage::Reaching);
    let (sender, replies) = mpsc::channel(1);
    let answers = Answers { sender, cancel: CancellationToken::new() };
    let cancel = answers.cancel.clone();
    let end = tokio::spawn(async move {
        let notices = Notices::default();
        let attempt = Attempt {
            stages,
            replies,
            cancel,
            notices: notices.clone(),
            questions: 0,
            answered: 0,
        };
        let folder = plan.folder.clone();
        match attempt.run(plan).await {
            Ok(opened) => Ok(opened),
            Err(failure) => {
                folder.remove();
                Err(Failed { failure, notices: notices.text() })
            }
        }
    });
    Opening { answers, stage, end }
}

struct Attempt {
    stages: watch::Sender<Stage>,
    replies: mpsc::Receiver<(u32, SecretString)>,
    cancel: CancellationToken,
    notices: Notices,
    questions: u32,
    answered: u32,
}

impl Attempt {
    async fn run(mut self, plan: Plan) -> Result<Opened, Failure> {
        let here = |error: io::Error| Failure::Here(error.to_string());
        let folder = plan.folder;
        folder.prepare(&plan.route).map_err(here)?;
        let ssh = Arc::new(AtomicI32::new(0));
        let ours = {
            let ssh = ssh.clone();
            move |pid| process::is_self_or_descendant(pid, ssh.load(Ordering::SeqCst))
        };
        let desk = Desk::open(&folder.prompts(), ours.clone()).map_err(here)?;
        let agent = Agent::start(&folder.agent(), plan.keys, ours).map_err(here)?;
        let mut child = start(&folder, &plan.route, &plan.program).map_err(here)?;
        let pid = child.id().and_then(|pid| i32::try_from(pid).ok()).unwrap_or_default();
        ssh.store(pid, Ordering::SeqCst);
        self.notices.collect(&mut child);
        let signed_in =
            self.accompany(&mut child, pid, &folder, desk, plan.patience, plan.attended);
        let signed_in = signed_in.await.and_then(|()| Ok(Master::watch(folder.clone(), pid)?));
        let signed = agent.signed();
        drop(agent);
        let _ = std::fs::remove_file(folder.prompts());
        match signed_in {
            Ok(master) => {
                // Reaps the process when it ends; it is not ended with this program.
                tokio::spawn(async move { child.wait().await });
                Ok(Opened {
                    master,
                    signed,
                    questions: self.questions,
                    notices: self.notices.text(),
                })
            }
            Err(End::Failed(failure)) => {
                // If it was not ended already: the master could not be watched.
                let _ = child.kill().await;
                Err(failure)
            }
            Err(End::Exited) => {
                let read = |path: PathBuf| read_ends(&path);
                let traces = Traces { signed: signed.is_some(), answers: self.answered };
                Err(Failure::read(&read(folder.log()), &read(folder.jump_log()), traces))
            }
        }
    }

    async fn accompany(
        &mut self,
        child: &mut Child,
        ssh: i32,
        folder: &Folder,
        mut desk: Desk,
        patience: Duration,
        attended: Attended,
    ) -> Result<(), End> {
        // Kept for whoever must end it if this program dies in between.
        folder.write("pid", &ssh.to_string())?;
        let deadline = tokio::time::Instant::now() + patience;
        let mut look = tokio::time::interval(LOOK_EVERY);
        let mut waiting: Option<Question> = None;
        let end = loop {
            tokio::select! {
                _ = child.wait() => break Err(End::Exited),
                () = self.cancel.cancelled() => break Err(Failure::GivenUp.into()),
                () = tokio::time::sleep_until(deadline) => break Err(Failure::RanOut.into()),
                _ = look.tick() => {
                    if folder.control().exists() && master::pid_behind(folder).await == Some(ssh) {
                        break Ok(());
                    }
                }
                Some(question) = desk.next(), if waiting.is_none() => {
                    if attended == Attended::No {
                        // Its question stays unanswered until ssh is gone.
                        waiting = Some(question);
                        break Err(Failure::NeedsPerson.into());
                    }
                    self.questions += 1;
                    self.stages.send_replace(Stage::Asked {
                        number: self.questions,
                        text: question.text.clone(),
                        notices: self.notices.text(),
                    });
                    waiting = Some(question);
                }
                reply = self.replies.recv() => {
                    let Some((number, answer)) = reply else { break Err(Failure::GivenUp.into()) };
                    // An answer to a question that is gone is dropped: it must not reach the next one.
                    if number == self.questions && let Some(question) = waiting.take() {
                        self.answered += 1;
                        self.stages.send_replace(Stage::Checking { number });
                        // If it does not arrive, ssh has ended, and that is seen above.
                        let _ = question.answer(&answer).await;
                    }
                }
            }
        };
        if matches!(end, Err(End::Failed(_))) {
            // First of all: ssh takes a question that nobody answers any more as answered with nothing, and a server
            // counts that as a wrong try.
            let _ = child.kill().await;
        }
        drop(waiting);
        end
    }
}

enum End {
    Exited,
    Failed(Failure),
}

impl From<io::Error> for End {
    fn from(error: io::Error) -> Self {
        Self::Failed(Failure::Here(error.to_string()))
    }
}

impl From<Failure> for End {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Starts ssh in a session of its own, so that it outlives this program, with an environment that says nothing.
fn start(folder: &Folder, route: &Route, program: &std::path::Path) -> io::Result<Child> {
    // A server can make ssh write to its log without end; at this size ssh is ended instead.
    Command::new("prlimit")
        .arg(format!("--fsize={MOST_LOG}"))
        .args(["setsid", "ssh", "-M", "-N", "-T", "-F"])
        .arg(folder.config())
        .arg("-S")
        .arg(folder.control())
        .arg("-E")
        .arg(folder.log())
        .args(["--", route.alias()])
        .current_dir("/")
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .env("HOME", folder.path())
        // Otherwise questions in other scripts arrive as escapes.
        .env("LC_ALL", "C.UTF-8")
        .env("SSH_ASKPASS", program)
        .env("SSH_ASKPASS_REQUIRE", "force")
        .env(SOCKET_VARIABLE, folder.prompts())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
}

/// What a server says besides its questions: banners and notices. Hostile text, bounded.
#[derive(Debug, Clone, Default)]
struct Notices(Arc<Mutex<Vec<u8>>>);

impl Notices {
    fn collect(&self, child: &mut Child) {
        let Some(mut stderr) = child.stderr.take() else { return };
        let kept = self.0.clone();
        tokio::spawn(async move {
            let mut piece = [0; 4096];
            while let Ok(length @ 1..) = stderr.read(&mut piece).await {
                let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
                let room = MOST_NOTICES.saturating_sub(kept.len());
                kept.extend_from_slice(&piece[..length.min(room)]);
            }
        });
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}
