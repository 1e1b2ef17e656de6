//! Job output while people watch it: one copy of the end of each file, shared by all of a person's tabs. Reads are
//! sparing: rare while nothing new arrives, and none at all while nobody watches.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::queue_monitor::is_recent;
pub use snapshot::{JobWritingState, OutputFileKey, OutputFileState, OutputTail};

use crate::cluster::ConnectionPool;
pub use crate::cluster::output_file::OutputFileChunk;
use crate::cluster::output_file::{self, OutputFilePosition, OutputFileResult};
use crate::core::{Core, lock};
use crate::entropy;
use crate::logs::findings;
use crate::logs::terminal::{self, RenderedLog};
use crate::ssh::{CallUrgency, ClusterConnection, RunCommandError};

mod snapshot;

/// How much of a file is read at a time.
pub const CHUNK_BYTES: u32 = 256 * 1024;
/// A copy that grows beyond this is cut to half of it.
const MAX_COPY_BYTES: usize = 1024 * 1024;
/// How often a growing file is read.
const MIN_INTERVAL: Duration = Duration::from_secs(3);
/// How long a read waits for another read of the same file.
const LOCK_TIMEOUT: Duration = Duration::from_secs(2);
/// How often a file is read while it does not grow.
const MAX_INTERVAL: Duration = Duration::from_secs(15);
/// A copy that nobody has viewed for this long is dropped.
const COPY_TTL: Duration = Duration::from_mins(3);
/// The most copies in memory.
const MAX_COPIES: usize = 200;

#[derive(Default)]
struct CachedJobOutput {
    snapshot: OutputTail,
    bytes: Vec<u8>,
    inode: u64,
    asked_at: Option<Instant>,
    pause: Duration,
    /// Consecutive reads that returned nothing after the job had ended.
    idle_ends: u32,
}

struct FollowedJobOutput {
    copy: tokio::sync::Mutex<CachedJobOutput>,
    /// The last result, for callers that cannot wait for a running read.
    latest: Mutex<OutputTail>,
    viewed_at: Mutex<Instant>,
}

#[derive(Clone)]
pub struct JobOutputCache(Arc<JobOutputCacheInner>);

struct JobOutputCacheInner {
    core: Core,
    connections: ConnectionPool,
    followed: Mutex<HashMap<OutputFileKey, Arc<FollowedJobOutput>>>,
    generations: AtomicU64,
}

impl JobOutputCache {
    pub fn new(core: Core, connections: ConnectionPool) -> Self {
        // Start at random, so that pages opened before a restart never see their generation number again.
        let first = entropy::random_bytes::<4>().map_or(1, u32::from_ne_bytes);
        let generations = AtomicU64::new(u64::from(first) << 20);
        Self(Arc::new(JobOutputCacheInner { core, connections, followed: Mutex::default(), generations }))
    }

    /// Returns the end of a file, reading it again if it is due. Tabs share one read.
    pub async fn follow(&self, key: &OutputFileKey, stage: JobWritingState) -> OutputTail {
        let (output, active) = self.followed_output(key);
        // A hanging cluster must not make tabs wait for one another: they get the last result.
        let Ok(mut copy) = tokio::time::timeout(LOCK_TIMEOUT, output.copy.lock()).await else {
            return lock(&output.latest).clone();
        };
        let snapshot = self.refresh(key, &mut copy, stage, active).await;
        *lock(&output.latest) = snapshot.clone();
        snapshot
    }

    async fn refresh(
        &self,
        key: &OutputFileKey,
        copy: &mut CachedJobOutput,
        stage: JobWritingState,
        active: u32,
    ) -> OutputTail {
        let connection = match self.0.connections.connection(key.queue.connection_key()) {
            Ok(connection) => connection,
            Err(error) => {
                copy.snapshot.trouble = Some(error.to_string());
                return copy.snapshot.clone();
            }
        };
        let now = Instant::now();
        connection.call_budget().record_use(now);
        let every = min_read_interval(&connection, active);
        // Once a job has ended, its last output is fetched without long pauses.
        let pause = if stage == JobWritingState::Ongoing || copy.snapshot.trouble.is_some() {
            copy.pause.max(every)
        } else {
            every
        };
        let due = copy.asked_at.is_none_or(|asked| now.saturating_duration_since(asked) >= pause);
        if copy.snapshot.is_final {
            copy.snapshot.trouble = None;
        }
        if copy.snapshot.is_final || !due {
            return copy.snapshot.clone();
        }
        let urgency = if copy.asked_at.is_none() { CallUrgency::Interactive } else { CallUrgency::Background };
        let had_grown = copy.asked_at.is_some() && copy.pause.is_zero();
        copy.asked_at = Some(now);
        let mut has_paused = false;
        let from = match copy.snapshot.kind {
            OutputFileState::Text | OutputFileState::Binary
                if copy.snapshot.size - copy.end().min(copy.snapshot.size) > as_u64(MAX_COPY_BYTES) =>
            {
                OutputFilePosition::End
            }
            OutputFileState::Text | OutputFileState::Binary => {
                OutputFilePosition::Offset { offset: copy.end(), inode: copy.inode }
            }
            _ => OutputFilePosition::End,
        };
        match output_file::read_output_file(&connection, &key.path, from, CHUNK_BYTES, urgency).await {
            Ok(result) => {
                copy.snapshot.trouble = None;
                copy.snapshot.read_at = Some(self.0.core.clock.now());
                let grew = self.apply_reply(copy, result).await;
                has_paused = had_grown && !grew;
                copy.pause = if grew { Duration::ZERO } else { (copy.pause.max(MIN_INTERVAL) * 2).min(MAX_INTERVAL) };
                copy.idle_ends = if grew || stage == JobWritingState::Ongoing { 0 } else { copy.idle_ends + 1 };
                // The next read fetches the remainder; until then the end is not reached.
                copy.snapshot.end = copy.end();
                let at_end = copy.snapshot.end >= copy.snapshot.size;
                copy.snapshot.is_final = match stage {
                    JobWritingState::Ongoing => false,
                    JobWritingState::JustEnded => at_end && copy.idle_ends >= 2,
                    JobWritingState::Ended => at_end,
                };
            }
            Err(error) => {
                copy.snapshot.trouble = Some(error.to_string());
                copy.pause = MAX_INTERVAL;
                // After a read that hung, the pause counts from when it returned.
                copy.asked_at = Some(Instant::now());
            }
        }
        OutputTail { has_paused, ..copy.snapshot.clone() }
    }

    /// Drops all copies, so that the next call reads the files again.
    pub fn clear(&self) {
        lock(&self.0.followed).clear();
    }

    /// Reads a piece before the part that is shown, for scrolling back.
    pub async fn read_before(
        &self,
        key: &OutputFileKey,
        end: u64,
    ) -> Result<Option<(OutputFileChunk, RenderedLog)>, RunCommandError> {
        let connection = self.0.connections.connection(key.queue.connection_key())?;
        let offset = end.saturating_sub(u64::from(CHUNK_BYTES));
        let most = u32::try_from(end - offset).unwrap_or(CHUNK_BYTES);
        let from = OutputFilePosition::Offset { offset, inode: 0 };
        let result =
            output_file::read_output_file(&connection, &key.path, from, most, CallUrgency::Interactive).await?;
        let OutputFileResult::Chunk(mut piece) = result else { return Ok(None) };
        if piece.start != offset {
            return Ok(None);
        }
        let is_half = piece.trim_to_line();
        let bytes = piece.bytes.clone();
        let rendered = tokio::task::spawn_blocking(move || terminal::render(&bytes, is_half)).await;
        Ok(rendered.ok().map(|rendered| (piece, rendered)))
    }

    /// Reads a piece of the file for a download. Waits while the connection is busy with what people are viewing.
    pub async fn read_piece(
        &self,
        key: &OutputFileKey,
        offset: u64,
        inode: u64,
        most: u32,
    ) -> Result<Option<OutputFileChunk>, RunCommandError> {
        /// Enough tries to outlast a minute, after which the call budget is available again.
        const TRIES: u32 = 40;
        for _ in 0..TRIES {
            let connection = self.0.connections.connection(key.queue.connection_key())?;
            let stats = connection.call_budget().stats(Instant::now());
            connection.call_budget().record_use(Instant::now());
            // Downloads leave half of the call budget to everything else.
            if stats.calls_last_minute * 2 > stats.budget {
                tokio::time::sleep(Duration::from_secs(2)).await;
                continue;
            }
            let from = OutputFilePosition::Offset { offset, inode };
            return match output_file::read_output_file(&connection, &key.path, from, most, CallUrgency::Bulk).await? {
                OutputFileResult::Chunk(piece) if piece.start == offset => Ok(Some(piece)),
                _ => Ok(None),
            };
        }
        Err(RunCommandError::OverBudget)
    }

    /// Applies a read result. Returns whether anything new arrived.
    async fn apply_reply(&self, copy: &mut CachedJobOutput, result: OutputFileResult) -> bool {
        let kind = match result {
            OutputFileResult::Chunk(piece) => return self.apply_piece(copy, piece).await,
            OutputFileResult::Missing => OutputFileState::Missing,
            OutputFileResult::NoFolder => OutputFileState::NoFolder,
            OutputFileResult::Denied => OutputFileState::Denied,
            OutputFileResult::NotAFile => OutputFileState::NotAFile,
        };
        if copy.snapshot.kind == kind {
            return false;
        }
        let snapshot = OutputTail {
            kind,
            generation: self.next_generation(),
            read_at: copy.snapshot.read_at,
            ..OutputTail::default()
        };
        *copy = CachedJobOutput { snapshot, asked_at: copy.asked_at, ..CachedJobOutput::default() };
        true
    }

    async fn apply_piece(&self, copy: &mut CachedJobOutput, mut piece: OutputFileChunk) -> bool {
        let continues = matches!(copy.snapshot.kind, OutputFileState::Text | OutputFileState::Binary)
            && copy.inode == piece.inode
            && copy.end() == piece.start;
        copy.snapshot.size = piece.size;
        copy.snapshot.modified = piece.modified;
        copy.inode = piece.inode;
        let mut is_half = copy.snapshot.rendered.is_cut;
        if continues {
            if piece.bytes.is_empty() {
                return false;
            }
            copy.bytes.extend_from_slice(&piece.bytes);
            if copy.bytes.len() > MAX_COPY_BYTES {
                let cut = copy.bytes.len() - MAX_COPY_BYTES / 2;
                let mut rest = OutputFileChunk {
                    start: copy.snapshot.base + as_u64(cut),
                    bytes: copy.bytes.split_off(cut),
                    ..piece
                };
                is_half = rest.trim_to_line();
                (copy.snapshot.base, copy.bytes) = (rest.start, rest.bytes);
                copy.snapshot.generation = self.next_generation();
            }
        } else {
            is_half = piece.trim_to_line();
            (copy.snapshot.base, copy.bytes) = (piece.start, piece.bytes);
            copy.snapshot.generation = self.next_generation();
        }
        let bytes = copy.bytes.clone();
        let rendering = tokio::task::spawn_blocking(move || {
            let rendered = terminal::render(&bytes, is_half);
            let findings = findings::find_errors(&rendered.texts());
            (rendered, findings)
        });
        if let Ok((mut rendered, findings)) = rendering.await {
            rendered.is_cut = is_half;
            copy.snapshot.kind = if rendered.is_binary { OutputFileState::Binary } else { OutputFileState::Text };
            (copy.snapshot.rendered, copy.snapshot.findings) = (Arc::new(rendered), Arc::new(findings));
        }
        true
    }

    fn next_generation(&self) -> u64 {
        self.0.generations.fetch_add(1, Ordering::Relaxed)
    }

    /// The entry for a file, and how many files this person follows over the same connection.
    fn followed_output(&self, key: &OutputFileKey) -> (Arc<FollowedJobOutput>, u32) {
        let now = Instant::now();
        let mut outputs = lock(&self.0.followed);
        let viewed_at = |output: &FollowedJobOutput| *lock(&output.viewed_at);
        outputs.retain(|_, output| is_recent(Some(viewed_at(output)), now, COPY_TTL));
        if outputs.len() >= MAX_COPIES && !outputs.contains_key(key) {
            let oldest = outputs.iter().min_by_key(|(_, output)| viewed_at(output)).map(|(key, _)| key.clone());
            oldest.map(|oldest| outputs.remove(&oldest));
        }
        let output = outputs
            .entry(key.clone())
            .or_insert_with(|| {
                Arc::new(FollowedJobOutput {
                    copy: tokio::sync::Mutex::default(),
                    latest: Mutex::default(),
                    viewed_at: Mutex::new(now),
                })
            })
            .clone();
        *lock(&output.viewed_at) = now;
        let active = outputs
            .iter()
            .filter(|(other, output)| other.queue == key.queue && is_recent(Some(viewed_at(output)), now, MAX_INTERVAL))
            .count();
        (output, u32::try_from(active).unwrap_or(1).max(1))
    }
}

impl CachedJobOutput {
    /// How far the file has been read.
    fn end(&self) -> u64 {
        self.snapshot.base + as_u64(self.bytes.len())
    }
}

fn as_u64(length: usize) -> u64 {
    u64::try_from(length).unwrap_or(u64::MAX)
}

/// The read interval at which all files that someone follows together use half of the call budget.
fn min_read_interval(connection: &ClusterConnection, active: u32) -> Duration {
    let budget = u32::try_from(connection.call_budget().stats(Instant::now()).budget).unwrap_or(u32::MAX).max(1);
    let every = Duration::from_mins(2) * active / budget;
    every.clamp(MIN_INTERVAL, Duration::from_mins(1))
}
