//! A file that is being written under a hidden name: it gets its real name once it is whole. Where it was left is part of
//! the checkpoint of its transfer, so that it goes on from there.

use std::sync::Arc;

use bytes::Bytes;
use serde::{Deserialize, Serialize};

use super::TransferError;
use super::delete::remove_tree;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::{RemoteFileWriter, TransferSession};
use crate::ssh::sftp::{RemoteFileAttrs, RemoteFileKind, RenameMode, SetAttrs, SftpError};
use crate::store::transfers::Transfer;

/// Nobody else reads a file while it is being written.
const PRIVATE_MODE: u32 = 0o600;
/// How all hidden names begin.
const TEMPORARY_PREFIX: &str = ".portolan-";

/// A file that was left half-way.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct PartialFile {
    /// The hidden name, encoded.
    path: String,
    /// How far it is certainly written.
    pub(super) offset: u64,
    /// Tells whether the source is still the same.
    pub(super) source: String,
    /// The number of the user that it belongs to, if the server tells it.
    #[serde(default)]
    user: Option<u32>,
}

impl PartialFile {
    /// Whether this is its hidden name.
    pub(super) fn is_at(&self, path: &RemotePath) -> bool {
        self.path == path.to_encoded()
    }

    /// Removes it. Fails only if the cluster can't be reached.
    pub(super) async fn remove(&self, connection: &Arc<ClusterConnection>) -> Result<(), TransferError> {
        remove_files(connection, hidden_path(&self.path)).await
    }
}

/// As much of any checkpoint as cleaning up needs.
#[derive(Deserialize, Default)]
#[serde(default)]
struct CheckpointWithPartial {
    partial: Option<PartialFile>,
    /// A file or folder that isn't finished, encoded.
    hidden: Option<String>,
}

/// The hidden name that a transfer writes under; `what` tells its files apart.
pub(super) fn temporary_name(transfer: &Transfer, what: &str) -> Result<RemoteName, TransferError> {
    let name = format!("{}{what}.part", temporary_prefix(transfer));
    RemoteName::parse(name.as_bytes()).map_err(|error| TransferError::Failed(error.to_string()))
}

/// How all hidden names of a transfer begin. Its number alone would also be that of another portal's transfer, and could
/// be guessed.
pub(super) fn temporary_prefix(transfer: &Transfer) -> String {
    format!("{TEMPORARY_PREFIX}{}-{}-", transfer.id, transfer.token)
}

/// Removes the half-written file or folder of a checkpoint. Fails only if the cluster can't be reached.
pub(super) async fn remove_left(connection: &Arc<ClusterConnection>, checkpoint: &str) -> Result<(), TransferError> {
    let checkpoint: CheckpointWithPartial = serde_json::from_str(checkpoint).unwrap_or_default();
    if let Some(hidden) = checkpoint.hidden.as_deref().and_then(hidden_path) {
        remove_hidden(connection, &hidden).await?;
    }
    match checkpoint.partial {
        Some(partial) => partial.remove(connection).await,
        None => Ok(()),
    }
}

/// Removes files with hidden names, as far as possible. Fails only if the cluster can't be reached.
pub(super) async fn remove_files(
    connection: &Arc<ClusterConnection>,
    paths: impl IntoIterator<Item = RemotePath>,
) -> Result<(), TransferError> {
    let mut paths = paths.into_iter().peekable();
    if paths.peek().is_none() {
        return Ok(());
    }
    let session = TransferSession::open(connection).await?;
    for path in paths {
        if let Err(error @ SftpError::Run(_)) = session.remove_file(&path).await {
            return Err(error.into());
        }
    }
    Ok(())
}

/// Nothing but a hidden name is ever removed.
fn hidden_path(encoded: &str) -> Option<RemotePath> {
    let path = RemotePath::from_encoded(encoded).ok()?;
    path.name().filter(|name| name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())).map(|_| path)
}

/// Removes an unfinished file or folder.
async fn remove_hidden(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<(), TransferError> {
    // What was on its way when the work was stopped may arrive while the folder is removed.
    for _ in 0..3 {
        match remove_tree(connection, path).await {
            Err(TransferError::Failed(_)) => {}
            result => return result,
        }
    }
    Ok(())
}

/// Writes a file under a hidden name.
pub(super) struct PartialFileWriter {
    connection: Arc<ClusterConnection>,
    session: TransferSession,
    path: RemotePath,
    source: String,
    writer: Option<RemoteFileWriter>,
    /// How much is still to come, as far as is known.
    expected: u64,
    offset: u64,
    user: Option<u32>,
}

impl PartialFileWriter {
    /// Goes on with what was left of the same source; begins anew otherwise.
    pub(super) async fn open(
        connection: &Arc<ClusterConnection>,
        path: RemotePath,
        source: String,
        size: u64,
        left: Option<&PartialFile>,
    ) -> Result<Self, TransferError> {
        let session = TransferSession::open(connection).await?;
        let left = left.filter(|left| left.source == source && left.path == path.to_encoded() && left.offset > 0);
        let mut offset = left.map_or(0, |left| left.offset);
        let user = left.and_then(|left| left.user);
        match session.lstat(&path).await {
            Ok(attrs) if is_what_was_written(&attrs, user, offset) => {}
            Ok(_) | Err(SftpError::NotFound) => offset = 0,
            Err(error) => return Err(error.into()),
        }
        if offset == 0 {
            match session.remove_file(&path).await {
                Ok(()) | Err(SftpError::NotFound) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let connection = connection.clone();
        let expected = size.saturating_sub(offset);
        Ok(Self { connection, session, path, source, writer: None, expected, offset, user })
    }

    /// How far it is certainly written.
    pub(super) fn confirmed(&self) -> u64 {
        self.writer.as_ref().map_or(self.offset, RemoteFileWriter::confirmed)
    }

    /// Where it was left, if it stops now.
    pub(super) fn to_partial(&self) -> PartialFile {
        let (path, offset) = (self.path.to_encoded(), self.confirmed());
        PartialFile { path, offset, source: self.source.clone(), user: self.user }
    }

    pub(super) async fn write(&mut self, data: Bytes) -> Result<(), SftpError> {
        if data.is_empty() {
            return Ok(());
        }
        if self.writer.is_none() {
            self.writer = Some(self.open_writer().await?);
        }
        match &mut self.writer {
            Some(writer) => writer.write(data).await,
            None => Ok(()),
        }
    }

    /// Opens the file for as long as it is written. Only this file is written then, whatever gets its name.
    async fn open_writer(&mut self) -> Result<RemoteFileWriter, SftpError> {
        if self.offset > 0 {
            let attrs = self.session.lstat(&self.path).await?;
            if !is_what_was_written(&attrs, self.user, self.offset) {
                return Err(SftpError::Replaced);
            }
            return RemoteFileWriter::open(&self.connection, &self.path, self.offset, self.expected).await;
        }
        let created = RemoteFileWriter::create(&self.connection, &self.path, Some(PRIVATE_MODE), self.expected).await;
        let writer = created?;
        let attrs = self.session.lstat(&self.path).await?;
        self.user = attrs.owner.map(|(user, _)| user);
        Ok(writer)
    }

    /// Waits until all that was sent is certainly written.
    pub(super) async fn flush(&mut self) -> Result<(), SftpError> {
        match &mut self.writer {
            Some(writer) => writer.flush().await,
            None => Ok(()),
        }
    }

    /// Waits until all is written, and gives the file its real name and attributes. Returns its size.
    pub(super) async fn finish(mut self, name: &RemotePath, attrs: SetAttrs) -> Result<u64, SftpError> {
        let size = self.finish_with(attrs).await?;
        let found = self.session.lstat(&self.path).await?;
        if !is_what_was_written(&found, self.user, size) {
            return Err(SftpError::Replaced);
        }
        self.session.rename(&self.path, name, RenameMode::KeepExisting).await?;
        Ok(size)
    }

    /// Waits until all is written. The file keeps its hidden name, and nobody else can read it.
    pub(super) async fn finish_hidden(mut self) -> Result<u64, SftpError> {
        self.finish_with(SetAttrs::default()).await
    }

    async fn finish_with(&mut self, attrs: SetAttrs) -> Result<u64, SftpError> {
        self.flush().await?;
        let writer = match self.writer.take() {
            Some(writer) => writer,
            None => self.open_writer().await?,
        };
        // A longer rest of an earlier try is cut off.
        let size = Some(writer.confirmed());
        writer.finish_with(SetAttrs { size, ..attrs }).await
    }
}

/// Whether this can be the file that was written so far. Whoever may write to its folder could have put something else in
/// its place, such as a link to another file of its owner.
fn is_what_was_written(attrs: &RemoteFileAttrs, user: Option<u32>, written: u64) -> bool {
    let is_same_user = user.is_none() || attrs.owner.map(|(user, _)| user) == user;
    attrs.kind == RemoteFileKind::File && attrs.size >= written && is_same_user
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_own_file_is_gone_on_with() {
        let attrs = |kind, size, user| RemoteFileAttrs {
            kind,
            size,
            modified: None,
            mode: Some(0o600),
            owner: Some((user, 1)),
        };
        let is_own = |attrs, user| is_what_was_written(&attrs, user, 10);
        assert!(is_own(attrs(RemoteFileKind::File, 10, 7), Some(7)));
        assert!(is_own(attrs(RemoteFileKind::File, 12, 7), None), "an older version didn't save it");
        assert!(!is_own(attrs(RemoteFileKind::File, 9, 7), Some(7)), "too short");
        assert!(!is_own(attrs(RemoteFileKind::File, 10, 8), Some(7)), "someone else's");
        assert!(!is_own(attrs(RemoteFileKind::Link, 10, 7), Some(7)), "a link");
        assert!(!is_own(attrs(RemoteFileKind::Folder, 10, 7), Some(7)), "a folder");
    }
}
