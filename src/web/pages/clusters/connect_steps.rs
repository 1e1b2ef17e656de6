//! One person's way to a cluster, as their pages need it: the user name, the keys, the connection.

use std::sync::Arc;

use crate::cluster::{
    ClusterAccount, ClusterAccountId, ClusterProfile, ConnectAttempt, ConnectionStatus,
};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::ssh::LoginError;
use crate::store;
use crate::store::keys::SshKey;
use crate::web::http::extractors::{CurrentPerson, RequestContext};

/// One person's way to a cluster.
pub struct ClusterSetupState {
    /// None as long as the person has told no user name.
    pub account: Option<Arc<ClusterAccount>>,
    /// The key in use.
    pub key: Option<SshKey>,
    /// A new key that waits to be proven.
    pub next_key: Option<SshKey>,
    pub status: ConnectionStatus,
    /// The test of the new key that goes on, if any.
    pub test: Option<Arc<ConnectAttempt>>,
}

/// What the person does next; the page is arranged around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NextConnectStep {
    /// Tell their user name.
    UserName,
    /// Make a key, or tell the cluster about it.
    Key,
    Connect,
    /// Nothing: it is connected.
    Connected,
    /// Nothing can be done: it is out of use, or its host key is in doubt.
    Closed,
}

impl NextConnectStep {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::UserName => "name",
            Self::Key => "key",
            Self::Connect => "connect",
            Self::Connected => "up",
            Self::Closed => "closed",
        }
    }

    /// How a step of the way in is drawn: done, next or later.
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
    /// Reads it; nothing is asked of the cluster.
    pub async fn load(
        context: &RequestContext,
        me: &CurrentPerson,
        known: &ClusterProfile,
    ) -> Result<Self, AppError> {
        let id = ClusterAccountId { person: me.0.person.id, cluster: known.row.id };
        let (account, key) = (context.app.cluster_accounts.get(id).await?, id.connection_key());
        let mut db = context.app.store.read().await?;
        let mut keys = store::keys::list_for_person(&mut db, key.person).await?;
        drop(db);
        keys.retain(|key| key.role() == ConnectionRole::Login);
        let (next, current): (Vec<_>, Vec<_>) = keys.into_iter().partition(SshKey::is_next);
        Ok(Self {
            account,
            key: current.into_iter().next(),
            next_key: next.into_iter().next(),
            status: context.app.connections.status(key),
            test: context.app.connections.running_key_test(key),
        })
    }

    /// Whether the person has the key that this cluster wants, if it wants one.
    pub fn has_needed_key(&self, known: &ClusterProfile) -> bool {
        self.key.is_some() || self.next_key.is_some() || !known.site.keys.opens
    }

    /// Whether it was connected before under this name.
    pub fn was_connected(&self) -> bool {
        self.account.as_ref().is_some_and(|account| account.connected_at.is_some())
    }

    /// What the person does next.
    pub fn next_step(&self, known: &ClusterProfile) -> NextConnectStep {
        if known.row.alarm_at().is_some() || known.row.retired_at().is_some() {
            return NextConnectStep::Closed;
        }
        let Some(account) = &self.account else { return NextConnectStep::UserName };
        match self.status {
            ConnectionStatus::Up(_) => return NextConnectStep::Connected,
            ConnectionStatus::Connecting(_) => return NextConnectStep::Connect,
            ConnectionStatus::Down => {}
        }
        if !self.has_needed_key(known) {
            return NextConnectStep::Key;
        }
        // Nobody but the cluster knows whether the key is registered there; the first try shows it.
        let is_refused = account.problem_code == LoginError::KeyRefused.code();
        let is_tried = self.was_connected() || !account.problem.is_empty();
        if known.site.keys.opens && (is_refused || !is_tried) {
            NextConnectStep::Key
        } else {
            NextConnectStep::Connect
        }
    }
}
