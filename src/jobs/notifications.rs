//! Telling people: that there is something new for someone goes out to all their open pages, and to their webhook.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast;

use crate::clock::UnixTime;
use crate::domain::{NotificationId, PersonId};
use crate::store::{self, Store, StoreError};

/// So many people's counts are kept in memory.
const MAX_CACHED: usize = 20_000;

/// How much is new for someone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnreadCount {
    /// Notices that they have not seen.
    pub count: i64,
    /// The last notice there is.
    pub last: NotificationId,
}

impl Default for UnreadCount {
    fn default() -> Self {
        Self { count: 0, last: NotificationId(0) }
    }
}

/// Rings for people who have new notices, and knows how many those are: every page says so.
#[derive(Debug, Clone)]
pub struct NotificationHub {
    changes: broadcast::Sender<PersonId>,
    cache: Arc<Mutex<UnreadCache>>,
}

#[derive(Debug, Default)]
struct UnreadCache {
    /// Counts the rings: what was read before one is not kept after it.
    generation: u64,
    unread: HashMap<PersonId, UnreadCount>,
}

impl Default for NotificationHub {
    fn default() -> Self {
        Self { changes: broadcast::channel(256).0, cache: Arc::default() }
    }
}

impl NotificationHub {
    /// There is something new for someone, or they have seen what was.
    pub fn notify(&self, person: PersonId) {
        let mut known = self.lock();
        known.generation += 1;
        known.unread.remove(&person);
        drop(known);
        // Nobody may be listening.
        let _ = self.changes.send(person);
    }

    /// Hears for whom there is something new.
    pub fn subscribe(&self) -> broadcast::Receiver<PersonId> {
        self.changes.subscribe()
    }

    /// How much is new for someone, from memory unless the bell has rung since.
    pub async fn unread(&self, store: &Store, person: PersonId) -> Result<UnreadCount, StoreError> {
        let rings = {
            let known = self.lock();
            if let Some(unread) = known.unread.get(&person) {
                return Ok(*unread);
            }
            known.generation
        };
        let mut db = store.read().await?;
        let (count, last) = store::notifications::count_unread(&mut db, person).await?;
        let unread = UnreadCount { count, last };
        let mut known = self.lock();
        if known.generation == rings {
            if known.unread.len() >= MAX_CACHED {
                known.unread.clear();
            }
            known.unread.insert(person, unread);
        }
        Ok(unread)
    }

    /// The same where nobody can wait; nothing if it is not in memory.
    pub fn cached_unread(&self, person: PersonId) -> UnreadCount {
        self.lock().unread.get(&person).copied().unwrap_or_default()
    }

    /// Notes that a person has seen all notices up to one.
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

    /// Notices were deleted: counts are read again.
    pub fn clear_cache(&self) {
        let mut known = self.lock();
        known.generation += 1;
        known.unread.clear();
    }

    fn lock(&self) -> MutexGuard<'_, UnreadCache> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
