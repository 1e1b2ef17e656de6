//! Maintains connections: adopts them after a restart, reopens those that need no person, and closes those that
//! should not be open.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use super::cluster_profile::ClusterProfile;
use super::connection_pool::{
    ConnectionPool, ConnectionStatus, OpenConnection, is_connection_folder, parse_folder_name,
};
use super::discovery;
use crate::auth::SessionsEndedSignal;
use crate::auth::activity::Actor;
use crate::domain::ConnectionRole;
use crate::entropy;
use crate::ssh::login::LoginAttendance;
use crate::ssh::route::ConnectionFolder;
use crate::ssh::{ControlMaster, RemoteCommandMode, SshLoginError, control_master};
use crate::store::connections::{ConnectionKey, ConnectionProblem};
use crate::store::{self, StoreError};

/// How often we check which connections should be open.
const SWEEP_INTERVAL: Duration = Duration::from_secs(15);
/// Seconds before the second unattended attempt; the pause triples each time, up to half an hour.
const FIRST_RETRY_PAUSE_S: i64 = 20;
const MAX_RETRY_PAUSE_S: i64 = 1800;

impl ConnectionPool {
    /// Adopts the control masters of the previous run and cleans up after dead ones.
    pub async fn adopt_masters(&self) -> Result<usize, StoreError> {
        let mut db = self.0.core.store.read().await?;
        for row in store::clusters::list(&mut db).await? {
            self.set_alarm(row.id, row.alarm_at().is_some());
        }
        drop(db);
        let mut work = tokio::task::JoinSet::new();
        let folders = std::fs::read_dir(self.0.core.config.run_dir()).into_iter().flatten().flatten();
        for name in folders.filter_map(|entry| entry.file_name().into_string().ok()) {
            let this = self.clone();
            work.spawn(async move { this.adopt_master(&name).await });
        }
        let adopted = work.join_all().await.into_iter().filter(|adopted| *adopted).count();
        if adopted > 0 {
            tracing::info!(connections = adopted, "Took over the connections of the previous run");
        }
        Ok(adopted)
    }

    async fn adopt_master(&self, name: &str) -> bool {
        if !is_connection_folder(name) {
            tracing::warn!(name, "Ignored an unknown entry in the run folder");
            return false;
        }
        let folder = ConnectionFolder::new(&self.0.core.config.run_dir(), name);
        let known = match parse_folder_name(name) {
            Some(key) => self.find_wanted(key).await.ok().flatten().map(|found| (key, found)),
            None => None,
        };
        if let Some((key, (connection, cluster))) = known
            && let Some(master) = ControlMaster::find(&folder).await
        {
            let dialect = if key.role == ConnectionRole::Automation {
                RemoteCommandMode::Automation
            } else {
                let facts = self.0.accounts.discovered(&connection).unwrap_or_default();
                discovery::dialect_for(&facts)
            };
            let up = cluster.new_connection(master, dialect);
            let since = connection.connected_at.unwrap_or_else(|| self.0.core.clock.now());
            let status = ConnectionStatus::Up(OpenConnection { connection: up.clone(), since, notices: String::new() });
            self.entries().entry(key).or_default().status = status;
            self.watch_end(key, up);
            self.notify(key);
            return true;
        }
        control_master::close_stale_master(&folder).await;
        false
    }

    /// The row of a connection that should stay open: its owner's account is active and the cluster is in use.
    async fn find_wanted(
        &self,
        key: ConnectionKey,
    ) -> Result<Option<(store::connections::StoredConnection, Arc<ClusterProfile>)>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let connections = store::connections::list_wanted(&mut db).await?;
        let Some(connection) = connections.into_iter().find(|connection| connection.key() == key) else {
            return Ok(None);
        };
        let Some(row) = store::clusters::get(&mut db, key.cluster).await? else { return Ok(None) };
        Ok(Some((connection, self.0.accounts.profile(&mut db, row).await?)))
    }

    /// Maintains connections until the portal stops.
    pub async fn run(self) {
        let mut ended = self.0.core.auth.subscribe_sessions_ended();
        let mut ticks = tokio::time::interval(SWEEP_INTERVAL);
        loop {
            tokio::select! {
                () = self.0.core.stop.cancelled() => return,
                _ = ticks.tick() => {}
                event = ended.recv() => match event {
                    // Signing out in a single browser closes nothing.
                    Ok(SessionsEndedSignal::Session(_) | SessionsEndedSignal::Person(_, Some(_))) => continue,
                    // Running attempts end too, and no row records them.
                    Ok(SessionsEndedSignal::Person(person, None)) => self.close_person(person).await,
                    // Too many events were missed: the database decides.
                    Err(_) => {}
                },
            }
            if let Err(error) = self.sweep().await {
                tracing::warn!(%error, "Could not check connections; will retry");
            }
        }
    }

    /// Closes connections that should not be open, and reopens those that should be and need no person.
    pub async fn sweep(&self) -> Result<(), StoreError> {
        if let Err(error) = self.0.core.auth.close_unused_keychains().await {
            tracing::warn!(%error, "Could not check the keychains of people who signed out");
        }
        let mut db = self.0.core.store.read().await?;
        let wanted = store::connections::list_wanted(&mut db).await?;
        let keys: HashSet<ConnectionKey> = wanted.iter().map(store::connections::StoredConnection::key).collect();
        let mut clusters = Vec::new();
        for row in store::clusters::list(&mut db).await? {
            clusters.push(self.0.accounts.profile(&mut db, row).await?);
        }
        drop(db);
        for key in self.filter_keys(|key| !keys.contains(key)) {
            // Checked again: it may have been opened after the list was read.
            if self.is_connected(key) && self.find_wanted(key).await?.is_none() {
                self.close(key).await;
            }
        }
        for connection in wanted {
            let Some(profile) = clusters.iter().find(|profile| profile.row.id == connection.cluster_id) else {
                continue;
            };
            self.maintain(&connection, profile).await?;
        }
        Ok(())
    }

    async fn maintain(
        &self,
        connection: &store::connections::StoredConnection,
        profile: &ClusterProfile,
    ) -> Result<(), StoreError> {
        let key = connection.key();
        if let Some(idle) = self.idle_time(key) {
            let minutes = u64::from(profile.site.limits.idle_minutes);
            if idle >= Duration::from_secs(minutes * 60) {
                let words = format!("Closed after {minutes} minutes of inactivity, to reduce the load on the cluster.");
                self.save_problem(key, &ConnectionProblem::new("idle", words), false).await?;
                self.close(key).await;
            }
            return Ok(());
        }
        if connection.has_prompts || !profile.is_open() || !self.can_retry(key) {
            return Ok(());
        }
        if let Err(error) = self.connect(key, portal_actor(), LoginAttendance::Unattended).await {
            tracing::debug!(%error, "A connection could not be reopened automatically");
        }
        Ok(())
    }

    fn is_connected(&self, key: ConnectionKey) -> bool {
        matches!(self.entries().get(&key).map(|entry| &entry.status), Some(ConnectionStatus::Up(_)))
    }

    /// How long an open connection has not been used.
    fn idle_time(&self, key: ConnectionKey) -> Option<Duration> {
        match self.entries().get(&key).map(|entry| &entry.status) {
            Some(ConnectionStatus::Up(up)) => {
                up.connection.raise_session_limit();
                Some(up.stats().idle)
            }
            _ => None,
        }
    }

    fn can_retry(&self, key: ConnectionKey) -> bool {
        let now = self.0.core.clock.now();
        self.entries().get(&key).is_none_or(|entry| {
            matches!(entry.status, ConnectionStatus::Down) && entry.backoff.not_before.is_none_or(|until| now >= until)
        })
    }

    /// After a failure the next unattended attempt waits, longer each time, with a random part so that not all start
    /// at once.
    pub(super) fn back_off(&self, key: ConnectionKey, failure: &SshLoginError) {
        let now = self.0.core.clock.now();
        let mut entries = self.entries();
        let patience = &mut entries.entry(key).or_default().backoff;
        patience.failures = patience.failures.saturating_add(1);
        let pause = FIRST_RETRY_PAUSE_S
            .saturating_mul(3_i64.saturating_pow(patience.failures.min(10) - 1))
            .min(MAX_RETRY_PAUSE_S);
        let jitter = entropy::random_bytes::<1>().map_or(0, |[byte]| i64::from(byte) * pause / 1024);
        let pause = if failure.is_transient() { pause + jitter } else { MAX_RETRY_PAUSE_S };
        patience.not_before = Some(now.plus(pause));
    }
}

/// The portal itself, for the activity log.
fn portal_actor() -> Actor {
    Actor { id: None, name: "portal".into(), address: String::new() }
}
