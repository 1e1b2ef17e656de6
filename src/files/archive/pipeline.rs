//! Reads what goes into an archive and writes it in order. Small files are read ahead, many at a time, so that a folder of
//! thousands doesn't cost a round trip each; a large one passes through as it is.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use super::left_out::{LeftOutFiles, NOTE_NAME};
use super::member::{ArchiveEntryHeader, is_link_inside, is_path_on_windows};
use super::tar::TarWriter;
use super::zip::ZipWriter;
use super::{ArchiveFormat, ArchivePiece, ArchiveSelection, LIMITS, LeftOutSummary, MAX_ENTRIES};
use crate::clock::UnixTime;
use crate::domain::RemotePath;
use crate::files::downloads::{ConnectionSource, DownloadError, FileDownload, is_passing};
use crate::files::folder_walk::{FolderWalk, WalkStep, WalkedFile};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteFileAttrs, RemoteFileKind, SftpError};

/// Up to this size a file is read ahead as a whole.
const SMALL_FILE_BYTES: u32 = 512 * 1024;
/// How many files are read ahead.
const FILES_AHEAD: usize = 64;
/// How many bytes are read ahead.
const BYTES_AHEAD: u64 = 3 * 1024 * 1024;
/// How much is collected before it is sent on.
const PIECE_BYTES: usize = 256 * 1024;

/// Runs to its end even if nobody waits for it, so that nothing stays open on the server.
type Reading = JoinHandle<Result<Vec<u8>, SftpError>>;

/// What comes next in the archive.
enum NextMember {
    Folder(ArchiveEntryHeader),
    Small { member: ArchiveEntryHeader, len: u64, reading: Reading },
    Large { member: ArchiveEntryHeader, path: RemotePath },
    Link { member: ArchiveEntryHeader, reading: Reading },
}

enum ArchiveWriter {
    Zip(ZipWriter),
    Tar(TarWriter),
}

pub(super) struct ArchivePipeline {
    source: ConnectionSource,
    writer: ArchiveWriter,
    out: Vec<u8>,
    send: mpsc::Sender<ArchivePiece>,
    files_written: Arc<AtomicU64>,
    left_out: LeftOutFiles,
    has_note_name: bool,
    now: UnixTime,
}

impl ArchivePipeline {
    pub fn new(
        source: ConnectionSource,
        format: ArchiveFormat,
        now: UnixTime,
        (send, files_written): (mpsc::Sender<ArchivePiece>, Arc<AtomicU64>),
    ) -> Self {
        let writer = match format {
            ArchiveFormat::Zip => ArchiveWriter::Zip(ZipWriter::default()),
            ArchiveFormat::Tar => ArchiveWriter::Tar(TarWriter::default()),
        };
        let left_out = LeftOutFiles::default();
        Self { source, writer, out: Vec::new(), send, files_written, left_out, has_note_name: false, now }
    }

    /// Writes the whole archive. Returns what isn't in it.
    pub async fn run(mut self, selection: ArchiveSelection) -> Result<LeftOutSummary, DownloadError> {
        let roots = self.find_roots(selection).await?;
        let mut walk = FolderWalk::new(self.source.clone(), LIMITS, roots);
        let mut ahead: VecDeque<NextMember> = VecDeque::new();
        let mut bytes_ahead = 0;
        let mut is_at_end = false;
        loop {
            while !is_at_end && ahead.len() < FILES_AHEAD && bytes_ahead < BYTES_AHEAD {
                match walk.next().await? {
                    Some(WalkStep::Found(file)) => {
                        let next = self.begin_reading(file);
                        bytes_ahead += next.as_ref().map_or(0, NextMember::bytes_ahead);
                        ahead.extend(next);
                    }
                    Some(WalkStep::LeftOut { name, reason }) => self.left_out.add(&name, &reason),
                    None => is_at_end = true,
                }
            }
            let Some(next) = ahead.pop_front() else { break };
            bytes_ahead -= next.bytes_ahead();
            self.write(next).await?;
        }
        if let Some(note) = self.left_out.to_note(walk.is_truncated().then_some(MAX_ENTRIES)) {
            let name = if self.has_note_name { NOTE_NAME.replace(".txt", " (2).txt") } else { NOTE_NAME.to_owned() };
            let member = ArchiveEntryHeader { name: name.into_bytes(), mode: 0o644, modified: self.now, owner: (0, 0) };
            self.writer.add_file(&member, note.as_bytes(), &mut self.out);
        }
        match self.writer {
            ArchiveWriter::Zip(zip) => zip.finish(&mut self.out),
            ArchiveWriter::Tar(tar) => tar.finish(&mut self.out),
        }
        let _ = self.send.send(ArchivePiece::Data(self.out.into())).await;
        Ok(self.left_out.to_summary(walk.is_truncated()))
    }

    /// The attributes of what was selected. Links stay links; only the folder that someone has open may be behind one.
    async fn find_roots(&mut self, selection: ArchiveSelection) -> Result<Vec<WalkedFile>, DownloadError> {
        let (base, paths) = match selection {
            ArchiveSelection::WholeFolder(path) => {
                let attrs = self.source.retry(|connection| read_attrs(connection, path.clone(), true)).await?;
                let name = path.name().map_or_else(|| b"files".to_vec(), |name| name.as_bytes().to_vec());
                return Ok(vec![WalkedFile { path, name, attrs }]);
            }
            ArchiveSelection::Inside(base, paths) => (base, paths),
        };
        let mut roots = Vec::with_capacity(paths.len());
        for some in paths.chunks(FILES_AHEAD) {
            let asked: Vec<_> = some.iter().map(|path| self.begin_attrs(path.clone())).collect();
            for (path, asked) in some.iter().zip(asked) {
                let Some(name) = path.relative_to(&base).filter(|name| !name.is_empty()) else { continue };
                match asked.await.unwrap_or(Err(SftpError::NotFound)) {
                    Ok(attrs) => roots.push(WalkedFile { path: path.clone(), name: name.to_vec(), attrs }),
                    Err(error) if is_passing(&error) => return Err(error.into()),
                    Err(error) => self.left_out.add(name, &self.source.explain(&error)),
                }
            }
        }
        Ok(roots)
    }

    fn begin_attrs(&self, path: RemotePath) -> JoinHandle<Result<RemoteFileAttrs, SftpError>> {
        let source = self.source.clone();
        tokio::spawn(async move { source.retry(|connection| read_attrs(connection, path.clone(), false)).await })
    }

    /// Starts to read a file, if it is a small one. `None` if it is left out.
    fn begin_reading(&mut self, file: WalkedFile) -> Option<NextMember> {
        let WalkedFile { path, name, attrs } = file;
        self.has_note_name |= name == NOTE_NAME.as_bytes();
        let default_mode = if attrs.kind == RemoteFileKind::Folder { 0o755 } else { 0o644 };
        let Some(member) = ArchiveEntryHeader::new(name.clone(), &attrs, default_mode) else {
            self.left_out.add(&name, "Its name can't be stored in an archive.");
            return None;
        };
        if matches!(self.writer, ArchiveWriter::Zip(_)) && is_path_on_windows(&name) {
            self.left_out.add(&name, "Windows would read its name as a path. Choose tar instead.");
            return None;
        }
        match attrs.kind {
            RemoteFileKind::Folder => Some(NextMember::Folder(member)),
            RemoteFileKind::File => match u32::try_from(attrs.size) {
                Ok(len) if len <= SMALL_FILE_BYTES => {
                    let reading =
                        self.begin(path, move |session, path| async move { session.read_listed(&path, len).await });
                    Some(NextMember::Small { member, len: len.into(), reading })
                }
                _ => Some(NextMember::Large { member, path }),
            },
            RemoteFileKind::Link => {
                let reading = self.begin(path, |session, path| async move { session.read_link(&path).await });
                Some(NextMember::Link { member, reading })
            }
            RemoteFileKind::Other => {
                self.left_out.add(&name, "It's a device, a pipe or a socket, not a file.");
                None
            }
        }
    }

    fn begin<Asked: Future<Output = Result<Vec<u8>, SftpError>> + Send + 'static>(
        &self,
        path: RemotePath,
        read: impl Fn(TransferSession, RemotePath) -> Asked + Copy + Send + Sync + 'static,
    ) -> Reading {
        let source = self.source.clone();
        tokio::spawn(async move {
            let operation = |connection| {
                let path = path.clone();
                async move { read(TransferSession::open(&connection).await?, path).await }
            };
            source.retry(operation).await
        })
    }

    async fn write(&mut self, next: NextMember) -> Result<(), DownloadError> {
        let is_folder = matches!(next, NextMember::Folder(_));
        match next {
            NextMember::Folder(member) => self.writer.add_folder(&member, &mut self.out),
            NextMember::Small { member, reading, .. } => {
                if let Some(content) = self.take_read(&member, reading).await? {
                    self.writer.add_file(&member, &content, &mut self.out);
                }
            }
            NextMember::Link { member, reading } => {
                if let Some(target) = self.take_read(&member, reading).await? {
                    self.write_link(&member, &target);
                }
            }
            NextMember::Large { member, path } => self.write_large(&member, path).await?,
        }
        if !is_folder {
            self.files_written.fetch_add(1, Ordering::Relaxed);
        }
        if self.out.len() >= PIECE_BYTES {
            self.flush().await?;
        }
        Ok(())
    }

    /// What was read ahead; `None` if it can't be read.
    async fn take_read(
        &mut self,
        member: &ArchiveEntryHeader,
        reading: Reading,
    ) -> Result<Option<Vec<u8>>, DownloadError> {
        match reading.await.unwrap_or(Err(SftpError::NotFound)) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if is_passing(&error) => Err(error.into()),
            Err(error) => {
                self.left_out.add(&member.name, &self.source.explain(&error));
                Ok(None)
            }
        }
    }

    fn write_link(&mut self, member: &ArchiveEntryHeader, target: &[u8]) {
        match &mut self.writer {
            ArchiveWriter::Tar(tar) => tar.add_link(member, target, &mut self.out),
            ArchiveWriter::Zip(zip) if is_link_inside(&member.name, target) => {
                zip.add_link(member, target, &mut self.out);
            }
            ArchiveWriter::Zip(_) => {
                self.left_out.add(&member.name, &self.source.explain_link(target));
            }
        }
    }

    async fn write_large(&mut self, member: &ArchiveEntryHeader, path: RemotePath) -> Result<(), DownloadError> {
        let mut file = match FileDownload::open_patiently(self.source.clone(), path).await {
            Ok(file) => file,
            Err(error) if is_passing(&error) => return Err(error.into()),
            Err(error) => {
                self.left_out.add(&member.name, &self.source.explain(&error));
                return Ok(());
            }
        };
        let len = file.attrs().size;
        match &mut self.writer {
            ArchiveWriter::Zip(zip) => zip.begin_file(member, len, &mut self.out),
            ArchiveWriter::Tar(tar) => tar.begin_file(member, len, &mut self.out),
        }
        self.flush().await?;
        while let Some(chunk) = file.next_chunk().await? {
            if let ArchiveWriter::Zip(zip) = &mut self.writer {
                zip.update(&chunk);
            }
            self.send_piece(chunk).await?;
        }
        match &mut self.writer {
            ArchiveWriter::Zip(zip) => zip.end_file(&mut self.out),
            ArchiveWriter::Tar(tar) => tar.end_file(&mut self.out),
        }
        Ok(())
    }

    async fn flush(&mut self) -> Result<(), DownloadError> {
        let piece = std::mem::take(&mut self.out);
        self.send_piece(piece.into()).await
    }

    async fn send_piece(&self, piece: Bytes) -> Result<(), DownloadError> {
        if piece.is_empty() {
            return Ok(());
        }
        self.send.send(ArchivePiece::Data(piece)).await.map_err(|_| DownloadError::Stopped)
    }
}

async fn read_attrs(
    connection: Arc<ClusterConnection>,
    path: RemotePath,
    follows_links: bool,
) -> Result<RemoteFileAttrs, SftpError> {
    let session = TransferSession::open(&connection).await?;
    if follows_links { session.stat(&path).await } else { session.lstat(&path).await }
}

impl NextMember {
    const fn bytes_ahead(&self) -> u64 {
        match self {
            Self::Small { len, .. } => *len,
            _ => 0,
        }
    }
}

impl ArchiveWriter {
    fn add_folder(&mut self, member: &ArchiveEntryHeader, out: &mut Vec<u8>) {
        match self {
            Self::Zip(zip) => zip.add_folder(member, out),
            Self::Tar(tar) => tar.add_folder(member, out),
        }
    }

    fn add_file(&mut self, member: &ArchiveEntryHeader, content: &[u8], out: &mut Vec<u8>) {
        match self {
            Self::Zip(zip) => zip.add_file(member, content, out),
            Self::Tar(tar) => {
                tar.begin_file(member, u64::try_from(content.len()).unwrap_or(u64::MAX), out);
                out.extend_from_slice(content);
                tar.end_file(out);
            }
        }
    }
}
