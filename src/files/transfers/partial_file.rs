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
use crate::ssh::sftp::{RenameMode, SetAttrs, SftpError};
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
}

impl PartialFile {
    /// Whether this is its hidden name.
    pub(super) fn is_at(&self, path: &RemotePath) -> bool {
        self.path == path.to_encoded()
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

/// Removes the half-written file of a checkpoint and others with hidden names, as far as possible.
pub(super) async fn remove(
    connection: &Arc<ClusterConnection>,
    checkpoint: &str,
    others: impl IntoIterator<Item = RemotePath>,
) {
    let checkpoint: CheckpointWithPartial = serde_json::from_str(checkpoint).unwrap_or_default();
    remove_hidden(connection, checkpoint.hidden.as_deref()).await;
    let path = checkpoint.partial.and_then(|partial| RemotePath::from_encoded(&partial.path).ok());
    let paths: Vec<RemotePath> = path.into_iter().chain(others).collect();
    if paths.is_empty() {
        return;
    }
    if let Ok(session) = TransferSession::open(connection).await {
        for path in paths {
            let _ = session.remove_file(&path).await;
        }
    }
}

/// Removes an unfinished file or folder. Nothing but a hidden name is ever removed.
async fn remove_hidden(connection: &Arc<ClusterConnection>, hidden: Option<&str>) {
    let Some(path) = hidden.and_then(|path| RemotePath::from_encoded(path).ok()) else { return };
    if !path.name().is_some_and(|name| name.as_bytes().starts_with(TEMPORARY_PREFIX.as_bytes())) {
        return;
    }
    // What was on its way when the work was stopped may arrive while the folder is removed.
    for _ in 0..3 {
        if remove_tree(connection, &path).await.is_ok() {
            return;
        }
    }
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
        match session.lstat(&path).await {
            Ok(attrs) if attrs.size < offset => offset = 0,
            Ok(_) => {}
            Err(SftpError::NotFound) => offset = 0,
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
        Ok(Self { connection, session, path, source, writer: None, expected, offset })
    }

    /// How far it is certainly written.
    pub(super) fn confirmed(&self) -> u64 {
        self.writer.as_ref().map_or(self.offset, RemoteFileWriter::confirmed)
    }

    /// Where it was left, if it stops now.
    pub(super) fn to_partial(&self) -> PartialFile {
        PartialFile { path: self.path.to_encoded(), offset: self.confirmed(), source: self.source.clone() }
    }

    pub(super) async fn write(&mut self, data: Bytes) -> Result<(), SftpError> {
        if data.is_empty() {
            return Ok(());
        }
        if let Some(writer) = &mut self.writer {
            return writer.write(data).await;
        }
        if self.offset == 0 {
            // The first part creates it, because only this way nobody else can read it.
            self.session.write_new(&self.path, &data, Some(PRIVATE_MODE)).await?;
            self.offset = u64::try_from(data.len()).unwrap_or(u64::MAX);
            return Ok(());
        }
        let mut writer = RemoteFileWriter::open(&self.connection, &self.path, self.offset, self.expected).await?;
        let written = writer.write(data).await;
        self.writer = Some(writer);
        written
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
        let size = self.finish_hidden().await?;
        self.session.set_attrs(&self.path, attrs).await?;
        self.session.rename(&self.path, name, RenameMode::KeepExisting).await?;
        Ok(size)
    }

    /// Waits until all is written. The file keeps its hidden name, and nobody else can read it.
    pub(super) async fn finish_hidden(&mut self) -> Result<u64, SftpError> {
        let size = match self.writer.take() {
            Some(writer) => writer.finish().await?,
            None if self.offset == 0 => {
                self.session.write_new(&self.path, b"", Some(PRIVATE_MODE)).await?;
                0
            }
            None => self.offset,
        };
        // A longer rest of an earlier try is cut off.
        self.session.set_attrs(&self.path, SetAttrs { size: Some(size), ..SetAttrs::default() }).await?;
        Ok(size)
    }
}
