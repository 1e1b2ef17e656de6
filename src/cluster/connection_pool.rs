//! Everyone's connections: one per person and host, opened once, kept, and closed when necessary.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tokio::sync::{Semaphore, broadcast};

use super::cluster_account::ClusterAccountCache;
use super::connect_attempt::{ConnectAttempt, ConnectPurpose, ConnectState};
use crate::auth::AuthError;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::clock::UnixTime;
use crate::core::Core;
use crate::domain::{ClusterId, PersonId};
use crate::ssh::route::ConnectionFolder;
use crate::ssh::{ClusterConnection, ConnectionStats, RunCommandError};
use crate::store::connections::{ConnectionKey, ConnectionProblem};
use crate::store::{self, StoreError};

/// Parallel logins at one cluster: servers count those that wait for a code and turn further ones away.
const MAX_PARALLEL_LOGINS: usize = 5;

/// How long a cancelled attempt may take to end.
const CANCEL_TIMEOUT: Duration = Duration::from_secs(3);

/// Why an attempt was not started.
#[derive(Debug, thiserror::Error)]
pub enum ConnectStartError {
    /// The person has not entered their user name there.
    #[error("no user name")]
    NoRemoteUser,
    /// The person has no key for this cluster.
    #[error("no SSH key")]
    NoKey,
    /// The host key has changed, or the cluster is retired.
    #[error("closed")]
    ClusterClosed,
    /// The hourly limit is reached.
    #[error("too many attempts")]
    TooManyAttempts,
    /// A problem with the person's account or keychain.
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

#[derive(Debug, Clone, Default)]
pub enum ConnectionStatus {
    #[default]
    Down,
    Connecting(Arc<ConnectAttempt>),
    Up(OpenConnection),
}

/// An open connection. Run commands through [`ConnectionPool::connection`], which respects host key alarms.
#[derive(Debug, Clone)]
pub struct OpenConnection {
    pub(super) connection: Arc<ClusterConnection>,
    pub since: UnixTime,
    /// What the server printed during login.
    pub notices: String,
}

impl OpenConnection {
    pub fn stats(&self) -> ConnectionStats {
        self.connection.call_budget().stats(Instant::now())
    }
}

impl ConnectionStatus {
    /// Whether this very attempt is opening the connection.
    pub(super) fn is_attempt(&self, attempt: &Arc<ConnectAttempt>) -> bool {
        matches!(self, Self::Connecting(own) if Arc::ptr_eq(own, attempt))
    }
}

/// When the next unattended attempt may start.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct RetryBackoff {
    pub(super) failures: u32,
    pub(super) not_before: Option<UnixTime>,
}

#[derive(Default)]
pub(super) struct PoolEntry {
    pub(super) status: ConnectionStatus,
    /// A test of a new key that runs next to the connection.
    pub(super) key_test: Option<Arc<ConnectAttempt>>,
    /// How the last key test ended: success, or why it failed.
    pub(super) last_key_test: Option<Result<(), String>>,
    /// Held while the connection's folder is created or removed: closing must finish before opening starts.
    pub(super) folder_lock: Arc<tokio::sync::Mutex<()>>,
    pub(super) backoff: RetryBackoff,
}

#[derive(Clone)]
pub struct ConnectionPool(pub(super) Arc<ConnectionPoolInner>);

pub(super) struct ConnectionPoolInner {
    pub(super) core: Core,
    pub(super) accounts: ClusterAccountCache,
    entries: Mutex<HashMap<ConnectionKey, PoolEntry>>,
    login_permits: Mutex<HashMap<ClusterId, Arc<Semaphore>>>,
    alarms: Mutex<HashSet<ClusterId>>,
    changes: broadcast::Sender<ConnectionKey>,
}

impl ConnectionPool {
    /// An empty pool; [`ConnectionPool::adopt_masters`] finds the connections of the previous run.
    pub fn new(core: Core) -> Self {
        Self(Arc::new(ConnectionPoolInner {
            accounts: ClusterAccountCache::new(core.store.clone()),
            core,
            entries: Mutex::default(),
            login_permits: Mutex::default(),
            alarms: Mutex::default(),
            changes: broadcast::channel(256).0,
        }))
    }

    pub fn accounts(&self) -> &ClusterAccountCache {
        &self.0.accounts
    }

    pub fn status(&self, key: ConnectionKey) -> ConnectionStatus {
        self.entries().get(&key).map(|entry| entry.status.clone()).unwrap_or_default()
    }

    /// The running test of a new key, if any.
    pub fn running_key_test(&self, key: ConnectionKey) -> Option<Arc<ConnectAttempt>> {
        self.entries().get(&key).and_then(|entry| entry.key_test.clone())
    }

    /// How the last key test ended: success, or why it failed. `None` if there was none.
    pub fn last_key_test(&self, key: ConnectionKey) -> Option<Result<(), String>> {
        self.entries().get(&key).and_then(|entry| entry.last_key_test.clone())
    }

    /// The connection itself, to run commands on. Not available while the cluster has a host key alarm.
    pub fn connection(&self, key: ConnectionKey) -> Result<Arc<ClusterConnection>, RunCommandError> {
        if self.is_alarmed(key.cluster) {
            return Err(RunCommandError::HostKeyInDoubt);
        }
        match self.entries().get(&key).map(|entry| &entry.status) {
            Some(ConnectionStatus::Up(up)) => Ok(up.connection.clone()),
            _ => Err(RunCommandError::NotConnected),
        }
    }

    /// Receives the key of every connection whose status changes.
    pub fn subscribe(&self) -> broadcast::Receiver<ConnectionKey> {
        self.0.changes.subscribe()
    }

    /// The keys of all open connections.
    pub fn connected_keys(&self) -> HashSet<ConnectionKey> {
        let entries = self.entries();
        let up = entries.iter().filter(|(_, entry)| matches!(entry.status, ConnectionStatus::Up(_)));
        up.map(|(key, _)| *key).collect()
    }

    pub fn count_connected(&self) -> usize {
        self.entries().values().filter(|entry| matches!(entry.status, ConnectionStatus::Up(_))).count()
    }

    /// Closes a connection at its owner's request, or cancels the attempt to open it.
    pub async fn disconnect(&self, key: ConnectionKey, actor: &Actor, cluster: &str) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        store::connections::set_problem(&mut tx, key, &ConnectionProblem::default(), false).await?;
        let about = ActivityDetails { person: Some(key.person), subject: cluster, ..ActivityDetails::default() };
        record(&mut tx, actor, ActivityEventKind::Disconnected, about, self.0.core.clock.now()).await?;
        store::commit(tx).await?;
        self.close(key).await;
        Ok(())
    }

    /// Closes a connection whose route has changed.
    pub async fn close_connection(&self, key: ConnectionKey) {
        self.close(key).await;
    }

    pub(super) async fn close(&self, key: ConnectionKey) {
        let taken = self.entries().get_mut(&key).map(|entry| {
            if let Some(test) = entry.key_test.take() {
                test.cancel();
            }
            (std::mem::take(&mut entry.status), entry.folder_lock.clone())
        });
        match taken {
            Some((ConnectionStatus::Up(up), folder)) => {
                let _held = folder.lock().await;
                up.connection.master().close().await;
            }
            Some((ConnectionStatus::Connecting(attempt), _)) => attempt.cancel(),
            None | Some((ConnectionStatus::Down, _)) => {}
        }
        self.notify(key);
    }

    /// The running connect attempt or key test.
    fn find_attempt(&self, key: ConnectionKey, purpose: ConnectPurpose) -> Option<Arc<ConnectAttempt>> {
        match (purpose, self.status(key)) {
            (ConnectPurpose::TestNewKey, _) => self.running_key_test(key),
            (ConnectPurpose::Connect, ConnectionStatus::Connecting(attempt)) => Some(attempt),
            _ => None,
        }
    }

    /// Passes an answer on to the server. Does nothing if the question is no longer open.
    pub fn answer_prompt(&self, key: ConnectionKey, purpose: ConnectPurpose, number: u32, answer: SecretString) {
        if self.find_attempt(key, purpose).is_some_and(|attempt| attempt.answer(number, answer)) {
            self.notify(key);
        }
    }

    /// Cancels a connect attempt or key test, and waits until it has ended.
    pub async fn cancel_attempt(&self, key: ConnectionKey, purpose: ConnectPurpose) {
        let Some(attempt) = self.find_attempt(key, purpose) else { return };
        attempt.cancel();
        let mut states = attempt.subscribe();
        let over = states.wait_for(|state| matches!(state, ConnectState::Finished));
        let _ = tokio::time::timeout(CANCEL_TIMEOUT, over).await;
    }

    pub async fn close_cluster(&self, cluster: ClusterId) {
        for key in self.filter_keys(|key| key.cluster == cluster) {
            self.close(key).await;
        }
    }

    pub(super) async fn close_person(&self, person: PersonId) {
        for key in self.filter_keys(|key| key.person == person) {
            self.close(key).await;
        }
    }

    /// Turns a cluster's host key alarm on or off: nothing is sent there while it is on.
    pub fn set_alarm(&self, cluster: ClusterId, on: bool) {
        let mut alarms = self.0.alarms.lock().unwrap_or_else(PoisonError::into_inner);
        if on {
            alarms.insert(cluster);
        } else {
            alarms.remove(&cluster);
        }
        drop(alarms);
        for key in self.filter_keys(|key| key.cluster == cluster) {
            self.notify(key);
        }
    }

    pub(super) fn is_alarmed(&self, cluster: ClusterId) -> bool {
        self.0.alarms.lock().unwrap_or_else(PoisonError::into_inner).contains(&cluster)
    }

    pub(super) fn filter_keys(&self, wanted: impl Fn(&ConnectionKey) -> bool) -> Vec<ConnectionKey> {
        self.entries().keys().copied().filter(wanted).collect()
    }

    pub(super) fn entries(&self) -> MutexGuard<'_, HashMap<ConnectionKey, PoolEntry>> {
        self.0.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The permits for parallel logins at a cluster.
    pub(super) fn login_permits(&self, cluster: ClusterId) -> Arc<Semaphore> {
        let mut permits = self.0.login_permits.lock().unwrap_or_else(PoisonError::into_inner);
        permits.entry(cluster).or_insert_with(|| Arc::new(Semaphore::new(MAX_PARALLEL_LOGINS))).clone()
    }

    pub(super) fn notify(&self, key: ConnectionKey) {
        metrics::gauge!("portolan_cluster_connections").set(u32::try_from(self.count_connected()).unwrap_or(u32::MAX));
        // There may be no subscribers.
        let _ = self.0.changes.send(key);
    }

    pub(super) fn connection_folder(&self, key: ConnectionKey, purpose: ConnectPurpose) -> ConnectionFolder {
        ConnectionFolder::new(&self.0.core.config.run_dir(), &folder_name(key, purpose))
    }
}

fn folder_name(key: ConnectionKey, purpose: ConnectPurpose) -> String {
    let test = if purpose == ConnectPurpose::TestNewKey { "-test" } else { "" };
    format!("{}-{}-{}{test}", key.person, key.cluster, key.role.as_str())
}

/// The connection that a folder belongs to; `None` for folders of key tests, which are not kept.
pub(super) fn parse_folder_name(name: &str) -> Option<ConnectionKey> {
    let mut parts = name.split('-');
    let key = ConnectionKey {
        person: PersonId(parts.next()?.parse().ok()?),
        cluster: ClusterId(parts.next()?.parse().ok()?),
        role: parts.next()?.parse().ok()?,
    };
    parts.next().is_none().then_some(key)
}

/// Whether a folder's name is one of ours: only those are ever removed. `PERSON-CLUSTER-login` or `…-robot`; `-test`
/// follows while a new key is being tried.
pub fn is_connection_folder(name: &str) -> bool {
    parse_folder_name(name.strip_suffix("-test").unwrap_or(name)).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::ConnectionRole;

    #[test]
    fn folders_tell_whose_they_are() {
        let key = ConnectionKey { person: PersonId(3), cluster: ClusterId(7), role: ConnectionRole::Automation };
        assert_eq!(parse_folder_name(&folder_name(key, ConnectPurpose::Connect)), Some(key));
        assert_eq!(parse_folder_name(&folder_name(key, ConnectPurpose::TestNewKey)), None);
        for other in ["", "x", "1-2", "1-2-x", "..", "1-2-login-3"] {
            assert_eq!(parse_folder_name(other), None, "{other}");
        }
    }
}
