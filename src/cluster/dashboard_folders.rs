//! Finds folders that a dashboard could show, with one bounded command over the person's own connection: folders with
//! recent event files, or MLflow runs. Never runs while a page is being rendered.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::discovered_facts::DiscoveredFacts;
use crate::clock::UnixTime;
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};
use crate::store::connections::ConnectionKey;
use crate::text::is_hidden;

/// Seconds after which the search is stopped; what it has found by then counts.
const SEARCH_LIMIT_S: &str = "8";
/// The whole command, with the delay of a busy disk.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(15);
const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// Only the newest files count.
const MAX_FILES: usize = 2000;
/// How many folders are offered.
pub const MAX_FOLDERS: usize = 12;
/// How many of the person's own folders are searched.
const MAX_SEARCH_ROOTS: usize = 8;
const SEARCH_DEPTH: &str = "5";
/// Nobody wants to see folders with longer paths.
const MAX_PATH_LEN: usize = 1000;
/// How long a result is reused.
const CACHE_TTL: Duration = Duration::from_secs(30);
const MAX_CACHED: usize = 1000;

/// Folders that hold programs, not results. Hidden ones are skipped as well.
const SKIPPED_FOLDERS: &[&str] = &[
    ".*",
    "site-packages",
    "node_modules",
    "__pycache__",
    "conda*",
    "miniconda*",
    "anaconda*",
    "miniforge*",
    "mambaforge*",
];

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DashboardFolderKind {
    /// Folders with event files, for TensorBoard.
    EventFiles,
    /// MLflow's tracking folders and databases.
    MlflowRuns,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundDashboardFolder {
    pub path: String,
    /// When anything in it was last written.
    pub newest: UnixTime,
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FoundDashboardFolders {
    pub folders: Vec<FoundDashboardFolder>,
    /// Whether the search was stopped early.
    pub is_cut: bool,
}

#[derive(Clone, Default)]
pub struct DashboardFolderCache(Arc<Mutex<HashMap<(ConnectionKey, DashboardFolderKind), CachedDashboardFolders>>>);

struct CachedDashboardFolders {
    until: Instant,
    found: Arc<FoundDashboardFolders>,
}

impl DashboardFolderCache {
    /// The folders of a person on a cluster; searches only if there is no recent result.
    pub async fn find(
        &self,
        connection: &Arc<ClusterConnection>,
        key: ConnectionKey,
        facts: &DiscoveredFacts,
        sort: DashboardFolderKind,
    ) -> Result<Arc<FoundDashboardFolders>, RunCommandError> {
        let now = Instant::now();
        if let Some(kept) = self.lock().get(&(key, sort)).filter(|kept| kept.until > now) {
            return Ok(kept.found.clone());
        }
        let found = Arc::new(search(connection, &search_roots(facts), sort).await?);
        let mut all = self.lock();
        if all.len() >= MAX_CACHED {
            all.retain(|_, kept| kept.until > now);
        }
        all.insert((key, sort), CachedDashboardFolders { until: now + CACHE_TTL, found: found.clone() });
        Ok(found)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<(ConnectionKey, DashboardFolderKind), CachedDashboardFolders>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The person's own folders, without those inside another one. Home comes last: results are usually elsewhere, and a
/// home full of small files can use up the search time.
fn search_roots(facts: &DiscoveredFacts) -> Vec<String> {
    let known = facts.folders.iter().map(|folder| folder.path.as_str());
    let mut starts: Vec<String> = Vec::new();
    for path in known.chain(facts.home.as_deref()) {
        let path = path.trim_end_matches('/');
        let is_fit = path.starts_with('/') && !path.contains(char::is_control);
        if is_fit && !starts.iter().any(|start| is_below(path, start)) {
            starts.retain(|start| !is_below(start, path));
            starts.push(path.to_owned());
        }
    }
    starts.truncate(MAX_SEARCH_ROOTS);
    starts
}

/// Whether a path is a folder or inside it.
pub fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn search(
    connection: &Arc<ClusterConnection>,
    starts: &[String],
    sort: DashboardFolderKind,
) -> Result<FoundDashboardFolders, RunCommandError> {
    if starts.is_empty() {
        return Ok(FoundDashboardFolders::default());
    }
    let command = RemoteCommand::new("timeout")
        .args(find_args(starts, sort))
        .with_deadline(SEARCH_TIMEOUT)
        .with_max_output(MAX_OUTPUT_BYTES);
    let output = connection.run_shared(command, CallUrgency::Interactive).await?;
    // Unreadable folders make it exit with an error: what it found counts all the same.
    let was_ended = output.code == 124;
    Ok(parse_search_output(&output.stdout, starts, sort, was_ended))
}

/// The arguments of the search. Links are not followed, but a root may be one: the slash at its end resolves it.
fn find_args(starts: &[String], sort: DashboardFolderKind) -> Vec<String> {
    let mut args: Vec<String> = [SEARCH_LIMIT_S, "find", "-P"].map(str::to_owned).to_vec();
    args.extend(starts.iter().map(|start| format!("{start}/")));
    let mut add = |words: &[&str]| args.extend(words.iter().map(|word| (*word).to_owned()));
    add(&["-mindepth", "1", "-maxdepth", SEARCH_DEPTH, "-type", "d", "("]);
    for (at, name) in SKIPPED_FOLDERS.iter().enumerate() {
        if at > 0 {
            add(&["-o"]);
        }
        add(&["-name", name]);
    }
    add(&[")", "-prune", "-o"]);
    match sort {
        DashboardFolderKind::EventFiles => {
            add(&["-type", "f", "-name", "events.out.tfevents.*", "-printf", "%T@ %h\\0"]);
        }
        DashboardFolderKind::MlflowRuns => {
            add(&["-type", "f", "(", "-name", "mlflow.db", "-o", "-name", "mlruns.db", ")"]);
            add(&["-printf", "%T@ %p\\0", "-o", "-type", "f", "-name", "meta.yaml"]);
            add(&["-path", "*/mlruns/*", "-printf", "%T@ %h\\0"]);
        }
    }
    args
}

/// Parses the output of the search: times and paths, each ended by a zero byte.
fn parse_search_output(
    printed: &[u8],
    starts: &[String],
    sort: DashboardFolderKind,
    was_ended: bool,
) -> FoundDashboardFolders {
    let mut files: Vec<FoundDashboardFolder> = printed.split(|byte| *byte == 0).filter_map(parse_folder).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.newest));
    let is_cut = was_ended || files.len() > MAX_FILES;
    files.truncate(MAX_FILES);
    let mut newest: BTreeMap<String, UnixTime> = BTreeMap::new();
    for FoundDashboardFolder { path, newest: at } in files {
        let path = match sort {
            DashboardFolderKind::EventFiles => path,
            DashboardFolderKind::MlflowRuns => mlflow_tracking_folder(path),
        };
        keep_newest(&mut newest, path, at);
    }
    if sort == DashboardFolderKind::EventFiles {
        newest = merge_siblings(newest, starts);
    }
    let mut places: Vec<FoundDashboardFolder> =
        newest.into_iter().map(|(path, newest)| FoundDashboardFolder { path, newest }).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.newest));
    places.truncate(MAX_FOLDERS);
    FoundDashboardFolders { folders: places, is_cut }
}

/// `1794820320.1234 /scratch/alice/runs/one`; `None` for a path that cannot be shown unchanged.
fn parse_folder(line: &[u8]) -> Option<FoundDashboardFolder> {
    let (time, path) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let seconds = time.split('.').next()?.parse().ok()?;
    let is_fit = path.starts_with('/') && path.len() <= MAX_PATH_LEN && !path.contains(is_hidden);
    is_fit.then(|| FoundDashboardFolder { path: path.to_owned(), newest: UnixTime(seconds) })
}

/// The tracking folder that contains a run.
fn mlflow_tracking_folder(path: String) -> String {
    const NAME: &str = "/mlruns";
    let inside = path.rfind("/mlruns/").map(|at| path[..at + NAME.len()].to_owned());
    inside.unwrap_or(path)
}

fn keep_newest(newest: &mut BTreeMap<String, UnixTime>, path: String, at: UnixTime) {
    let known = newest.entry(path).or_insert(at);
    *known = at.max(*known);
}

/// Sibling runs are one experiment: their parent folder is shown. Never one of the search roots, because that would
/// show everything.
fn merge_siblings(mut newest: BTreeMap<String, UnixTime>, starts: &[String]) -> BTreeMap<String, UnixTime> {
    loop {
        let mut children: HashMap<String, usize> = HashMap::new();
        for path in newest.keys() {
            if let Some(parent) = parent_folder(path).filter(|one| !starts.iter().any(|s| s == one)) {
                *children.entry(parent.to_owned()).or_default() += 1;
            }
        }
        let is_crowded = |path: &str| children.get(path).is_some_and(|count| *count > 1);
        let mut next = BTreeMap::new();
        for (path, at) in &newest {
            let parent = parent_folder(path).filter(|parent| is_crowded(parent));
            keep_newest(&mut next, parent.unwrap_or(path).to_owned(), *at);
        }
        let next = drop_nested(next);
        if next.len() == newest.len() {
            return next;
        }
        newest = next;
    }
}

/// Drops folders inside another folder of the list, which shows them anyway.
fn drop_nested(newest: BTreeMap<String, UnixTime>) -> BTreeMap<String, UnixTime> {
    let mut outer: BTreeMap<String, UnixTime> = BTreeMap::new();
    let mut paths: Vec<(String, UnixTime)> = newest.into_iter().collect();
    paths.sort_by_key(|(path, _)| path.len());
    for (path, at) in paths {
        let around = outer.keys().find(|folder| is_below(&path, folder)).cloned();
        keep_newest(&mut outer, around.unwrap_or(path), at);
    }
    outer
}

fn parent_folder(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(before, _)| before).filter(|before| !before.is_empty())
}
