//! Deletes items and everything in them, the innermost first, with many requests under way. A link is removed; where it
//! leads is never touched.

mod hidden_items;

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use self::hidden_items::HiddenItems;
pub(super) use self::hidden_items::{RestoredItems, confirm};
use super::count::{CountLimits, count_items};
use super::progress::TransferProgress;
use super::worker::TransferRun;
use super::{ProtectedPlaceError, TransferError};
use crate::domain::RemotePath;
use crate::format;
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{self, RemoteDirEntry, RemoteDirListing, RemoteFileKind, SftpError};
use crate::store::transfers::Transfer;

/// How many requests are under way at once.
const REQUESTS_AT_ONCE: usize = 32;
/// How many names of a folder are read at once; what remains is read when they are gone.
const NAMES_AT_ONCE: usize = 1000;
/// How many files go before their folder is checked again.
const FILES_PER_CHECK: usize = 64;

/// Why nothing was deleted at once.
#[derive(Debug, thiserror::Error)]
pub enum DeleteAtOnceError {
    #[error(transparent)]
    Protected(#[from] ProtectedPlaceError),
    #[error(transparent)]
    Sftp(#[from] SftpError),
}

/// Deletes one file, link or empty folder. Returns whether that was possible: a folder with something in it takes longer.
pub async fn delete_single(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<bool, DeleteAtOnceError> {
    if sftp::lstat(connection, path).await?.kind != RemoteFileKind::Folder {
        sftp::remove_file(connection, path).await?;
        return Ok(true);
    }
    match sftp::remove_folder(connection, path).await {
        Ok(()) => Ok(true),
        Err(error @ SftpError::Run(_)) => Err(error.into()),
        // Servers don't say that a folder isn't empty; whatever else is wrong shows when its contents are deleted.
        Err(_) => Ok(false),
    }
}

/// Deletes the transfer's items. Returns what to know about the result.
pub(super) async fn run(run: &TransferRun) -> Result<String, TransferError> {
    let session = TransferSession::open(&run.connection).await?;
    let mut items = HiddenItems::locate(&session, &run.transfer, &run.transfer.checkpoint).await?;
    let paths = items.hide(run, &session).await?;
    if run.transfer.files_total == 0 {
        match count_items(&session, &paths, COUNT_LIMITS).await {
            Ok(count) if !count.is_partial => run.progress.set_totals(count.files + count.folders, 0),
            Err(error @ SftpError::Run(_)) => return Err(error.into()),
            // The rest shows when it is deleted.
            _ => {}
        }
    }
    let mut deletion = Deletion::new(&run.progress, items.shown_names());
    for path in paths.into_iter().rev() {
        deletion.steps.push(DeletionStep { node: None, path, kind: DeletionStepKind::Look });
    }
    deletion.run(&session).await?;
    let Some(failures) = deletion.failures else { return Ok(String::new()) };
    let restored = items.restore(run, &session).await?;
    let sentences = format!("{} {}", failures.sentence(), restored.stuck_sentence());
    Err(TransferError::Failed(sentences.trim_end().to_owned()))
}

/// Gives what a deletion that is over left its name back.
pub(super) async fn restore(
    connection: &Arc<ClusterConnection>,
    transfer: &Transfer,
) -> Result<RestoredItems, TransferError> {
    let session = TransferSession::open(connection).await?;
    let mut items = HiddenItems::locate(&session, transfer, &transfer.checkpoint).await?;
    items.restore_cancelled(&session).await
}

/// Deletes one item and everything in it; nothing happens if it isn't there.
pub(super) async fn remove_tree(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<(), TransferError> {
    let session = TransferSession::open(connection).await?;
    let progress = TransferProgress::unseen();
    let mut deletion = Deletion::new(&progress, HashMap::new());
    let (Some(folder), Some(name)) = (path.parent(), path.name()) else { return Ok(()) };
    let path = session.real_path(&folder).await?.join(&name);
    deletion.steps.push(DeletionStep { node: None, path, kind: DeletionStepKind::Look });
    deletion.run(&session).await?;
    deletion.failures.map_or(Ok(()), |failures| Err(TransferError::Failed(failures.sentence())))
}

/// Counting is only for the progress bar.
const COUNT_LIMITS: CountLimits = CountLimits { time: std::time::Duration::from_mins(1), files: 1_000_000 };

/// A tree that is being deleted.
struct Deletion<'a> {
    progress: &'a TransferProgress,
    nodes: HashMap<u64, FolderNode>,
    /// What to do next: the last first, so that one folder is finished before the next is read.
    steps: Vec<DeletionStep>,
    failures: Option<DeletionFailures>,
    /// What items are called in sentences, by the paths that they have.
    shown: HashMap<RemotePath, RemotePath>,
}

/// A folder whose contents are being deleted.
struct FolderNode {
    path: RemotePath,
    /// The folder that it is in, if that is deleted, too.
    parent: Option<u64>,
    /// How many items in it are still there.
    pending: usize,
    /// Whether not all names were read.
    has_more: bool,
    /// Whether something in it can't be deleted, so it can't be either.
    is_stuck: bool,
    /// Files that go once the folder was checked again.
    waiting: Vec<DeletionStep>,
}

#[derive(Debug)]
struct DeletionStep {
    /// The folder that the item is in.
    node: Option<u64>,
    path: RemotePath,
    kind: DeletionStepKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DeletionStepKind {
    /// Find out what it is.
    Look,
    /// Read a folder; the number is its node if it was read before.
    List(Option<u64>),
    RemoveFile,
    RemoveFolder(u64),
    /// Check that a folder is what it was before more of its files go.
    Check(u64),
}

enum DeletionReply {
    Found(RemoteFileKind),
    Listed(RemoteDirListing),
    Removed,
    Checked(u64),
}

/// What couldn't be deleted.
struct DeletionFailures {
    count: u64,
    /// For people.
    first: String,
    reason: SftpError,
}

impl DeletionFailures {
    fn sentence(&self) -> String {
        let others = match self.count {
            1 => String::new(),
            more => format!(" {} couldn't be deleted either.", format::count(more - 1, "more item")),
        };
        format!("{} couldn't be deleted: {}{others}", self.first, self.reason)
    }
}

impl<'a> Deletion<'a> {
    fn new(progress: &'a TransferProgress, shown: HashMap<RemotePath, RemotePath>) -> Self {
        Self { progress, nodes: HashMap::new(), steps: Vec::new(), failures: None, shown }
    }

    /// A path as its owner knows it.
    fn show(&self, path: &RemotePath) -> String {
        let known = |item: &RemotePath| Some((item.clone(), self.shown.get(item)?));
        let Some((item, chosen)) = path.ancestors_and_self().iter().find_map(known) else { return path.to_string() };
        match path.relative_to(&item) {
            None | Some(b"") => chosen.to_string(),
            Some(inside) => RemotePath::parse(&[chosen.as_bytes(), b"/", inside].concat())
                .map_or_else(|_| chosen.to_string(), |shown| shown.to_string()),
        }
    }

    async fn run(&mut self, session: &TransferSession) -> Result<(), TransferError> {
        let perform = |step: DeletionStep| async move {
            let reply = match step.kind {
                DeletionStepKind::Look => session.lstat(&step.path).await.map(|a| DeletionReply::Found(a.kind)),
                DeletionStepKind::List(_) => list_in_place(session, &step.path).await.map(DeletionReply::Listed),
                DeletionStepKind::RemoveFile => session.remove_file(&step.path).await.map(|()| DeletionReply::Removed),
                DeletionStepKind::RemoveFolder(_) => {
                    remove_folder_in_place(session, &step.path).await.map(|()| DeletionReply::Removed)
                }
                DeletionStepKind::Check(id) => {
                    require_folder_in_place(session, &step.path).await.map(|()| DeletionReply::Checked(id))
                }
            };
            (step, reply)
        };
        let mut under_way = FuturesUnordered::new();
        let mut next_node = 0;
        loop {
            while under_way.len() < REQUESTS_AT_ONCE
                && let Some(step) = self.steps.pop()
            {
                under_way.push(perform(step));
            }
            let Some((step, reply)) = under_way.next().await else { return Ok(()) };
            match reply {
                Ok(DeletionReply::Found(RemoteFileKind::Folder)) => {
                    self.steps.push(DeletionStep { kind: DeletionStepKind::List(None), ..step });
                }
                Ok(DeletionReply::Found(_)) => {
                    self.steps.push(DeletionStep { kind: DeletionStepKind::RemoveFile, ..step });
                }
                Ok(DeletionReply::Listed(listing)) => self.enter(step, listing, &mut next_node),
                Ok(DeletionReply::Checked(id)) => self.release(id),
                Ok(DeletionReply::Removed) | Err(SftpError::NotFound) => self.finish(&step, true),
                Err(error @ SftpError::Run(_)) => return Err(error.into()),
                Err(error) => {
                    self.record_failure(&step.path, error);
                    self.finish(&step, false);
                }
            }
        }
    }

    /// Plans the deletion of what was found in a folder.
    fn enter(&mut self, step: DeletionStep, listing: RemoteDirListing, next_node: &mut u64) {
        let id = if let DeletionStepKind::List(Some(id)) = step.kind {
            id
        } else {
            *next_node += 1;
            let (path, parent) = (step.path, step.node);
            let node = FolderNode { path, parent, pending: 0, has_more: false, is_stuck: false, waiting: Vec::new() };
            self.nodes.insert(*next_node, node);
            *next_node
        };
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.pending = listing.entries.len();
        node.has_more = listing.is_truncated;
        let path = node.path.clone();
        self.progress.set_current(self.show(&path));
        if listing.entries.is_empty() {
            self.leave(id);
        }
        // Files first: they go while the folder is certainly what it was, not after all that is in its folders.
        let is_folder = |entry: &RemoteDirEntry| entry.attrs.kind == RemoteFileKind::Folder;
        let (folders, files): (Vec<_>, Vec<_>) = listing.entries.into_iter().partition(is_folder);
        let plan = |entry: RemoteDirEntry, kind| DeletionStep { node: Some(id), path: path.join(&entry.name), kind };
        self.steps.extend(folders.into_iter().map(|entry| plan(entry, DeletionStepKind::List(None))));
        let files = files.into_iter().map(|entry| {
            // Some servers don't say what it is.
            let is_unknown = entry.attrs.kind == RemoteFileKind::Other && entry.attrs.mode.is_none();
            plan(entry, if is_unknown { DeletionStepKind::Look } else { DeletionStepKind::RemoveFile })
        });
        if let Some(node) = self.nodes.get_mut(&id) {
            node.waiting = files.collect();
        }
        self.release(id);
    }

    /// A folder was just checked: plans the deletion of the next files in it.
    fn release(&mut self, id: u64) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let rest = node.waiting.split_off(node.waiting.len().min(FILES_PER_CHECK));
        let next = std::mem::replace(&mut node.waiting, rest);
        if !node.waiting.is_empty() {
            let (node, path) = (node.parent, node.path.clone());
            self.steps.push(DeletionStep { node, path, kind: DeletionStepKind::Check(id) });
        }
        self.steps.extend(next);
    }

    /// All that was read of a folder is gone, or stays: on to the rest, or to the folder itself.
    fn leave(&mut self, id: u64) {
        let Some(node) = self.nodes.get_mut(&id) else { return };
        let (path, parent) = (node.path.clone(), node.parent);
        if node.is_stuck {
            self.nodes.remove(&id);
            self.settle(parent, false);
        } else if node.has_more {
            self.steps.push(DeletionStep { node: parent, path, kind: DeletionStepKind::List(Some(id)) });
        } else {
            self.steps.push(DeletionStep { node: parent, path, kind: DeletionStepKind::RemoveFolder(id) });
        }
    }

    /// An item is gone, or stays.
    fn finish(&mut self, step: &DeletionStep, is_gone: bool) {
        if let DeletionStepKind::Check(id) = step.kind {
            let Some(node) = self.nodes.get_mut(&id) else { return };
            for _ in std::mem::take(&mut node.waiting) {
                self.settle(Some(id), is_gone);
            }
            return;
        }
        if let DeletionStepKind::RemoveFolder(id) | DeletionStepKind::List(Some(id)) = step.kind {
            self.nodes.remove(&id);
        }
        if is_gone {
            self.progress.add_file();
        }
        self.settle(step.node, is_gone);
    }

    fn settle(&mut self, parent: Option<u64>, is_gone: bool) {
        let Some(id) = parent else { return };
        let Some(node) = self.nodes.get_mut(&id) else { return };
        node.pending = node.pending.saturating_sub(1);
        node.is_stuck |= !is_gone;
        if node.pending == 0 {
            self.leave(id);
        }
    }

    fn record_failure(&mut self, path: &RemotePath, reason: SftpError) {
        let shown = self.show(path);
        let first = || DeletionFailures { count: 0, first: shown, reason };
        self.failures.get_or_insert_with(first).count += 1;
    }
}

/// Reads a folder. Opening one follows links, and whoever may write to the folder that it is in can put one in its place
/// while it waits for its turn: then nothing in it is touched.
async fn list_in_place(session: &TransferSession, path: &RemotePath) -> Result<RemoteDirListing, SftpError> {
    let listing = session.list(path, NAMES_AT_ONCE).await?;
    require_folder_in_place(session, path).await?;
    Ok(listing)
}

async fn remove_folder_in_place(session: &TransferSession, path: &RemotePath) -> Result<(), SftpError> {
    require_folder_in_place(session, path).await?;
    session.remove_folder(path).await
}

async fn require_folder_in_place(session: &TransferSession, path: &RemotePath) -> Result<(), SftpError> {
    match session.lstat_in_place(path).await?.kind {
        RemoteFileKind::Folder => Ok(()),
        _ => Err(SftpError::Replaced),
    }
}

#[cfg(test)]
mod tests;
