//! One person's way to a cluster, as their pages need it: the user name, the keys, the connection.

use std::sync::Arc;

use super::super::extract::{Context, Me};
use super::key;
use crate::cluster::{ClusterProfile, ConnectAttempt, ConnectionStatus};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::ssh::LoginError;
use crate::store;
use crate::store::connections::ConnectionRow;
use crate::store::keys::SshKey;

/// One person's way to a cluster.
pub struct Way {
    /// What is noted of it.
    pub line: Option<ConnectionRow>,
    /// The key in use.
    pub key: Option<SshKey>,
    /// A new key that waits to be proven.
    pub next_key: Option<SshKey>,
    /// The connection.
    pub status: ConnectionStatus,
    /// The test of the new key that goes on, if any.
    pub test: Option<Arc<ConnectAttempt>>,
}

/// What the person does next; the page is arranged around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Next {
    /// Tell their user name.
    Name,
    /// Make a key, or tell the cluster about it.
    Key,
    /// Connect.
    Connect,
    /// Nothing: it is connected.
    Nothing,
    /// Nothing can be done: it is out of use, or its host key is in doubt.
    Closed,
}

impl Next {
    /// A stable word.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Name => "name",
            Self::Key => "key",
            Self::Connect => "connect",
            Self::Nothing => "up",
            Self::Closed => "closed",
        }
    }

    /// How a step of the way in is drawn: done, next or later.
    pub const fn state_of(self, step: u8) -> &'static str {
        let now = match self {
            Self::Name => 1,
            Self::Key => 2,
            Self::Connect => 3,
            Self::Nothing | Self::Closed => 4,
        };
        match step {
            step if step < now => "done",
            step if step == now => "next",
            _ => "later",
        }
    }
}

impl Way {
    /// Reads it; nothing is asked of the cluster.
    pub async fn of(context: &Context, me: &Me, known: &ClusterProfile) -> Result<Self, AppError> {
        let key = key(me.0.person.id, known, ConnectionRole::Login);
        let mut db = context.app.store.read().await?;
        let line = store::connections::get(&mut db, key).await?;
        let mut keys = store::keys::list_for_person(&mut db, key.person).await?;
        drop(db);
        keys.retain(|key| key.role() == ConnectionRole::Login);
        let (next, current): (Vec<_>, Vec<_>) = keys.into_iter().partition(SshKey::is_next);
        Ok(Self {
            line,
            key: current.into_iter().next(),
            next_key: next.into_iter().next(),
            status: context.app.connections.status(key),
            test: context.app.connections.running_key_test(key),
        })
    }

    /// Whether the person has the key that this cluster wants, if it wants one.
    pub const fn is_keyed(&self, known: &ClusterProfile) -> bool {
        self.key.is_some() || self.next_key.is_some() || !known.site.keys.opens
    }

    /// Whether it was connected before under this name.
    pub fn was_connected(&self) -> bool {
        self.line.as_ref().is_some_and(|line| line.connected_at().is_some())
    }

    /// What the person does next.
    pub fn next(&self, known: &ClusterProfile) -> Next {
        if known.row.alarm_at().is_some() || known.row.retired_at().is_some() {
            return Next::Closed;
        }
        let Some(line) = &self.line else { return Next::Name };
        match self.status {
            ConnectionStatus::Up(_) => return Next::Nothing,
            ConnectionStatus::Connecting(_) => return Next::Connect,
            ConnectionStatus::Down => {}
        }
        if !self.is_keyed(known) {
            return Next::Key;
        }
        // Nobody but the cluster knows whether the key is registered there; the first try shows it.
        let is_refused = line.problem.starts_with(&LoginError::KeyRefused.to_string());
        let is_tried = self.was_connected() || !line.problem.is_empty();
        if known.site.keys.opens && (is_refused || !is_tried) { Next::Key } else { Next::Connect }
    }
}
