//! What is known of groups' use, for those who look at it: opened, kept in memory while wanted, told when it changes.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::ledger::Ledger;
use crate::auth::AuthService;
use crate::clock::{Clock, Day};
use crate::cluster::ConnectionPool;
use crate::config::UsagePace;
use crate::domain::{ClusterId, GroupId, PersonId, UsageSourceId};
use crate::jobs::notices::Bell;
use crate::store::{self, Store, StoreCache, StoreError};

/// A ledger that nobody looked at for this long leaves the memory.
const KEPT_FOR: Duration = Duration::from_mins(30);

/// Searches among jobs at once: fewer than the database has readers.
const SEARCHES: usize = 2;

/// Who reads where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Reader {
    /// Who.
    pub person: PersonId,
    /// Where.
    pub cluster: ClusterId,
}

/// When a reader was served, and is next.
pub(super) struct Turn {
    pub(super) served: Instant,
    pub(super) due: Instant,
    pub(super) failures: u32,
}

/// What it is made of.
pub struct Parts {
    /// Rights.
    pub auth: AuthService,
    /// The database.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Connections.
    pub lines: ConnectionPool,
    /// Rings when someone is to be told something.
    pub bell: Bell,
    /// How gently is read.
    pub pace: UsagePace,
    /// The end.
    pub stop: CancellationToken,
    /// Background work.
    pub tasks: TaskTracker,
}

/// What groups used.
#[derive(Clone)]
pub struct Usage(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) parts: Parts,
    pub(super) ledgers: Mutex<HashMap<UsageSourceId, Known>>,
    /// Clusters on which something is being read.
    pub(super) busy: Mutex<HashSet<ClusterId>>,
    pub(super) turns: Mutex<HashMap<Reader, Turn>>,
    /// How far east clusters' clocks are, in seconds.
    pub(super) east: Mutex<HashMap<ClusterId, i64>>,
    /// What views are made of, until anything is written.
    pub(super) grounds: StoreCache<(PersonId, GroupId), super::view::Ground>,
    /// Figures that were added up, until anything is read.
    pub(super) figures: super::figures::Kept,
    /// When it was last written down that someone looks.
    pub(super) looks: Mutex<HashMap<(PersonId, GroupId), Instant>>,
    /// When it was last looked whether a leader is to be told something.
    pub(super) alerts: Mutex<HashMap<Reader, Instant>>,
    /// Of which looks at people's figures it is known that they were written down, and on which day.
    pub(super) seen: Mutex<HashMap<super::manage::Seen, Day>>,
    /// Searches among jobs that may go on at once: of a million it takes a second, and other pages must not wait.
    searches: tokio::sync::Semaphore,
    /// Held while a ledger is read from the database.
    reading: tokio::sync::Mutex<()>,
    pub(super) wake: Notify,
    changes: broadcast::Sender<Reader>,
}

pub(super) struct Known {
    pub(super) ledger: Arc<Ledger>,
    looked: Instant,
}

impl Usage {
    /// Nothing is in memory yet.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            parts,
            ledgers: Mutex::default(),
            busy: Mutex::default(),
            turns: Mutex::default(),
            east: Mutex::default(),
            grounds: StoreCache::new(200),
            figures: super::figures::Kept::default(),
            looks: Mutex::default(),
            alerts: Mutex::default(),
            seen: Mutex::default(),
            searches: tokio::sync::Semaphore::new(SEARCHES),
            reading: tokio::sync::Mutex::default(),
            wake: Notify::new(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Tells for whom something was read.
    pub fn watch(&self) -> broadcast::Receiver<Reader> {
        self.0.changes.subscribe()
    }

    /// Waits for one's turn to search among jobs; held until the search is over.
    pub async fn turn_to_search(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        // It is never closed.
        self.0.searches.acquire().await.ok()
    }

    pub(super) fn tell(&self, reader: Reader) {
        // Nobody may be looking.
        let _ = self.0.changes.send(reader);
    }

    /// Reads on at once, if anything is to be read.
    pub fn hurry(&self, reader: Reader) {
        if let Some(turn) = lock(&self.0.turns).get_mut(&reader).filter(|turn| turn.failures == 0) {
            turn.due = Instant::now();
        }
        self.0.wake.notify_one();
    }

    /// What is known of an account, from memory or from the database.
    pub async fn ledger(&self, book: UsageSourceId) -> Result<Arc<Ledger>, StoreError> {
        if let Some(known) = self.known(book) {
            return Ok(known);
        }
        // After a start many pages ask at once: one of them reads.
        let _turn = self.0.reading.lock().await;
        if let Some(known) = self.known(book) {
            return Ok(known);
        }
        let today = Day::from_time(self.0.parts.clock.now());
        // A year, and some days more: allocations begin at the first of a month.
        let from = today.plus(-self.0.parts.pace.history_days - 35);
        let mut db = self.0.parts.store.read().await?;
        let days = store::usage::list_days(&mut db, book, from).await?;
        let names = store::usage::list_names(&mut db, book).await?;
        let rows = store::usage::daily::list_between(&mut db, book, from, today.plus(2)).await?;
        drop(db);
        let ledger = Arc::new(Ledger::of(&days, rows, &names));
        let mut ledgers = lock(&self.0.ledgers);
        ledgers.retain(|_, known| known.looked.elapsed() < KEPT_FOR);
        ledgers.insert(book, Known { ledger: ledger.clone(), looked: Instant::now() });
        Ok(ledger)
    }

    fn known(&self, book: UsageSourceId) -> Option<Arc<Ledger>> {
        let mut ledgers = lock(&self.0.ledgers);
        let known = ledgers.get_mut(&book)?;
        known.looked = Instant::now();
        Some(known.ledger.clone())
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
