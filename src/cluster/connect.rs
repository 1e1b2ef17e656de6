//! Connecting: one attempt at a time per person and host, within limits that a centre would call polite.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::attempt_log::MAX_NOTICES_LEN;
use super::cluster_profile::ClusterProfile;
use super::connect_attempt::{ConnectAttempt, ConnectAttemptKind, ConnectState};
use super::connection_pool::{ConnectStartError, ConnectionPool, ConnectionStatus, OpenConnection};
use super::discovery;
use crate::auth::activity::Actor;
use crate::auth::ssh_keys::UnsealedKey;
use crate::domain::SshKeyId;
use crate::ssh::keys::PrivateKey;
use crate::ssh::login::{self, CompletedSshLogin, LoginAttendance, LoginRequest};
use crate::ssh::route::SshRoute;
use crate::ssh::{ClusterConnection, ConnectError, RemoteShellDialect, SshLoginError};
use crate::store::connections::ConnectionKey;
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
    pub(super) purpose: ConnectAttemptKind,
    attended: LoginAttendance,
    pub(super) actor: Actor,
    attempt: Arc<ConnectAttempt>,
}

impl ConnectionPool {
    /// Starts to connect. Does nothing if an attempt is running or the connection is open: two tabs, one attempt.
    pub async fn connect(
        &self,
        key: ConnectionKey,
        actor: Actor,
        attended: LoginAttendance,
    ) -> Result<(), ConnectStartError> {
        self.start_attempt(key, actor, attended, ConnectAttemptKind::Connect).await
    }

    /// Starts to test this person's new key at this cluster, next to the open connection.
    pub async fn test_new_key(&self, key: ConnectionKey, actor: Actor) -> Result<(), ConnectStartError> {
        self.start_attempt(key, actor, LoginAttendance::Attended, ConnectAttemptKind::TestNewKey).await
    }

    async fn start_attempt(
        &self,
        key: ConnectionKey,
        actor: Actor,
        attended: LoginAttendance,
        purpose: ConnectAttemptKind,
    ) -> Result<(), ConnectStartError> {
        let mut db = self.0.core.store.read().await?;
        let line = store::connections::get(&mut db, key).await?.ok_or(ConnectStartError::NoRemoteUser)?;
        let row = store::clusters::get(&mut db, key.cluster).await?.ok_or(ConnectStartError::ClusterClosed)?;
        let known = self.0.accounts.profile(&mut db, row).await?;
        let tries = store::connections::count_attempts(&mut db, key, self.0.core.clock.now().plus(-HOUR_S)).await?;
        drop(db);
        if !known.is_open() {
            return Err(ConnectStartError::ClusterClosed);
        }
        check_attempt_limit(tries, &known, &actor)?;
        let user = line.remote_user.parse().map_err(|_| ConnectStartError::NoRemoteUser)?;
        let route = known.route(key.role, user).ok_or(ConnectStartError::ClusterClosed)?;
        let needed = if purpose == ConnectAttemptKind::TestNewKey { 2 } else { usize::from(known.site.keys.opens.0) };
        if self.0.core.auth.count_usable_keys(key.person, key.role).await? < needed {
            return Err(ConnectStartError::NoKey);
        }
        let Some(attempt) = self.reserve_attempt(key, purpose) else { return Ok(()) };
        let errand = ConnectRequest { key, profile: known, route, purpose, attended, actor, attempt };
        let this = self.clone();
        self.0.core.tasks.spawn(async move { this.run_attempt(errand).await });
        self.notify(key);
        Ok(())
    }

    /// Reserves the person's only attempt, if none is running.
    fn reserve_attempt(&self, key: ConnectionKey, purpose: ConnectAttemptKind) -> Option<Arc<ConnectAttempt>> {
        let mut spots = self.entries();
        let spot = spots.entry(key).or_default();
        let attempt = Arc::new(ConnectAttempt::new(purpose));
        match purpose {
            ConnectAttemptKind::Connect if matches!(spot.status, ConnectionStatus::Down) => {
                spot.status = ConnectionStatus::Connecting(attempt.clone());
            }
            ConnectAttemptKind::TestNewKey if spot.key_test.is_none() => {
                spot.key_test = Some(attempt.clone());
                spot.last_key_test = None;
            }
            _ => return None,
        }
        Some(attempt)
    }

    async fn run_attempt(&self, errand: ConnectRequest) {
        let folder = self.entries().entry(errand.key).or_default().folder_lock.clone();
        let _held = match errand.purpose {
            ConnectAttemptKind::Connect => Some(folder.lock_owned().await),
            // A key test has its own folder.
            ConnectAttemptKind::TestNewKey => None,
        };
        let mut work = std::pin::pin!(self.open_connection(&errand));
        let outcome = tokio::select! {
            outcome = &mut work => outcome,
            // A stopping portal does not wait for codes; open connections stay open.
            () = self.0.core.stop.cancelled() => {
                errand.attempt.cancel();
                work.await
            }
        };
        if errand.purpose == ConnectAttemptKind::TestNewKey {
            let tested = outcome.as_ref().map(|_| ()).map_err(|trouble| trouble.failure.to_string());
            self.entries().entry(errand.key).or_default().last_key_test = Some(tested);
        }
        let stored = match outcome {
            Ok(up) if errand.purpose == ConnectAttemptKind::Connect => self.insert_connection(&errand, up).await,
            Ok(up) => {
                up.connection.master().close().await;
                Ok(())
            }
            Err(trouble) => self.record_failure(&errand, &trouble).await,
        };
        if let Err(error) = stored {
            tracing::error!(%error, "The end of a connection attempt could not be noted");
            self.close(errand.key).await;
        }
        errand.attempt.set_state(ConnectState::Finished);
        self.clear_attempt(&errand);
        self.notify(errand.key);
    }

    fn clear_attempt(&self, errand: &ConnectRequest) {
        let mut spots = self.entries();
        let spot = spots.entry(errand.key).or_default();
        if errand.purpose == ConnectAttemptKind::TestNewKey {
            spot.key_test.take_if(|test| Arc::ptr_eq(test, &errand.attempt));
        } else if spot.status.is_attempt(&errand.attempt) {
            spot.status = ConnectionStatus::Down;
        }
    }

    async fn open_connection(&self, errand: &ConnectRequest) -> Result<OpenConnection, ConnectError> {
        let turns = self.login_permits(errand.key.cluster);
        let _turn = tokio::select! {
            turn = self.acquire_login_permit(turns, errand) => turn,
            () = errand.attempt.cancellation().cancelled() => return Err(SshLoginError::Cancelled.into()),
        };
        if self.is_alarmed(errand.key.cluster) {
            return Err(SshLoginError::Cancelled.into());
        }
        let keys = self.load_keys(errand).await?;
        let ids: Vec<SshKeyId> = keys.iter().map(|(id, _)| *id).collect();
        let begun = self.record_start(errand.key).await?;
        metrics::counter!("portolan_cluster_connection_attempts_total").increment(1);
        errand.attempt.set_state(ConnectState::Connecting);
        self.notify(errand.key);
        let plan = LoginRequest {
            folder: self.connection_folder(errand.key, errand.purpose),
            route: errand.route.clone(),
            keys: keys.into_iter().map(|(_, key)| key).collect(),
            askpass_program: self.0.core.config.program.clone(),
            timeout: errand
                .profile
                .site
                .login
                .grace_s
                .map_or(DEFAULT_LOGIN_TIMEOUT, |s| Duration::from_secs(u64::from(s))),
            attendance: errand.attended,
            cancel: errand.attempt.cancellation().clone(),
        };
        let (this, key, attempt) = (self.clone(), errand.key, errand.attempt.clone());
        let ask = move |question| {
            attempt.ask(question);
            this.notify(key);
        };
        // In a separate task, so that not even a panic leaves the attempt hanging.
        let opened = match tokio::spawn(login::log_in(plan, ask)).await {
            Ok(opened) => opened,
            Err(error) => Err(ConnectError::internal(&error)),
        };
        let (outcome, used) = match &opened {
            Ok(opened) => {
                let word = if errand.purpose == ConnectAttemptKind::Connect { "up" } else { "tested" };
                (word, opened.signing_key_index.and_then(|index| ids.get(index).copied()))
            }
            Err(trouble) => (trouble.failure.code(), None),
        };
        self.record_end(begun, outcome, used).await?;
        self.finish_login(errand, opened?).await
    }

    /// Waits for one of the few login permits of a cluster, and shows that it waits.
    async fn acquire_login_permit(
        &self,
        turns: Arc<Semaphore>,
        errand: &ConnectRequest,
    ) -> Option<OwnedSemaphorePermit> {
        if let Ok(turn) = turns.clone().try_acquire_owned() {
            return Some(turn);
        }
        errand.attempt.set_state(ConnectState::Queued);
        self.notify(errand.key);
        turns.acquire_owned().await.ok()
    }

    /// The login succeeded: runs discovery, unless this was only a test.
    async fn finish_login(
        &self,
        errand: &ConnectRequest,
        opened: CompletedSshLogin,
    ) -> Result<OpenConnection, ConnectError> {
        let CompletedSshLogin { master, questions, notices, .. } = opened;
        let line = errand.profile.new_connection(master, RemoteShellDialect::Bare);
        let now = self.0.core.clock.now();
        if errand.purpose == ConnectAttemptKind::Connect {
            errand.attempt.set_state(ConnectState::Discovering);
            self.notify(errand.key);
            let user = errand.route.user.as_str();
            let look = tokio::select! {
                look = discovery::discover(&line, &errand.profile.site, errand.key.role, user) => look,
                () = errand.attempt.cancellation().cancelled() => {
                    line.master().close().await;
                    return Err(SshLoginError::Cancelled.into());
                }
            };
            if let Some(why) = look.unusable_reason {
                line.master().close().await;
                return Err(ConnectError { failure: SshLoginError::Unusable(why), notices });
            }
            if let Err(trouble) = self.record_connected(errand, &look.facts, questions > 0, now).await {
                line.master().close().await;
                return Err(trouble);
            }
        }
        Ok(OpenConnection { connection: line, since: now, notices: clean_text(&notices, MAX_NOTICES_LEN) })
    }

    async fn load_keys(&self, errand: &ConnectRequest) -> Result<Vec<(SshKeyId, PrivateKey)>, ConnectError> {
        let open = self.0.core.auth.unseal_keys(errand.key.person, errand.key.role).await;
        let mut open = open.map_err(|error| {
            tracing::error!(%error, "A key could not be opened for a connection");
            ConnectError::internal(&"your key could not be opened")
        })?;
        if errand.purpose == ConnectAttemptKind::TestNewKey {
            // The pending key comes first; it is tested alone.
            open.truncate(1);
        }
        let read = |key: &UnsealedKey| PrivateKey::from_bytes(&key.private).map(|private| (key.id, private));
        open.iter().map(read).collect::<Result<_, _>>().map_err(|error| ConnectError::internal(&error))
    }

    /// Adds a connection to the pool, unless the attempt was cancelled in the meantime.
    async fn insert_connection(&self, errand: &ConnectRequest, up: OpenConnection) -> Result<(), StoreError> {
        let line = up.connection.clone();
        let wanted = {
            let mut spots = self.entries();
            let spot = spots.entry(errand.key).or_default();
            // If it was closed in the meantime, the attempt is no longer registered.
            let wanted = spot.status.is_attempt(&errand.attempt) && !errand.attempt.cancellation().is_cancelled();
            if wanted {
                spot.backoff = super::connection_pool::RetryBackoff::default();
                spot.status = ConnectionStatus::Up(up);
            }
            wanted
        };
        if wanted {
            self.watch_end(errand.key, line);
            return Ok(());
        }
        line.master().close().await;
        self.save_problem(errand.key, "", false).await
    }

    /// Notices when a connection ends that nobody here closed.
    pub(super) fn watch_end(&self, key: ConnectionKey, line: Arc<ClusterConnection>) {
        let this = self.clone();
        tokio::spawn(async move {
            line.master().ended().cancelled().await;
            let folder = this.entries().entry(key).or_default().folder_lock.clone();
            let _held = folder.lock().await;
            let ours = {
                let mut spots = this.entries();
                let spot = spots.entry(key).or_default();
                let ours = matches!(&spot.status, ConnectionStatus::Up(up) if Arc::ptr_eq(&up.connection, &line));
                if ours {
                    spot.status = ConnectionStatus::Down;
                }
                ours
            };
            if ours {
                let words = lost_connection_message(&line.master().last_log_line());
                line.master().folder().remove();
                if let Err(error) = this.save_problem(key, words, true).await {
                    tracing::warn!(%error, "The end of a connection could not be noted");
                }
                this.notify(key);
            }
        });
    }
}

fn check_attempt_limit(
    (mine, all): (i64, i64),
    known: &ClusterProfile,
    actor: &Actor,
) -> Result<(), ConnectStartError> {
    let everyone = i64::from(known.site.limits.connects_per_hour);
    let person = if actor.id.is_some() { MAX_ATTEMPTS_PER_HOUR } else { MAX_UNATTENDED_PER_HOUR };
    // One person alone must not use up everyone's limit.
    let person = person.min((everyone / 4).max(4));
    if mine >= person || all >= everyone { Err(ConnectStartError::TooManyAttempts) } else { Ok(()) }
}

/// Why an open connection ended, as a sentence. ssh's log only records that the server stopped answering; a message
/// that the server closed the connection goes where servers can write too, so it is not read.
fn lost_connection_message(last_words: &str) -> &'static str {
    if last_words.contains("not responding") || last_words.contains("timed out") {
        "The network between this portal and the cluster was silent for too long, so the connection was lost."
    } else {
        "The connection was lost. The cluster may have closed it, or may have been restarted."
    }
}
