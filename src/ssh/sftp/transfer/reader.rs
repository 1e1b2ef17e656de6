//! Reads a range of a file in order, with many requests under way.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;

use super::super::operations::require_file;
use super::super::packet::{SetAttrs, SftpOpenMode, SftpReply, SftpRequest, SftpStatus};
use super::super::session::{PendingSftpReply, SftpFault};
use super::super::{RawSftpError, RemoteFileAttrs, SftpError};
use super::{OpenRemoteFile, WINDOW_BYTES, open_striped, session_pool};
use crate::domain::RemotePath;
use crate::ssh::connection::ClusterConnection;

/// A file that is being read. Holds at most a few megabytes, however long the file is.
pub struct RemoteFileReader {
    files: Vec<OpenRemoteFile>,
    attrs: RemoteFileAttrs,
    /// What was asked for, in the order of the file.
    pending: VecDeque<PendingFileRead>,
    asked: u64,
    end: u64,
    turn: usize,
}

struct PendingFileRead {
    file: usize,
    range: Range<u64>,
    reply: PendingSftpReply,
}

impl RemoteFileReader {
    /// Opens a plain file and describes it. Reading begins with [`Self::seek`], or with the whole file.
    pub async fn open(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<Self, SftpError> {
        let session = session_pool::get_session(connection).await?;
        let attrs = require_file(&session, path).await.map_err(|error| error.into_error(&session))?;
        let files = open_striped(connection, path, (SftpOpenMode::Read, SetAttrs::default()), attrs.size).await?;
        Ok(Self { files, attrs, pending: VecDeque::new(), asked: 0, end: attrs.size, turn: 0 })
    }

    pub const fn attrs(&self) -> &RemoteFileAttrs {
        &self.attrs
    }

    /// Reads this range from now on.
    pub fn seek(&mut self, range: Range<u64>) {
        self.pending.clear();
        self.asked = range.start;
        self.end = range.end;
    }

    /// The next part; `None` at the end of the range, or of the file if that is shorter by now.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, SftpError> {
        self.fill_window().await?;
        let Some(chunk) = self.pending.pop_front() else { return Ok(None) };
        let session = &self.files[chunk.file].session;
        let data = match chunk.reply.wait().await {
            Ok(SftpReply::Data(data)) => data,
            Err(fault) if fault.is_status(SftpStatus::EOF) => Bytes::new(),
            Ok(_) => return Err(RawSftpError::Fault(SftpFault::Unexpected).into_error(session)),
            Err(fault) => return Err(RawSftpError::Fault(fault).into_error(session)),
        };
        session.touch();
        if data.is_empty() {
            // The file is shorter than when it was opened.
            self.pending.clear();
            self.asked = self.end;
            return Ok(None);
        }
        let got = u64::try_from(data.len()).unwrap_or(u64::MAX);
        let wanted = chunk.range.end - chunk.range.start;
        if got > wanted {
            return Err(RawSftpError::Fault(SftpFault::Unexpected).into_error(session));
        }
        if got < wanted {
            // A server may return less than was asked for: the rest comes next.
            let rest = chunk.range.start + got..chunk.range.end;
            let reply = self.request(chunk.file, &rest).await?;
            self.pending.push_front(PendingFileRead { file: chunk.file, range: rest, reply });
        }
        Ok(Some(data))
    }

    async fn fill_window(&mut self) -> Result<(), SftpError> {
        loop {
            let file = self.turn % self.files.len();
            let chunk = u64::from(self.files[file].session.read_chunk());
            let ahead = usize::try_from(chunk).unwrap_or(usize::MAX).saturating_mul(self.pending.len() + 1);
            if self.asked >= self.end || (ahead > WINDOW_BYTES * self.files.len() && !self.pending.is_empty()) {
                return Ok(());
            }
            let range = self.asked..self.end.min(self.asked.saturating_add(chunk));
            let reply = self.request(file, &range).await?;
            self.asked = range.end;
            self.turn += 1;
            self.pending.push_back(PendingFileRead { file, range, reply });
        }
    }

    async fn request(&self, file: usize, range: &Range<u64>) -> Result<PendingSftpReply, SftpError> {
        let OpenRemoteFile { session, handle } = &self.files[file];
        let len = u32::try_from(range.end - range.start).unwrap_or(u32::MAX);
        let sent = session.send(SftpRequest::Read { handle, offset: range.start, len }).await;
        sent.map_err(|fault| RawSftpError::Fault(fault).into_error(session))
    }
}
