//! A job's output at one moment.

use std::sync::Arc;

use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::logs::findings::LogFindings;
use crate::logs::terminal::RenderedLog;

/// One file, read over one person's connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutputFileKey {
    pub queue: ClusterAccountId,
    pub path: String,
}

/// What the path turned out to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputFileState {
    #[default]
    Unread,
    Text,
    /// A file that is not text.
    Binary,
    Missing,
    /// The folder does not exist either.
    NoFolder,
    /// The person may not read it.
    Denied,
    /// A device, a folder or a pipe.
    NotAFile,
}

/// The end of a file, ready to be shown.
#[derive(Debug, Clone, Default)]
pub struct OutputTail {
    pub kind: OutputFileState,
    /// Bytes before the part that is shown.
    pub base: u64,
    /// The file's size.
    pub size: u64,
    /// How far it has been read.
    pub end: u64,
    /// When the file was last written.
    pub modified: Option<UnixTime>,
    pub read_at: Option<UnixTime>,
    /// Changes when line numbering starts over.
    pub generation: u64,
    /// The lines as a terminal would show them.
    pub rendered: Arc<RenderedLog>,
    pub findings: Arc<LogFindings>,
    /// Whether this read was the first to bring nothing new after one that did: the job may have ended.
    pub has_paused: bool,
    /// Whether no more output will come.
    pub is_final: bool,
    /// Why the last read failed, in words.
    pub trouble: Option<String>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobWritingState {
    /// It may still write.
    Ongoing,
    /// It ended a moment ago, and its last output may still be on the way.
    JustEnded,
    Ended,
}
