//! Large amounts of data. Transfers have SFTP sessions of their own, so that a folder still opens at once while gigabytes
//! pass, and share them: all transfers of a connection together never take more than a third of its sessions. A file
//! goes over several sessions at once, because one SSH channel carries at most 2 MB per round trip.

mod reader;
mod session_pool;
mod writer;

pub use self::reader::RemoteFileReader;
pub use self::session_pool::TransferSessionPool;
pub use self::writer::RemoteFileWriter;

use std::sync::Arc;

use bytes::Bytes;

use super::operations;
use super::packet::{SetAttrs, SftpOpenMode, SftpRequest};
use super::session::SftpSession;
use super::{RawSftpError, RemoteDirListing, RemoteFileAttrs, RemoteFileKind, RenameMode, SftpError};
use crate::domain::RemotePath;
use crate::entropy;
use crate::ssh::connection::ClusterConnection;
use crate::ssh::slots::CallUrgency;

/// How many bytes of one file may be under way on one session: what an SSH channel's window holds, and a little more.
const WINDOW_BYTES: usize = 9 * 256 * 1024;
/// Below this, a second session costs more than it brings.
const STRIPE_FROM_BYTES: u64 = 4 * 1024 * 1024;

/// A session that transfers share, for many short operations in a row (such as those on each file of a folder). They
/// aren't counted one by one: opening the session is.
#[derive(Clone)]
pub struct TransferSession(Arc<SftpSession>);

impl TransferSession {
    pub async fn open(connection: &Arc<ClusterConnection>) -> Result<Self, SftpError> {
        session_pool::get_session(connection).await.map(Self)
    }

    /// The same for a guest of the connection's owner: opening a session takes nothing of the owner's budget.
    pub async fn open_for_guest(connection: &Arc<ClusterConnection>) -> Result<Self, SftpError> {
        session_pool::get_session_for(connection, CallUrgency::Guest).await.map(Self)
    }

    pub async fn stat(&self, path: &RemotePath) -> Result<RemoteFileAttrs, SftpError> {
        self.explain(operations::stat(&self.0, path).await)
    }

    pub async fn lstat(&self, path: &RemotePath) -> Result<RemoteFileAttrs, SftpError> {
        self.explain(operations::lstat(&self.0, path).await)
    }

    /// Reads a folder without following links, up to `most` names.
    pub async fn list(&self, path: &RemotePath, most: usize) -> Result<RemoteDirListing, SftpError> {
        self.explain(operations::read_folder(&self.0, path, most).await)
    }

    /// Reads a short file, up to `most` bytes plus one.
    pub async fn read(&self, path: &RemotePath, most: usize) -> Result<Vec<u8>, SftpError> {
        self.explain(operations::read(&self.0, path, most).await)
    }

    /// Reads the first `len` bytes of a file that a listing showed as a plain one. Takes two round trips; everything else
    /// that [`Self::read`] asks would only repeat the listing.
    pub async fn read_listed(&self, path: &RemotePath, len: u32) -> Result<Vec<u8>, SftpError> {
        self.explain(operations::read_listed(&self.0, path, len).await)
    }

    /// The target of a link, as it is written in it.
    pub async fn read_link(&self, path: &RemotePath) -> Result<Vec<u8>, SftpError> {
        self.explain(operations::read_link(&self.0, path).await)
    }

    /// Where a path leads once all links are followed.
    pub async fn real_path(&self, path: &RemotePath) -> Result<RemotePath, SftpError> {
        self.explain(operations::real_path(&self.0, path).await)
    }

    /// The attributes of what is at this path itself, which contains no links. Fails if there is one by now: whoever may
    /// write to a folder on the way could have put it there.
    pub async fn lstat_in_place(&self, path: &RemotePath) -> Result<RemoteFileAttrs, SftpError> {
        let (attrs, real) = tokio::join!(self.lstat(path), self.real_path(path));
        let attrs = attrs?;
        if attrs.kind == RemoteFileKind::Link || real? != *path { Err(SftpError::Replaced) } else { Ok(attrs) }
    }

    /// Writes a new, short file; fails if the name is taken.
    pub async fn write_new(&self, path: &RemotePath, bytes: &[u8], mode: Option<u32>) -> Result<(), SftpError> {
        self.write_new_with(path, bytes, mode, SetAttrs::default()).await
    }

    /// The same; sets attributes of the new file, whatever has its name by then.
    pub async fn write_new_with(
        &self,
        path: &RemotePath,
        bytes: &[u8],
        mode: Option<u32>,
        later: SetAttrs,
    ) -> Result<(), SftpError> {
        self.explain(operations::write_new(&self.0, path, bytes, mode, later).await)
    }

    pub async fn make_folder(&self, path: &RemotePath) -> Result<(), SftpError> {
        self.explain(operations::make_folder(&self.0, path).await)
    }

    pub async fn rename(&self, from: &RemotePath, to: &RemotePath, mode: RenameMode) -> Result<(), SftpError> {
        self.explain(operations::rename(&self.0, from, to, mode).await)
    }

    /// Removes a file or a link.
    pub async fn remove_file(&self, path: &RemotePath) -> Result<(), SftpError> {
        self.explain(self.0.run(SftpRequest::Remove { path: path.as_bytes() }).await)
    }

    /// Removes an empty folder.
    pub async fn remove_folder(&self, path: &RemotePath) -> Result<(), SftpError> {
        self.explain(self.0.run(SftpRequest::RemoveDir { path: path.as_bytes() }).await)
    }

    /// Creates a link that leads to `target`, whatever is there.
    pub async fn make_link(&self, target: &[u8], path: &RemotePath) -> Result<(), SftpError> {
        self.explain(self.0.run(SftpRequest::MakeLink { target, link: path.as_bytes() }).await)
    }

    pub async fn set_attrs(&self, path: &RemotePath, attrs: SetAttrs) -> Result<(), SftpError> {
        self.explain(self.0.run(SftpRequest::SetStat { path: path.as_bytes(), attrs }).await)
    }

    fn explain<T>(&self, result: Result<T, impl Into<RawSftpError>>) -> Result<T, SftpError> {
        result.map_err(|fault| fault.into().into_error(&self.0))
    }
}

/// A file that is open on one session; closed when dropped.
struct OpenRemoteFile {
    session: Arc<SftpSession>,
    handle: Bytes,
}

impl OpenRemoteFile {
    async fn open(
        session: &Arc<SftpSession>,
        path: &RemotePath,
        mode: SftpOpenMode,
        attrs: SetAttrs,
    ) -> Result<Self, SftpError> {
        let opened = session.open_file(path.as_bytes(), mode, attrs).await;
        let handle = match opened {
            Ok(handle) => handle,
            Err(fault) if mode == SftpOpenMode::Read => return Err(RawSftpError::from(fault).into_error(session)),
            Err(fault) => return Err(operations::explain_taken(session, path, fault).await.into_error(session)),
        };
        Ok(Self { session: session.clone(), handle })
    }

    async fn set_attrs(&self, attrs: SetAttrs) -> Result<(), SftpError> {
        let set = self.session.run(SftpRequest::SetHandleStat { handle: &self.handle, attrs }).await;
        set.map_err(|fault| operations::explain_unwritten(fault).into_error(&self.session))
    }

    async fn attrs(&self) -> Result<RemoteFileAttrs, SftpError> {
        let found = operations::handle_stat(&self.session, &self.handle).await;
        found.map_err(|fault| RawSftpError::from(fault).into_error(&self.session))
    }

    /// Closes it and reports what only closing brings to light.
    async fn close(mut self) -> Result<(), SftpError> {
        let handle = std::mem::take(&mut self.handle);
        let closed = self.session.close_handle(&handle).await;
        closed.map_err(|fault| operations::explain_unwritten(fault).into_error(&self.session))
    }
}

impl Drop for OpenRemoteFile {
    fn drop(&mut self) {
        let handle = std::mem::take(&mut self.handle);
        if handle.is_empty() || self.session.closed().is_cancelled() {
            return;
        }
        let session = self.session.clone();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move { session.close_handle(&handle).await });
        }
    }
}

/// Opens a file on as many sessions as its size is worth. `attrs` are those of a new file.
async fn open_striped(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
    (mode, attrs): (SftpOpenMode, SetAttrs),
    len: u64,
) -> Result<Vec<OpenRemoteFile>, SftpError> {
    let first = session_pool::get_session(connection).await?;
    // Opened before the file is: a session takes long enough for someone to put another file in its place.
    let others = match len {
        STRIPE_FROM_BYTES.. => session_pool::get_other_sessions(connection, &first).await,
        _ => Vec::new(),
    };
    let mut files = vec![OpenRemoteFile::open(&first, path, mode, attrs).await?];
    // The file exists by now.
    let other_mode = if mode == SftpOpenMode::CreateNew { SftpOpenMode::Write } else { mode };
    for session in others {
        if let Ok(file) = OpenRemoteFile::open(&session, path, other_mode, SetAttrs::default()).await {
            files.push(file);
        }
    }
    if mode != SftpOpenMode::Read {
        keep_same_file(&mut files, path, mode == SftpOpenMode::Write).await?;
    }
    Ok(files)
}

/// Drops the handles that lead to another file than the first one; with `is_resumed`, fails if that one isn't at the path
/// itself. Opening follows links, and whoever may write to the folder can put one in the file's place between two requests.
/// Nobody can guess the time that only this file gets.
async fn keep_same_file(files: &mut Vec<OpenRemoteFile>, path: &RemotePath, is_resumed: bool) -> Result<(), SftpError> {
    let others = files.split_off(1);
    let Some(first) = files.first().filter(|_| is_resumed || !others.is_empty()) else { return Ok(()) };
    let random: [u8; 4] = entropy::random_bytes().map_err(|_| SftpError::NotWritten)?;
    // Some file systems have no later times.
    let mark = u32::from_be_bytes(random) >> 1;
    first.set_attrs(SetAttrs { times: Some((mark, mark)), ..SetAttrs::default() }).await?;
    let is_marked = |attrs: RemoteFileAttrs| attrs.modified.is_some_and(|at| at.0 == i64::from(mark));
    if is_resumed {
        let found = operations::lstat(&first.session, path).await;
        let found = found.map_err(|fault| RawSftpError::from(fault).into_error(&first.session))?;
        if found.kind != RemoteFileKind::File || !is_marked(found) {
            return Err(SftpError::Replaced);
        }
    }
    for file in others {
        if file.attrs().await.is_ok_and(is_marked) {
            files.push(file);
        }
    }
    Ok(())
}
