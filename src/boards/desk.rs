//! All dashboards: what people see of them, and what the rest of this room shares.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::entry::{Looked, Tickets};
use super::keeper::Try;
use super::reach::Live;
use crate::auth::{AuthService, Ownership, Permission, Viewer};
use crate::clock::{Clock, UnixTime};
use crate::cluster::ConnectionPool;
use crate::domain::{DashboardId, DashboardRunId};
use crate::jobs::notices::Bell;
use crate::jobs::{QueueKey, Queues, Submissions};
use crate::store::dashboards::runs::{self, DashboardRun, DashboardRunState};
use crate::store::dashboards::{self, Dashboard};
use crate::store::{Store, StoreCache, StoreError};

/// So many accesses are kept in memory.
const MOST_ACCESSES: usize = 10_000;
/// The last runs that pages look at.
const LAST_RUNS: i64 = 10;

/// What dashboards need of the rest.
pub struct Parts {
    /// Accounts and rights.
    pub auth: AuthService,
    /// The database.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Connections.
    pub lines: ConnectionPool,
    /// People's jobs.
    pub queues: Queues,
    /// Hands jobs over.
    pub submissions: Submissions,
    /// Tells people.
    pub bell: Bell,
    /// A dashboard that nobody has looked at for this long is stopped.
    pub idle: Duration,
    /// Ends the background work.
    pub stop: CancellationToken,
    /// Background work, awaited at the end.
    pub tasks: TaskTracker,
}

/// All dashboards.
#[derive(Clone)]
pub struct Boards(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) parts: Parts,
    /// Dashboards that can be reached now.
    pub(super) live: Mutex<HashMap<DashboardId, Live>>,
    /// Runs that are being looked after at this moment.
    pub(super) busy: Mutex<HashSet<DashboardRunId>>,
    /// When a run is tried next.
    pub(super) tries: Mutex<HashMap<DashboardRunId, Try>>,
    /// When someone last looked at a run, not written down yet.
    pub(super) used: Mutex<HashMap<DashboardRunId, UnixTime>>,
    /// One-time entries.
    pub(super) tickets: Tickets,
    /// Who may look, until anything is written.
    pub(super) looked: StoreCache<String, Option<Looked>>,
    /// Streams that must be cut when the access they belong to ends.
    pub(super) streams: Mutex<HashMap<String, Stream>>,
    pub(super) wake: Notify,
    changes: broadcast::Sender<DashboardId>,
}

/// The open streams of one access.
pub(super) struct Stream {
    pub(super) cut: CancellationToken,
    pub(super) open: usize,
    /// Requests of this browser that may be under way at a time.
    pub(super) places: Arc<Semaphore>,
}

/// A dashboard with its runs, as pages show it.
#[derive(Debug, Clone)]
pub struct Standing {
    /// The dashboard.
    pub board: Dashboard,
    /// The run that counts: the one that shows it, else the one on its way, else the last.
    pub run: Option<DashboardRun>,
    /// A follow-up that waits for the end of that run.
    pub next: Option<DashboardRun>,
    /// Whether it can be reached now.
    pub is_live: bool,
}

impl Standing {
    /// Whether anything of it is not over.
    pub fn is_open(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.state != DashboardRunState::Over)
    }
}

impl Boards {
    /// Nothing is looked after before [`Boards::keep`].
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            parts,
            live: Mutex::default(),
            busy: Mutex::default(),
            tries: Mutex::default(),
            used: Mutex::default(),
            tickets: Tickets::default(),
            looked: StoreCache::new(MOST_ACCESSES),
            streams: Mutex::default(),
            wake: Notify::new(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Tells which dashboard has changed.
    pub fn watch(&self) -> broadcast::Receiver<DashboardId> {
        self.0.changes.subscribe()
    }

    /// A dashboard that someone may see.
    pub async fn get(
        &self,
        viewer: &Viewer,
        id: DashboardId,
    ) -> Result<Option<Standing>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let board = dashboards::get(&mut db, id).await?.filter(|board| !board.is_removed());
        let seen = board.filter(|board| viewer.may(Permission::SeeDashboard(whose(board))).is_ok());
        let Some(board) = seen else { return Ok(None) };
        let last = runs::list_for_dashboard(&mut db, id, LAST_RUNS).await?;
        Ok(Some(self.standing(board, last)))
    }

    /// Their own, and those that their groups see.
    pub async fn list(&self, viewer: &Viewer) -> Result<Vec<Standing>, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let mut found = Vec::new();
        for board in dashboards::list(&mut db, viewer.id).await? {
            if viewer.may(Permission::SeeDashboard(whose(&board))).is_ok() {
                let last = runs::list_for_dashboard(&mut db, board.id, LAST_RUNS).await?;
                found.push(self.standing(board, last));
            }
        }
        // What runs comes first.
        found.sort_by_key(|standing| !standing.is_open());
        Ok(found)
    }

    /// What one is like whoever asks: for guests, who were let in by a link.
    pub(super) async fn standing_of(&self, board: Dashboard) -> Result<Standing, StoreError> {
        let mut db = self.0.parts.store.read().await?;
        let last = runs::list_for_dashboard(&mut db, board.id, LAST_RUNS).await?;
        Ok(self.standing(board, last))
    }

    fn standing(&self, board: Dashboard, last: Vec<DashboardRun>) -> Standing {
        let live = lock(&self.0.live).get(&board.id).map(|live| live.run);
        let mut open: Vec<DashboardRun> =
            last.iter().filter(|run| run.state != DashboardRunState::Over).cloned().collect();
        open.reverse();
        let shown = open.iter().position(|run| Some(run.id) == live).unwrap_or(0);
        let run = if open.is_empty() { None } else { Some(open.remove(shown)) };
        let next = run.as_ref().and_then(|run| open.into_iter().find(|other| other.id > run.id));
        let run = run.or_else(|| last.into_iter().next());
        Standing {
            is_live: live.is_some() && live == run.as_ref().map(|run| run.id),
            board,
            run,
            next,
        }
    }

    pub(super) fn tell(&self, board: DashboardId) {
        // Nobody may be looking.
        let _ = self.0.changes.send(board);
    }

    /// Something is to be done.
    pub(super) fn hurry(&self) {
        self.0.wake.notify_one();
    }
}

/// Whose a dashboard is.
pub const fn whose(board: &Dashboard) -> Ownership {
    Ownership { owner: Some(board.person_id), group: board.group() }
}

/// The queue that its jobs are in.
pub(super) const fn queue_of(board: &Dashboard) -> QueueKey {
    QueueKey { person: board.person_id, cluster: board.cluster_id }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
