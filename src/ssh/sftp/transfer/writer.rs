//! Writes a file from an offset on, with many requests under way.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;

use super::super::SftpError;
use super::super::operations::explain_unwritten;
use super::super::packet::{SetAttrs, SftpOpenMode, SftpRequest};
use super::super::session::PendingSftpReply;
use super::{OpenRemoteFile, WINDOW_BYTES, open_striped, session_pool};
use crate::domain::RemotePath;
use crate::ssh::connection::ClusterConnection;

/// A file that is being written. What was written is certain only up to [`Self::confirmed`]: parts go over several
/// sessions, so a later part may be on disk before an earlier one.
pub struct RemoteFileWriter {
    files: Vec<OpenRemoteFile>,
    /// In the order of the file.
    pending: VecDeque<PendingFileWrite>,
    /// How much is under way on each session.
    pending_bytes: Vec<usize>,
    sent: u64,
    confirmed: u64,
}

struct PendingFileWrite {
    file: usize,
    len: usize,
    reply: PendingSftpReply,
}

impl RemoteFileWriter {
    /// Opens a file to write from `offset` on; creates it if that is 0 (and fails then if the name is taken). `len` is
    /// how much will come, as far as is known: large files go over several sessions.
    pub async fn open(
        connection: &Arc<ClusterConnection>,
        path: &RemotePath,
        offset: u64,
        len: u64,
    ) -> Result<Self, SftpError> {
        if offset == 0 {
            return Self::create(connection, path, None, len).await;
        }
        let files = open_striped(connection, path, (SftpOpenMode::Write, SetAttrs::default()), len).await?;
        Ok(Self::new(files, offset))
    }

    /// Creates a file with these permissions (the account's default ones if `None`); fails if the name is taken.
    pub async fn create(
        connection: &Arc<ClusterConnection>,
        path: &RemotePath,
        mode: Option<u32>,
        len: u64,
    ) -> Result<Self, SftpError> {
        let attrs = SetAttrs { mode, ..SetAttrs::default() };
        Ok(Self::new(open_striped(connection, path, (SftpOpenMode::CreateNew, attrs), len).await?, 0))
    }

    /// Fails unless a file could be written to; changes nothing.
    pub async fn check_writable(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<(), SftpError> {
        let session = session_pool::get_session(connection).await?;
        OpenRemoteFile::open(&session, path, SftpOpenMode::Write, SetAttrs::default()).await?.close().await
    }

    fn new(files: Vec<OpenRemoteFile>, offset: u64) -> Self {
        let pending_bytes = vec![0; files.len()];
        Self { files, pending: VecDeque::new(), pending_bytes, sent: offset, confirmed: offset }
    }

    /// How far the file is certainly written.
    pub const fn confirmed(&self) -> u64 {
        self.confirmed
    }

    /// Sends the next part; waits while too much is unconfirmed.
    pub async fn write(&mut self, mut data: Bytes) -> Result<(), SftpError> {
        while !data.is_empty() {
            // Parts differ in size: taking turns would fill one session and leave another idle.
            let file = (0..self.files.len()).min_by_key(|file| self.pending_bytes[*file]).unwrap_or_default();
            let OpenRemoteFile { session, handle } = &self.files[file];
            let most = usize::try_from(session.write_chunk()).unwrap_or(usize::MAX);
            let part = data.split_to(data.len().min(most));
            let sent = session.send(SftpRequest::Write { handle, offset: self.sent, data: &part }).await;
            let reply = sent.map_err(|fault| explain_unwritten(fault).into_error(session))?;
            session.touch();
            self.sent += u64::try_from(part.len()).unwrap_or(u64::MAX);
            self.pending_bytes[file] += part.len();
            self.pending.push_back(PendingFileWrite { file, len: part.len(), reply });
            while self.pending_bytes.iter().sum::<usize>() > WINDOW_BYTES * self.files.len() {
                self.confirm_one().await?;
            }
        }
        Ok(())
    }

    /// Waits until all that was sent is confirmed.
    pub async fn flush(&mut self) -> Result<(), SftpError> {
        while !self.pending.is_empty() {
            self.confirm_one().await?;
        }
        Ok(())
    }

    /// Waits until everything is written, and closes the file: some file systems report a full quota only then.
    pub async fn finish(self) -> Result<u64, SftpError> {
        self.finish_with(SetAttrs::default()).await
    }

    /// The same; first sets attributes of what was written, whatever has its name by now.
    pub async fn finish_with(mut self, attrs: SetAttrs) -> Result<u64, SftpError> {
        self.flush().await?;
        if attrs != SetAttrs::default() {
            self.set_attrs(attrs).await?;
        }
        for file in std::mem::take(&mut self.files) {
            file.close().await?;
        }
        Ok(self.confirmed)
    }

    /// Sets attributes of the file, whatever has its name by now. What is still under way may change them again.
    pub async fn set_attrs(&self, attrs: SetAttrs) -> Result<(), SftpError> {
        match self.files.first() {
            Some(file) => file.set_attrs(attrs).await,
            None => Ok(()),
        }
    }

    async fn confirm_one(&mut self) -> Result<(), SftpError> {
        let Some(write) = self.pending.pop_front() else { return Ok(()) };
        self.pending_bytes[write.file] -= write.len;
        if let Err(fault) = write.reply.wait().await {
            // What follows may be written, but the file has a hole before it.
            self.pending.clear();
            return Err(explain_unwritten(fault).into_error(&self.files[write.file].session));
        }
        self.confirmed += u64::try_from(write.len).unwrap_or(u64::MAX);
        Ok(())
    }
}
