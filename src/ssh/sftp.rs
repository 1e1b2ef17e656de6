//! Files on a cluster, over an open connection. An operation counts as one call and takes a session slot, as a command
//! does; [`transfer`] has sessions of its own for large amounts. Paths go to the server unchanged and never to a shell.
//! Replies come from a machine that is not ours: they are limited in number and time, and names may contain anything.

mod open;
mod operations;
mod packet;
mod session;
mod session_cache;
pub mod transfer;

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

pub use self::packet::SetAttrs;
use self::packet::{SftpAttrs, SftpRequest, SftpStatus};
use self::session::{REPLY_TIMEOUT, SftpFault, SftpSession};
pub use self::session_cache::SftpSessionCache;
use self::session_cache::get_session;
use super::connection::{ClusterConnection, RunCommandError};
use super::slots::CallUrgency;
use crate::clock::UnixTime;
use crate::domain::{RemoteName, RemotePath};
use crate::text::strip_hidden;

/// Time limit for resolving links; the folder itself has been read by then.
const FOLLOW_LINKS_TIMEOUT: Duration = Duration::from_secs(4);
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
    /// A folder where a file was expected.
    #[error("This is a folder, not a file.")]
    NotAFile,
    /// A pipe, a device or a socket: reading it may never end.
    #[error("This is a device, a pipe or a broken link. Only regular files can be opened.")]
    SpecialFile,
    #[error("A file or folder with this name already exists.")]
    AlreadyExists,
    /// The server did not write it, and does not say why.
    #[error("The cluster couldn't write this. The disk may be full, or you may have reached your quota.")]
    NotWritten,
    /// Something else, such as a link, is where it was.
    #[error("It was replaced by something else in the meantime. Check the folder and who can write to it.")]
    Replaced,
    /// The old file was moved aside, and couldn't be moved back.
    #[error("The file couldn't be replaced, and its previous version is now called {0}. Rename that to get it back.")]
    NotReplaced(String),
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
    /// Permission bits, if the server tells them.
    pub mode: Option<u32>,
    /// The numbers of user and group, if the server tells them.
    pub owner: Option<(u32, u32)>,
}

/// One name in a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteDirEntry {
    pub name: RemoteName,
    /// Of the target, if it is a link that leads somewhere.
    pub attrs: RemoteFileAttrs,
    pub is_link: bool,
}

/// The contents of a folder.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RemoteDirListing {
    /// In the server's order.
    pub entries: Vec<RemoteDirEntry>,
    pub is_truncated: bool,
}

/// The size of the file system that a path is on, and what is free for this account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    pub bytes: u64,
    pub free_bytes: u64,
    pub files: u64,
    pub free_files: u64,
}

/// What happens if the new name is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RenameMode {
    /// Fails with [`SftpError::AlreadyExists`].
    KeepExisting,
    /// Replaces a file: in one step, where the server can. If it fails with [`SftpError::NotReplaced`], the new file is the
    /// only one that is known to be whole: keep it.
    Replace,
}

/// Lists a folder, up to `most` names.
pub async fn list(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
    most: usize,
) -> Result<RemoteDirListing, SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| operations::list(&session, &path, most).await).await
}

/// Reads the attributes of one file or folder; follows links.
pub async fn stat(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<RemoteFileAttrs, SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| Ok(operations::stat(&session, &path).await?)).await
}

/// Reads the attributes of one file, folder or link.
pub async fn lstat(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<RemoteFileAttrs, SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| Ok(operations::lstat(&session, &path).await?)).await
}

/// Reads a short file, up to `most` bytes plus one: that extra byte shows that the file is longer.
pub async fn read(connection: &Arc<ClusterConnection>, path: &RemotePath, most: usize) -> Result<Vec<u8>, SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| operations::read(&session, &path, most).await).await
}

/// Writes a new, short file with these permissions (the account's default ones if `None`). Fails if the name is taken;
/// leaves nothing behind if it fails halfway.
pub async fn write_new(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
    bytes: Vec<u8>,
    mode: Option<u32>,
) -> Result<(), SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| {
        operations::write_new(&session, &path, &bytes, mode, SetAttrs::default()).await
    })
    .await
}

/// Creates a folder with the account's default permissions.
pub async fn make_folder(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<(), SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| operations::make_folder(&session, &path).await).await
}

/// Gives a file or folder another name or place on the same file system.
pub async fn rename(
    connection: &Arc<ClusterConnection>,
    from: &RemotePath,
    to: &RemotePath,
    mode: RenameMode,
) -> Result<(), SftpError> {
    let (from, to) = (from.clone(), to.clone());
    run_operation(connection, async move |session| operations::rename(&session, &from, &to, mode).await).await
}

/// Removes a file or a link.
pub async fn remove_file(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<(), SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| {
        Ok(session.run(SftpRequest::Remove { path: path.as_bytes() }).await?)
    })
    .await
}

/// Removes an empty folder.
pub async fn remove_folder(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<(), SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| {
        Ok(session.run(SftpRequest::RemoveDir { path: path.as_bytes() }).await?)
    })
    .await
}

/// Sets the permission bits.
pub async fn set_mode(connection: &Arc<ClusterConnection>, path: &RemotePath, mode: u32) -> Result<(), SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| Ok(operations::set_mode(&session, &path, mode).await?)).await
}

/// The target of a link, as it is written in it.
pub async fn read_link(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<Vec<u8>, SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| Ok(operations::read_link(&session, &path).await?)).await
}

/// Where a path leads once all links are followed.
pub async fn real_path(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<RemotePath, SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| Ok(operations::real_path(&session, &path).await?)).await
}

/// The folder that sessions begin in: the account's home folder.
pub async fn start_folder(connection: &Arc<ClusterConnection>) -> Result<RemotePath, SftpError> {
    run_operation(connection, async move |session| {
        let names = session.names(SftpRequest::RealPath { path: b"." }).await?;
        let path = names.first().and_then(|named| RemotePath::parse(&named.name).ok());
        Ok(path.ok_or(SftpFault::Unexpected)?)
    })
    .await
}

/// The space of the file system; `None` if the server can't tell.
pub async fn disk_space(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
) -> Result<Option<DiskSpace>, SftpError> {
    let path = path.clone();
    run_operation(connection, async move |session| Ok(operations::disk_space(&session, &path).await?)).await
}

/// How an operation fails: with a protocol error, or with a reason that we found.
enum RawSftpError {
    Fault(SftpFault),
    Classified(SftpError),
}

impl From<SftpFault> for RawSftpError {
    fn from(fault: SftpFault) -> Self {
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
        Ok(result) => result.map_err(|error| error.into_error(&session)),
        Err(_) => Err(RawSftpError::Fault(SftpFault::TimedOut).into_error(&session)),
    }
}

impl RawSftpError {
    /// What the caller is told; a session that broke or may hang forever isn't used again.
    fn into_error(self, session: &SftpSession) -> SftpError {
        match self {
            Self::Classified(error) => error,
            Self::Fault(SftpFault::Status(status)) => error_from_status(&status),
            Self::Fault(SftpFault::TimedOut) => {
                session.invalidate();
                RunCommandError::TimedOut.into()
            }
            Self::Fault(fault @ (SftpFault::Closed | SftpFault::Unexpected)) => {
                tracing::debug!(%fault, "An SFTP session broke");
                session.invalidate();
                RunCommandError::ConnectionLost.into()
            }
        }
    }
}

fn error_from_status(status: &SftpStatus) -> SftpError {
    match status.code {
        SftpStatus::NO_SUCH_FILE => SftpError::NotFound,
        SftpStatus::PERMISSION_DENIED => SftpError::NotAllowed,
        _ => SftpError::Refused(strip_hidden(&status.message, MAX_QUOTE_CHARS)),
    }
}

fn parse_attrs(attrs: &SftpAttrs) -> RemoteFileAttrs {
    const TYPE: u32 = 0o170_000;
    const PERMISSIONS: u32 = 0o7777;
    let kind = match attrs.mode.map(|mode| mode & TYPE) {
        Some(0o040_000) => RemoteFileKind::Folder,
        Some(0o100_000) => RemoteFileKind::File,
        Some(0o120_000) => RemoteFileKind::Link,
        _ => RemoteFileKind::Other,
    };
    RemoteFileAttrs {
        kind,
        size: attrs.size.unwrap_or_default(),
        modified: attrs.times.map(|(_, modified)| modified).filter(|at| *at > 0).map(|at| UnixTime(at.into())),
        mode: attrs.mode.map(|mode| mode & PERMISSIONS),
        owner: attrs.owner,
    }
}
