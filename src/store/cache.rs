//! Caches what was read from the database until anything is written, by this process or by another (the command
//! line). Pages are read a thousand times more often than anything changes.

use std::collections::HashMap;
use std::hash::Hash;
use std::os::unix::fs::MetadataExt as _;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// No value is trusted for longer: file times are coarse, so a write by another process at the very moment of a read
/// could go unnoticed.
const MAX_AGE: Duration = Duration::from_secs(2);

/// The state of the database: equal revisions mean that nothing was written in between.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DbStateStamp {
    commits: u64,
    wal: (i64, i64, u64),
}

/// Tracks the database's revision: this process counts its commits; commits by others show in the write-ahead log.
#[derive(Debug)]
pub(super) struct DbRevisionTracker {
    commits: AtomicU64,
    wal: PathBuf,
}

impl DbRevisionTracker {
    pub(super) fn new(database: &std::path::Path) -> Self {
        let mut wal = database.as_os_str().to_owned();
        wal.push("-wal");
        Self { commits: AtomicU64::new(0), wal: wal.into() }
    }

    pub(super) fn count_commit(&self) {
        self.commits.fetch_add(1, Ordering::SeqCst);
    }

    fn current(&self) -> DbStateStamp {
        let wal = std::fs::metadata(&self.wal).map_or((0, 0, 0), |meta| (meta.mtime(), meta.mtime_nsec(), meta.len()));
        DbStateStamp { commits: self.commits.load(Ordering::SeqCst), wal }
    }
}

struct CachedStoreRead<V> {
    revision: DbStateStamp,
    read_at: Instant,
    value: Arc<V>,
}

/// Values by key. Each is valid as long as the database has not changed since it was read.
pub struct StoreCache<K, V> {
    entries: Mutex<HashMap<K, CachedStoreRead<V>>>,
    capacity: usize,
}

impl<K: Eq + Hash + Clone, V> StoreCache<K, V> {
    /// An empty cache for at most `most` values.
    pub fn new(most: usize) -> Self {
        Self { entries: Mutex::default(), capacity: most }
    }

    /// The value, read again if anything was written since.
    pub async fn get_or_load<E>(
        &self,
        store: &super::Store,
        key: &K,
        read: impl AsyncFnOnce() -> Result<V, E>,
    ) -> Result<Arc<V>, E> {
        // Taken before reading: a write that happens in between makes the value stale at once.
        let revision = store.revisions.current();
        if let Some(value) = self.lookup(key, revision) {
            return Ok(value);
        }
        let value = Arc::new(read().await?);
        let mut entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if entries.len() >= self.capacity {
            entries.clear();
        }
        entries.insert(key.clone(), CachedStoreRead { revision, read_at: Instant::now(), value: value.clone() });
        Ok(value)
    }

    fn lookup(&self, key: &K, revision: DbStateStamp) -> Option<Arc<V>> {
        let entries = self.entries.lock().unwrap_or_else(PoisonError::into_inner);
        let entry = entries.get(key)?;
        let holds = entry.revision == revision && entry.read_at.elapsed() < MAX_AGE;
        holds.then(|| entry.value.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, StoreError, commit, settings};

    async fn read(store: &Store) -> Result<Option<Vec<u8>>, StoreError> {
        settings::get(&mut *store.read().await?, "x").await
    }

    async fn write(store: &Store, value: &[u8]) {
        let mut tx = store.write().await.unwrap();
        settings::set(&mut tx, "x", value).await.unwrap();
        commit(tx).await.unwrap();
    }

    #[tokio::test]
    async fn a_value_holds_until_anything_is_written() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("p.db");
        let (ours, theirs) = (Store::open(&path).await.unwrap(), Store::open(&path).await.unwrap());
        let cache = StoreCache::new(10);
        write(&ours, b"1").await;
        let get = async || cache.get_or_load(&ours, &(), async || read(&ours).await).await.unwrap();
        let first = get().await;
        assert_eq!(first.as_deref(), Some(&b"1"[..]));
        assert!(Arc::ptr_eq(&first, &get().await), "not read again");
        write(&ours, b"2").await;
        assert_eq!(get().await.as_deref(), Some(&b"2"[..]), "our own writes count at once");
        write(&theirs, b"3").await;
        assert_eq!(get().await.as_deref(), Some(&b"3"[..]), "and those of another process");
    }

    #[tokio::test]
    async fn it_does_not_grow_without_end() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let cache = StoreCache::new(3);
        for key in 0..20 {
            cache.get_or_load(&store, &key, async || Ok::<_, StoreError>(key)).await.unwrap();
            assert!(cache.entries.lock().unwrap().len() <= 3);
        }
    }
}
