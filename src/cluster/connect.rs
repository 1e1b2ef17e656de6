//! Connecting: one attempt at a time per person and host, within limits that a centre would call polite.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::attempt_log::MAX_NOTICES_LEN;
use super::cluster_profile::ClusterProfile;
use super::connect_attempt::{ConnectAttempt, ConnectPurpose, ConnectState};
use super::connection_pool::{ConnectStartError, ConnectionPool, ConnectionStatus, OpenConnection};
use super::discovery;
use crate::auth::activity::Actor;
use crate::auth::ssh_keys::UnsealedKey;
use crate::domain::SshKeyId;
use crate::ssh::keys::PrivateKey;
use crate::ssh::login::{self, CompletedSshLogin, LoginAttendance, SshLoginRequest};
use crate::ssh::route::SshRoute;
use crate::ssh::{ClusterConnection, ConnectError, RemoteCommandMode, SshLoginError};
use crate::store::connections::{ConnectionKey, ConnectionProblem};
use crate::store::{self, StoreError};
use crate::text::clean_text;

/// How long a server usually waits for a login, less a little (OpenSSH's default is 120 s).
const DEFAULT_LOGIN_TIMEOUT: Duration = Duration::from_secs(110);
/// Attempts of one person at one cluster per hour, whatever the reason: more would look like an attack.
const MAX_ATTEMPTS_PER_HOUR: i64 = 20;
/// How many of these may be unattended.
const MAX_UNATTENDED_PER_HOUR: i64 = 6;
const HOUR_S: i64 = 3600;

/// An attempt before it starts.
pub(super) struct ConnectRequest {
    pub(super) key: ConnectionKey,
    pub(super) profile: Arc<ClusterProfile>,
    pub(super) route: SshRoute,
    pub(super) purpose: ConnectPurpose,
    attendance: LoginAttendance,
    pub(super) actor: Actor,
    attempt: Arc<ConnectAttempt>,
}

impl ConnectionPool {
    /// Starts to connect. Does nothing if an attempt is running or the connection is open: two tabs, one attempt.
    pub async fn connect(
        &self,
        key: ConnectionKey,
        actor: Actor,
        attendance: LoginAttendance,
    ) -> Result<(), ConnectStartError> {
        self.start_attempt(key, actor, attendance, ConnectPurpose::Connect).await
    }

    /// Starts to test this person's new key at this cluster, next to the open connection.
    pub async fn test_new_key(&self, key: ConnectionKey, actor: Actor) -> Result<(), ConnectStartError> {
        self.start_attempt(key, actor, LoginAttendance::Attended, ConnectPurpose::TestNewKey).await
    }

    async fn start_attempt(
        &self,
        key: ConnectionKey,
        actor: Actor,
        attendance: LoginAttendance,
        purpose: ConnectPurpose,
    ) -> Result<(), ConnectStartError> {
        let mut db = self.0.core.store.read().await?;
        let connection = store::connections::get(&mut db, key).await?.ok_or(ConnectStartError::NoRemoteUser)?;
        let row = store::clusters::get(&mut db, key.cluster).await?.ok_or(ConnectStartError::ClusterClosed)?;
        let profile = self.0.accounts.profile(&mut db, row).await?;
        let attempts = store::connections::count_attempts(&mut db, key, self.0.core.clock.now().plus(-HOUR_S)).await?;
        drop(db);
        if !profile.is_open() {
            return Err(ConnectStartError::ClusterClosed);
        }
        check_attempt_limit(attempts, &profile, &actor)?;
        let user = connection.remote_user.parse().map_err(|_| ConnectStartError::NoRemoteUser)?;
        let route = profile.route(key.role, user).ok_or(ConnectStartError::ClusterClosed)?;
        let needed = if purpose == ConnectPurpose::TestNewKey { 2 } else { usize::from(profile.site.keys.opens.0) };
        if self.0.core.auth.count_usable_keys(key.person, key.role).await? < needed {
            return Err(ConnectStartError::NoKey);
        }
        let Some(attempt) = self.reserve_attempt(key, purpose) else { return Ok(()) };
        let request = ConnectRequest { key, profile, route, purpose, attendance, actor, attempt };
        let this = self.clone();
        self.0.core.tasks.spawn(async move { this.run_attempt(request).await });
        self.notify(key);
        Ok(())
    }

    /// Reserves the person's only attempt, if none is running.
    fn reserve_attempt(&self, key: ConnectionKey, purpose: ConnectPurpose) -> Option<Arc<ConnectAttempt>> {
        let mut entries = self.entries();
        let entry = entries.entry(key).or_default();
        let attempt = Arc::new(ConnectAttempt::new(purpose));
        match purpose {
            ConnectPurpose::Connect if matches!(entry.status, ConnectionStatus::Down) => {
                entry.status = ConnectionStatus::Connecting(attempt.clone());
            }
            ConnectPurpose::TestNewKey if entry.key_test.is_none() => {
                entry.key_test = Some(attempt.clone());
                entry.last_key_test = None;
            }
            _ => return None,
        }
        Some(attempt)
    }

    async fn run_attempt(&self, request: ConnectRequest) {
        let folder = self.entries().entry(request.key).or_default().folder_lock.clone();
        let _held = match request.purpose {
            ConnectPurpose::Connect => Some(folder.lock_owned().await),
            // A key test has its own folder.
            ConnectPurpose::TestNewKey => None,
        };
        let mut work = std::pin::pin!(self.open_connection(&request));
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            // A stopping portal does not wait for codes; open connections stay open.
            () = self.0.core.stop.cancelled() => {
                request.attempt.cancel();
                work.await
            }
        };
        if request.purpose == ConnectPurpose::TestNewKey {
            let tested = outcome.as_ref().map(|_| ()).map_err(|error| error.failure.to_string());
            self.entries().entry(request.key).or_default().last_key_test = Some(tested);
        }
        let stored = match outcome {
            Ok(up) if request.purpose == ConnectPurpose::Connect => self.insert_connection(&request, up).await,
            Ok(up) => {
                up.connection.master().close().await;
                Ok(())
            }
            Err(error) => self.record_failure(&request, &error).await,
        };
        if let Err(error) = stored {
            tracing::error!(%error, "Could not record the end of a connection attempt");
            self.close(request.key).await;
        }
        request.attempt.set_state(ConnectState::Finished);
        self.clear_attempt(&request);
        self.notify(request.key);
    }

    fn clear_attempt(&self, request: &ConnectRequest) {
        let mut entries = self.entries();
        let entry = entries.entry(request.key).or_default();
        if request.purpose == ConnectPurpose::TestNewKey {
            entry.key_test.take_if(|test| Arc::ptr_eq(test, &request.attempt));
        } else if entry.status.is_attempt(&request.attempt) {
            entry.status = ConnectionStatus::Down;
        }
    }

    async fn open_connection(&self, request: &ConnectRequest) -> Result<OpenConnection, ConnectError> {
        let permits = self.login_permits(request.key.cluster);
        let _permit = tokio::select! {
            permit = self.acquire_login_permit(permits, request) => permit,
            () = request.attempt.cancellation().cancelled() => return Err(SshLoginError::Cancelled.into()),
        };
        if self.is_alarmed(request.key.cluster) {
            return Err(SshLoginError::Cancelled.into());
        }
        let keys = self.load_keys(request).await?;
        let ids: Vec<SshKeyId> = keys.iter().map(|(id, _)| *id).collect();
        let attempt_id = self.record_start(request.key).await?;
        metrics::counter!("portolan_cluster_connection_attempts_total").increment(1);
        request.attempt.set_state(ConnectState::Connecting);
        self.notify(request.key);
        let plan = SshLoginRequest {
            folder: self.connection_folder(request.key, request.purpose),
            route: request.route.clone(),
            keys: keys.into_iter().map(|(_, key)| key).collect(),
            askpass_program: self.0.core.config.program.clone(),
            timeout: request
                .profile
                .site
                .login
                .grace_s
                .map_or(DEFAULT_LOGIN_TIMEOUT, |s| Duration::from_secs(u64::from(s))),
            attendance: request.attendance,
            cancel: request.attempt.cancellation().clone(),
        };
        let (this, key, attempt) = (self.clone(), request.key, request.attempt.clone());
        let on_prompt = move |question| {
            attempt.ask(question);
            this.notify(key);
        };
        // In a separate task, so that not even a panic leaves the attempt hanging.
        let opened = match tokio::spawn(login::log_in(plan, on_prompt)).await {
            Ok(opened) => opened,
            Err(error) => Err(ConnectError::internal(&error)),
        };
        let (outcome, used) = match &opened {
            Ok(opened) => {
                let word = if request.purpose == ConnectPurpose::Connect { "up" } else { "tested" };
                (word, opened.signing_key_index.and_then(|index| ids.get(index).copied()))
            }
            Err(error) => (error.failure.code(), None),
        };
        self.record_end(attempt_id, outcome, used).await?;
        self.finish_login(request, opened?).await
    }

    /// Waits for one of the few login permits of a cluster, and shows that it waits.
    async fn acquire_login_permit(
        &self,
        permits: Arc<Semaphore>,
        request: &ConnectRequest,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(permit) = permits.clone().try_acquire_owned() {
            return Some(permit);
        }
        request.attempt.set_state(ConnectState::Queued);
        self.notify(request.key);
        permits.acquire_owned().await.ok()
    }

    /// The login succeeded: runs discovery, unless this was only a test.
    async fn finish_login(
        &self,
        request: &ConnectRequest,
        opened: CompletedSshLogin,
    ) -> Result<OpenConnection, ConnectError> {
        let CompletedSshLogin { master, questions, notices, .. } = opened;
        let connection = request.profile.new_connection(master, RemoteCommandMode::Bare);
        let now = self.0.core.clock.now();
        if request.purpose == ConnectPurpose::Connect {
            request.attempt.set_state(ConnectState::Discovering);
            self.notify(request.key);
            let user = request.route.user.as_str();
            let discovery = tokio::select! {
                discovery = discovery::discover(&connection, &request.profile.site, request.key.role, user) => discovery,
                () = request.attempt.cancellation().cancelled() => {
                    connection.master().close().await;
                    return Err(SshLoginError::Cancelled.into());
                }
            };
            if let Some(why) = discovery.unusable_reason {
                connection.master().close().await;
                return Err(ConnectError { failure: SshLoginError::Unusable(why), notices });
            }
            if let Err(error) = self.record_connected(request, &discovery.facts, questions > 0, now).await {
                connection.master().close().await;
                return Err(error);
            }
        }
        Ok(OpenConnection { connection, since: now, notices: clean_text(&notices, MAX_NOTICES_LEN) })
    }

    async fn load_keys(&self, request: &ConnectRequest) -> Result<Vec<(SshKeyId, PrivateKey)>, ConnectError> {
        let open = self.0.core.auth.unseal_keys(request.key.person, request.key.role).await;
        let mut open = open.map_err(|error| {
            tracing::error!(%error, "Could not decrypt an SSH key for a connection");
            ConnectError::internal(&"your SSH key couldn't be decrypted")
        })?;
        if request.purpose == ConnectPurpose::TestNewKey {
            // The pending key comes first; it is tested alone.
            open.truncate(1);
        }
        let read = |key: &UnsealedKey| PrivateKey::from_bytes(&key.private).map(|private| (key.id, private));
        open.iter().map(read).collect::<Result<_, _>>().map_err(|error| ConnectError::internal(&error))
    }

    /// Adds a connection to the pool, unless the attempt was cancelled in the meantime.
    async fn insert_connection(&self, request: &ConnectRequest, up: OpenConnection) -> Result<(), StoreError> {
        let connection = up.connection.clone();
        let wanted = {
            let mut entries = self.entries();
            let entry = entries.entry(request.key).or_default();
            // If it was closed in the meantime, the attempt is no longer registered.
            let wanted = entry.status.is_attempt(&request.attempt) && !request.attempt.cancellation().is_cancelled();
            if wanted {
                entry.backoff = super::connection_pool::RetryBackoff::default();
                entry.status = ConnectionStatus::Up(up);
            }
            wanted
        };
        if wanted {
            self.watch_end(request.key, connection);
            return Ok(());
        }
        connection.master().close().await;
        self.save_problem(request.key, &ConnectionProblem::default(), false).await
    }

    /// Notices when a connection ends that nobody here closed.
    pub(super) fn watch_end(&self, key: ConnectionKey, connection: Arc<ClusterConnection>) {
        let this = self.clone();
        tokio::spawn(async move {
            connection.master().ended().cancelled().await;
            let folder = this.entries().entry(key).or_default().folder_lock.clone();
            let _held = folder.lock().await;
            let is_current = {
                let mut entries = this.entries();
                let entry = entries.entry(key).or_default();
                let is_current =
                    matches!(&entry.status, ConnectionStatus::Up(up) if Arc::ptr_eq(&up.connection, &connection));
                if is_current {
                    entry.status = ConnectionStatus::Down;
                }
                is_current
            };
            if is_current {
                let problem = lost_connection_problem(&connection.master().last_log_line());
                connection.master().folder().remove();
                if let Err(error) = this.save_problem(key, &problem, true).await {
                    tracing::warn!(%error, "Could not record the end of a connection");
                }
                this.notify(key);
            }
        });
    }
}

fn check_attempt_limit(
    (own, all): (i64, i64),
    profile: &ClusterProfile,
    actor: &Actor,
) -> Result<(), ConnectStartError> {
    let everyone = i64::from(profile.site.limits.connects_per_hour);
    let person = if actor.id.is_some() { MAX_ATTEMPTS_PER_HOUR } else { MAX_UNATTENDED_PER_HOUR };
    // One person alone must not use up everyone's limit.
    let person = person.min((everyone / 4).max(4));
    if own >= person || all >= everyone { Err(ConnectStartError::TooManyAttempts) } else { Ok(()) }
}

/// Why an open connection ended. ssh's log only records that the server stopped answering; a message
/// that the server closed the connection goes where servers can write too, so it is not read.
fn lost_connection_problem(last_words: &str) -> ConnectionProblem {
    if last_words.contains("not responding") || last_words.contains("timed out") {
        let words =
            "The connection was lost because the network between the portal and the cluster stopped responding.";
        ConnectionProblem::new("lost-silent", words)
    } else {
        let words = "The connection was lost. The cluster may have closed it or restarted.";
        ConnectionProblem::new("lost", words)
    }
}
