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
    /// Another cluster of the same centre that accepts the current key, so that it need not be registered again. Only
    /// looked for before the first connection.
    pub key_works_on: Option<String>,
}

/// A user name that the person has elsewhere.
pub struct UserNameSuggestion {
    pub user: String,
    /// The cluster where they have it.
    pub cluster: String,
    /// Whether that cluster belongs to the same centre, where the name should be the same.
    pub is_same_centre: bool,
}

impl UserNameSuggestion {
    /// The person's name on another cluster of the same centre, or else on the cluster they last connected to.
    pub fn find(cluster: &ClusterProfile, accounts: &[Arc<ClusterAccount>]) -> Option<Self> {
        let others = accounts.iter().filter(|account| account.id.cluster != cluster.row.id);
        let is_same = |account: &ClusterAccount| account.site().is_same_centre(&cluster.site);
        let nearest = others.max_by_key(|account| (is_same(account), account.connected_at))?;
        Some(Self {
            user: nearest.remote_user.clone(),
            cluster: nearest.cluster().title.clone(),
            is_same_centre: is_same(nearest),
        })
    }
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
        let key = current.into_iter().next();
        let is_new = account.as_ref().is_none_or(|account| account.connected_at.is_none());
        let key_works_on = match &key {
            Some(key) if is_new && request.cluster.site.keys.opens.0 => find_key_proof(request, key).await?,
            _ => None,
        };
        Ok(Self {
            account,
            key,
            key_works_on,
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
        let is_tried = self.was_connected() || !account.problem.is_none() || self.key_works_on.is_some();
        if cluster.site.keys.opens.0 && (is_refused || !is_tried) {
            ConnectSetupStep::Key
        } else {
            ConnectSetupStep::Connect
        }
    }
}

/// The cluster of the same centre where the key last opened a connection.
async fn find_key_proof(request: &ClusterRequest, key: &SshKey) -> Result<Option<String>, AppError> {
    let app = &request.context.app;
    let mut db = app.store.read().await?;
    for id in store::connections::list_key_clusters(&mut db, key.id).await? {
        let Some(row) = store::clusters::get(&mut db, id).await? else { continue };
        let profile = app.cluster_accounts.profile(&mut db, row).await?;
        if id != request.cluster.row.id && profile.site.is_same_centre(&request.cluster.site) {
            return Ok(Some(profile.row.title.clone()));
        }
    }
    Ok(None)
}
