//! Who on a cluster can use a file or folder, in words instead of mode bits. Owner's bits and special bits stay as they
//! are; links are left alone, because changing one would change what it leads to.

mod effective_access;

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::future::{join_all, join3};
use futures_util::stream;

pub use self::effective_access::{ClosedFolders, describe_access, read_folders_above};
use super::run_to_end;
use crate::cluster::DiscoveredFacts;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{self, RemoteFileAttrs, RemoteFileKind, SetAttrs, SftpError};

/// How many files and folders are changed in one go.
pub const MAX_ENTRIES_INSIDE: usize = 5000;
/// How many entries' present permissions are looked up.
pub const MAX_DESCRIBED: usize = 20;
/// How many failures are listed by name.
const MAX_LISTED_FAILURES: usize = 20;
const FOLDERS_AT_ONCE: usize = 8;
const CHANGES_AT_ONCE: usize = 32;

/// Who can use a file or folder besides its owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FileAccess {
    OnlyYou,
    GroupReads,
    GroupChanges,
    EveryoneReads,
}

impl FileAccess {
    pub const ALL: [Self; 4] = [Self::OnlyYou, Self::GroupReads, Self::GroupChanges, Self::EveryoneReads];

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::OnlyYou => "only-you",
            Self::GroupReads => "group-reads",
            Self::GroupChanges => "group-changes",
            Self::EveryoneReads => "everyone-reads",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|access| access.as_str() == word)
    }

    pub const fn words(self) -> &'static str {
        match self {
            Self::OnlyYou => "Only you",
            Self::GroupReads => "Your group can read",
            Self::GroupChanges => "Your group can read and change",
            Self::EveryoneReads => "Everyone on the cluster can read",
        }
    }

    /// The mode that gives this access. A folder can be entered by whoever can read it, a file run by them if its owner
    /// can run it.
    pub const fn apply(self, mode: u32, is_folder: bool) -> u32 {
        const OWNER_RUNS: u32 = 0o100;
        let enter = if is_folder || mode & OWNER_RUNS != 0 { 0o011 } else { 0 };
        let others = match self {
            Self::OnlyYou => 0,
            Self::GroupReads => 0o040 | enter & 0o010,
            Self::GroupChanges => 0o060 | enter & 0o010,
            Self::EveryoneReads => 0o044 | enter,
        };
        mode & 0o7700 | others
    }

    /// The access that a mode gives; `None` if it is none of these.
    pub fn from_mode(mode: u32, is_folder: bool) -> Option<Self> {
        Self::ALL.into_iter().find(|access| access.apply(mode, is_folder) == mode)
    }
}

/// What a mode means, in words, whatever it is.
fn describe_mode(mode: u32, is_folder: bool) -> String {
    if let Some(access) = FileAccess::from_mode(mode, is_folder) {
        return access.words().to_owned();
    }
    let verb = |bits: u32| match bits & 0o7 {
        bits if bits & 0o6 == 0o6 => Some("read and change"),
        bits if bits & 0o4 != 0 => Some("read"),
        bits if bits & 0o2 != 0 => Some("change, but not read"),
        bits if bits & 0o1 != 0 => Some(if is_folder { "pass through, but not list" } else { "run, but not read" }),
        _ => None,
    };
    match (verb(mode >> 3), verb(mode)) {
        (None, None) => FileAccess::OnlyYou.words().to_owned(),
        (Some(group), None) => format!("Your group can {group}"),
        (Some(group), Some(all)) if group == all => format!("Everyone on the cluster can {all}"),
        (Some(group), Some(all)) => format!("Your group can {group}; everyone else on the cluster can {all}"),
        (None, Some(all)) => format!("Your group has no access; everyone else on the cluster can {all}"),
    }
}

/// The present permissions of some entries of a folder, and what around them keeps others out.
#[derive(Debug, Default)]
pub struct AccessReport {
    pub entries: Vec<EntryAccess>,
    pub closed: ClosedFolders,
    /// The name of the entries' Unix group, if it is known.
    pub group: Option<String>,
}

#[derive(Debug)]
pub struct EntryAccess {
    pub name: RemoteName,
    pub is_folder: bool,
    /// Who can really use it, in words, or why that isn't known.
    pub words: String,
    /// What its own permissions allow; `None` if that is none of those that can be chosen.
    pub access: Option<FileAccess>,
}

/// Reads the permissions of the first entries and of all folders above them.
pub async fn read_access(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    names: &[RemoteName],
    facts: &DiscoveredFacts,
) -> Result<AccessReport, SftpError> {
    let real = sftp::real_path(connection, folder).await?;
    let session = TransferSession::open(connection).await?;
    let first = &names[..names.len().min(MAX_DESCRIBED)];
    let entries = join_all(first.iter().map(|name| {
        let (session, path) = (&session, folder.join(name));
        async move { session.lstat(&path).await }
    }));
    let above = read_folders_above(&session, &real);
    let me = async {
        let home = RemotePath::parse(facts.home.as_deref()?.as_bytes()).ok()?;
        session.stat(&home).await.ok()?.owner.map(|(user, _)| user)
    };
    let (entries, above, me) = join3(entries, above, me).await;
    let group_of = |attrs: &RemoteFileAttrs| attrs.owner.map(|(_, group)| group);
    let gid = entries.iter().flatten().find_map(group_of);
    let closed = ClosedFolders::find(&above, gid);
    let describe = |(name, attrs)| EntryAccess::new(name, attrs, &closed, me);
    let mut group = above.iter().rev().filter(|(_, attrs)| group_of(attrs) == gid).filter_map(|(path, _)| {
        facts.folders.iter().find(|known| known.path.as_bytes() == path.as_bytes())?.group.clone()
    });
    Ok(AccessReport { entries: first.iter().zip(&entries).map(describe).collect(), group: group.next(), closed })
}

impl EntryAccess {
    fn new(
        name: &RemoteName,
        attrs: &Result<RemoteFileAttrs, SftpError>,
        closed: &ClosedFolders,
        me: Option<u32>,
    ) -> Self {
        let is_folder = attrs.as_ref().is_ok_and(|attrs| attrs.kind == RemoteFileKind::Folder);
        let (words, access) = match attrs {
            Ok(RemoteFileAttrs { kind: RemoteFileKind::Link, .. }) => (LINK_WORDS.to_owned(), None),
            Ok(attrs) => {
                let access = attrs.mode.and_then(|mode| FileAccess::from_mode(mode, is_folder));
                (describe_access(attrs, closed, me), access)
            }
            Err(error) => (error.to_string(), None),
        };
        Self { name: name.clone(), is_folder, words, access }
    }
}

const LINK_WORDS: &str = "Symbolic link: the permissions of its target apply";

/// What became of a change of permissions.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct AccessChange {
    pub changed: usize,
    /// Those that had these permissions already.
    pub unchanged: usize,
    pub failed: usize,
    /// The first failures, as sentences that name the file.
    pub failures: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetAccessError {
    #[error(
        "There are more than {} items inside. Nothing was changed. Change smaller folders one by one, or run chmod on the cluster.",
        MAX_ENTRIES_INSIDE
    )]
    TooMany,
    #[error(transparent)]
    Sftp(#[from] SftpError),
}

/// What a change of a folder's permissions covers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AccessScope {
    Itself,
    EverythingInside,
}

/// Sets the access of entries of a folder. All of them are counted before the first is changed.
pub async fn set_access(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    names: &[RemoteName],
    access: FileAccess,
    scope: AccessScope,
) -> Result<AccessChange, SetAccessError> {
    let session = TransferSession::open(connection).await?;
    let folder = session.real_path(folder).await?;
    let paths: Vec<RemotePath> = names.iter().map(|name| folder.join(name)).collect();
    run_to_end(async move {
        let mut change = AccessChange::default();
        let found = collect_entries(&session, paths, scope, &mut change).await?;
        let session = &session;
        let changes = stream::iter(found).map(|(path, attrs)| async move {
            let changed = change_one(session, &path, &attrs, access).await;
            (path, changed)
        });
        let mut changes = changes.buffer_unordered(CHANGES_AT_ONCE);
        while let Some((path, result)) = changes.next().await {
            match result {
                Ok(true) => change.changed += 1,
                Ok(false) => change.unchanged += 1,
                Err(SftpError::NotAllowed) => change.add_failure(&path, "Only its owner can change its permissions."),
                Err(error) => change.add_failure(&path, &error.to_string()),
            }
        }
        Ok(change)
    })
    .await?
}

/// Sets the access of one entry, if it is still what was found. Returns whether that changed anything.
async fn change_one(
    session: &TransferSession,
    path: &RemotePath,
    found: &RemoteFileAttrs,
    access: FileAccess,
) -> Result<bool, SftpError> {
    let is_folder = found.kind == RemoteFileKind::Folder;
    let new_mode = |attrs: &RemoteFileAttrs| attrs.mode.map(|mode| access.apply(mode, is_folder));
    if new_mode(found) == found.mode {
        return Ok(false);
    }
    // Setting permissions follows links, and whoever may write to a folder can put one in its place.
    let now = session.lstat_in_place(path).await?;
    if (now.kind, now.owner) != (found.kind, found.owner) {
        return Err(SftpError::Replaced);
    }
    session.set_attrs(path, SetAttrs { mode: new_mode(&now), ..SetAttrs::default() }).await?;
    Ok(true)
}

/// The entries, and everything inside them if that is wanted. Links aren't followed.
async fn collect_entries(
    session: &TransferSession,
    paths: Vec<RemotePath>,
    scope: AccessScope,
    change: &mut AccessChange,
) -> Result<Vec<(RemotePath, RemoteFileAttrs)>, SetAccessError> {
    let mut found = Vec::new();
    let looks = stream::iter(paths).map(|path| async move {
        let attrs = session.lstat(&path).await;
        (path, attrs)
    });
    for (path, attrs) in looks.buffered(CHANGES_AT_ONCE).collect::<Vec<_>>().await {
        match attrs {
            Ok(attrs) if attrs.kind == RemoteFileKind::Link => change.add_failure(&path, LINK_FAILURE),
            Ok(attrs) => found.push((path, attrs)),
            Err(error) => change.add_failure(&path, &error.to_string()),
        }
    }
    let is_folder = |entry: &&(RemotePath, RemoteFileAttrs)| entry.1.kind == RemoteFileKind::Folder;
    let mut folders: Vec<RemotePath> = match scope {
        AccessScope::Itself => Vec::new(),
        AccessScope::EverythingInside => found.iter().filter(is_folder).map(|(path, _)| path.clone()).collect(),
    };
    while !folders.is_empty() {
        let next = folders.split_off(folders.len().saturating_sub(FOLDERS_AT_ONCE));
        let most = MAX_ENTRIES_INSIDE.saturating_sub(found.len());
        let listings = join_all(next.iter().map(|path| session.list(path, most))).await;
        for (folder, listing) in next.iter().zip(listings) {
            let entries = match listing {
                Ok(listing) if listing.is_truncated => return Err(SetAccessError::TooMany),
                Ok(listing) => listing.entries,
                Err(error) => {
                    change.add_failure(folder, &error.to_string());
                    continue;
                }
            };
            for entry in entries {
                let path = folder.join(&entry.name);
                match entry.attrs.kind {
                    RemoteFileKind::Folder => folders.push(path.clone()),
                    RemoteFileKind::File => {}
                    RemoteFileKind::Link | RemoteFileKind::Other => continue,
                }
                found.push((path, entry.attrs));
            }
        }
        if found.len() > MAX_ENTRIES_INSIDE {
            return Err(SetAccessError::TooMany);
        }
    }
    Ok(found)
}

const LINK_FAILURE: &str = "This is a symbolic link. Change the permissions of its target instead.";

impl AccessChange {
    fn add_failure(&mut self, path: &RemotePath, why: &str) {
        self.failed += 1;
        if self.failures.len() < MAX_LISTED_FAILURES {
            self.failures.push(format!("{path}: {why}"));
        }
    }
}

#[cfg(test)]
mod tests;
