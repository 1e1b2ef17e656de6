//! A selection of files as one zip or tar archive, written while it is read: nothing is stored on the portal. Links are
//! never followed. What can't be included is listed in a note at the end of the archive.

mod left_out;
mod member;
mod pipeline;
mod tar;
#[cfg(test)]
mod writer_tests;
mod zip;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use tokio::sync::mpsc;

use self::pipeline::ArchivePipeline;
use super::downloads::{ConnectionSource, DownloadError};
use super::folder_walk::{WalkLimits, WalkOrder};
use crate::clock::UnixTime;
use crate::domain::{RemoteName, RemotePath};

/// How many files, folders and links an archive may contain.
pub const MAX_ENTRIES: usize = 100_000;
/// How many folders may lie in one another.
pub const MAX_DEPTH: usize = 64;
/// How many pieces wait for a slow browser; each has at most a quarter of a megabyte.
const PIECES_AHEAD: usize = 4;

const LIMITS: WalkLimits =
    WalkLimits { depth: MAX_DEPTH, entries: MAX_ENTRIES, order: WalkOrder::DepthFirst, skips: |_| false };

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArchiveFormat {
    Zip,
    Tar,
}

impl ArchiveFormat {
    pub const fn extension(self) -> &'static str {
        match self {
            Self::Zip => "zip",
            Self::Tar => "tar",
        }
    }

    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Zip => "application/zip",
            Self::Tar => "application/x-tar",
        }
    }
}

/// What goes into an archive.
#[derive(Debug, Clone)]
pub enum ArchiveSelection {
    /// A folder with all that is in it; it may be reached through a link.
    WholeFolder(RemotePath),
    /// These files and folders, all of which lie in this folder or below it.
    Inside(RemotePath, Vec<RemotePath>),
}

impl ArchiveSelection {
    /// The archive's name, without its extension: the only file or folder in it, or the folder that they are in.
    pub fn name(&self) -> Vec<u8> {
        let only = match self {
            Self::Inside(_, paths) if paths.len() == 1 => paths[0].name(),
            Self::WholeFolder(folder) | Self::Inside(folder, _) => folder.name(),
        };
        only.map_or_else(|| b"files".to_vec(), |name: RemoteName| name.as_bytes().to_vec())
    }
}

/// An archive that is being written; ended when dropped.
pub struct ArchiveStream {
    pieces: mpsc::Receiver<ArchivePiece>,
    files_written: Arc<AtomicU64>,
    left_out: LeftOutSummary,
    has_ended: bool,
}

/// What isn't in an archive.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LeftOutSummary {
    pub count: u64,
    /// The first of it, and why.
    pub first: String,
    /// Whether there was more than an archive may contain.
    pub is_truncated: bool,
}

enum ArchivePiece {
    Data(Bytes),
    /// All of it was sent.
    End(LeftOutSummary),
    Failed(DownloadError),
}

impl ArchiveStream {
    /// Begins to write an archive. `now` dates the note about what was left out.
    pub fn start(source: ConnectionSource, format: ArchiveFormat, selection: ArchiveSelection, now: UnixTime) -> Self {
        let (send, pieces) = mpsc::channel(PIECES_AHEAD);
        let files_written = Arc::new(AtomicU64::new(0));
        let counter = files_written.clone();
        tokio::spawn(async move {
            let stop = source.stop().clone();
            let pipeline = ArchivePipeline::new(source, format, now, (send.clone(), counter));
            let result = tokio::select! {
                result = pipeline.run(selection) => result,
                () = stop.cancelled() => Err(DownloadError::Stopped),
                // Nobody reads it any more.
                () = send.closed() => return,
            };
            let last = match result {
                Ok(left_out) => ArchivePiece::End(left_out),
                Err(error) => ArchivePiece::Failed(error),
            };
            let _ = send.send(last).await;
        });
        Self { pieces, files_written, left_out: LeftOutSummary::default(), has_ended: false }
    }

    /// How many files and links are in it so far.
    pub fn files_written(&self) -> u64 {
        self.files_written.load(Ordering::Relaxed)
    }

    /// What isn't in it; known at its end.
    pub const fn left_out(&self) -> &LeftOutSummary {
        &self.left_out
    }

    /// The next bytes; `None` at the end of the archive. An archive that isn't whole ends with an error.
    pub async fn next_piece(&mut self) -> Result<Option<Bytes>, DownloadError> {
        if self.has_ended {
            return Ok(None);
        }
        match self.pieces.recv().await {
            Some(ArchivePiece::Data(bytes)) => Ok(Some(bytes)),
            Some(ArchivePiece::End(left_out)) => {
                self.has_ended = true;
                self.left_out = left_out;
                Ok(None)
            }
            Some(ArchivePiece::Failed(error)) => Err(error),
            None => Err(DownloadError::Stopped),
        }
    }
}
