//! Receives the bytes of an upload and passes them on to the cluster.

use std::sync::Arc;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use futures_util::{Stream, StreamExt as _};
use tokio::time::Instant;

use super::checksum::RequestChecksum;
use super::drop_box::require_folder;
use super::finish::explain_missing;
use super::{ActiveUpload, UploadError, UploadOwner, UploadService, kept_times, running_checksum, stored_path};
use crate::cluster::checksums::RunningChecksum;
use crate::domain::RemotePath;
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::{RemoteFileWriter, TransferSession};
use crate::ssh::sftp::{RemoteFileKind, SetAttrs, SftpError};
use crate::store;
use crate::store::uploads::{StoredUpload, UploadState};

/// How often progress is stored: what arrived after that is sent again if the portal is killed.
const SAVE_INTERVAL: Duration = Duration::from_secs(1);
/// Smaller pieces are collected: each write to the cluster costs a request.
const MIN_WRITE_BYTES: usize = 32 * 1024;
/// How long the rest of a refused request is read.
const DISCARD_TIMEOUT: Duration = Duration::from_secs(2);
/// How long a client waits while the finished file is checked; then that goes on without it.
const CHECK_WAIT: Duration = Duration::from_secs(25);

/// What one request brings.
pub struct UploadPart<B> {
    /// Where in the file it begins.
    pub offset: u64,
    pub checksum: Option<RequestChecksum>,
    pub body: B,
}

impl UploadService {
    /// Writes the next part of an upload, and finishes the upload with the last one. Gives how far it is now. Must run in
    /// a task of its own: when the client goes away, what has arrived is still saved.
    pub async fn append<B, E>(self, owner: UploadOwner, id: String, mut part: UploadPart<B>) -> Result<u64, UploadError>
    where
        B: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    {
        let result = self.append_part(owner, id, &mut part).await;
        if !matches!(result, Ok(_) | Err(UploadError::InUse | UploadError::Stopping)) {
            // Some clients read no answer before they have sent everything.
            let rest = async { while let Some(Ok(_)) = part.body.next().await {} };
            let _ = tokio::time::timeout(DISCARD_TIMEOUT, rest).await;
        }
        result
    }

    async fn append_part<B, E>(
        &self,
        owner: UploadOwner,
        id: String,
        part: &mut UploadPart<B>,
    ) -> Result<u64, UploadError>
    where
        B: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    {
        self.find(owner, &id).await?;
        let active = self.acquire(owner, &id).await?;
        let mut upload = self.find(owner, &id).await?;
        if u64::try_from(upload.confirmed).ok() != Some(part.offset) {
            return Err(UploadError::WrongOffset);
        }
        if upload.state != UploadState::Receiving {
            return Ok(part.offset);
        }
        let connection = self.connection_for(owner, upload.cluster_id).await?;
        if !upload.is_received() {
            let received = self.receive(&connection, &active, &mut upload, part).await;
            if let Err(error @ UploadError::Sftp(_)) = &received
                && !error.is_passing()
            {
                self.note_problem(&upload, error).await;
            }
            if matches!(received, Err(UploadError::DropBoxClosed)) {
                self.require_open(&connection, &upload).await?;
            }
            received?;
        }
        if upload.is_received() {
            let finishing = self.core.tasks.spawn(self.clone().finish_received(connection, upload.clone(), active));
            if let Ok(ended) = tokio::time::timeout(CHECK_WAIT, finishing).await {
                ended.unwrap_or(Err(UploadError::Stopping))?;
            }
        }
        Ok(u64::try_from(upload.confirmed).unwrap_or_default())
    }

    async fn receive<B, E>(
        &self,
        connection: &Arc<ClusterConnection>,
        active: &ActiveUpload,
        upload: &mut StoredUpload,
        part: &mut UploadPart<B>,
    ) -> Result<(), UploadError>
    where
        B: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    {
        let (start, size) = (part.offset, u64::try_from(upload.size).unwrap_or_default());
        let temporary = stored_path(&upload.temporary)?;
        require_folder(connection, upload).await?;
        let writer = match open_writer(connection, &temporary, start, size - start).await {
            Err(SftpError::NotFound | SftpError::Replaced) if start > 0 => {
                let session = TransferSession::open(connection).await?;
                return match explain_missing(&session, &temporary).await {
                    // Somebody has removed or replaced what was there: it begins again.
                    UploadError::Damaged => {
                        self.save(upload, &RunningChecksum::new()).await?;
                        Err(UploadError::WrongOffset)
                    }
                    error => Err(error),
                };
            }
            opened => opened?,
        };
        // Nothing is written if it was opened somewhere else.
        require_folder(connection, upload).await?;
        let running = running_checksum(upload);
        let mut writing = WritingUpload { writer, running, checksum: part.checksum.take(), waiting: None };
        let result = self.pass_on(active, upload, &mut writing, &mut part.body).await;
        let (checksum, certain) = (writing.checksum.take(), writing.take_certain());
        let WritingUpload { mut writer, running, .. } = writing;
        let written = match writer.flush().await {
            Ok(()) => {
                if let Some(times) = kept_times(upload).filter(|_| running.size() == size) {
                    // A file with another time is still the file.
                    let _ = writer.set_attrs(SetAttrs { times: Some(times), ..SetAttrs::default() }).await;
                }
                writer.finish().await
            }
            Err(error) => Err(error),
        };
        let is_all_written = written.as_ref().is_ok_and(|confirmed| *confirmed == running.size());
        match checksum {
            Some(checksum) if result.is_ok() && is_all_written => {
                if !checksum.matches() {
                    return Err(UploadError::ChecksumMismatch);
                }
                self.save(upload, &running).await?;
            }
            // Without the whole of it, nobody knows whether it is right.
            Some(_) => {}
            None if is_all_written => self.save(upload, &running).await?,
            None => {
                if let Some(running) = certain {
                    self.save(upload, &running).await?;
                }
            }
        }
        // What the sender did matters less than what the cluster says.
        written?;
        result
    }

    /// Passes the body on until it ends, or something else does.
    async fn pass_on<B, E>(
        &self,
        active: &ActiveUpload,
        upload: &mut StoredUpload,
        writing: &mut WritingUpload,
        body: &mut B,
    ) -> Result<(), UploadError>
    where
        B: Stream<Item = Result<Bytes, E>> + Send + Unpin,
    {
        let mut small = BytesMut::new();
        let mut left = u64::try_from(upload.size).unwrap_or_default().saturating_sub(writing.running.size());
        let mut save_at = Instant::now() + SAVE_INTERVAL;
        let mut closed = std::pin::pin!(self.wait_until_closed(upload.drop_box_id));
        let ended = loop {
            let piece = tokio::select! {
                biased;
                () = active.wanted_elsewhere() => break Err(UploadError::InUse),
                () = self.core.stop.cancelled() => break Err(UploadError::Stopping),
                () = &mut closed => break Err(UploadError::DropBoxClosed),
                piece = body.next() => piece,
            };
            let piece = match piece {
                None => break Ok(()),
                Some(Err(_)) => break Err(UploadError::Interrupted),
                Some(Ok(piece)) => piece,
            };
            match left.checked_sub(u64::try_from(piece.len()).unwrap_or(u64::MAX)) {
                Some(rest) => left = rest,
                None => break Err(UploadError::TooMuchData),
            }
            if small.is_empty() && piece.len() >= MIN_WRITE_BYTES {
                writing.write(piece).await?;
            } else {
                small.extend_from_slice(&piece);
                if small.len() >= MIN_WRITE_BYTES {
                    writing.write(small.split().freeze()).await?;
                }
            }
            if writing.checksum.is_none()
                && Instant::now() >= save_at
                && let Some(running) = writing.take_certain()
            {
                self.save(upload, &running).await?;
                save_at = Instant::now() + SAVE_INTERVAL;
            }
        };
        writing.write(small.freeze()).await?;
        ended
    }

    /// Stores that so much is certainly on the cluster.
    async fn save(&self, upload: &mut StoredUpload, running: &RunningChecksum) -> Result<(), UploadError> {
        upload.confirmed = i64::try_from(running.size()).map_err(|_| UploadError::TooMuchData)?;
        upload.checksum_state = running.state();
        let mut tx = self.core.store.write().await?;
        let now = self.core.clock.now();
        store::uploads::save_progress(&mut tx, &upload.id, upload.confirmed, upload.checksum_state, now).await?;
        Ok(store::commit(tx).await?)
    }

    /// For the page: the answer to the request may not reach it.
    pub(super) async fn note_problem(&self, upload: &StoredUpload, error: &UploadError) {
        let noted = async {
            let mut tx = self.core.store.write().await?;
            store::uploads::set_state(&mut tx, &upload.id, upload.state, &error.to_string()).await?;
            store::commit(tx).await
        };
        if let Err(error) = noted.await {
            tracing::warn!(%error, "Could not store why an upload stopped");
        }
    }
}

/// A file that is being written, and the checksum of what was sent.
struct WritingUpload {
    writer: RemoteFileWriter,
    running: RunningChecksum,
    checksum: Option<RequestChecksum>,
    /// A position that was sent and is to be saved once it is confirmed.
    waiting: Option<RunningChecksum>,
}

impl WritingUpload {
    async fn write(&mut self, data: Bytes) -> Result<(), UploadError> {
        self.writer.write(data.clone()).await?;
        self.running.update(&data);
        if let Some(checksum) = &mut self.checksum {
            checksum.update(&data);
        }
        Ok(())
    }

    /// A position that is certainly written, and the checksum up to there. Marks one first if there is none.
    fn take_certain(&mut self) -> Option<RunningChecksum> {
        let waiting = self.waiting.get_or_insert_with(|| self.running.clone());
        if waiting.size() > self.writer.confirmed() { None } else { self.waiting.take() }
    }
}

/// Opens the temporary file. One that is left from a first try that confirmed nothing is written anew; one that isn't what
/// was written counts as missing.
async fn open_writer(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
    offset: u64,
    len: u64,
) -> Result<RemoteFileWriter, SftpError> {
    if offset > 0 {
        // Whoever may write to the folder can put something else in its place, such as a link to another file of its owner.
        let attrs = TransferSession::open(connection).await?.lstat(path).await?;
        if attrs.kind != RemoteFileKind::File || attrs.size < offset {
            return Err(SftpError::NotFound);
        }
    }
    match RemoteFileWriter::open(connection, path, offset, len).await {
        Err(SftpError::AlreadyExists) if offset == 0 => {
            TransferSession::open(connection).await?.remove_file(path).await?;
            RemoteFileWriter::open(connection, path, offset, len).await
        }
        opened => opened,
    }
}
