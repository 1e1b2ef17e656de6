//! The places where someone has jobs: each cluster they have a name on, with what is known of their queue there.

use std::sync::Arc;

use crate::clock::UnixTime;
use crate::cluster::{ClusterAccount, ConnectionStatus};
use crate::error::AppError;
use crate::jobs::{QueueReadError, QueueSnapshot};
use crate::store::clusters::Cluster;
use crate::web::http::extractors::{CurrentPerson, RequestContext};

/// Someone on a cluster, and what is known of their queue there.
#[derive(Clone)]
pub struct ClusterQueue {
    pub account: Arc<ClusterAccount>,
    /// Whether the connection stands.
    pub is_connected: bool,
    /// Whether it is being opened.
    pub is_connecting: bool,
    pub snapshot: Arc<QueueSnapshot>,
}

/// Why a picture is not fresh, and what one can do.
pub struct StaleQueueReason {
    pub sentence: String,
    /// Slurm's own words; empty if there are none.
    pub said: String,
    /// Whether connecting again helps.
    pub can_reconnect: bool,
}

impl ClusterQueue {
    pub fn cluster(&self) -> &Cluster {
        self.account.cluster()
    }

    /// How long jobs may run in a part of the cluster, in minutes, if there is a limit.
    pub fn partition_limit(&self, partition: &str) -> Option<u32> {
        let mut partitions = self.account.discovered.partitions.iter();
        partitions.find_map(|one| one.time_limit.minutes().filter(|_| one.name == partition))
    }

    /// Whether the cluster hides the jobs of others.
    pub fn hides_jobs(&self) -> bool {
        self.account.discovered.hides_jobs
    }

    /// Whether one may reorder one's own waiting jobs.
    pub fn can_reorder(&self) -> bool {
        self.account.discovered.user_top
    }

    /// When the picture was taken.
    pub fn seen(&self) -> Option<UnixTime> {
        self.snapshot.seen
    }

    /// Why the picture is not fresh, if it is not.
    pub fn stale(&self) -> Option<StaleQueueReason> {
        let title = &self.cluster().title;
        let stale = |sentence: String, said: &str, can_reconnect| {
            Some(StaleQueueReason { sentence, said: said.to_owned(), can_reconnect })
        };
        if self.cluster().alarm_at().is_some() {
            return stale(
                format!(
                    "Nothing is asked of {title} until an administrator has looked at its identity."
                ),
                "",
                false,
            );
        }
        if self.is_connecting {
            return None;
        }
        if !self.is_connected {
            return stale(
                format!("You are not connected to {title}. What you see is what was last known."),
                "",
                true,
            );
        }
        match self.snapshot.trouble.as_ref()? {
            QueueReadError::NotConnected
            | QueueReadError::HostKeyInDoubt
            | QueueReadError::OwnerAway => None,
            QueueReadError::Controller(said) => stale(
                format!(
                    "Slurm on {title} does not answer at the moment. What you see is what was last known; the portal keeps trying. Running jobs usually go on."
                ),
                said,
                false,
            ),
            QueueReadError::Accounting(said) => {
                stale(format!("The accounting of {title} does not answer."), said, false)
            }
            QueueReadError::Other(words) => {
                stale(format!("The queue of {title} could not be read: {words}"), "", false)
            }
        }
    }

    /// Why ended jobs may be missing, if they may.
    pub fn accounting(&self) -> Option<&str> {
        match self.snapshot.accounting_trouble.as_ref()? {
            QueueReadError::Accounting(said)
            | QueueReadError::Other(said)
            | QueueReadError::Controller(said) => Some(said),
            QueueReadError::NotConnected
            | QueueReadError::HostKeyInDoubt
            | QueueReadError::OwnerAway => None,
        }
    }
}

/// Someone's places, without looking at them.
pub async fn list_cluster_queues(
    context: &RequestContext,
    me: &CurrentPerson,
) -> Result<Vec<ClusterQueue>, AppError> {
    let app = &context.app;
    let mut places = Vec::new();
    for account in app.cluster_accounts.list(me.0.person.id).await?.iter() {
        let status = account.status(&app.connections);
        places.push(ClusterQueue {
            is_connected: matches!(status, ConnectionStatus::Up(_)),
            is_connecting: matches!(status, ConnectionStatus::Connecting(_)),
            snapshot: app.queue_monitor.snapshot(account.id).await?,
            account: account.clone(),
        });
    }
    Ok(places)
}
