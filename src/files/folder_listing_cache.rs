//! Listings of folders, kept for a short time: sorting, filtering and reading on in a large folder asks the cluster
//! nothing. What is kept is bounded for each person and altogether.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::folder_contents::FolderContents;
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::domain::{PersonId, RemotePath};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::{self, SftpError};

/// How many names of a folder are read.
pub const MAX_NAMES: usize = 200_000;
/// For how long a listing is shown to someone who opens the folder, in seconds.
const FRESH_SECS: i64 = 60;
/// For how long someone can read on in a long listing, in seconds.
const KEPT_SECS: i64 = 15 * 60;
const MAX_FOLDERS_PER_PERSON: usize = 4;
const MAX_FOLDERS: usize = 1000;
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// How old a listing can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ListingFreshness {
    /// It is read now.
    New,
    /// Not older than a minute.
    Recent,
    /// The one that the page shows the beginning of.
    Kept,
}

#[derive(Default)]
pub struct FolderListingCache(Mutex<Vec<CachedListing>>);

struct CachedListing {
    account: ClusterAccountId,
    contents: Arc<FolderContents>,
    /// The connection's count of changes before it was read.
    changes: u64,
    bytes: usize,
}

impl FolderListingCache {
    /// A folder's contents: those that are kept if they are fresh enough, otherwise as they are now.
    pub async fn load(
        &self,
        connection: &Arc<ClusterConnection>,
        account: ClusterAccountId,
        path: &RemotePath,
        freshness: ListingFreshness,
        now: UnixTime,
    ) -> Result<Arc<FolderContents>, SftpError> {
        let changes = connection.folder_changes();
        if let Some(kept) = self.find(account, path, freshness, Some(changes), now) {
            return Ok(kept);
        }
        let listing = sftp::list(connection, path, MAX_NAMES).await;
        if listing.is_err() {
            self.forget(account, path);
        }
        let contents = Arc::new(FolderContents::new(path.clone(), listing?, now));
        self.insert(account, contents.clone(), changes);
        Ok(contents)
    }

    /// The listing that is kept, if it is fresh enough: not one from before a change over the open connection, if there
    /// is one.
    pub fn find(
        &self,
        account: ClusterAccountId,
        path: &RemotePath,
        freshness: ListingFreshness,
        changes: Option<u64>,
        now: UnixTime,
    ) -> Option<Arc<FolderContents>> {
        let max_age = match freshness {
            ListingFreshness::New => return None,
            ListingFreshness::Recent => FRESH_SECS,
            ListingFreshness::Kept => KEPT_SECS,
        };
        let listings = self.lock();
        let found = listings.iter().find(|kept| kept.account == account && kept.contents.path == *path)?;
        let is_changed = freshness == ListingFreshness::Recent && changes.is_some_and(|count| count != found.changes);
        if is_changed {
            return None;
        }
        (0..=max_age).contains(&now.since(found.contents.read_at)).then(|| found.contents.clone())
    }

    /// Drops a folder's listing, because something in it has changed.
    pub fn forget(&self, account: ClusterAccountId, path: &RemotePath) {
        self.lock().retain(|kept| kept.account != account || kept.contents.path != *path);
    }

    fn insert(&self, account: ClusterAccountId, contents: Arc<FolderContents>, changes: u64) {
        let bytes = contents.memory_bytes();
        let now = contents.read_at;
        self.forget(account, &contents.path);
        let mut listings = self.lock();
        listings.retain(|kept| now.since(kept.contents.read_at) <= KEPT_SECS);
        listings.push(CachedListing { account, contents, changes, bytes });
        let is_theirs = |kept: &CachedListing, person: PersonId| kept.account.person == person;
        while listings.iter().filter(|kept| is_theirs(kept, account.person)).count() > MAX_FOLDERS_PER_PERSON
            && let Some(oldest) = listings.iter().position(|kept| is_theirs(kept, account.person))
        {
            listings.remove(oldest);
        }
        while listings.len() > MAX_FOLDERS || listings.iter().map(|kept| kept.bytes).sum::<usize>() > MAX_BYTES {
            listings.remove(0);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<CachedListing>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ClusterId, RemoteName};
    use crate::ssh::sftp::{RemoteDirEntry, RemoteDirListing, RemoteFileAttrs, RemoteFileKind};

    fn account(person: i64) -> ClusterAccountId {
        ClusterAccountId { person: PersonId(person), cluster: ClusterId(1) }
    }

    fn path(number: usize) -> RemotePath {
        RemotePath::parse(format!("/folder-{number}").as_bytes()).unwrap()
    }

    fn contents(number: usize, count: usize, now: i64) -> Arc<FolderContents> {
        let attrs = RemoteFileAttrs { kind: RemoteFileKind::File, size: 1, modified: None, mode: None, owner: None };
        let name = RemoteName::parse(&[b'x'; 200]).unwrap();
        let entries = vec![RemoteDirEntry { name, attrs, is_link: false }; count];
        let listing = RemoteDirListing { entries, is_truncated: false };
        Arc::new(FolderContents::new(path(number), listing, UnixTime(now)))
    }

    #[test]
    fn listings_are_fresh_for_a_minute_and_kept_for_longer() {
        let cache = FolderListingCache::default();
        cache.insert(account(1), contents(1, 1, 1000), 7);
        let find = |freshness, now| cache.find(account(1), &path(1), freshness, Some(7), UnixTime(now)).is_some();
        assert!(find(ListingFreshness::Recent, 1060) && !find(ListingFreshness::Recent, 1061));
        assert!(find(ListingFreshness::Kept, 1061) && !find(ListingFreshness::Kept, 1000 + KEPT_SECS + 1));
        assert!(!find(ListingFreshness::New, 1000));
        assert!(!find(ListingFreshness::Recent, 900), "a clock that was set back proves nothing");
        assert!(cache.find(account(2), &path(1), ListingFreshness::Recent, Some(7), UnixTime(1000)).is_none());
        let after = |freshness, changes| cache.find(account(1), &path(1), freshness, changes, UnixTime(1000)).is_some();
        assert!(!after(ListingFreshness::Recent, Some(8)), "something was changed");
        assert!(after(ListingFreshness::Kept, Some(8)), "one reads on in the same listing");
        assert!(after(ListingFreshness::Recent, None), "without a connection");
        cache.forget(account(1), &path(1));
        assert!(!find(ListingFreshness::Recent, 1000));
    }

    #[test]
    fn a_person_keeps_few_folders() {
        let cache = FolderListingCache::default();
        cache.insert(account(2), contents(1, 1, 1000), 7);
        for number in 1..=5 {
            cache.insert(account(1), contents(number, 1, 1000), 7);
        }
        let find = |person, number| {
            cache.find(account(person), &path(number), ListingFreshness::Recent, Some(7), UnixTime(1000))
        };
        assert!(find(1, 1).is_none() && find(1, 2).is_some() && find(1, 5).is_some());
        assert!(find(2, 1).is_some(), "others keep theirs");
        cache.insert(account(1), contents(5, 1, 1001), 7);
        assert!(find(1, 2).is_some(), "the same folder again takes no other's place");
    }

    #[test]
    fn all_listings_together_stay_within_their_memory() {
        let cache = FolderListingCache::default();
        for person in 0..20 {
            cache.insert(account(person), contents(1, 20_000, 1000), 7);
            let used: usize = cache.lock().iter().map(|kept| kept.bytes).sum();
            assert!(used <= MAX_BYTES, "{used}");
        }
        let kept = cache.lock().len();
        assert!((5..20).contains(&kept), "{kept}");
    }
}
