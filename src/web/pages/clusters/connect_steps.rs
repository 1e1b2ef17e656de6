//! How far a person has got with connecting to a cluster: user name, keys, connection.

use std::sync::Arc;

use crate::cluster::{ClusterAccount, ClusterProfile, ConnectAttempt, ConnectionStatus};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::ssh::SshLoginError;
use crate::store;
use crate::store::keys::SshKey;
use crate::web::pages::clusters::ClusterRequest;

/// A person's setup on a cluster.
pub struct ClusterSetupState {
    /// `None` until the person has entered a user name.
    pub account: Option<Arc<ClusterAccount>>,
    /// The current key.
    pub key: Option<SshKey>,
    /// A new key that has not replaced the current one yet.
    pub next_key: Option<SshKey>,
    pub status: ConnectionStatus,
    /// The running test of the new key, if any.
    pub test: Option<Arc<ConnectAttempt>>,
}

/// What the person does next; it decides the page's layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectSetupStep {
    /// Enter their user name.
    UserName,
    /// Create a key, or register it with the cluster.
    Key,
    Connect,
    /// Nothing: the cluster is connected.
    Connected,
    /// Nothing is possible: the cluster is retired, or its host key raised an alarm.
    Closed,
}

impl ConnectSetupStep {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UserName => "name",
            Self::Key => "key",
            Self::Connect => "connect",
            Self::Connected => "up",
            Self::Closed => "closed",
        }
    }

    /// How a step is drawn: done, next or later.
    pub const fn state_of(self, step: u8) -> &'static str {
        let now = match self {
            Self::UserName => 1,
            Self::Key => 2,
            Self::Connect => 3,
            Self::Connected | Self::Closed => 4,
        };
        match step {
            step if step < now => "done",
            step if step == now => "next",
            _ => "later",
        }
    }
}

impl ClusterSetupState {
    /// Loads it from the database and memory; sends nothing to the cluster.
    pub async fn load(request: &ClusterRequest) -> Result<Self, AppError> {
        let (app, connection) = (&request.context.app, request.login_key());
        let account = app.cluster_accounts.get(request.account_id()).await?;
        let mut db = app.store.read().await?;
        let mut keys = store::keys::list_for_person(&mut db, connection.person).await?;
        drop(db);
        keys.retain(|key| key.role() == ConnectionRole::Login);
        let (next, current): (Vec<_>, Vec<_>) = keys.into_iter().partition(SshKey::is_next);
        Ok(Self {
            account,
            key: current.into_iter().next(),
            next_key: next.into_iter().next(),
            status: app.connections.status(connection),
            test: app.connections.running_key_test(connection),
        })
    }

    /// Whether the person has a key, if this cluster requires one.
    pub fn has_needed_key(&self, cluster: &ClusterProfile) -> bool {
        self.key.is_some() || self.next_key.is_some() || !cluster.site.keys.opens.0
    }

    /// Whether this user name was connected before.
    pub fn was_connected(&self) -> bool {
        self.account.as_ref().is_some_and(|account| account.connected_at.is_some())
    }

    pub fn next_step(&self, cluster: &ClusterProfile) -> ConnectSetupStep {
        if cluster.row.alarm_at().is_some() || cluster.row.retired_at().is_some() {
            return ConnectSetupStep::Closed;
        }
        let Some(account) = &self.account else { return ConnectSetupStep::UserName };
        match self.status {
            ConnectionStatus::Up(_) => return ConnectSetupStep::Connected,
            ConnectionStatus::Connecting(_) => return ConnectSetupStep::Connect,
            ConnectionStatus::Down => {}
        }
        if !self.has_needed_key(cluster) {
            return ConnectSetupStep::Key;
        }
        // Only the cluster knows whether the key is registered there; the first attempt shows it.
        let is_refused = account.problem.code == SshLoginError::KeyRefused.code();
        let is_tried = self.was_connected() || !account.problem.is_none();
        if cluster.site.keys.opens.0 && (is_refused || !is_tried) {
            ConnectSetupStep::Key
        } else {
            ConnectSetupStep::Connect
        }
    }
}
