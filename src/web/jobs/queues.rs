//! The places where someone has jobs: each cluster they have a name on, with what is known of their queue there.

use std::sync::Arc;

use super::super::extract::{Context, Me};
use crate::clock::UnixTime;
use crate::cluster::{ConnectionStatus, DiscoveredFacts};
use crate::domain::ConnectionRole;
use crate::error::AppError;
use crate::jobs::{Picture, QueueKey, Trouble};
use crate::store::clusters::Cluster;
use crate::store::{self};

/// A cluster and what is known of someone's queue there.
#[derive(Clone)]
#[expect(clippy::struct_excessive_bools, reason = "facts that pages ask for one by one")]
pub struct Place {
    /// The cluster.
    pub cluster: Arc<Cluster>,
    /// What they can charge jobs to, as Slurm has it.
    pub accounts: Vec<String>,
    /// Whether this cluster ranks by fair-share.
    pub fair_share: bool,
    /// How long jobs may run in each part of the cluster, in minutes.
    pub longest: Arc<Vec<(String, u32)>>,
    /// Whether the cluster hides the jobs of others.
    pub hides_jobs: bool,
    /// Whether one may reorder one's own waiting jobs.
    pub user_top: bool,
    /// Whether the connection stands.
    pub is_up: bool,
    /// Whether it is being opened.
    pub is_opening: bool,
    /// What is known.
    pub picture: Arc<Picture>,
}

/// Why a picture is not fresh, and what one can do.
pub struct Stale {
    /// What happened.
    pub sentence: String,
    /// Slurm's own words; empty if there are none.
    pub said: String,
    /// Whether connecting again helps.
    pub can_reconnect: bool,
}

impl Place {
    /// How long jobs may run in a part of the cluster, in minutes, if there is a limit.
    pub fn longest(&self, partition: &str) -> Option<u32> {
        self.longest.iter().find(|(name, _)| name == partition).map(|(_, minutes)| *minutes)
    }

    /// When the picture was taken.
    pub fn seen(&self) -> Option<UnixTime> {
        self.picture.seen
    }

    /// Why the picture is not fresh, if it is not.
    pub fn stale(&self) -> Option<Stale> {
        let title = &self.cluster.title;
        let stale = |sentence: String, said: &str, can_reconnect| {
            Some(Stale { sentence, said: said.to_owned(), can_reconnect })
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
        if self.is_opening {
            return None;
        }
        if !self.is_up {
            return stale(
                format!("You are not connected to {title}. What you see is what was last known."),
                "",
                true,
            );
        }
        match self.picture.trouble.as_ref()? {
            Trouble::NotConnected | Trouble::Stopped | Trouble::Away => None,
            Trouble::Controller(said) => stale(
                format!(
                    "Slurm on {title} does not answer at the moment. What you see is what was last known; the portal keeps trying. Running jobs usually go on."
                ),
                said,
                false,
            ),
            Trouble::Accounting(said) => {
                stale(format!("The accounting of {title} does not answer."), said, false)
            }
            Trouble::Other(words) => {
                stale(format!("The queue of {title} could not be read: {words}"), "", false)
            }
        }
    }

    /// Why ended jobs may be missing, if they may.
    pub fn accounting(&self) -> Option<&str> {
        match self.picture.accounting_trouble.as_ref()? {
            Trouble::Accounting(said) | Trouble::Other(said) | Trouble::Controller(said) => {
                Some(said)
            }
            Trouble::NotConnected | Trouble::Stopped | Trouble::Away => None,
        }
    }
}

/// Someone's places, without looking at them.
pub async fn places(context: &Context, me: &Me) -> Result<Vec<Place>, AppError> {
    let person = me.0.person.id;
    let known = context.app.cluster_queues.get_or_load(&context.app.store, &person, async || {
        let mut db = context.app.store.read().await?;
        let mut found = Vec::new();
        for line in store::connections::list_for_person(&mut db, person).await? {
            let key = line.key();
            if key.role != ConnectionRole::Login {
                continue;
            }
            let Some(row) = store::clusters::get(&mut db, key.cluster).await? else { continue };
            let learnt: DiscoveredFacts = serde_json::from_str(&line.learnt).unwrap_or_default();
            let site = crate::cluster::ClusterProfile::load(&mut db, row.clone()).await?.site;
            found.push(Known {
                cluster: Arc::new(row),
                accounts: learnt.accounts.iter().flat_map(|one| one.slurm_names.clone()).collect(),
                fair_share: site.units.fair_share || learnt.uses_fair_share,
                hides_jobs: learnt.hides_jobs,
                user_top: learnt.user_top,
                longest: Arc::new(
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
        let key = QueueKey { person, cluster: one.cluster.id };
        let status = context.app.connections.status(key.line());
        places.push(Place {
            cluster: one.cluster.clone(),
            accounts: one.accounts.clone(),
            fair_share: one.fair_share,
            hides_jobs: one.hides_jobs,
            user_top: one.user_top,
            longest: one.longest.clone(),
            is_up: matches!(status, ConnectionStatus::Up(_)),
            is_opening: matches!(status, ConnectionStatus::Connecting(_)),
            picture: context.app.queue_monitor.picture(key).await?,
        });
    }
    Ok(places)
}

/// What is noted of someone's places, until anything is written.
pub type Places = store::StoreCache<crate::domain::PersonId, Vec<Known>>;

/// What is noted of a place.
pub struct Known {
    cluster: Arc<Cluster>,
    accounts: Vec<String>,
    fair_share: bool,
    hides_jobs: bool,
    user_top: bool,
    longest: Arc<Vec<(String, u32)>>,
}
