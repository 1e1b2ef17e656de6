//! Keeping pictures fresh: one watcher for each connection that stands, whoever looks and in how many tabs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::broadcast;

use super::notices::Bell;
use super::picture::{Picture, Trouble};
use crate::auth::AuthService;
use crate::clock::{Clock, UnixTime};
use crate::cluster::ConnectionPool;
use crate::config::QueuePace;
use crate::domain::{ClusterId, ConnectionRole, PersonId};
use crate::store::connections::ConnectionKey;
use crate::store::{self, Store, StoreError};

/// Jobs that ended within this time are part of the picture; older ones are history.
const RECENT: i64 = 24 * 3600;
/// So many jobs are kept in memory of one person's on one cluster.
const MOST_JOBS: i64 = 60_000;
/// Someone who has not been heard of for this long has gone.
const LOOKS_FOR: Duration = Duration::from_secs(100);
/// A button may ask again after this long.
const ASK_AGAIN_AFTER: Duration = Duration::from_secs(5);
/// Longest pause after failures.
const LONGEST_PAUSE: Duration = Duration::from_mins(5);
/// Nobody's picture is kept in memory for longer than this without being looked at, if there is no connection.
const KEPT_FOR: Duration = Duration::from_hours(1);

/// Whose queue, where.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct QueueKey {
    /// Whose.
    pub person: PersonId,
    /// Where.
    pub cluster: ClusterId,
}

impl QueueKey {
    /// The connection that it is read over.
    pub const fn line(self) -> ConnectionKey {
        ConnectionKey { person: self.person, cluster: self.cluster, role: ConnectionRole::Login }
    }
}

/// What is done by and for one queue.
pub(super) struct Spot {
    pub(super) picture: Arc<Picture>,
    /// A refresh is under way.
    busy: bool,
    /// When the next one is due.
    due: Instant,
    /// When the last one began.
    pub(super) asked: Option<Instant>,
    failures: u32,
    /// How often the cluster may be asked while someone looks.
    pub(super) every: Duration,
    /// When someone last looked at it.
    pub(super) looked: Option<Instant>,
    /// When someone last looked at the group's jobs.
    pub(super) looked_at_group: Option<Instant>,
    /// Since when jobs are missing that neither queue nor accounting tells of.
    pub(super) missed: HashMap<crate::slurm::job::JobId, UnixTime>,
    /// Tasks that no longer wait and did not begin: how often the accounting was asked, and what stood for them.
    pub(super) vanished: HashMap<crate::slurm::job::JobId, (u8, Arc<super::Record>)>,
    /// When the slower things were last asked.
    pub(super) ranks_asked: Option<Instant>,
    pub(super) standing_asked: Option<Instant>,
    pub(super) history_asked: Option<Instant>,
    /// Someone wants to see older jobs.
    pub(super) looks_back: bool,
    /// Something ended unseen: how is asked soon.
    pub(super) hurry: bool,
}

/// All queues.
#[derive(Clone)]
pub struct Queues(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) auth: AuthService,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) lines: ConnectionPool,
    pub(super) pace: QueuePace,
    pub(super) bell: Bell,
    spots: Mutex<HashMap<QueueKey, Spot>>,
    /// Held while a picture is read from the database.
    reading: tokio::sync::Mutex<()>,
    changes: broadcast::Sender<QueueKey>,
}

impl Queues {
    /// No pictures yet; they come from the database as they are asked for.
    pub fn new(
        auth: AuthService,
        store: Store,
        clock: Clock,
        lines: ConnectionPool,
        pace: QueuePace,
        bell: Bell,
    ) -> Self {
        Self(Arc::new(Inner {
            auth,
            store,
            clock,
            lines,
            pace,
            bell,
            spots: Mutex::default(),
            reading: tokio::sync::Mutex::default(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Tells whose picture has changed.
    pub fn watch(&self) -> broadcast::Receiver<QueueKey> {
        self.0.changes.subscribe()
    }

    /// The picture, from memory or from the database.
    pub async fn picture(&self, key: QueueKey) -> Result<Arc<Picture>, StoreError> {
        if let Some(spot) = self.spots().get(&key) {
            return Ok(spot.picture.clone());
        }
        // After a start many pages ask at once: one of them reads, the others find it in memory.
        let _turn = self.0.reading.lock().await;
        if let Some(spot) = self.spots().get(&key) {
            return Ok(spot.picture.clone());
        }
        let picture = Arc::new(self.remembered(key).await?);
        let mut spots = self.spots();
        Ok(spots.entry(key).or_insert_with(|| Spot::new(picture)).picture.clone())
    }

    async fn remembered(&self, key: QueueKey) -> Result<Picture, StoreError> {
        let mut db = self.0.store.read().await?;
        let since = self.0.clock.now().plus(-RECENT);
        let rows =
            store::jobs::list_current(&mut db, key.person, key.cluster, since, MOST_JOBS).await?;
        let queue = store::queues::get(&mut db, key.person, key.cluster).await?;
        let records = rows.into_iter().map(|row| Arc::new(super::Record::of(row)));
        Ok(Picture {
            records: records.map(|record| (record.job.id, record)).collect(),
            seen: queue.seen_at(),
            history_from: queue.history().map(|(from, _)| from),
            standing: Arc::new(serde_json::from_str(&queue.standing).unwrap_or_default()),
            ..Picture::default()
        })
    }

    /// Someone looks at a queue now: it is kept fresh, and refreshed at once if it is old.
    pub async fn look(&self, key: QueueKey, at_group: bool) -> Result<Arc<Picture>, StoreError> {
        let picture = self.picture(key).await?;
        let mut spots = self.spots();
        if let Some(spot) = spots.get_mut(&key) {
            let now = Instant::now();
            let was_looked_at = spot.is_looked_at(now);
            spot.looked = Some(now);
            if at_group {
                let wants_group =
                    picture.group.is_none() || !recent(spot.looked_at_group, now, LOOKS_FOR);
                spot.looked_at_group = Some(now);
                if wants_group && spot.failures == 0 {
                    spot.due = spot.due.min(now);
                }
            }
            if !was_looked_at && spot.failures == 0 {
                spot.due = spot.due.min(spot.asked.map_or(now, |asked| asked + spot.every));
            }
        }
        Ok(picture)
    }

    /// Someone wants it fresh: soon, but not again and again. False if it was asked a moment ago.
    pub async fn refresh_soon(&self, key: QueueKey) -> Result<bool, StoreError> {
        self.look(key, false).await?;
        let now = Instant::now();
        let mut spots = self.spots();
        let Some(spot) = spots.get_mut(&key) else { return Ok(false) };
        let again_at = spot.asked.map_or(now, |asked| asked + ASK_AGAIN_AFTER);
        spot.due = spot.due.min(again_at);
        Ok(again_at <= now)
    }

    /// Something was done that changes the queue: looks again after a moment.
    pub fn stir(&self, key: QueueKey) {
        if let Some(spot) = self.spots().get_mut(&key) {
            spot.due = spot.due.min(Instant::now() + self.0.pace.after_action);
            spot.failures = 0;
        }
    }

    /// Someone wants to see older jobs: the next look asks for a month more.
    pub fn look_back(&self, key: QueueKey) {
        if let Some(spot) = self.spots().get_mut(&key) {
            spot.looks_back = true;
            spot.due = spot.due.min(Instant::now());
        }
    }

    /// Keeps pictures fresh until the portal stops.
    pub async fn keep(
        self,
        stop: tokio_util::sync::CancellationToken,
        tasks: tokio_util::task::TaskTracker,
    ) {
        if !self.0.pace.is_on {
            return;
        }
        let mut lines = self.0.lines.subscribe();
        let mut ticks = tokio::time::interval(self.0.pace.tick);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                () = stop.cancelled() => return,
                _ = ticks.tick() => {}
                changed = lines.recv() => {
                    if let Ok(line) = changed && line.role == ConnectionRole::Login {
                        self.line_changed(QueueKey { person: line.person, cluster: line.cluster }).await;
                    }
                }
            }
            for key in self.due() {
                let this = self.clone();
                let stop = stop.clone();
                tasks.spawn(async move {
                    tokio::select! {
                        () = this.refresh(key) => {}
                        () = stop.cancelled() => {}
                    }
                });
            }
        }
    }

    /// A connection came or went: a new one is looked at soon, and pages say so at once.
    async fn line_changed(&self, key: QueueKey) {
        let is_up = self.0.lines.connection(key.line()).is_ok();
        if self.picture(key).await.is_err() {
            return;
        }
        let mut spots = self.spots();
        let Some(spot) = spots.get_mut(&key) else { return };
        let was_down =
            matches!(spot.picture.trouble, Some(Trouble::NotConnected | Trouble::Stopped))
                || spot.asked.is_none();
        if is_up && was_down {
            spot.due = Instant::now();
            spot.failures = 0;
        }
        if !is_up {
            let mut picture = Picture::clone(&spot.picture);
            picture.trouble = Some(Trouble::NotConnected);
            picture.version += 1;
            spot.picture = Arc::new(picture);
        }
        drop(spots);
        self.tell(key);
    }

    /// Queues whose time has come, marked as busy; those that nobody needs are forgotten.
    fn due(&self) -> Vec<QueueKey> {
        let now = Instant::now();
        let standing = self.0.lines.connected_keys();
        let mut spots = self.spots();
        spots.retain(|key, spot| {
            spot.busy || standing.contains(&key.line()) || recent(spot.looked, now, KEPT_FOR)
        });
        let mut due = Vec::new();
        for line in standing.into_iter().filter(|line| line.role == ConnectionRole::Login) {
            let key = QueueKey { person: line.person, cluster: line.cluster };
            match spots.get_mut(&key) {
                Some(spot) if !spot.busy && spot.due <= now => {
                    spot.busy = true;
                    due.push(key);
                }
                Some(_) => {}
                // Not known yet: read from the database by the refresh.
                None => due.push(key),
            }
        }
        due
    }

    async fn refresh(&self, key: QueueKey) {
        if self.picture(key).await.is_err() {
            return;
        }
        if let Some(spot) = self.spots().get_mut(&key) {
            spot.busy = true;
            spot.asked = Some(Instant::now());
        }
        let worked = self.look_once(key).await;
        let mut spots = self.spots();
        if let Some(spot) = spots.get_mut(&key) {
            let now = Instant::now();
            spot.busy = false;
            spot.failures = if worked { 0 } else { spot.failures.saturating_add(1) };
            let pause = if worked {
                self.0.pace.next_pause(spot.every, spot.is_looked_at(now), spot.picture.has_open())
            } else {
                (spot.every * 2_u32.saturating_pow(spot.failures.min(6))).min(LONGEST_PAUSE)
            };
            spot.due = spot.asked.unwrap_or(now) + pause;
            if std::mem::take(&mut spot.hurry) {
                spot.due = spot.due.min(now + self.0.pace.after_action);
            }
        }
    }

    pub(super) fn spots(&self) -> MutexGuard<'_, HashMap<QueueKey, Spot>> {
        self.0.spots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tell(&self, key: QueueKey) {
        // Nobody may be looking.
        let _ = self.0.changes.send(key);
    }
}

impl Spot {
    fn new(picture: Arc<Picture>) -> Self {
        Self {
            picture,
            busy: false,
            due: Instant::now(),
            asked: None,
            failures: 0,
            every: Duration::from_secs(30),
            looked: None,
            looked_at_group: None,
            missed: HashMap::new(),
            vanished: HashMap::new(),
            ranks_asked: None,
            standing_asked: None,
            history_asked: None,
            looks_back: false,
            hurry: false,
        }
    }

    pub(super) fn is_looked_at(&self, now: Instant) -> bool {
        recent(self.looked, now, LOOKS_FOR)
    }

    pub(super) fn is_group_looked_at(&self, now: Instant) -> bool {
        recent(self.looked_at_group, now, LOOKS_FOR)
    }
}

pub(super) fn recent(at: Option<Instant>, now: Instant, within: Duration) -> bool {
    at.is_some_and(|at| now.saturating_duration_since(at) < within)
}
