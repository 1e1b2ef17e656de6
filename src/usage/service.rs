//! Groups' usage for those who view it: opened, kept in memory while wanted, with an event when it changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, broadcast};

use super::account_usage::AccountUsage;
use crate::clock::Day;
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::{Core, lock};
use crate::domain::{ClusterId, GroupId, PersonId, UsageSourceId};
use crate::jobs::notifications::NotificationHub;
use crate::store::{self, StoreCache, StoreError};

/// An account's usage leaves the memory after nobody viewed it for this long.
const CACHE_IDLE_TIMEOUT: Duration = Duration::from_mins(30);

/// Concurrent job searches: fewer than the database has readers.
const MAX_CONCURRENT_SEARCHES: usize = 2;

/// When a reader last had a turn, and when the next one is.
pub(super) struct UsageReaderSchedule {
    pub(super) last_read: Instant,
    pub(super) next_read: Instant,
    pub(super) failures: u32,
}

#[derive(Clone)]
pub struct UsageService(pub(super) Arc<UsageServiceInner>);

pub(super) struct UsageServiceInner {
    pub(super) core: Core,
    pub(super) connections: ConnectionPool,
    pub(super) notifications: NotificationHub,
    pub(super) account_usage: Mutex<HashMap<UsageSourceId, CachedAccountUsage>>,
    /// Clusters on which something is being read.
    pub(super) busy_clusters: Mutex<HashSet<ClusterId>>,
    pub(super) turns: Mutex<HashMap<ClusterAccountId, UsageReaderSchedule>>,
    /// Clusters' offsets from UTC, in seconds east.
    pub(super) utc_offsets: Mutex<HashMap<ClusterId, i64>>,
    /// What views are built from, until anything is written.
    pub(super) contexts: StoreCache<(PersonId, GroupId), super::group_usage::GroupUsageAccounts>,
    /// Computed figures, until anything is read.
    pub(super) figures: super::figures::FiguresCache,
    /// When a view was last recorded.
    pub(super) views_recorded_at: Mutex<HashMap<(PersonId, GroupId), Instant>>,
    /// When a PI's alerts were last checked.
    pub(super) alerts_checked_at: Mutex<HashMap<ClusterAccountId, Instant>>,
    /// Views of people's figures that are known to be recorded, with the day.
    pub(super) recorded_views: Mutex<HashMap<super::settings::UsageViewingKey, Day>>,
    /// Limits concurrent job searches: one among a million jobs takes a second, and other pages must not wait.
    searches: tokio::sync::Semaphore,
    /// Held while an account's usage is loaded from the database.
    load_lock: tokio::sync::Mutex<()>,
    pub(super) wake: Notify,
    changes: broadcast::Sender<ClusterAccountId>,
}

pub(super) struct CachedAccountUsage {
    pub(super) usage: Arc<AccountUsage>,
    last_used: Instant,
}

impl UsageService {
    /// Starts with nothing in memory.
    pub fn new(core: Core, connections: ConnectionPool, notifications: NotificationHub) -> Self {
        Self(Arc::new(UsageServiceInner {
            core,
            connections,
            notifications,
            account_usage: Mutex::default(),
            busy_clusters: Mutex::default(),
            turns: Mutex::default(),
            utc_offsets: Mutex::default(),
            contexts: StoreCache::new(200),
            figures: super::figures::FiguresCache::default(),
            views_recorded_at: Mutex::default(),
            alerts_checked_at: Mutex::default(),
            recorded_views: Mutex::default(),
            searches: tokio::sync::Semaphore::new(MAX_CONCURRENT_SEARCHES),
            load_lock: tokio::sync::Mutex::default(),
            wake: Notify::new(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Receives the reader for whom something was read.
    pub fn watch(&self) -> broadcast::Receiver<ClusterAccountId> {
        self.0.changes.subscribe()
    }

    /// Waits for a turn to search jobs; held until the search is over.
    pub async fn acquire_search_permit(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.0.searches.acquire().await.ok()
    }

    pub(super) fn publish_change(&self, reader: ClusterAccountId) {
        // There may be no receivers.
        let _ = self.0.changes.send(reader);
    }

    /// Reads at once, if anything is due.
    pub fn request_read(&self, reader: ClusterAccountId) {
        if let Some(turn) = lock(&self.0.turns).get_mut(&reader).filter(|turn| turn.failures == 0) {
            turn.next_read = Instant::now();
        }
        self.0.wake.notify_one();
    }

    /// An account's usage, from memory or from the database.
    pub async fn account_usage(&self, source: UsageSourceId) -> Result<Arc<AccountUsage>, StoreError> {
        if let Some(usage) = self.cached_account_usage(source) {
            return Ok(usage);
        }
        // After a restart many pages ask at once: one of them loads.
        let _turn = self.0.load_lock.lock().await;
        if let Some(usage) = self.cached_account_usage(source) {
            return Ok(usage);
        }
        let today = Day::from_time(self.0.core.clock.now());
        // A year and some days more, because allocations begin on the first of a month; and the year before, to
        // compare with, as far as it was read in its time.
        let from = today.plus(-2 * self.0.core.config.usage_pace.history_days - 35);
        let mut db = self.0.core.store.read().await?;
        let days = store::usage::list_days(&mut db, source, from).await?;
        let names = store::usage::list_names(&mut db, source).await?;
        let rows = store::usage::daily::list_between(&mut db, source, from, today.plus(2)).await?;
        drop(db);
        let usage = Arc::new(AccountUsage::from_rows(&days, rows, &names));
        let mut cached = lock(&self.0.account_usage);
        cached.retain(|_, entry| entry.last_used.elapsed() < CACHE_IDLE_TIMEOUT);
        cached.insert(source, CachedAccountUsage { usage: usage.clone(), last_used: Instant::now() });
        Ok(usage)
    }

    fn cached_account_usage(&self, source: UsageSourceId) -> Option<Arc<AccountUsage>> {
        let mut cached = lock(&self.0.account_usage);
        let entry = cached.get_mut(&source)?;
        entry.last_used = Instant::now();
        Some(entry.usage.clone())
    }
}
