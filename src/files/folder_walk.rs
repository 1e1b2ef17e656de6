//! Walks through folders over a person's connection, with the next folders listed ahead. Links are never followed, so the
//! walk ends and stays where it began.

use std::collections::VecDeque;

use tokio::task::JoinHandle;

use super::downloads::{ConnectionSource, is_passing};
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteDirListing, RemoteFileAttrs, RemoteFileKind, SftpError};

/// How many folders are listed ahead.
const FOLDERS_AHEAD: usize = 4;

/// How far a walk goes.
#[derive(Debug, Clone, Copy)]
pub struct WalkLimits {
    /// How many folders lie in one another, the first one included.
    pub depth: usize,
    /// How many files, folders and links are looked at.
    pub entries: usize,
    pub order: WalkOrder,
    /// Folders that are left out, by name.
    pub skips: fn(&RemoteName) -> bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WalkOrder {
    /// A folder's own folders come right after it.
    DepthFirst,
    /// All folders of one depth come before those below, so that the limit leaves out the deepest.
    BreadthFirst,
}

/// A file, folder or link that the walk came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WalkedFile {
    pub path: RemotePath,
    /// Relative to where the walk began.
    pub name: Vec<u8>,
    /// Of the link itself, if it is one.
    pub attrs: RemoteFileAttrs,
}

/// What the walk comes to next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WalkStep {
    Found(WalkedFile),
    /// Something that can't be read or listed, and why.
    LeftOut {
        name: Vec<u8>,
        reason: String,
    },
}

/// A walk under way. Holds one folder's entries at a time, and the folders that are still to come.
pub struct FolderWalk {
    source: ConnectionSource,
    limits: WalkLimits,
    ready: VecDeque<WalkStep>,
    folders: VecDeque<PendingFolder>,
    entries: usize,
    is_truncated: bool,
}

struct PendingFolder {
    path: RemotePath,
    name: Vec<u8>,
    depth: usize,
    /// Runs to its end even if nobody waits for it, so that nothing stays open on the server.
    listing: Option<JoinHandle<Result<RemoteDirListing, SftpError>>>,
}

impl FolderWalk {
    /// A walk through these files and folders, which come first themselves.
    pub fn new(source: ConnectionSource, limits: WalkLimits, roots: Vec<WalkedFile>) -> Self {
        let entries = roots.len();
        let mut walk =
            Self { source, limits, ready: VecDeque::new(), folders: VecDeque::new(), entries, is_truncated: false };
        walk.add(roots, 1);
        walk
    }

    /// Whether there was more than the limit allows.
    pub const fn is_truncated(&self) -> bool {
        self.is_truncated
    }

    /// The next step. Fails only if the connection is lost and doesn't come back.
    pub async fn next(&mut self) -> Result<Option<WalkStep>, SftpError> {
        loop {
            if let Some(step) = self.ready.pop_front() {
                return Ok(Some(step));
            }
            self.list_ahead();
            let Some(folder) = self.folders.pop_front() else { return Ok(None) };
            self.enter(folder).await?;
        }
    }

    fn list_ahead(&mut self) {
        let most = self.limits.entries.saturating_sub(self.entries);
        for folder in self.folders.iter_mut().take(FOLDERS_AHEAD).filter(|folder| folder.listing.is_none()) {
            let (source, path) = (self.source.clone(), folder.path.clone());
            folder.listing = Some(tokio::spawn(async move { list_folder(&source, &path, most).await }));
        }
    }

    async fn enter(&mut self, folder: PendingFolder) -> Result<(), SftpError> {
        let Some(listing) = folder.listing else { return Ok(()) };
        let Ok(listing) = listing.await else { return Ok(()) };
        let listing = match listing {
            Ok(listing) => listing,
            Err(error) if is_passing(&error) => return Err(error),
            Err(error) => {
                self.ready.push_back(WalkStep::LeftOut { name: folder.name, reason: self.source.explain(&error) });
                return Ok(());
            }
        };
        let room = self.limits.entries.saturating_sub(self.entries);
        self.is_truncated |= listing.is_truncated || listing.entries.len() > room;
        self.entries += listing.entries.len().min(room);
        if self.is_truncated {
            self.folders.clear();
        }
        let mut entries = listing.entries;
        entries.truncate(room);
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        let found = entries.into_iter().map(|entry| WalkedFile {
            path: folder.path.join(&entry.name),
            name: [folder.name.as_slice(), b"/", entry.name.as_bytes()].concat(),
            attrs: entry.attrs,
        });
        self.add(found.collect(), folder.depth + 1);
        Ok(())
    }

    /// Files come at once, folders are entered afterwards in the same order.
    fn add(&mut self, found: Vec<WalkedFile>, depth: usize) {
        let mut folders = Vec::new();
        for file in found {
            if file.attrs.kind != RemoteFileKind::Folder {
                self.ready.push_back(WalkStep::Found(file));
                continue;
            }
            if depth > 1 && file.path.name().is_some_and(|name| (self.limits.skips)(&name)) {
                continue;
            }
            if depth > self.limits.depth {
                let reason = format!("It's nested more than {} folders deep.", self.limits.depth);
                self.ready.push_back(WalkStep::LeftOut { name: file.name, reason });
                continue;
            }
            folders.push(PendingFolder { path: file.path.clone(), name: file.name.clone(), depth, listing: None });
            self.ready.push_back(WalkStep::Found(file));
        }
        match self.limits.order {
            WalkOrder::BreadthFirst => self.folders.extend(folders),
            WalkOrder::DepthFirst => folders.into_iter().rev().for_each(|folder| self.folders.push_front(folder)),
        }
    }
}

async fn list_folder(source: &ConnectionSource, path: &RemotePath, most: usize) -> Result<RemoteDirListing, SftpError> {
    let list = |connection| {
        let path = path.clone();
        async move { TransferSession::open(&connection).await?.list(&path, most).await }
    };
    source.retry(list).await
}
