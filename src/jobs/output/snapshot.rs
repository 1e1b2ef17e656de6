//! What is known of a job's output at a moment.

use std::sync::Arc;

use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::logs::findings::LogFindings;
use crate::logs::terminal::RenderedLog;

/// Which file, over whose connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutputKey {
    pub queue: ClusterAccountId,
    pub path: String,
}

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OutputKind {
    #[default]
    Unread,
    Text,
    /// Something that is no text.
    Binary,
    Missing,
    /// Not even its folder.
    NoFolder,
    /// It may not be read.
    Denied,
    /// A device, a folder, a pipe.
    NotAFile,
}

/// The end of a file, ready to be shown.
#[derive(Debug, Clone, Default)]
pub struct OutputSnapshot {
    pub kind: OutputKind,
    /// How many bytes come before what is shown.
    pub base: u64,
    /// How long the file is.
    pub size: u64,
    /// How far it has been read.
    pub end: u64,
    /// When it was last written.
    pub modified: Option<UnixTime>,
    /// When it was last looked at.
    pub read_at: Option<UnixTime>,
    /// Changes when the lines are counted anew.
    pub generation: u64,
    /// What a terminal would show.
    pub rendered: Arc<RenderedLog>,
    /// The errors in it.
    pub findings: Arc<LogFindings>,
    /// Whether nothing more will come.
    pub is_final: bool,
    /// Why the last look gave nothing, in words.
    pub trouble: Option<String>,
}

/// How much of the job's life is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobPhase {
    /// It may still write.
    Ongoing,
    /// It ended a moment ago: the last words may be on their way.
    JustEnded,
    /// It ended long ago.
    Ended,
}
