//! What a job left behind: files that appeared or changed in its folders while it ran. Found by one bounded walk over the
//! person's connection, and kept in memory for a short time.

mod shared_folder;
mod task_names;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

pub use self::shared_folder::leave_out_others;
pub use self::task_names::{find_numbered_task, find_task};
use super::downloads::ConnectionSource;
use super::folder_walk::{FolderWalk, WalkLimits, WalkOrder, WalkStep, WalkedFile};
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::core::lock;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::sftp::{self, RemoteFileKind, SftpError};

/// How many files, folders and links are looked at.
pub const MAX_ENTRIES: usize = 5000;
const MAX_DEPTH: usize = 4;
/// Files that changed this long after the job's end still count: file systems and clocks lag behind.
pub const GRACE_SECONDS: i64 = 60;
/// How long results are kept while they may still change, and afterwards.
const KEEP_ONGOING: Duration = Duration::from_secs(30);
const KEEP_ENDED: Duration = Duration::from_mins(10);
/// How many jobs' results are kept.
const MAX_JOBS: usize = 20;
/// The walk is given up after this time.
const WALK_TIMEOUT: Duration = Duration::from_secs(12);
/// Folders full of files that no one calls results.
const SKIPPED_FOLDERS: [&[u8]; 6] = [b"__pycache__", b"node_modules", b"site-packages", b"venv", b"env", b"conda-env"];

/// Identifies a job or an array, as its page does.
pub type JobResultsKey = (ClusterAccountId, String);

/// Where and when a job wrote.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResultsQuery {
    /// The folder that it ran in.
    pub work_folder: RemotePath,
    /// The folders of its output files.
    pub output_folders: Vec<RemotePath>,
    pub began: UnixTime,
    /// `None` while it runs.
    pub ended: Option<UnixTime>,
    /// When the same person's next job began in this folder, if that was after the end.
    pub next_began: Option<UnixTime>,
}

/// A file that appeared or changed while the job ran.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResultFile {
    pub path: RemotePath,
    pub size: u64,
    pub modified: UnixTime,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobResults {
    /// The newest first.
    pub files: Vec<JobResultFile>,
    /// How many files changed only after the job had ended.
    pub changed_later: usize,
    /// Whether the folders contain more than is looked at.
    pub is_truncated: bool,
    pub read_at: UnixTime,
}

/// Why there are no results to show.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum JobResultsError {
    #[error("The folder no longer exists.")]
    FolderGone,
    #[error("The cluster is slow to respond.")]
    TooSlow,
    #[error(transparent)]
    Sftp(#[from] SftpError),
}

impl JobResults {
    /// Without the files that carry the number of another task of the same array.
    pub fn without_other_tasks(self: Arc<Self>, array: u64, task: u32) -> Arc<Self> {
        let is_own = |file: &JobResultFile| {
            let name = file.path.as_bytes();
            find_numbered_task(name, array).is_none_or(|found| found == task)
        };
        self.retain(is_own)
    }

    /// Only the files that this holds for.
    fn retain(self: Arc<Self>, holds: impl Fn(&JobResultFile) -> bool) -> Arc<Self> {
        if self.files.iter().all(&holds) {
            return self;
        }
        let mut kept = Self::clone(&self);
        kept.files.retain(holds);
        Arc::new(kept)
    }

    pub fn total_bytes(&self) -> u64 {
        self.files.iter().map(|file| file.size).sum()
    }
}

impl JobResultsQuery {
    /// The folder that contains all results; archives have their names from there.
    pub fn base(&self) -> RemotePath {
        let mut base = self.work_folder.clone();
        for folder in &self.output_folders {
            while !folder.is_within(&base) {
                base = base.parent().unwrap_or_else(RemotePath::root);
            }
        }
        base
    }

    fn counts(&self, modified: UnixTime) -> ResultTime {
        match self.ended {
            _ if modified < self.began => ResultTime::Before,
            Some(ended) if modified > ended.plus(GRACE_SECONDS) => ResultTime::After,
            // Within the same second, nobody knows.
            Some(ended) if modified > ended && self.next_began.is_some_and(|next| modified >= next) => {
                ResultTime::After
            }
            _ => ResultTime::During,
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum ResultTime {
    Before,
    During,
    After,
}

fn is_skipped(name: &RemoteName) -> bool {
    name.is_dot_name() || SKIPPED_FOLDERS.contains(&name.as_bytes())
}

/// Reads what is in the folders now.
async fn find_results(
    source: &ConnectionSource,
    query: &JobResultsQuery,
    now: UnixTime,
) -> Result<JobResults, JobResultsError> {
    let mut results = JobResults { files: Vec::new(), changed_later: 0, is_truncated: false, read_at: now };
    let limits =
        WalkLimits { depth: MAX_DEPTH, entries: MAX_ENTRIES, order: WalkOrder::BreadthFirst, skips: is_skipped };
    walk_into(source, &query.work_folder, limits, query, &mut results).await?;
    for folder in query.output_folders.iter().filter(|folder| !folder.is_within(&query.work_folder)) {
        // Only the folder itself: logs are often next to everything else that someone has.
        let found = walk_into(source, folder, WalkLimits { depth: 1, ..limits }, query, &mut results).await;
        if !matches!(found, Err(JobResultsError::FolderGone)) {
            found?;
        }
    }
    results.files.sort_by(|a, b| b.modified.cmp(&a.modified).then_with(|| a.path.cmp(&b.path)));
    results.files.dedup_by(|a, b| a.path == b.path);
    Ok(results)
}

async fn walk_into(
    source: &ConnectionSource,
    folder: &RemotePath,
    limits: WalkLimits,
    query: &JobResultsQuery,
    results: &mut JobResults,
) -> Result<(), JobResultsError> {
    let attrs = match sftp::stat(&source.connection()?, folder).await {
        Err(SftpError::NotFound) => return Err(JobResultsError::FolderGone),
        attrs => attrs?,
    };
    let root = WalkedFile { path: folder.clone(), name: b"root".to_vec(), attrs };
    let mut walk = FolderWalk::new(source.clone(), limits, vec![root]);
    while let Some(step) = walk.next().await? {
        match step {
            WalkStep::LeftOut { name, reason } if name == b"root" => {
                return Err(SftpError::Refused(reason).into());
            }
            WalkStep::Found(WalkedFile { path, attrs, .. }) if attrs.kind == RemoteFileKind::File => {
                let Some(modified) = attrs.modified else { continue };
                match query.counts(modified) {
                    ResultTime::Before => {}
                    ResultTime::During => results.files.push(JobResultFile { path, size: attrs.size, modified }),
                    ResultTime::After => results.changed_later += 1,
                }
            }
            _ => {}
        }
    }
    results.is_truncated |= walk.is_truncated();
    Ok(())
}

/// Keeps results for a short time, so that a page that refreshes itself doesn't walk again and again.
#[derive(Default)]
pub struct JobResultsCache(Mutex<HashMap<JobResultsKey, Arc<CachedJobResults>>>);

#[derive(Default)]
struct CachedJobResults {
    /// Callers who arrive during a walk wait for it.
    read: tokio::sync::Mutex<Option<ReadJobResults>>,
}

struct ReadJobResults {
    query: JobResultsQuery,
    results: Arc<JobResults>,
    /// The connection's count of changes before they were read.
    changes: u64,
    at: Instant,
}

impl JobResultsCache {
    /// Returns the results, looking again if they are old, or if the job has ended or files were renamed since.
    pub async fn get(
        &self,
        key: JobResultsKey,
        source: &ConnectionSource,
        query: JobResultsQuery,
        now: UnixTime,
    ) -> Result<Arc<JobResults>, JobResultsError> {
        let cached = self.entry(key);
        let asking = async {
            let mut read = cached.read.lock().await;
            let changes = source.connection()?.folder_changes();
            if let Some(kept) = read.as_ref().filter(|kept| kept.is_fresh(&query, changes, now)) {
                return Ok(kept.results.clone());
            }
            let results = Arc::new(find_results(source, &query, now).await?);
            *read = Some(ReadJobResults { query, results: results.clone(), changes, at: Instant::now() });
            Ok(results)
        };
        tokio::time::timeout(WALK_TIMEOUT, asking).await.unwrap_or(Err(JobResultsError::TooSlow))
    }

    fn entry(&self, key: JobResultsKey) -> Arc<CachedJobResults> {
        let mut entries = lock(&self.0);
        if entries.len() >= MAX_JOBS && !entries.contains_key(&key) {
            // Those that nobody is reading, the oldest first.
            let age = |entry: &Arc<CachedJobResults>| {
                entry.read.try_lock().ok().map(|read| read.as_ref().map(|read| read.at))
            };
            let oldest =
                entries.iter().filter_map(|(key, entry)| Some((age(entry)?, key.clone()))).min_by_key(|(at, _)| *at);
            if let Some((_, oldest)) = oldest {
                entries.remove(&oldest);
            }
        }
        entries.entry(key).or_default().clone()
    }
}

impl ReadJobResults {
    fn is_fresh(&self, query: &JobResultsQuery, changes: u64, now: UnixTime) -> bool {
        let has_settled = query.ended.is_some_and(|ended| now.since(ended) > GRACE_SECONDS);
        (&self.query, self.changes) == (query, changes)
            && self.at.elapsed() < if has_settled { KEEP_ENDED } else { KEEP_ONGOING }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RemotePath {
        RemotePath::parse(text.as_bytes()).unwrap()
    }

    fn query(work: &str, outputs: &[&str], ended: Option<i64>) -> JobResultsQuery {
        JobResultsQuery {
            work_folder: path(work),
            output_folders: outputs.iter().map(|folder| path(folder)).collect(),
            began: UnixTime(1000),
            ended: ended.map(UnixTime),
            next_began: None,
        }
    }

    #[test]
    fn only_what_changed_while_the_job_ran_counts() {
        let running = query("/home/a", &[], None);
        assert_eq!(running.counts(UnixTime(999)), ResultTime::Before);
        assert_eq!(running.counts(UnixTime(1000)), ResultTime::During);
        assert_eq!(running.counts(UnixTime(999_999)), ResultTime::During);
        let ended = query("/home/a", &[], Some(2000));
        assert_eq!(ended.counts(UnixTime(2060)), ResultTime::During);
        assert_eq!(ended.counts(UnixTime(2061)), ResultTime::After);
        let followed = JobResultsQuery { next_began: Some(UnixTime(2000)), ..ended };
        assert_eq!(followed.counts(UnixTime(2000)), ResultTime::During);
        assert_eq!(followed.counts(UnixTime(2001)), ResultTime::After, "the next job's");
    }

    #[test]
    fn archive_begins_at_the_folder_that_contains_all() {
        assert_eq!(query("/home/a/run", &[], None).base(), path("/home/a/run"));
        assert_eq!(query("/home/a/run", &["/home/a/run/logs"], None).base(), path("/home/a/run"));
        assert_eq!(query("/home/a/run", &["/home/a/logs"], None).base(), path("/home/a"));
        assert_eq!(query("/home/a/run", &["/scratch/a"], None).base(), path("/"));
    }

    #[test]
    fn task_has_its_own_files_and_those_of_nobody() {
        let file = |text: &str| JobResultFile { path: path(text), size: 1, modified: UnixTime(1) };
        let files = ["/r/slurm-8_1.out", "/r/slurm-8_2.out", "/r/model.pt", "/r/slurm-9_2.out"].map(file).to_vec();
        let all = JobResults { files, changed_later: 0, is_truncated: false, read_at: UnixTime(1) };
        let own = Arc::new(all).without_other_tasks(8, 1);
        let names: Vec<String> = own.files.iter().map(|file| file.path.to_string()).collect();
        assert_eq!(names, ["/r/slurm-8_1.out", "/r/model.pt", "/r/slurm-9_2.out"]);
    }

    #[test]
    fn hidden_and_generated_folders_are_skipped() {
        for name in [".git", ".venv", "node_modules", "__pycache__"] {
            assert!(is_skipped(&RemoteName::parse(name.as_bytes()).unwrap()), "{name}");
        }
        assert!(!is_skipped(&RemoteName::parse(b"checkpoints").unwrap()));
    }

    #[test]
    fn results_are_read_again_once_the_job_has_ended() {
        let read = |query: JobResultsQuery| ReadJobResults {
            query,
            results: Arc::new(JobResults {
                files: Vec::new(),
                changed_later: 0,
                is_truncated: false,
                read_at: UnixTime(1),
            }),
            changes: 3,
            at: Instant::now(),
        };
        let running = query("/a", &[], None);
        assert!(read(running.clone()).is_fresh(&running, 3, UnixTime(1500)));
        assert!(!read(running.clone()).is_fresh(&running, 4, UnixTime(1500)), "a file was renamed");
        assert!(!read(running).is_fresh(&query("/a", &[], Some(1600)), 3, UnixTime(1700)));
    }
}
