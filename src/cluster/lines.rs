//! The connections of all people: one per person and host, opened once, kept, closed when they should be.

use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Semaphore, broadcast};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::attempt::{Attempt, Progress, Purpose};
use crate::auth::activity::{About, Actor, Event, record};
use crate::auth::{Auth, AuthError};
use crate::clock::{Clock, UnixTime};
use crate::domain::{ClusterId, PersonId};
use crate::ssh::route::ConnectionFolder;
use crate::ssh::{ClusterConnection, ConnectionStats, RunCommandError};
use crate::store::lines::LineKey;
use crate::store::{self, Store, StoreError};

/// Sign-ins at one cluster at the same time: servers count those that wait for a code and turn the next ones away.
const SIGN_INS_AT_ONCE: usize = 5;

/// How long a try may take to end.
const GIVING_UP: Duration = Duration::from_secs(3);

/// Why a try was not even begun.
#[derive(Debug, thiserror::Error)]
pub enum NotBegun {
    /// The person has not told their user name there.
    #[error("no user name")]
    NoUser,
    /// No key opens this cluster for them.
    #[error("no key")]
    NoKey,
    /// The host key is in doubt, or the cluster is out of use.
    #[error("closed")]
    Closed,
    /// Enough tries in the last hour.
    #[error("too many tries")]
    TooOften,
    /// The person's account or keychain.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// How a connection is.
#[derive(Debug, Clone)]
pub enum Status {
    /// Not there.
    Down,
    /// On its way.
    Opening(Arc<Attempt>),
    /// There.
    Up(UpStatus),
}

/// A connection that stands, in figures.
#[derive(Debug, Clone)]
pub struct UpStatus {
    /// Since when.
    pub since: UnixTime,
    /// What went over it.
    pub figures: ConnectionStats,
    /// Sessions that the server allows at once, as far as known.
    pub sessions: usize,
    /// What the server said when it was opened.
    pub notices: String,
}

pub(super) struct Up {
    pub(super) line: Arc<ClusterConnection>,
    pub(super) since: UnixTime,
    pub(super) notices: String,
}

pub(super) enum State {
    Down,
    Opening(Arc<Attempt>),
    Up(Up),
}

/// When an unattended try may be made next.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Patience {
    pub(super) failures: u32,
    pub(super) not_before: Option<UnixTime>,
}

pub(super) struct Spot {
    pub(super) state: State,
    /// A test of a new key goes on beside the connection.
    pub(super) test: Option<Arc<Attempt>>,
    /// How the last such test ended: well, or why not.
    pub(super) tested: Option<Result<(), String>>,
    /// Held while the connection's folder is made or removed: what closes must be over before what opens begins.
    pub(super) folder: Arc<tokio::sync::Mutex<()>>,
    pub(super) patience: Patience,
}

/// All connections.
#[derive(Clone)]
pub struct Lines(pub(super) Arc<Inner>);

pub(super) struct Inner {
    pub(super) auth: Auth,
    pub(super) store: Store,
    pub(super) clock: Clock,
    pub(super) run: PathBuf,
    pub(super) program: PathBuf,
    pub(super) stop: CancellationToken,
    pub(super) tasks: TaskTracker,
    spots: Mutex<HashMap<LineKey, Spot>>,
    turns: Mutex<HashMap<ClusterId, Arc<Semaphore>>>,
    alarms: Mutex<HashSet<ClusterId>>,
    changes: broadcast::Sender<LineKey>,
}

/// What the connections need of the rest.
pub struct Parts {
    /// Accounts and keys.
    pub auth: Auth,
    /// The database.
    pub store: Store,
    /// The time.
    pub clock: Clock,
    /// Where sockets live.
    pub run: PathBuf,
    /// This program, for questions.
    pub program: PathBuf,
    /// Ends the background work.
    pub stop: CancellationToken,
    /// Background work, awaited at the end.
    pub tasks: TaskTracker,
}

impl Lines {
    /// No connections yet; [`Lines::adopt`] finds those of the run before.
    pub fn new(parts: Parts) -> Self {
        Self(Arc::new(Inner {
            auth: parts.auth,
            store: parts.store,
            clock: parts.clock,
            run: parts.run,
            program: parts.program,
            stop: parts.stop,
            tasks: parts.tasks,
            spots: Mutex::default(),
            turns: Mutex::default(),
            alarms: Mutex::default(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// How a connection is.
    pub fn status(&self, key: LineKey) -> Status {
        match self.spots().get(&key).map(|spot| &spot.state) {
            None | Some(State::Down) => Status::Down,
            Some(State::Opening(attempt)) => Status::Opening(attempt.clone()),
            Some(State::Up(up)) => Status::Up(UpStatus {
                since: up.since,
                figures: up.line.call_budget().stats(Instant::now()),
                sessions: up.line.session_limit(),
                notices: up.notices.clone(),
            }),
        }
    }

    /// The test of a new key that goes on, if any.
    pub fn test_of(&self, key: LineKey) -> Option<Arc<Attempt>> {
        self.spots().get(&key).and_then(|spot| spot.test.clone())
    }

    /// How the last test of a new key ended: well, or why not. Nothing if there was none.
    pub fn tested(&self, key: LineKey) -> Option<Result<(), String>> {
        self.spots().get(&key).and_then(|spot| spot.tested.clone())
    }

    /// The connection itself, to run commands on. Not while the cluster's host key is in doubt.
    pub fn line(&self, key: LineKey) -> Result<Arc<ClusterConnection>, RunCommandError> {
        if self.is_alarmed(key.cluster) {
            return Err(RunCommandError::HostKeyInDoubt);
        }
        match self.spots().get(&key).map(|spot| &spot.state) {
            Some(State::Up(up)) => Ok(up.line.clone()),
            _ => Err(RunCommandError::NotConnected),
        }
    }

    /// Tells whose connection has changed.
    pub fn watch(&self) -> broadcast::Receiver<LineKey> {
        self.0.changes.subscribe()
    }

    /// The connections that stand.
    pub fn standing(&self) -> HashSet<LineKey> {
        let spots = self.spots();
        let up = spots.iter().filter(|(_, spot)| matches!(spot.state, State::Up(_)));
        up.map(|(key, _)| *key).collect()
    }

    /// How many connections stand.
    pub fn count_up(&self) -> usize {
        self.spots().values().filter(|spot| matches!(spot.state, State::Up(_))).count()
    }

    /// Closes a connection because its owner wants it so, or gives up the try to open it.
    pub async fn disconnect(
        &self,
        key: LineKey,
        actor: &Actor,
        cluster: &str,
    ) -> Result<(), StoreError> {
        let mut tx = self.0.store.write().await?;
        store::lines::note_problem(&mut tx, key, "", false).await?;
        let about = About { person: Some(key.person), subject: cluster, ..About::default() };
        record(&mut tx, actor, Event::Disconnected, about, self.0.clock.now()).await?;
        store::commit(tx).await?;
        self.close(key).await;
        Ok(())
    }

    /// Closes a connection whose way has changed.
    pub async fn close_line(&self, key: LineKey) {
        self.close(key).await;
    }

    /// Closes a connection.
    pub(super) async fn close(&self, key: LineKey) {
        let taken = self.spots().get_mut(&key).map(|spot| {
            if let Some(test) = spot.test.take() {
                test.give_up();
            }
            (std::mem::replace(&mut spot.state, State::Down), spot.folder.clone())
        });
        match taken {
            Some((State::Up(up), folder)) => {
                let _held = folder.lock().await;
                up.line.master().close().await;
            }
            Some((State::Opening(attempt), _)) => attempt.give_up(),
            None | Some((State::Down, _)) => {}
        }
        self.tell(key);
    }

    /// Gives up a try, or the test of a new key, and waits until it is over.
    pub async fn give_up(&self, key: LineKey, purpose: Purpose) {
        let attempt = match self.spots().get(&key) {
            Some(Spot { test: Some(test), .. }) if purpose == Purpose::TestNewKey => test.clone(),
            Some(Spot { state: State::Opening(attempt), .. }) if purpose == Purpose::Connect => {
                attempt.clone()
            }
            _ => return,
        };
        attempt.give_up();
        let mut progress = attempt.watch();
        let over = progress.wait_for(|progress| matches!(progress, Progress::Over));
        let _ = tokio::time::timeout(GIVING_UP, over).await;
    }

    /// Closes every connection to a cluster.
    pub async fn close_cluster(&self, cluster: ClusterId) {
        for key in self.keys_where(|key| key.cluster == cluster) {
            self.close(key).await;
        }
    }

    /// Closes every connection of a person.
    pub(super) async fn close_person(&self, person: PersonId) {
        for key in self.keys_where(|key| key.person == person) {
            self.close(key).await;
        }
    }

    /// Notes that a cluster's host key is in doubt, or no longer: nothing is sent there meanwhile.
    pub fn set_alarm(&self, cluster: ClusterId, on: bool) {
        let mut alarms = self.0.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        if on {
            alarms.insert(cluster);
        } else {
            alarms.remove(&cluster);
        }
        drop(alarms);
        for key in self.keys_where(|key| key.cluster == cluster) {
            self.tell(key);
        }
    }

    pub(super) fn is_alarmed(&self, cluster: ClusterId) -> bool {
        self.0.alarms.lock().unwrap_or_else(PoisonError::into_inner).contains(&cluster)
    }

    pub(super) fn keys_where(&self, wanted: impl Fn(&LineKey) -> bool) -> Vec<LineKey> {
        self.spots().keys().copied().filter(wanted).collect()
    }

    pub(super) fn spots(&self) -> MutexGuard<'_, HashMap<LineKey, Spot>> {
        self.0.spots.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whose turn it is to sign in at a cluster.
    pub(super) fn turns(&self, cluster: ClusterId) -> Arc<Semaphore> {
        let mut turns = self.0.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(cluster).or_insert_with(|| Arc::new(Semaphore::new(SIGN_INS_AT_ONCE))).clone()
    }

    pub(super) fn tell(&self, key: LineKey) {
        metrics::gauge!("portolan_cluster_connections")
            .set(u32::try_from(self.count_up()).unwrap_or(u32::MAX));
        // Nobody may be looking.
        let _ = self.0.changes.send(key);
    }

    pub(super) fn folder(&self, key: LineKey, purpose: Purpose) -> ConnectionFolder {
        ConnectionFolder::new(&self.0.run, &folder_name(key, purpose))
    }
}

impl Default for Spot {
    fn default() -> Self {
        Self {
            state: State::Down,
            test: None,
            tested: None,
            folder: Arc::default(),
            patience: Patience::default(),
        }
    }
}

fn folder_name(key: LineKey, purpose: Purpose) -> String {
    let test = if purpose == Purpose::TestNewKey { "-test" } else { "" };
    format!("{}-{}-{}{test}", key.person, key.cluster, key.role.as_str())
}

/// Whose connection a folder is; none for those of tests, which nobody keeps.
pub(super) fn key_of_folder(name: &str) -> Option<LineKey> {
    let mut parts = name.split('-');
    let key = LineKey {
        person: PersonId(parts.next()?.parse().ok()?),
        cluster: ClusterId(parts.next()?.parse().ok()?),
        role: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(key)
}

/// Whether a folder has a name that we give: only such are ever removed.
pub(super) fn is_of_ours(name: &str) -> bool {
    key_of_folder(name.strip_suffix("-test").unwrap_or(name)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::LineRole;

    #[test]
    fn folders_tell_whose_they_are() {
        let key = LineKey { person: PersonId(3), cluster: ClusterId(7), role: LineRole::Robot };
        assert_eq!(key_of_folder(&folder_name(key, Purpose::Connect)), Some(key));
        assert_eq!(key_of_folder(&folder_name(key, Purpose::TestNewKey)), None);
        for other in ["", "x", "1-2", "1-2-x", "..", "1-2-login-3"] {
            assert_eq!(key_of_folder(other), None, "{other}");
        }
    }
}
