//! The places where someone has jobs: each cluster they have a name on, with what is known of their queue there.

use std::sync::Arc;

use crate::clock::UnixTime;
use crate::cluster::{ConnectionStatus, DiscoveredFacts};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::jobs::{ClusterAccountId, QueueReadError, QueueSnapshot};
use crate::store::clusters::Cluster;
use crate::store::{self};
use crate::web::http::extractors::{CurrentPerson, RequestContext};

/// A cluster and what is known of someone's queue there.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "facts that pages ask for one by one")]
pub struct ClusterQueue {
    pub cluster: Arc<Cluster>,
    /// What they can charge jobs to, as Slurm has it.
    pub accounts: Vec<String>,
    /// Whether this cluster ranks by fair-share.
    pub uses_fair_share: bool,
    /// How long jobs may run in each part of the cluster, in minutes.
    pub partition_limits: Arc<Vec<(String, u32)>>,
    /// Whether the cluster hides the jobs of others.
    pub hides_jobs: bool,
    /// Whether one may reorder one's own waiting jobs.
    pub can_reorder: bool,
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
    /// How long jobs may run in a part of the cluster, in minutes, if there is a limit.
    pub fn partition_limit(&self, partition: &str) -> Option<u32> {
        self.partition_limits
            .iter()
            .find(|(name, _)| name == partition)
            .map(|(_, minutes)| *minutes)
    }

    /// When the picture was taken.
    pub fn seen(&self) -> Option<UnixTime> {
        self.snapshot.seen
    }

    /// Why the picture is not fresh, if it is not.
    pub fn stale(&self) -> Option<StaleQueueReason> {
        let title = &self.cluster.title;
        let stale = |sentence: String, said: &str, can_reconnect| {
            Some(StaleQueueReason { sentence, said: said.to_owned(), can_reconnect })
        };
        if self.cluster.alarm_at().is_some() {
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
    let person = me.0.person.id;
    let known = context.pages.cluster_queues.get_or_load(&context.app.store, &person, async || {
        let mut db = context.app.store.read().await?;
        let mut found = Vec::new();
        for line in store::connections::list_for_person(&mut db, person).await? {
            let key = line.key();
            if key.role != ConnectionRole::Login {
                continue;
            }
            let Some(row) = store::clusters::get(&mut db, key.cluster).await? else { continue };
            let learnt: DiscoveredFacts =
                serde_json::from_str(&line.discovered).unwrap_or_default();
            let site = crate::cluster::ClusterProfile::load(&mut db, row.clone()).await?.site;
            found.push(ClusterQueueProfile {
                cluster: Arc::new(row),
                accounts: learnt.accounts.iter().flat_map(|one| one.slurm_names.clone()).collect(),
                uses_fair_share: site.units.fair_share || learnt.uses_fair_share,
                hides_jobs: learnt.hides_jobs,
                can_reorder: learnt.user_top,
                partition_limits: Arc::new(
                    learnt
                        .partitions
                        .iter()
                        .filter_map(|one| Some((one.name.clone(), one.time_limit.minutes()?)))
                        .collect(),
                ),
            });
        }
        Ok::<_, store::StoreError>(found)
    });
    let mut places = Vec::new();
    for one in known.await?.iter() {
        let key = ClusterAccountId { person, cluster: one.cluster.id };
        let status = context.app.connections.status(key.connection_key());
        places.push(ClusterQueue {
            cluster: one.cluster.clone(),
            accounts: one.accounts.clone(),
            uses_fair_share: one.uses_fair_share,
            hides_jobs: one.hides_jobs,
            can_reorder: one.can_reorder,
            partition_limits: one.partition_limits.clone(),
            is_connected: matches!(status, ConnectionStatus::Up(_)),
            is_connecting: matches!(status, ConnectionStatus::Connecting(_)),
            snapshot: context.app.queue_monitor.snapshot(key).await?,
        });
    }
    Ok(places)
}

/// What is noted of someone's places, until anything is written.
pub type ClusterQueueCache = store::StoreCache<crate::domain::PersonId, Vec<ClusterQueueProfile>>;

/// What is noted of a place.
pub struct ClusterQueueProfile {
    cluster: Arc<Cluster>,
    accounts: Vec<String>,
    uses_fair_share: bool,
    hides_jobs: bool,
    can_reorder: bool,
    partition_limits: Arc<Vec<(String, u32)>>,
}
