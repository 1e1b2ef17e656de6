//! Folders that a dashboard could show, looked for on a cluster with one bounded command over the person's own
//! connection: where event files were written lately, or runs of `MLflow`. Never asked on the way of a page.

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

/// The search is ended after this many seconds; what it has found until then counts.
const SEARCH_LIMIT_S: &str = "8";
/// The whole command, with what a busy disk adds.
const SEARCH_TIMEOUT: Duration = Duration::from_secs(15);
/// More than this many files print nothing that anyone would read.
const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;
/// So many files count, the newest.
const MAX_FILES: usize = 2000;
/// So many folders are offered.
pub const MAX_FOLDERS: usize = 12;
/// So many of the person's own folders are searched.
const MAX_SEARCH_ROOTS: usize = 8;
const SEARCH_DEPTH: &str = "5";
/// Longer paths are no folders that anyone wants to see.
const MAX_PATH_LEN: usize = 1000;
/// What was found is not looked for again within this time.
const CACHE_TTL: Duration = Duration::from_secs(30);
/// So many answers are remembered.
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

/// What is looked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum DashboardFolderKind {
    /// Folders with event files, for `TensorBoard`.
    EventFiles,
    /// Tracking folders and databases of `MLflow`.
    MlflowRuns,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DashboardFolder {
    pub path: String,
    /// When anything in it was last written.
    pub newest: UnixTime,
}

/// What came of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DashboardFolders {
    pub folders: Vec<DashboardFolder>,
    /// Whether the search was ended before its end.
    pub is_cut: bool,
}

/// Remembers what was found.
#[derive(Clone, Default)]
pub struct DashboardFolderCache(
    Arc<Mutex<HashMap<(ConnectionKey, DashboardFolderKind), CachedDashboardFolders>>>,
);

struct CachedDashboardFolders {
    until: Instant,
    found: Arc<DashboardFolders>,
}

impl DashboardFolderCache {
    /// What can be shown on someone's cluster; asked if that was not done within the last minutes.
    pub async fn find(
        &self,
        line: &Arc<ClusterConnection>,
        key: ConnectionKey,
        learnt: &DiscoveredFacts,
        sort: DashboardFolderKind,
    ) -> Result<Arc<DashboardFolders>, RunCommandError> {
        let now = Instant::now();
        if let Some(kept) = self.lock().get(&(key, sort)).filter(|kept| kept.until > now) {
            return Ok(kept.found.clone());
        }
        let found = Arc::new(search(line, &search_roots(learnt), sort).await?);
        let mut all = self.lock();
        if all.len() >= MAX_CACHED {
            all.retain(|_, kept| kept.until > now);
        }
        all.insert(
            (key, sort),
            CachedDashboardFolders { until: now + CACHE_TTL, found: found.clone() },
        );
        Ok(found)
    }

    fn lock(
        &self,
    ) -> MutexGuard<'_, HashMap<(ConnectionKey, DashboardFolderKind), CachedDashboardFolders>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The person's own folders, without those that lie in another one. Home comes last: results lie elsewhere more often,
/// and a home full of small files can use up the time of the search.
fn search_roots(learnt: &DiscoveredFacts) -> Vec<String> {
    let known = learnt.folders.iter().map(|folder| folder.path.as_str());
    let mut starts: Vec<String> = Vec::new();
    for path in known.chain(learnt.home.as_deref()) {
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

/// Whether a path is a folder or lies in it.
fn is_below(path: &str, folder: &str) -> bool {
    path.strip_prefix(folder).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

async fn search(
    line: &Arc<ClusterConnection>,
    starts: &[String],
    sort: DashboardFolderKind,
) -> Result<DashboardFolders, RunCommandError> {
    if starts.is_empty() {
        return Ok(DashboardFolders::default());
    }
    let command = RemoteCommand::new("timeout")
        .args(find_args(starts, sort))
        .with_deadline(SEARCH_TIMEOUT)
        .with_max_output(MAX_OUTPUT_BYTES);
    let output = line.run_shared(command, CallUrgency::Interactive).await?;
    // Folders that may not be read make it end with an error: what it found counts all the same.
    let was_ended = output.code == 124;
    Ok(parse_search_output(&output.stdout, starts, sort, was_ended))
}

/// The words of the search. Links are not followed, but a start may be one: the slash at its end leads through it.
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

/// Reads what the search printed: times and paths, each ended by a zero byte.
fn parse_search_output(
    printed: &[u8],
    starts: &[String],
    sort: DashboardFolderKind,
    was_ended: bool,
) -> DashboardFolders {
    let mut files: Vec<DashboardFolder> =
        printed.split(|byte| *byte == 0).filter_map(parse_folder).collect();
    files.sort_by_key(|file| std::cmp::Reverse(file.newest));
    let is_cut = was_ended || files.len() > MAX_FILES;
    files.truncate(MAX_FILES);
    let mut newest: BTreeMap<String, UnixTime> = BTreeMap::new();
    for DashboardFolder { path, newest: at } in files {
        let path = match sort {
            DashboardFolderKind::EventFiles => path,
            DashboardFolderKind::MlflowRuns => mlflow_tracking_folder(path),
        };
        keep_newest(&mut newest, path, at);
    }
    if sort == DashboardFolderKind::EventFiles {
        newest = merge_siblings(newest, starts);
    }
    let mut places: Vec<DashboardFolder> =
        newest.into_iter().map(|(path, newest)| DashboardFolder { path, newest }).collect();
    places.sort_by_key(|place| std::cmp::Reverse(place.newest));
    places.truncate(MAX_FOLDERS);
    DashboardFolders { folders: places, is_cut }
}

/// `1794820320.1234 /scratch/alice/runs/one`; nothing for a path that cannot be shown as it is.
fn parse_folder(line: &[u8]) -> Option<DashboardFolder> {
    let (time, path) = std::str::from_utf8(line).ok()?.split_once(' ')?;
    let seconds = time.split('.').next()?.parse().ok()?;
    let is_fit = path.starts_with('/') && path.len() <= MAX_PATH_LEN && !path.contains(is_hidden);
    is_fit.then(|| DashboardFolder { path: path.to_owned(), newest: UnixTime(seconds) })
}

/// The tracking folder that a run lies in.
fn mlflow_tracking_folder(path: String) -> String {
    const NAME: &str = "/mlruns";
    let inside = path.rfind("/mlruns/").map(|at| path[..at + NAME.len()].to_owned());
    inside.unwrap_or(path)
}

fn keep_newest(newest: &mut BTreeMap<String, UnixTime>, path: String, at: UnixTime) {
    let known = newest.entry(path).or_insert(at);
    *known = at.max(*known);
}

/// Runs that lie beside each other are one experiment: the folder around them is shown. Never one of the starts, as
/// that would be everything.
fn merge_siblings(
    mut newest: BTreeMap<String, UnixTime>,
    starts: &[String],
) -> BTreeMap<String, UnixTime> {
    loop {
        let mut children: HashMap<String, usize> = HashMap::new();
        for path in newest.keys() {
            if let Some(parent) = parent_folder(path).filter(|one| !starts.iter().any(|s| s == one))
            {
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

/// What lies in another folder of the list is seen there.
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
