//! Keeps queue snapshots up to date: one watcher for each open connection, no matter how many tabs show it.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

use super::notifications::NotificationHub;
use super::queue_snapshot::{PersonQueueSnapshot, QueueReadError};
use crate::clock::UnixTime;
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::{Core, lock};
use crate::domain::ConnectionRole;
use crate::slurm::job::SlurmJob;
use crate::store::{self, StoreError};

/// Jobs that ended within this time are in the snapshot; older ones are history.
const RECENT: i64 = 24 * 3600;
/// The most jobs in memory for one person on one cluster.
const MAX_JOBS: i64 = 60_000;
/// A viewer who has been silent for this long is gone.
const VIEWER_TIMEOUT: Duration = Duration::from_secs(100);
/// The shortest pause between two manual refreshes.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// The longest pause after failures.
const MAX_PAUSE: Duration = Duration::from_mins(5);
/// How long an unviewed snapshot stays in memory without a connection.
const SNAPSHOT_TTL: Duration = Duration::from_hours(1);

/// The schedule and state of one queue.
pub(super) struct WatchedQueue {
    pub(super) snapshot: Arc<PersonQueueSnapshot>,
    /// A refresh is running.
    is_busy: bool,
    /// When the next refresh is due.
    due_at: Instant,
    /// When the last refresh began.
    pub(super) asked_at: Option<Instant>,
    failures: u32,
    /// The shortest refresh interval while someone is viewing.
    pub(super) every: Duration,
    /// When someone last viewed it.
    pub(super) viewed_at: Option<Instant>,
    /// When someone last viewed the group's jobs.
    pub(super) group_viewed_at: Option<Instant>,
    /// Jobs that neither the queue nor accounting reports, and since when.
    pub(super) missing_since: HashMap<crate::slurm::job::JobId, UnixTime>,
    /// Tasks that left the queue without starting: how often accounting was asked, and the record they were part of.
    pub(super) vanished: HashMap<crate::slurm::job::JobId, (u8, Arc<super::JobRecord>)>,
    /// When priorities were last read.
    pub(super) ranks_asked: Option<Instant>,
    pub(super) resources_asked: Option<Instant>,
    pub(super) history_asked: Option<Instant>,
    /// Someone wants to see older jobs.
    pub(super) wants_history: bool,
    /// A job ended unseen, so read accounting soon.
    pub(super) is_urgent: bool,
}

#[derive(Clone)]
pub struct QueueMonitor(pub(super) Arc<QueueMonitorInner>);

pub(super) struct QueueMonitorInner {
    pub(super) core: Core,
    pub(super) connections: ConnectionPool,
    pub(super) notifications: NotificationHub,
    pub(super) watched: Mutex<HashMap<ClusterAccountId, WatchedQueue>>,
    /// Held while a snapshot is loaded from the database.
    load_lock: tokio::sync::Mutex<()>,
    changes: broadcast::Sender<ClusterAccountId>,
}

impl QueueMonitor {
    /// Starts empty; snapshots are loaded from the database on demand.
    pub fn new(core: Core, connections: ConnectionPool, notifications: NotificationHub) -> Self {
        Self(Arc::new(QueueMonitorInner {
            core,
            connections,
            notifications,
            watched: Mutex::default(),
            load_lock: tokio::sync::Mutex::default(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Receives the account ID of each snapshot that changed.
    pub fn subscribe(&self) -> broadcast::Receiver<ClusterAccountId> {
        self.0.changes.subscribe()
    }

    /// The snapshot, from memory or from the database.
    pub async fn snapshot(&self, key: ClusterAccountId) -> Result<Arc<PersonQueueSnapshot>, StoreError> {
        if let Some(queue) = lock(&self.0.watched).get(&key) {
            return Ok(queue.snapshot.clone());
        }
        // After a restart many pages ask at once: the first loads it, the others find it in memory.
        let _turn = self.0.load_lock.lock().await;
        if let Some(queue) = lock(&self.0.watched).get(&key) {
            return Ok(queue.snapshot.clone());
        }
        let snapshot = Arc::new(self.load_snapshot(key).await?);
        let mut queues = lock(&self.0.watched);
        Ok(queues.entry(key).or_insert_with(|| WatchedQueue::new(snapshot)).snapshot.clone())
    }

    async fn load_snapshot(&self, key: ClusterAccountId) -> Result<PersonQueueSnapshot, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let since = self.0.core.clock.now().plus(-RECENT);
        let rows = store::jobs::list_current(&mut db, key.person, key.cluster, since, MAX_JOBS).await?;
        let queue = store::queues::get(&mut db, key.person, key.cluster).await?;
        let records = rows.into_iter().map(|row| Arc::new(super::JobRecord::from_row(row)));
        Ok(PersonQueueSnapshot {
            records: records.map(|record| (record.job.id, record)).collect(),
            seen: queue.seen_at,
            history_from: queue.history().map(|(from, _)| from),
            resources: Arc::new(serde_json::from_str(&queue.standing).unwrap_or_default()),
            ..PersonQueueSnapshot::default()
        })
    }

    /// Notes that someone is viewing a queue: it stays up to date, and is refreshed at once if it is old.
    pub async fn view(&self, key: ClusterAccountId, is_group: bool) -> Result<Arc<PersonQueueSnapshot>, StoreError> {
        let snapshot = self.snapshot(key).await?;
        let mut queues = lock(&self.0.watched);
        if let Some(queue) = queues.get_mut(&key) {
            let now = Instant::now();
            let was_viewed = queue.is_viewed(now);
            queue.viewed_at = Some(now);
            if is_group {
                let wants_group = snapshot.group.is_none() || !is_recent(queue.group_viewed_at, now, VIEWER_TIMEOUT);
                queue.group_viewed_at = Some(now);
                if wants_group && queue.failures == 0 {
                    queue.due_at = queue.due_at.min(now);
                }
            }
            if !was_viewed && queue.failures == 0 {
                queue.due_at = queue.due_at.min(queue.asked_at.map_or(now, |asked| asked + queue.every));
            }
        }
        Ok(snapshot)
    }

    /// Refreshes soon, at most once every few seconds. Returns false if the last refresh was a moment ago.
    pub async fn refresh_soon(&self, key: ClusterAccountId) -> Result<bool, StoreError> {
        self.view(key, false).await?;
        let now = Instant::now();
        let mut queues = lock(&self.0.watched);
        let Some(queue) = queues.get_mut(&key) else { return Ok(false) };
        let again_at = queue.asked_at.map_or(now, |asked| asked + ASK_AGAIN_AFTER);
        queue.due_at = queue.due_at.min(again_at);
        Ok(again_at <= now)
    }

    /// Reads fair share, storage and quota with the next refresh, not too often. Returns false if they were read a
    /// moment ago.
    pub async fn refresh_resources_soon(&self, key: ClusterAccountId) -> Result<bool, StoreError> {
        self.refresh_soon(key).await?;
        let mut queues = lock(&self.0.watched);
        let Some(queue) = queues.get_mut(&key) else { return Ok(false) };
        if queue.snapshot.resources_wanted.is_some() {
            return Ok(true);
        }
        if is_recent(queue.resources_asked, Instant::now(), self.0.core.config.queue_pace.resources_again) {
            return Ok(false);
        }
        queue.resources_asked = None;
        // A refresh that runs now may be planned already; the next one follows soon.
        queue.is_urgent |= queue.is_busy;
        drop(queues);
        let now = self.0.core.clock.now();
        self.update_snapshot(key, |snapshot| snapshot.resources_wanted = Some(now));
        Ok(true)
    }

    /// Reads the queue again shortly after an action that changes it.
    pub fn refresh_after_action(&self, key: ClusterAccountId) {
        if let Some(queue) = lock(&self.0.watched).get_mut(&key) {
            queue.due_at = queue.due_at.min(Instant::now() + self.0.core.config.queue_pace.after_action);
            queue.failures = 0;
        }
    }

    /// Lists a job that Slurm has just accepted. The next read of the queue completes it.
    pub async fn add_submitted(&self, key: ClusterAccountId, job: SlurmJob) -> Result<(), StoreError> {
        self.snapshot(key).await?;
        let now = self.0.core.clock.now();
        self.update_snapshot(key, |snapshot| {
            // A read that was under way may have seen it already, or its tasks.
            if snapshot.records_of_number(job.id.number).next().is_none() {
                snapshot.records.insert(job.id, Arc::new(super::JobRecord::new(job, now)));
            }
        });
        Ok(())
    }

    /// Someone wants to see older jobs: the next refresh reads one more month.
    pub fn request_history(&self, key: ClusterAccountId) {
        if let Some(queue) = lock(&self.0.watched).get_mut(&key) {
            queue.wants_history = true;
            queue.due_at = queue.due_at.min(Instant::now());
        }
    }

    /// Keeps snapshots up to date until the portal stops.
    pub async fn run(self) {
        let core = &self.0.core;
        if !core.config.queue_pace.is_on {
            return;
        }
        let mut connections = self.0.connections.subscribe();
        let mut ticks = tokio::time::interval(core.config.queue_pace.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = core.stop.cancelled() => return,
                _ = ticks.tick() => {}
                changed = connections.recv() => {
                    if let Ok(connection) = changed && connection.role == ConnectionRole::Login {
                        self.connection_changed(ClusterAccountId { person: connection.person, cluster: connection.cluster }).await;
                    }
                }
            }
            for key in self.take_due() {
                let this = self.clone();
                core.tasks.spawn(async move {
                    tokio::select! {
                        () = this.refresh(key) => {}
                        () = this.0.core.stop.cancelled() => {}
                    }
                });
            }
        }
    }

    /// A connection opened or closed: reads a new one soon, and updates pages at once.
    async fn connection_changed(&self, key: ClusterAccountId) {
        let is_up = self.0.connections.connection(key.connection_key()).is_ok();
        if self.snapshot(key).await.is_err() {
            return;
        }
        let mut queues = lock(&self.0.watched);
        let Some(queue) = queues.get_mut(&key) else { return };
        let was_down =
            matches!(queue.snapshot.trouble, Some(QueueReadError::NotConnected | QueueReadError::HostKeyInDoubt))
                || queue.asked_at.is_none();
        if is_up && was_down {
            queue.due_at = Instant::now();
            queue.failures = 0;
        }
        if !is_up {
            let mut snapshot = PersonQueueSnapshot::clone(&queue.snapshot);
            snapshot.trouble = Some(QueueReadError::NotConnected);
            snapshot.version += 1;
            queue.snapshot = Arc::new(snapshot);
        }
        drop(queues);
        self.notify(key);
    }

    /// The queues that are due, marked as busy; unused ones are dropped.
    fn take_due(&self) -> Vec<ClusterAccountId> {
        let now = Instant::now();
        let connected = self.0.connections.connected_keys();
        let mut queues = lock(&self.0.watched);
        queues.retain(|key, queue| {
            queue.is_busy || connected.contains(&key.connection_key()) || is_recent(queue.viewed_at, now, SNAPSHOT_TTL)
        });
        let mut due = Vec::new();
        for connection in connected.into_iter().filter(|connection| connection.role == ConnectionRole::Login) {
            let key = ClusterAccountId { person: connection.person, cluster: connection.cluster };
            match queues.get_mut(&key) {
                Some(queue) if !queue.is_busy && queue.due_at <= now => {
                    queue.is_busy = true;
                    due.push(key);
                }
                Some(_) => {}
                // Not in memory yet: the refresh loads it from the database.
                None => due.push(key),
            }
        }
        due
    }

    async fn refresh(&self, key: ClusterAccountId) {
        if self.snapshot(key).await.is_err() {
            return;
        }
        if let Some(queue) = lock(&self.0.watched).get_mut(&key) {
            queue.is_busy = true;
            queue.asked_at = Some(Instant::now());
        }
        let worked = self.refresh_once(key).await;
        let mut queues = lock(&self.0.watched);
        if let Some(queue) = queues.get_mut(&key) {
            let now = Instant::now();
            queue.is_busy = false;
            queue.failures = if worked { 0 } else { queue.failures.saturating_add(1) };
            let pause = if worked {
                self.0.core.config.queue_pace.next_pause(
                    queue.every,
                    queue.is_viewed(now),
                    queue.snapshot.has_unfinished(),
                )
            } else {
                (queue.every * 2_u32.saturating_pow(queue.failures.min(6))).min(MAX_PAUSE)
            };
            queue.due_at = queue.asked_at.unwrap_or(now) + pause;
            if std::mem::take(&mut queue.is_urgent) {
                queue.due_at = queue.due_at.min(now + self.0.core.config.queue_pace.after_action);
            }
        }
    }

    pub(super) fn notify(&self, key: ClusterAccountId) {
        // There may be no subscribers.
        let _ = self.0.changes.send(key);
    }
}

impl WatchedQueue {
    fn new(snapshot: Arc<PersonQueueSnapshot>) -> Self {
        Self {
            snapshot,
            is_busy: false,
            due_at: Instant::now(),
            asked_at: None,
            failures: 0,
            every: Duration::from_secs(30),
            viewed_at: None,
            group_viewed_at: None,
            missing_since: HashMap::new(),
            vanished: HashMap::new(),
            ranks_asked: None,
            resources_asked: None,
            history_asked: None,
            wants_history: false,
            is_urgent: false,
        }
    }

    pub(super) fn is_viewed(&self, now: Instant) -> bool {
        is_recent(self.viewed_at, now, VIEWER_TIMEOUT)
    }

    pub(super) fn is_group_viewed(&self, now: Instant) -> bool {
        is_recent(self.group_viewed_at, now, VIEWER_TIMEOUT)
    }
}

pub(super) fn is_recent(at: Option<Instant>, now: Instant, within: Duration) -> bool {
    at.is_some_and(|at| now.saturating_duration_since(at) < within)
}
