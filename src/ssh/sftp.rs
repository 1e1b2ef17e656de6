//! Files of a cluster, over a connection that stands: the only place that names `russh_sftp`. A verb counts as one call
//! and takes a place on the connection, as a command does. Paths go to the server as they are and never to a shell.
//! What comes back is of a machine that is not ours: bounded in number and time, and names may hold anything.

mod kept;

use std::sync::Arc;
use std::time::{Duration, Instant};

use russh_sftp::client::error::Error as Fault;
use russh_sftp::protocol::{FileAttributes, StatusCode};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use self::kept::Shelf;
use self::kept::{Session, session};
use super::line::{Line, RunError};
use super::slots::Urgency;
use crate::clock::UnixTime;
use crate::domain::is_trick;

/// How long the server may take for one answer, once a session is open.
const WITHIN: Duration = Duration::from_secs(15);
/// How long it may take to see where links lead; the folder itself is known by then.
const FOLLOWED_WITHIN: Duration = Duration::from_secs(4);
/// Every server gives this much in one answer.
const READ_AT_ONCE: u32 = 32 * 1024;
/// No more is quoted of what a server says.
const LONGEST_QUOTE: usize = 200;

/// Why a verb was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SftpError {
    /// The connection, or its limits.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The server has no file service, or something speaks before it does.
    #[error(
        "The cluster's file service (SFTP) did not answer as it should. It may be switched off there, or your login files (such as .bashrc) print something when they should be silent."
    )]
    NoService,
    /// No such file or folder.
    #[error("There is no such file or folder.")]
    NotThere,
    /// The person's own account may not.
    #[error("Your account on the cluster may not do this.")]
    NotAllowed,
    /// A file where a folder was expected.
    #[error("This is a file, not a folder.")]
    NotAFolder,
    /// The name is taken.
    #[error("There is something of this name already.")]
    AlreadyThere,
    /// The server said no, in its own words.
    #[error("The cluster refused: {0}")]
    Refused(String),
}

/// What is behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A folder.
    Folder,
    /// A file.
    File,
    /// A link that leads nowhere, or was not followed.
    Link,
    /// A device, a pipe, a socket.
    Other,
}

/// What the server says of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Facts {
    /// What it is.
    pub kind: Kind,
    /// Its length in bytes.
    pub size: u64,
    /// When it was last written.
    pub modified: Option<UnixTime>,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The name; bytes that are no text are replaced.
    pub name: String,
    /// Whether this is the name to the last byte: only then can it be asked for.
    pub is_exact: bool,
    /// What is behind it; links are followed.
    pub facts: Facts,
}

/// What is in a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Contents {
    /// The names, in the server's order.
    pub named: Vec<Named>,
    /// Whether there are more.
    pub is_cut: bool,
}

/// Lists a folder, but no more than `most` names of it.
pub async fn list(line: &Arc<Line>, path: &str, most: usize) -> Result<Contents, SftpError> {
    let path = path.to_owned();
    ask(line, async move |session| {
        let mut contents = match read_folder(&session, &path, most).await {
            Err(fault) => return Err(why_no_folder(&session, &path, fault).await),
            Ok(contents) => contents,
        };
        follow_links(&session, &path, &mut contents.named).await;
        Ok(contents)
    })
    .await
}

/// Tells of one file or folder; links are followed.
pub async fn stat(line: &Arc<Line>, path: &str) -> Result<Facts, SftpError> {
    let path = path.to_owned();
    ask(line, async move |session| Ok(facts(&session.raw.stat(path).await?.attrs))).await
}

/// Reads a short file, but no more than `most` bytes and one: whoever gets that many knows that it is longer.
pub async fn read(line: &Arc<Line>, path: &str, most: usize) -> Result<Vec<u8>, SftpError> {
    let path = path.to_owned();
    ask(line, async move |session| {
        // Opening a pipe would wait for someone to write into it.
        if facts(&session.raw.stat(path.as_str()).await?.attrs).kind != Kind::File {
            return Err(Failed::Known(SftpError::NotThere));
        }
        let flags = russh_sftp::protocol::OpenFlags::READ;
        let handle = session.raw.open(path, flags, FileAttributes::empty()).await?.handle;
        let mut bytes = Vec::new();
        let read = loop {
            let left = u32::try_from((most + 1).saturating_sub(bytes.len())).unwrap_or(u32::MAX);
            if left == 0 {
                break Ok(());
            }
            let at = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
            match session.raw.read(handle.as_str(), at, left.min(READ_AT_ONCE)).await {
                Ok(data) if data.data.is_empty() => break Ok(()),
                Ok(data) => bytes.extend_from_slice(&data.data),
                Err(Fault::Status(said)) if said.status_code == StatusCode::Eof => break Ok(()),
                Err(fault) => break Err(fault),
            }
        };
        let _ = session.raw.close(handle).await;
        read?;
        bytes.truncate(most + 1);
        Ok(bytes)
    })
    .await
}

/// Makes a folder, with the rights that the account gives by itself.
pub async fn make_folder(line: &Arc<Line>, path: &str) -> Result<(), SftpError> {
    let path = path.to_owned();
    ask(line, async move |session| {
        let Err(fault) = session.raw.mkdir(path.as_str(), FileAttributes::empty()).await else {
            return Ok(());
        };
        // That a name is taken is no error of its own in this protocol.
        let is_unclear =
            matches!(&fault, Fault::Status(said) if said.status_code == StatusCode::Failure);
        if is_unclear && session.raw.lstat(path).await.is_ok() {
            return Err(Failed::Known(SftpError::AlreadyThere));
        }
        Err(fault.into())
    })
    .await
}

/// How a verb fails: the protocol's way, or one that was found out.
enum Failed {
    Fault(Fault),
    Known(SftpError),
}

impl From<Fault> for Failed {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Carries a verb out. It goes on to its end or deadline even if the caller stops waiting, so that nothing stays open
/// at the server.
async fn ask<T: Send + 'static, Asked: Future<Output = Result<T, Failed>> + Send + 'static>(
    line: &Arc<Line>,
    verb: impl FnOnce(Arc<Session>) -> Asked + Send + 'static,
) -> Result<T, SftpError> {
    line.tally.admit(Urgency::Interactive, Instant::now())?;
    let (tell, told) = oneshot::channel();
    let this = line.clone();
    tokio::spawn(async move {
        let _ = tell.send(carry_out(&this, verb).await);
    });
    let result = told.await.unwrap_or(Err(RunError::Lost.into()));
    // A folder that is not there is an answer, and no failure of the connection.
    let failure = match &result {
        Err(SftpError::Run(error)) => Err(error.clone()),
        _ => Ok(()),
    };
    line.tally.note(&failure, Instant::now());
    result
}

async fn carry_out<T, Asked: Future<Output = Result<T, Failed>>>(
    line: &Arc<Line>,
    verb: impl FnOnce(Arc<Session>) -> Asked,
) -> Result<T, SftpError> {
    let begun = Instant::now();
    let session = session(line).await?;
    let asked = tokio::time::timeout(WITHIN + FOLLOWED_WITHIN, verb(session.clone())).await;
    metrics::histogram!("portolan_cluster_command_seconds").record(begun.elapsed().as_secs_f64());
    match asked {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(Failed::Known(error))) => Err(error),
        Ok(Err(Failed::Fault(Fault::Status(said)))) => {
            Err(of_status(said.status_code, &said.error_message))
        }
        // Whatever it is busy with, it may never come to an end: the next one gets a session of its own.
        Err(_) | Ok(Err(Failed::Fault(Fault::Timeout))) => {
            session.spoil();
            Err(RunError::Late.into())
        }
        Ok(Err(Failed::Fault(fault))) => {
            tracing::debug!(%fault, "A file session broke");
            session.spoil();
            Err(RunError::Lost.into())
        }
    }
}

fn of_status(code: StatusCode, said: &str) -> SftpError {
    match code {
        StatusCode::NoSuchFile => SftpError::NotThere,
        StatusCode::PermissionDenied => SftpError::NotAllowed,
        _ => {
            let said = said.chars().filter(|c| !is_trick(*c)).take(LONGEST_QUOTE);
            SftpError::Refused(said.collect())
        }
    }
}

async fn read_folder(session: &Session, path: &str, most: usize) -> Result<Contents, Fault> {
    let handle = session.raw.opendir(path).await?.handle;
    let mut contents = Contents::default();
    let read = loop {
        match session.raw.readdir(handle.as_str()).await {
            // A server that never says that it is at the end is ended by the deadline.
            Ok(piece) => {
                let named = piece.files.into_iter().filter(|file| !is_dots(&file.filename));
                contents.named.extend(named.map(|file| Named {
                    is_exact: !file.filename.contains(char::REPLACEMENT_CHARACTER),
                    facts: facts(&file.attrs),
                    name: file.filename,
                }));
            }
            Err(Fault::Status(said)) if said.status_code == StatusCode::Eof => break Ok(()),
            Err(fault) => break Err(fault),
        }
        if contents.named.len() > most {
            contents.named.truncate(most);
            contents.is_cut = true;
            break Ok(());
        }
    };
    // Whether or not that went well, the server has the folder open.
    let _ = session.raw.close(handle).await;
    read.map(|()| contents)
}

fn is_dots(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// Servers say of a file that there is no such folder.
async fn why_no_folder(session: &Session, path: &str, fault: Fault) -> Failed {
    let is_unclear = |code| matches!(code, StatusCode::NoSuchFile | StatusCode::Failure);
    if let Fault::Status(said) = &fault
        && is_unclear(said.status_code)
        && let Ok(there) = session.raw.stat(path).await
        && facts(&there.attrs).kind != Kind::Folder
    {
        return Failed::Known(SftpError::NotAFolder);
    }
    fault.into()
}

/// Looks where links lead, all at the same time. One of them may lead to a disk that does not answer; then the server
/// hangs, but what is known by then is told.
async fn follow_links(session: &Arc<Session>, folder: &str, named: &mut [Named]) {
    let mut asked = JoinSet::new();
    for (place, one) in named.iter().enumerate() {
        if one.facts.kind == Kind::Link && one.is_exact {
            let path = format!("{}/{}", folder.trim_end_matches('/'), one.name);
            let session = session.clone();
            asked.spawn(async move { (place, session.raw.stat(path).await) });
        }
    }
    let until = tokio::time::Instant::now() + FOLLOWED_WITHIN;
    loop {
        match tokio::time::timeout_at(until, asked.join_next()).await {
            Ok(Some(Ok((place, Ok(there))))) => {
                if let Some(one) = named.get_mut(place) {
                    one.facts = facts(&there.attrs);
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => return session.spoil(),
        }
    }
}

fn facts(attrs: &FileAttributes) -> Facts {
    const TYPE: u32 = 0o170_000;
    let kind = match attrs.permissions.map(|mode| mode & TYPE) {
        Some(0o040_000) => Kind::Folder,
        Some(0o100_000) => Kind::File,
        Some(0o120_000) => Kind::Link,
        _ => Kind::Other,
    };
    Facts {
        kind,
        size: attrs.size.unwrap_or_default(),
        modified: attrs.mtime.filter(|at| *at > 0).map(|at| UnixTime(at.into())),
    }
}
