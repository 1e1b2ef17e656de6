//! Groups' usage: opened when someone views it, kept in memory while wanted, with an event when it changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, broadcast};

use super::account_usage::AccountUsage;
use super::group_usage::GroupAccountUsage;
use super::schedule::EXTRA_DAYS;
use crate::clock::Day;
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::{Core, lock};
use crate::domain::{ClusterId, GroupId, PersonId, UsageSourceId};
use crate::jobs::notifications::NotificationHub;
use crate::slurm::accounting::visibility::AccountingVisibility;
use crate::store::usage::UsageSourceOwner;
use crate::store::{self, StoreCache, StoreError};

/// An account's usage leaves the memory after nobody viewed it for this long.
const CACHE_IDLE_TIMEOUT: Duration = Duration::from_mins(30);

/// Concurrent job searches: fewer than the database has readers.
const MAX_CONCURRENT_SEARCHES: usize = 2;

/// At most this many periods that people chose are read first, per source.
const MAX_CHOSEN_PERIODS: usize = 4;

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
    /// Whose jobs readers see on a cluster, and since when that is known.
    pub(super) visibilities: Mutex<HashMap<ClusterAccountId, (AccountingVisibility, Instant)>>,
    /// The sources that somebody's connection can serve.
    pub(super) served_sources: Mutex<HashSet<UsageSourceId>>,
    /// The periods that people have chosen to see, latest first.
    chosen_periods: Mutex<HashMap<UsageSourceId, Vec<(Day, Day)>>>,
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
    changes: broadcast::Sender<UsageSourceOwner>,
}

pub(super) struct CachedAccountUsage {
    usage: Arc<AccountUsage>,
    /// The same as one user may see it who is not a PI.
    restricted: HashMap<Option<String>, Arc<AccountUsage>>,
    last_used: Instant,
}

impl CachedAccountUsage {
    fn new(usage: Arc<AccountUsage>) -> Self {
        Self { usage, restricted: HashMap::new(), last_used: Instant::now() }
    }

    /// Replaces it after a day was read.
    pub(super) fn replace(&mut self, change: impl FnOnce(&AccountUsage) -> AccountUsage) {
        self.usage = Arc::new(change(&self.usage));
        self.restricted.clear();
    }
}

impl UsageService {
    /// Starts with nothing in memory.
    pub fn new(core: Core, connections: ConnectionPool, notifications: NotificationHub) -> Self {
        Self(Arc::new(UsageServiceInner {
            core,
            connections,
            notifications,
            account_usage: Mutex::default(),
            visibilities: Mutex::default(),
            served_sources: Mutex::default(),
            chosen_periods: Mutex::default(),
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

    /// Receives the group or person for whom something was read.
    pub fn watch(&self) -> broadcast::Receiver<UsageSourceOwner> {
        self.0.changes.subscribe()
    }

    /// Waits for a turn to search jobs; held until the search is over.
    pub async fn acquire_search_permit(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        // The semaphore is never closed.
        self.0.searches.acquire().await.ok()
    }

    pub(super) fn publish_change(&self, owner: UsageSourceOwner) {
        // There may be no receivers.
        let _ = self.0.changes.send(owner);
    }

    /// Reads on a cluster at once, if anything is due.
    pub fn request_read(&self, cluster: ClusterId) {
        for (reader, turn) in lock(&self.0.turns).iter_mut() {
            if reader.cluster == cluster && turn.failures == 0 {
                turn.next_read = Instant::now();
            }
        }
        self.0.wake.notify_one();
    }

    /// Moves the days of a period to the front of what is read of these accounts.
    pub fn read_first<'a>(&self, accounts: impl Iterator<Item = &'a GroupAccountUsage>, from: Day, until: Day) {
        for account in accounts {
            // Today is read first anyway.
            let is_read = account.unread_days(from, until.min(account.today.plus(-1))) == 0;
            let mut is_new = false;
            let mut chosen = lock(&self.0.chosen_periods);
            for source in &account.details.sources {
                let periods = chosen.entry(source.id).or_default();
                if is_read {
                    periods.retain(|period| *period != (from, until));
                } else if periods.first() != Some(&(from, until)) {
                    is_new = !periods.contains(&(from, until));
                    periods.retain(|period| *period != (from, until));
                    periods.insert(0, (from, until));
                    periods.truncate(MAX_CHOSEN_PERIODS);
                }
                if periods.is_empty() {
                    chosen.remove(&source.id);
                }
            }
            drop(chosen);
            if is_new {
                self.request_read(account.details.cluster);
            }
        }
    }

    pub(super) fn chosen_periods(&self, source: UsageSourceId) -> Vec<(Day, Day)> {
        lock(&self.0.chosen_periods).get(&source).cloned().unwrap_or_default()
    }

    /// What someone who is not a PI may see of an account's usage: their own, by their user name on the cluster, and
    /// one sum for everyone else.
    pub(super) async fn restricted_account_usage(
        &self,
        source: UsageSourceId,
        user: Option<&str>,
    ) -> Result<Arc<AccountUsage>, StoreError> {
        let usage = self.account_usage(source).await?;
        let key = user.map(str::to_owned);
        let mut cached = lock(&self.0.account_usage);
        let Some(entry) = cached.get_mut(&source).filter(|entry| Arc::ptr_eq(&entry.usage, &usage)) else {
            return Ok(Arc::new(usage.restricted_to(user)));
        };
        let restricted = entry.restricted.entry(key).or_insert_with(|| Arc::new(usage.restricted_to(user)));
        Ok(restricted.clone())
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
        let from = today.plus(-2 * self.0.core.config.usage_pace.history_days - EXTRA_DAYS - 1);
        let mut db = self.0.core.store.read().await?;
        let days = store::usage::list_days(&mut db, source, from).await?;
        let names = store::usage::list_names(&mut db, source).await?;
        let rows = store::usage::daily::list_between(&mut db, source, from, today.plus(2)).await?;
        drop(db);
        let usage = Arc::new(AccountUsage::from_rows(&days, rows, &names));
        let mut cached = lock(&self.0.account_usage);
        cached.retain(|_, entry| entry.last_used.elapsed() < CACHE_IDLE_TIMEOUT);
        cached.insert(source, CachedAccountUsage::new(usage.clone()));
        Ok(usage)
    }

    fn cached_account_usage(&self, source: UsageSourceId) -> Option<Arc<AccountUsage>> {
        let mut cached = lock(&self.0.account_usage);
        let entry = cached.get_mut(&source)?;
        entry.last_used = Instant::now();
        Some(entry.usage.clone())
    }
}
