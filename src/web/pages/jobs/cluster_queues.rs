//! The cluster accounts of a person, each with what is known about their queue there.

use std::sync::Arc;

use crate::clock::UnixTime;
use crate::cluster::{ClusterAccount, ConnectionStatus};
use crate::error::AppError;
use crate::jobs::{PersonQueueSnapshot, QueueReadError};
use crate::store::clusters::Cluster;
use crate::web::http::extractors::{CurrentPerson, RequestContext};

/// A person's cluster account, with what is known about their queue there.
#[derive(Clone)]
pub struct PersonClusterQueue {
    pub account: Arc<ClusterAccount>,
    pub is_connected: bool,
    pub is_connecting: bool,
    pub snapshot: Arc<PersonQueueSnapshot>,
}

/// Why a snapshot is out of date, and what to do.
pub struct StaleQueueReason {
    pub sentence: String,
    /// Slurm's own message; empty if there is none.
    pub said: String,
    /// Whether reconnecting helps.
    pub can_reconnect: bool,
}

impl PersonClusterQueue {
    pub fn cluster(&self) -> &Cluster {
        self.account.cluster()
    }

    /// The time limit of a partition in minutes, if it has one.
    pub fn partition_limit(&self, partition: &str) -> Option<u32> {
        let mut partitions = self.account.discovered.partitions.iter();
        partitions.find_map(|candidate| candidate.time_limit.minutes().filter(|_| candidate.name == partition))
    }

    /// Whether the cluster hides other people's jobs.
    pub fn hides_jobs(&self) -> bool {
        self.account.discovered.hides_jobs
    }

    /// Whether people may reorder their own pending jobs.
    pub fn can_reorder(&self) -> bool {
        self.account.discovered.user_top
    }

    /// When the snapshot was taken.
    pub fn seen(&self) -> Option<UnixTime> {
        self.snapshot.seen
    }

    /// Why the snapshot is out of date, if it is.
    pub fn stale(&self) -> Option<StaleQueueReason> {
        let title = &self.cluster().title;
        let stale = |sentence: String, said: &str, can_reconnect| {
            Some(StaleQueueReason { sentence, said: said.to_owned(), can_reconnect })
        };
        if self.cluster().alarm_at().is_some() {
            return stale(
                format!("The portal doesn't contact {title} until an administrator has checked its changed host key."),
                "",
                false,
            );
        }
        if self.is_connecting {
            return None;
        }
        if !self.is_connected {
            return stale(format!("You're not connected to {title}. This page shows the last known state."), "", true);
        }
        match self.snapshot.trouble.as_ref()? {
            QueueReadError::NotConnected | QueueReadError::HostKeyInDoubt | QueueReadError::OwnerAway => None,
            QueueReadError::Controller(said) => stale(
                format!(
                    "Slurm on {title} isn't responding. This page shows the last known state, and the portal keeps trying. Running jobs usually aren't affected."
                ),
                said,
                false,
            ),
            QueueReadError::Accounting(said) => {
                stale(format!("The Slurm accounting database of {title} isn't responding."), said, false)
            }
            QueueReadError::Other(words) => stale(format!("Couldn't read the queue of {title}: {words}"), "", false),
        }
    }

    /// Why ended jobs may be missing, if they may.
    pub fn accounting(&self) -> Option<&str> {
        match self.snapshot.accounting_trouble.as_ref()? {
            QueueReadError::Accounting(said) | QueueReadError::Other(said) | QueueReadError::Controller(said) => {
                Some(said)
            }
            QueueReadError::NotConnected | QueueReadError::HostKeyInDoubt | QueueReadError::OwnerAway => None,
        }
    }
}

/// Lists a person's queues, without contacting the clusters.
pub async fn list_cluster_queues(
    context: &RequestContext,
    me: &CurrentPerson,
) -> Result<Vec<PersonClusterQueue>, AppError> {
    let app = &context.app;
    let mut queues = Vec::new();
    for account in app.cluster_accounts.list(me.0.person.id).await?.iter() {
        let status = account.status(&app.connections);
        queues.push(PersonClusterQueue {
            is_connected: matches!(status, ConnectionStatus::Up(_)),
            is_connecting: matches!(status, ConnectionStatus::Connecting(_)),
            snapshot: app.queue_monitor.snapshot(account.id).await?,
            account: account.clone(),
        });
    }
    Ok(queues)
}
