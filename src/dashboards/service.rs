//! All dashboards: what people see of them, and the state that this module shares.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, Semaphore, broadcast};
use tokio_util::sync::CancellationToken;

use super::access::{DashboardAccessLookup, DashboardTickets};
use super::connect::LiveDashboard;
use super::reconciler::DashboardRetryTimers;
use crate::auth::{Permission, SharedItemOwnership, Viewer};
use crate::clock::UnixTime;
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::Core;
use crate::domain::{DashboardId, DashboardRunId};
use crate::jobs::notifications::NotificationHub;
use crate::jobs::{QueueMonitor, SubmissionWorker};
use crate::store::dashboards::runs::{self, DashboardRun, DashboardRunState};
use crate::store::dashboards::{self, Dashboard};
use crate::store::{StoreCache, StoreError};

/// At most this many accesses are kept in memory.
const MAX_CACHED_ACCESSES: usize = 10_000;
/// How many of the last runs pages show.
const RECENT_RUNS: i64 = 10;

#[derive(Clone)]
pub struct Dashboards(pub(super) Arc<DashboardsInner>);

pub(super) struct DashboardsInner {
    pub(super) core: Core,
    pub(super) connections: ConnectionPool,
    pub(super) queues: QueueMonitor,
    pub(super) submissions: SubmissionWorker,
    pub(super) notifications: NotificationHub,
    /// Dashboards that can be reached now.
    pub(super) live: Mutex<HashMap<DashboardId, LiveDashboard>>,
    /// Runs that are being reconciled at this moment.
    pub(super) busy: Mutex<HashSet<DashboardRunId>>,
    /// When each run is tried next.
    pub(super) retries: Mutex<HashMap<DashboardRunId, DashboardRetryTimers>>,
    /// When someone last viewed a run, if not saved yet.
    pub(super) last_used: Mutex<HashMap<DashboardRunId, UnixTime>>,
    pub(super) tickets: DashboardTickets,
    /// Accesses, until anything is written.
    pub(super) access_cache: StoreCache<String, Option<DashboardAccessLookup>>,
    /// Streams that must be cut when their access ends.
    pub(super) streams: Mutex<HashMap<String, AccessStreams>>,
    pub(super) wake: Notify,
    changes: broadcast::Sender<DashboardId>,
}

/// The open streams of one access.
pub(super) struct AccessStreams {
    pub(super) cancel: CancellationToken,
    pub(super) open_count: usize,
    /// Limits this browser's concurrent requests.
    pub(super) request_slots: Arc<Semaphore>,
}

/// A dashboard with its runs, as pages show it.
#[derive(Debug, Clone)]
pub struct DashboardWithRuns {
    pub dashboard: Dashboard,
    /// The run that counts: the live one, else the one on its way, else the last.
    pub run: Option<DashboardRun>,
    /// A follow-up that waits for the end of that run.
    pub next: Option<DashboardRun>,
    pub is_live: bool,
}

impl DashboardWithRuns {
    /// Whether any of its runs is not over.
    pub fn is_open(&self) -> bool {
        self.run.as_ref().is_some_and(|run| run.state != DashboardRunState::Over)
    }

    /// When its time is up. One that was asked to stop ends before that.
    pub fn ends_at(&self) -> Option<UnixTime> {
        let run = self.run.as_ref().filter(|run| self.is_open() && run.stop.is_empty());
        run.and_then(DashboardRun::ends_at)
    }
}

impl Dashboards {
    /// Nothing is reconciled until [`Dashboards::run_reconciler`] runs.
    pub fn new(
        core: Core,
        connections: ConnectionPool,
        queues: QueueMonitor,
        submissions: SubmissionWorker,
        notifications: NotificationHub,
    ) -> Self {
        Self(Arc::new(DashboardsInner {
            core,
            connections,
            queues,
            submissions,
            notifications,
            live: Mutex::default(),
            busy: Mutex::default(),
            retries: Mutex::default(),
            last_used: Mutex::default(),
            tickets: DashboardTickets::default(),
            access_cache: StoreCache::new(MAX_CACHED_ACCESSES),
            streams: Mutex::default(),
            wake: Notify::new(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Receives the id of each dashboard that has changed.
    pub fn watch(&self) -> broadcast::Receiver<DashboardId> {
        self.0.changes.subscribe()
    }

    /// A dashboard that the person may see.
    pub async fn get(&self, viewer: &Viewer, id: DashboardId) -> Result<Option<DashboardWithRuns>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let dashboard = dashboards::get(&mut db, id).await?.filter(|dashboard| !dashboard.is_removed());
        let seen = dashboard.filter(|dashboard| viewer.may(Permission::SeeDashboard(owner_of(dashboard))).is_ok());
        let Some(dashboard) = seen else { return Ok(None) };
        let last = runs::list_for_dashboard(&mut db, id, RECENT_RUNS).await?;
        Ok(Some(self.build_status(dashboard, last)))
    }

    /// A person's own dashboards, and those that their groups can see.
    pub async fn list(&self, viewer: &Viewer) -> Result<Vec<DashboardWithRuns>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let mut statuses = Vec::new();
        for dashboard in dashboards::list(&mut db, viewer.id).await? {
            if viewer.may(Permission::SeeDashboard(owner_of(&dashboard))).is_ok() {
                let last = runs::list_for_dashboard(&mut db, dashboard.id, RECENT_RUNS).await?;
                statuses.push(self.build_status(dashboard, last));
            }
        }
        // Running ones come first.
        statuses.sort_by_key(|status| !status.is_open());
        Ok(statuses)
    }

    /// The status regardless of the viewer: for guests, who have access through a link.
    pub(super) async fn load_status(&self, dashboard: Dashboard) -> Result<DashboardWithRuns, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let last = runs::list_for_dashboard(&mut db, dashboard.id, RECENT_RUNS).await?;
        Ok(self.build_status(dashboard, last))
    }

    fn build_status(&self, dashboard: Dashboard, last: Vec<DashboardRun>) -> DashboardWithRuns {
        let live = lock(&self.0.live).get(&dashboard.id).map(|live| live.run);
        let mut open: Vec<DashboardRun> =
            last.iter().filter(|run| run.state != DashboardRunState::Over).cloned().collect();
        open.reverse();
        let shown = open.iter().position(|run| Some(run.id) == live).unwrap_or(0);
        let run = if open.is_empty() { None } else { Some(open.remove(shown)) };
        let next = run.as_ref().and_then(|run| open.into_iter().find(|other| other.id > run.id));
        let run = run.or_else(|| last.into_iter().next());
        DashboardWithRuns { is_live: live.is_some() && live == run.as_ref().map(|run| run.id), dashboard, run, next }
    }

    pub(super) fn notify_watchers(&self, dashboard: DashboardId) {
        // There may be no receivers.
        let _ = self.0.changes.send(dashboard);
    }

    /// Wakes the reconciler, because something is due.
    pub fn wake_reconciler(&self) {
        self.0.wake.notify_one();
    }
}

pub const fn owner_of(dashboard: &Dashboard) -> SharedItemOwnership {
    SharedItemOwnership { owner: Some(dashboard.person_id), group: dashboard.group() }
}

/// The queue that its jobs are in.
pub(super) const fn queue_key(dashboard: &Dashboard) -> ClusterAccountId {
    ClusterAccountId { person: dashboard.person_id, cluster: dashboard.cluster_id }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
