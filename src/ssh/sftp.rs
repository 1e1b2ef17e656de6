//! Files on a cluster, over an open connection: the only place that names `russh_sftp`. An operation counts as one
//! call and takes a session slot, as a command does. Paths go to the server unchanged and never to a shell. Replies
//! come from a machine that is not ours: they are limited in number and time, and names may contain anything.

mod session_cache;

use std::sync::Arc;
use std::time::{Duration, Instant};

use russh_sftp::client::error::Error as Fault;
use russh_sftp::protocol::{FileAttributes, StatusCode};
use tokio::sync::oneshot;
use tokio::task::JoinSet;

pub use self::session_cache::SftpSessionCache;
use self::session_cache::{SftpSession, get_session};
use super::connection::{ClusterConnection, RunCommandError};
use super::slots::CallUrgency;
use crate::clock::UnixTime;
use crate::text::strip_hidden;

/// How long the server may take for one reply, once a session is open.
const REPLY_TIMEOUT: Duration = Duration::from_secs(15);
/// Time limit for resolving links; the folder itself has been read by then.
const FOLLOW_LINKS_TIMEOUT: Duration = Duration::from_secs(4);
/// Every server returns this much in one reply.
const READ_CHUNK: u32 = 32 * 1024;
const MAX_QUOTE_CHARS: usize = 200;

/// Why an operation failed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SftpError {
    #[error(transparent)]
    Run(#[from] RunCommandError),
    /// The server has no SFTP service, or something prints before it does.
    #[error(
        "The cluster's file transfer service (SFTP) gave an unexpected reply. It may be turned off, or one of your startup files (such as .bashrc) may print text when you log in."
    )]
    NoService,
    #[error("This file or folder doesn't exist.")]
    NotFound,
    /// The person's own account lacks permission.
    #[error("You don't have permission to do this.")]
    NotAllowed,
    /// A file where a folder was expected.
    #[error("This is a file, not a folder.")]
    NotAFolder,
    #[error("A file or folder with this name already exists.")]
    AlreadyExists,
    /// The server refused, in its own words.
    #[error("The cluster reported an error: {0}")]
    Refused(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemoteFileKind {
    Folder,
    File,
    /// A link that is broken, or was not followed.
    Link,
    /// A device, a pipe, a socket.
    Other,
}

/// The attributes of a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteFileAttrs {
    pub kind: RemoteFileKind,
    /// In bytes.
    pub size: u64,
    pub modified: Option<UnixTime>,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDirEntry {
    /// Invalid UTF-8 is replaced.
    pub name: String,
    /// Whether the name is exact to the last byte: only then can it be requested.
    pub is_exact: bool,
    /// Links are followed.
    pub attrs: RemoteFileAttrs,
}

/// The contents of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteDirListing {
    /// In the server's order.
    pub entries: Vec<RemoteDirEntry>,
    pub is_truncated: bool,
}

/// Lists a folder, up to `most` names.
pub async fn list(connection: &Arc<ClusterConnection>, path: &str, most: usize) -> Result<RemoteDirListing, SftpError> {
    let path = path.to_owned();
    run_operation(connection, async move |session| {
        let mut contents = match read_folder(&session, &path, most).await {
            Err(fault) => return Err(explain_missing_folder(&session, &path, fault).await),
            Ok(contents) => contents,
        };
        follow_links(&session, &path, &mut contents.entries).await;
        Ok(contents)
    })
    .await
}

/// Reads the attributes of one file or folder; follows links.
pub async fn stat(connection: &Arc<ClusterConnection>, path: &str) -> Result<RemoteFileAttrs, SftpError> {
    let path = path.to_owned();
    run_operation(connection, async move |session| Ok(parse_attrs(&session.raw.stat(path).await?.attrs))).await
}

/// Reads a short file, up to `most` bytes plus one: that extra byte shows that the file is longer.
pub async fn read(connection: &Arc<ClusterConnection>, path: &str, most: usize) -> Result<Vec<u8>, SftpError> {
    let path = path.to_owned();
    run_operation(connection, async move |session| {
        // Opening a pipe would wait for someone to write to it.
        if parse_attrs(&session.raw.stat(path.as_str()).await?.attrs).kind != RemoteFileKind::File {
            return Err(RawSftpError::Classified(SftpError::NotFound));
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
            match session.raw.read(handle.as_str(), at, left.min(READ_CHUNK)).await {
                Ok(data) if data.data.is_empty() => break Ok(()),
                Ok(data) => bytes.extend_from_slice(&data.data),
                Err(Fault::Status(status)) if status.status_code == StatusCode::Eof => break Ok(()),
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

/// Creates a folder with the account's default permissions.
pub async fn make_folder(connection: &Arc<ClusterConnection>, path: &str) -> Result<(), SftpError> {
    let path = path.to_owned();
    run_operation(connection, async move |session| {
        let Err(fault) = session.raw.mkdir(path.as_str(), FileAttributes::empty()).await else {
            return Ok(());
        };
        // This protocol has no separate error for a name that already exists.
        let is_unclear = matches!(&fault, Fault::Status(status) if status.status_code == StatusCode::Failure);
        if is_unclear && session.raw.lstat(path).await.is_ok() {
            return Err(RawSftpError::Classified(SftpError::AlreadyExists));
        }
        Err(fault.into())
    })
    .await
}

/// How an operation fails: with a protocol error, or with a reason that we found.
enum RawSftpError {
    Fault(Fault),
    Classified(SftpError),
}

impl From<Fault> for RawSftpError {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// Runs an operation. It continues to its end or deadline even if the caller stops waiting, so that nothing stays
/// open on the server.
async fn run_operation<T: Send + 'static, Asked: Future<Output = Result<T, RawSftpError>> + Send + 'static>(
    connection: &Arc<ClusterConnection>,
    verb: impl FnOnce(Arc<SftpSession>) -> Asked + Send + 'static,
) -> Result<T, SftpError> {
    connection.call_budget.admit(CallUrgency::Interactive, Instant::now())?;
    let (tell, reply) = oneshot::channel();
    let this = connection.clone();
    tokio::spawn(async move {
        let _ = tell.send(execute_operation(&this, verb).await);
    });
    let result = reply.await.unwrap_or(Err(RunCommandError::ConnectionLost.into()));
    // A missing folder is a valid answer, not a failure of the connection.
    let failure = match &result {
        Err(SftpError::Run(error)) => Err(error.clone()),
        _ => Ok(()),
    };
    connection.call_budget.record_result(&failure, Instant::now());
    result
}

async fn execute_operation<T, Asked: Future<Output = Result<T, RawSftpError>>>(
    connection: &Arc<ClusterConnection>,
    verb: impl FnOnce(Arc<SftpSession>) -> Asked,
) -> Result<T, SftpError> {
    let begun = Instant::now();
    let session = get_session(connection).await?;
    let result = tokio::time::timeout(REPLY_TIMEOUT + FOLLOW_LINKS_TIMEOUT, verb(session.clone())).await;
    metrics::histogram!("portolan_cluster_command_seconds").record(begun.elapsed().as_secs_f64());
    match result {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(RawSftpError::Classified(error))) => Err(error),
        Ok(Err(RawSftpError::Fault(Fault::Status(status)))) => {
            Err(error_from_status(status.status_code, &status.error_message))
        }
        // This session may hang forever: the next operation gets a new one.
        Err(_) | Ok(Err(RawSftpError::Fault(Fault::Timeout))) => {
            session.invalidate();
            Err(RunCommandError::TimedOut.into())
        }
        Ok(Err(RawSftpError::Fault(fault))) => {
            tracing::debug!(%fault, "An SFTP session broke");
            session.invalidate();
            Err(RunCommandError::ConnectionLost.into())
        }
    }
}

fn error_from_status(code: StatusCode, message: &str) -> SftpError {
    match code {
        StatusCode::NoSuchFile => SftpError::NotFound,
        StatusCode::PermissionDenied => SftpError::NotAllowed,
        _ => SftpError::Refused(strip_hidden(message, MAX_QUOTE_CHARS)),
    }
}

async fn read_folder(session: &SftpSession, path: &str, most: usize) -> Result<RemoteDirListing, Fault> {
    let handle = session.raw.opendir(path).await?.handle;
    let mut contents = RemoteDirListing::default();
    let read = loop {
        match session.raw.readdir(handle.as_str()).await {
            // If a server never reports the end, the deadline stops it.
            Ok(piece) => {
                let named = piece.files.into_iter().filter(|file| !is_dot_entry(&file.filename));
                contents.entries.extend(named.map(|file| RemoteDirEntry {
                    is_exact: !file.filename.contains(char::REPLACEMENT_CHARACTER),
                    attrs: parse_attrs(&file.attrs),
                    name: file.filename,
                }));
            }
            Err(Fault::Status(status)) if status.status_code == StatusCode::Eof => break Ok(()),
            Err(fault) => break Err(fault),
        }
        if contents.entries.len() > most {
            contents.entries.truncate(most);
            contents.is_truncated = true;
            break Ok(());
        }
    };
    // Whether or not that succeeded, the server has the folder open.
    let _ = session.raw.close(handle).await;
    read.map(|()| contents)
}

fn is_dot_entry(name: &str) -> bool {
    matches!(name, "." | "..")
}

/// For a file, servers report that there is no such folder.
async fn explain_missing_folder(session: &SftpSession, path: &str, fault: Fault) -> RawSftpError {
    let is_unclear = |code| matches!(code, StatusCode::NoSuchFile | StatusCode::Failure);
    if let Fault::Status(status) = &fault
        && is_unclear(status.status_code)
        && let Ok(target) = session.raw.stat(path).await
        && parse_attrs(&target.attrs).kind != RemoteFileKind::Folder
    {
        return RawSftpError::Classified(SftpError::NotAFolder);
    }
    fault.into()
}

/// Resolves all links at the same time. One of them may point to a disk that does not answer; then the server hangs,
/// but what is known by then is returned.
async fn follow_links(session: &Arc<SftpSession>, folder: &str, named: &mut [RemoteDirEntry]) {
    let mut lookups = JoinSet::new();
    for (index, entry) in named.iter().enumerate() {
        if entry.attrs.kind == RemoteFileKind::Link && entry.is_exact {
            let path = format!("{}/{}", folder.trim_end_matches('/'), entry.name);
            let session = session.clone();
            lookups.spawn(async move { (index, session.raw.stat(path).await) });
        }
    }
    let until = tokio::time::Instant::now() + FOLLOW_LINKS_TIMEOUT;
    loop {
        match tokio::time::timeout_at(until, lookups.join_next()).await {
            Ok(Some(Ok((index, Ok(target))))) => {
                if let Some(entry) = named.get_mut(index) {
                    entry.attrs = parse_attrs(&target.attrs);
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => return session.invalidate(),
        }
    }
}

fn parse_attrs(attrs: &FileAttributes) -> RemoteFileAttrs {
    const TYPE: u32 = 0o170_000;
    let kind = match attrs.permissions.map(|mode| mode & TYPE) {
        Some(0o040_000) => RemoteFileKind::Folder,
        Some(0o100_000) => RemoteFileKind::File,
        Some(0o120_000) => RemoteFileKind::Link,
        _ => RemoteFileKind::Other,
    };
    RemoteFileAttrs {
        kind,
        size: attrs.size.unwrap_or_default(),
        modified: attrs.mtime.filter(|at| *at > 0).map(|at| UnixTime(at.into())),
    }
}
