//! Announces new notifications to all of a person's open pages and to their webhook.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use tokio::sync::broadcast;

use super::notification_digest::build_digests;
use crate::clock::UnixTime;
use crate::core::lock;
use crate::domain::{NotificationId, PersonId};
use crate::store::{self, Store, StoreError};

/// The most unread notifications that are folded and counted; further ones don't make the number larger.
const MAX_COUNTED: i64 = 2000;
/// The most people whose counts stay in memory.
const MAX_CACHED: usize = 20_000;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadCount {
    /// Unread lines of the list: all events of a job, and all tasks of an array, count once.
    pub count: u64,
    /// The latest notification.
    pub last: NotificationId,
}

impl Default for UnreadCount {
    fn default() -> Self {
        Self { count: 0, last: NotificationId(0) }
    }
}

/// Announces new notifications, and caches each person's unread count, because every page shows it.
#[derive(Debug, Clone)]
pub struct NotificationHub {
    changes: broadcast::Sender<PersonId>,
    cache: Arc<Mutex<UnreadCache>>,
}

#[derive(Debug, Default)]
struct UnreadCache {
    /// Counts the announcements: a count read before one must not be cached after it.
    generation: u64,
    unread: HashMap<PersonId, UnreadCount>,
}

impl Default for NotificationHub {
    fn default() -> Self {
        Self { changes: broadcast::channel(256).0, cache: Arc::default() }
    }
}

impl NotificationHub {
    /// Announces that a person has new notifications, or has read some.
    pub fn notify(&self, person: PersonId) {
        let mut cache = lock(&self.cache);
        cache.generation += 1;
        cache.unread.remove(&person);
        drop(cache);
        // There may be no subscribers.
        let _ = self.changes.send(person);
    }

    /// Receives the ID of each person whose notifications changed.
    pub fn subscribe(&self) -> broadcast::Receiver<PersonId> {
        self.changes.subscribe()
    }

    /// The unread count, cached until the next change.
    pub async fn unread(&self, store: &Store, person: PersonId) -> Result<UnreadCount, StoreError> {
        let generation = {
            let cache = lock(&self.cache);
            if let Some(unread) = cache.unread.get(&person) {
                return Ok(*unread);
            }
            cache.generation
        };
        let mut db = store.read().await?;
        let last = store::notifications::last_id(&mut db, person).await?;
        let unread = store::notifications::list_unread(&mut db, person, MAX_COUNTED).await?;
        let count = u64::try_from(build_digests(&unread).len()).unwrap_or(0);
        let unread = UnreadCount { count, last };
        let mut cache = lock(&self.cache);
        if cache.generation == generation {
            if cache.unread.len() >= MAX_CACHED {
                cache.unread.clear();
            }
            cache.unread.insert(person, unread);
        }
        Ok(unread)
    }

    /// The cached count for callers that cannot wait; zero if it is not cached.
    pub fn cached_unread(&self, person: PersonId) -> UnreadCount {
        lock(&self.cache).unread.get(&person).copied().unwrap_or_default()
    }

    /// Marks all notifications up to one as read.
    pub async fn mark_read(
        &self,
        store: &Store,
        person: PersonId,
        up_to: NotificationId,
        now: UnixTime,
    ) -> Result<(), StoreError> {
        if self.unread(store, person).await?.count == 0 {
            return Ok(());
        }
        let mut tx = store.write().await?;
        store::notifications::mark_read(&mut tx, person, up_to, now).await?;
        store::commit(tx).await?;
        self.notify(person);
        Ok(())
    }

    /// Drops all counts, after notifications were deleted.
    pub fn clear_cache(&self) {
        let mut cache = lock(&self.cache);
        cache.generation += 1;
        cache.unread.clear();
    }
}
