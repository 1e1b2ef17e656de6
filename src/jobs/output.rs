//! The output of jobs while people look at it: one copy of the end of each file, shared by all tabs of a person. The
//! cluster is asked politely: seldom while nothing comes, and not at all when nobody looks.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::watch::{QueueKey, recent};
use crate::clock::{Clock, UnixTime};
use crate::cluster::ConnectionPool;
pub use crate::cluster::output_file::OutputFileChunk;
use crate::cluster::output_file::{self, OutputFilePosition, OutputFileResult};
use crate::entropy;
use crate::logs::findings::{self, Findings};
use crate::logs::terminal::{self, Rendered};
use crate::ssh::{CallUrgency, ClusterConnection, RunCommandError};

/// So much of a file is read at a time.
pub const CHUNK: u32 = 256 * 1024;
/// A copy that has grown longer is cut to half of it.
const MOST_KEPT: usize = 1024 * 1024;
/// While a file grows, it is read this often.
const FASTEST: Duration = Duration::from_secs(3);
/// A look waits this long for another one of the same file.
const PATIENCE: Duration = Duration::from_secs(2);
/// While nothing comes, this often.
const SLOWEST: Duration = Duration::from_secs(15);
/// A copy that nobody has looked at for this long is forgotten.
const KEPT_FOR: Duration = Duration::from_mins(3);
/// So many copies are kept at most.
const MOST_COPIES: usize = 200;

/// Which file, over whose connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct OutputKey {
    /// Whose connection.
    pub queue: QueueKey,
    /// The file.
    pub path: String,
}

/// What kind of thing was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// Not read yet.
    #[default]
    Unread,
    /// Text, or nothing.
    Text,
    /// Something that is no text.
    Binary,
    /// No such file.
    Missing,
    /// Not even its folder.
    NoFolder,
    /// It may not be read.
    Denied,
    /// A device, a folder, a pipe.
    Odd,
}

/// The end of a file, ready to be shown.
#[derive(Debug, Clone, Default)]
pub struct Shown {
    /// What was found.
    pub kind: Kind,
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
    pub rendered: Arc<Rendered>,
    /// The errors in it.
    pub findings: Arc<Findings>,
    /// Whether nothing more will come.
    pub is_final: bool,
    /// Why the last look gave nothing, in words.
    pub trouble: Option<String>,
}

/// How much of the job's life is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Life {
    /// It may still write.
    GoesOn,
    /// It ended a moment ago: the last words may be on their way.
    JustEnded,
    /// It ended long ago.
    Over,
}

#[derive(Default)]
struct Kept {
    shown: Shown,
    bytes: Vec<u8>,
    inode: u64,
    asked: Option<Instant>,
    pause: Duration,
    /// Looks in a row that brought nothing although the job was over.
    idle_ends: u32,
}

struct Spot {
    copy: tokio::sync::Mutex<Kept>,
    /// What was last shown, for those who cannot wait for a read under way.
    latest: Mutex<Shown>,
    looked: Mutex<Instant>,
}

/// The outputs that people look at.
#[derive(Clone)]
pub struct Outputs(Arc<Inner>);

struct Inner {
    clock: Clock,
    lines: ConnectionPool,
    spots: Mutex<HashMap<OutputKey, Arc<Spot>>>,
    generations: AtomicU64,
}

impl Outputs {
    /// Nobody looks yet.
    pub fn new(clock: Clock, lines: ConnectionPool) -> Self {
        // Pages that are open from before a restart must not find their numbers again.
        let first = entropy::random_bytes::<4>().map_or(1, u32::from_ne_bytes);
        let generations = AtomicU64::new(u64::from(first) << 20);
        Self(Arc::new(Inner { clock, lines, spots: Mutex::default(), generations }))
    }

    /// The end of a file as it is known, asked anew if it is time. Tabs share one look.
    pub async fn follow(&self, key: &OutputKey, stage: Life) -> Shown {
        let (spot, active) = self.spot(key);
        // A cluster that hangs must not make tabs wait for one another: they get what was known.
        let Ok(mut kept) = tokio::time::timeout(PATIENCE, spot.copy.lock()).await else {
            return spot.latest.lock().unwrap_or_else(PoisonError::into_inner).clone();
        };
        let shown = self.look(key, &mut kept, stage, active).await;
        *spot.latest.lock().unwrap_or_else(PoisonError::into_inner) = shown.clone();
        shown
    }

    async fn look(&self, key: &OutputKey, kept: &mut Kept, stage: Life, active: u32) -> Shown {
        let line = match self.0.lines.connection(key.queue.line()) {
            Ok(line) => line,
            Err(error) => {
                kept.shown.trouble = Some(error.to_string());
                return kept.shown.clone();
            }
        };
        let now = Instant::now();
        line.call_budget().record_use(now);
        let every = polite(&line, active);
        // Of a job that is over, the last words are fetched without long pauses.
        let pause = if stage == Life::GoesOn || kept.shown.trouble.is_some() {
            kept.pause.max(every)
        } else {
            every
        };
        let due = kept.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= pause);
        if kept.shown.is_final {
            kept.shown.trouble = None;
        }
        if kept.shown.is_final || !due {
            return kept.shown.clone();
        }
        let urgency =
            if kept.asked.is_none() { CallUrgency::Interactive } else { CallUrgency::Background };
        kept.asked = Some(now);
        let from = match kept.shown.kind {
            Kind::Text | Kind::Binary
                if kept.shown.size - kept.end().min(kept.shown.size) > as_u64(MOST_KEPT) =>
            {
                OutputFilePosition::End
            }
            Kind::Text | Kind::Binary => {
                OutputFilePosition::Offset { offset: kept.end(), inode: kept.inode }
            }
            _ => OutputFilePosition::End,
        };
        match output_file::read_output_file(&line, &key.path, from, CHUNK, urgency).await {
            Ok(found) => {
                kept.shown.trouble = None;
                kept.shown.read_at = Some(self.0.clock.now());
                let grew = self.take(kept, found).await;
                kept.pause =
                    if grew { Duration::ZERO } else { (kept.pause.max(FASTEST) * 2).min(SLOWEST) };
                kept.idle_ends = if grew || stage == Life::GoesOn { 0 } else { kept.idle_ends + 1 };
                // What is behind is fetched at the next look; then the end is not reached yet.
                kept.shown.end = kept.end();
                let at_end = kept.shown.end >= kept.shown.size;
                kept.shown.is_final = match stage {
                    Life::GoesOn => false,
                    Life::JustEnded => at_end && kept.idle_ends >= 2,
                    Life::Over => at_end,
                };
            }
            Err(error) => {
                kept.shown.trouble = Some(error.to_string());
                kept.pause = SLOWEST;
                // A pause after a read that hung counts from its end.
                kept.asked = Some(Instant::now());
            }
        }
        kept.shown.clone()
    }

    /// Forgets all copies: the next look reads anew.
    pub fn forget(&self) {
        self.0.spots.lock().unwrap_or_else(PoisonError::into_inner).clear();
    }

    /// A piece before what is shown, for whoever wants to read further back.
    pub async fn before(
        &self,
        key: &OutputKey,
        end: u64,
    ) -> Result<Option<(OutputFileChunk, Rendered)>, RunCommandError> {
        let line = self.0.lines.connection(key.queue.line())?;
        let offset = end.saturating_sub(u64::from(CHUNK));
        let most = u32::try_from(end - offset).unwrap_or(CHUNK);
        let from = OutputFilePosition::Offset { offset, inode: 0 };
        let found =
            output_file::read_output_file(&line, &key.path, from, most, CallUrgency::Interactive)
                .await?;
        let OutputFileResult::Chunk(mut piece) = found else { return Ok(None) };
        if piece.start != offset {
            return Ok(None);
        }
        let is_half = piece.trim_to_line();
        let bytes = piece.bytes.clone();
        let rendered = tokio::task::spawn_blocking(move || terminal::render(&bytes, is_half)).await;
        Ok(rendered.ok().map(|rendered| (piece, rendered)))
    }

    /// A piece of the whole file, for downloads. Waits while the connection is busy with what people look at.
    pub async fn piece(
        &self,
        key: &OutputKey,
        offset: u64,
        inode: u64,
        most: u32,
    ) -> Result<Option<OutputFileChunk>, RunCommandError> {
        /// A minute later the budget is there again.
        const TRIES: u32 = 40;
        for _ in 0..TRIES {
            let line = self.0.lines.connection(key.queue.line())?;
            let figures = line.call_budget().stats(Instant::now());
            line.call_budget().record_use(Instant::now());
            // Half of the polite number of calls stays for everything else.
            if figures.calls_last_minute * 2 > figures.budget {
                tokio::time::sleep(Duration::from_secs(2)).await;
                continue;
            }
            let from = OutputFilePosition::Offset { offset, inode };
            return match output_file::read_output_file(
                &line,
                &key.path,
                from,
                most,
                CallUrgency::Bulk,
            )
            .await?
            {
                OutputFileResult::Chunk(piece) if piece.start == offset => Ok(Some(piece)),
                _ => Ok(None),
            };
        }
        Err(RunCommandError::OverBudget)
    }

    /// Takes in what was found. Says whether anything new came.
    async fn take(&self, copy: &mut Kept, found: OutputFileResult) -> bool {
        let kind = match found {
            OutputFileResult::Chunk(piece) => return self.take_piece(copy, piece).await,
            OutputFileResult::Missing => Kind::Missing,
            OutputFileResult::NoFolder => Kind::NoFolder,
            OutputFileResult::Denied => Kind::Denied,
            OutputFileResult::NotAFile => Kind::Odd,
        };
        if copy.shown.kind == kind {
            return false;
        }
        let shown = Shown {
            kind,
            generation: self.generation(),
            read_at: copy.shown.read_at,
            ..Shown::default()
        };
        *copy = Kept { shown, asked: copy.asked, ..Kept::default() };
        true
    }

    async fn take_piece(&self, copy: &mut Kept, mut piece: OutputFileChunk) -> bool {
        let continues = matches!(copy.shown.kind, Kind::Text | Kind::Binary)
            && copy.inode == piece.inode
            && copy.end() == piece.start;
        copy.shown.size = piece.size;
        copy.shown.modified = piece.modified;
        copy.inode = piece.inode;
        let mut is_half = copy.shown.rendered.cut;
        if continues {
            if piece.bytes.is_empty() {
                return false;
            }
            copy.bytes.extend_from_slice(&piece.bytes);
            if copy.bytes.len() > MOST_KEPT {
                let cut = copy.bytes.len() - MOST_KEPT / 2;
                let mut rest = OutputFileChunk {
                    start: copy.shown.base + as_u64(cut),
                    bytes: copy.bytes.split_off(cut),
                    ..piece
                };
                is_half = rest.trim_to_line();
                (copy.shown.base, copy.bytes) = (rest.start, rest.bytes);
                copy.shown.generation = self.generation();
            }
        } else {
            is_half = piece.trim_to_line();
            (copy.shown.base, copy.bytes) = (piece.start, piece.bytes);
            copy.shown.generation = self.generation();
        }
        let bytes = copy.bytes.clone();
        let made = tokio::task::spawn_blocking(move || {
            let rendered = terminal::render(&bytes, is_half);
            let findings = findings::find(&rendered.texts());
            (rendered, findings)
        });
        if let Ok((mut rendered, findings)) = made.await {
            rendered.cut = is_half;
            copy.shown.kind = if rendered.binary { Kind::Binary } else { Kind::Text };
            (copy.shown.rendered, copy.shown.findings) = (Arc::new(rendered), Arc::new(findings));
        }
        true
    }

    fn generation(&self) -> u64 {
        self.0.generations.fetch_add(1, Ordering::Relaxed)
    }

    /// The place of a copy, and how many this person looks at over the same connection.
    fn spot(&self, key: &OutputKey) -> (Arc<Spot>, u32) {
        let now = Instant::now();
        let mut spots = self.0.spots.lock().unwrap_or_else(PoisonError::into_inner);
        let looked = |spot: &Spot| *spot.looked.lock().unwrap_or_else(PoisonError::into_inner);
        spots.retain(|_, spot| recent(Some(looked(spot)), now, KEPT_FOR));
        if spots.len() >= MOST_COPIES && !spots.contains_key(key) {
            let oldest =
                spots.iter().min_by_key(|(_, spot)| looked(spot)).map(|(key, _)| key.clone());
            oldest.map(|oldest| spots.remove(&oldest));
        }
        let spot = spots
            .entry(key.clone())
            .or_insert_with(|| {
                Arc::new(Spot {
                    copy: tokio::sync::Mutex::default(),
                    latest: Mutex::default(),
                    looked: Mutex::new(now),
                })
            })
            .clone();
        *spot.looked.lock().unwrap_or_else(PoisonError::into_inner) = now;
        let active = spots
            .iter()
            .filter(|(other, spot)| {
                other.queue == key.queue && recent(Some(looked(spot)), now, SLOWEST)
            })
            .count();
        (spot, u32::try_from(active).unwrap_or(1).max(1))
    }
}

impl Kept {
    /// How much of the file has been read.
    fn end(&self) -> u64 {
        self.shown.base + as_u64(self.bytes.len())
    }
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// How often a file may be read, so that all files that someone follows take half of the polite number of calls.
fn polite(line: &ClusterConnection, active: u32) -> Duration {
    let budget =
        u32::try_from(line.call_budget().stats(Instant::now()).budget).unwrap_or(u32::MAX).max(1);
    let every = Duration::from_mins(2) * active / budget;
    every.clamp(FASTEST, Duration::from_mins(1))
}
