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
    /// The person's other entries for the same Slurm cluster: their jobs, quotas and fair share are the same.
    pub other_entries: Vec<PersonClusterQueue>,
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

    /// The cluster's title, with those of the person's other entries for the same Slurm cluster.
    pub fn title(&self) -> String {
        let others: Vec<&str> = self.other_entries.iter().map(|other| other.cluster().title.as_str()).collect();
        let title = &self.cluster().title;
        if others.is_empty() { title.clone() } else { format!("{title} (also {})", others.join(", ")) }
    }

    /// Whether connecting would help: the person isn't connected, and nothing blocks it.
    pub fn is_disconnected(&self) -> bool {
        !self.is_connected && !self.is_connecting && self.cluster().alarm_at().is_none()
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
                format!("The portal won't contact {title} until an administrator has checked its new host key."),
                "",
                false,
            );
        }
        if self.is_connecting {
            return None;
        }
        if self.is_disconnected() {
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

/// Lists a person's queues, those on hidden clusters included, without contacting the clusters.
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
            other_entries: Vec::new(),
        });
    }
    Ok(queues)
}

/// Lists the queues to show together: without hidden clusters, except the one that is named, and each Slurm cluster
/// once, however many of the portal's clusters lead to it.
pub async fn list_shown_queues(
    context: &RequestContext,
    me: &CurrentPerson,
    named: &str,
) -> Result<Vec<PersonClusterQueue>, AppError> {
    let mut queues = list_cluster_queues(context, me).await?;
    queues.retain(|queue| !queue.account.is_hidden || queue.cluster().slug == named);
    let identity = |queue: &PersonClusterQueue| {
        let (cluster, controller, user) = queue.account.slurm_identity()?;
        Some([cluster, controller, user].map(str::to_owned))
    };
    // The named one, or else the one whose snapshot is kept up to date.
    let preference = |queue: &PersonClusterQueue| (queue.cluster().slug == named, queue.is_connected, queue.seen());
    let merged = group_same(queues, identity, preference).into_iter();
    Ok(merged.map(|(queue, other_entries)| PersonClusterQueue { other_entries, ..queue }).collect())
}

/// Groups items with the same identity: of each group the preferred item, at the place of its first, with the others.
fn group_same<T, I: PartialEq, P: Ord>(
    items: Vec<T>,
    identity: impl Fn(&T) -> Option<I>,
    preference: impl Fn(&T) -> P,
) -> Vec<(T, Vec<T>)> {
    let mut groups: Vec<(T, Vec<T>)> = Vec::new();
    for mut item in items {
        let own = identity(&item);
        let group = groups.iter_mut().find(|(first, _)| own.is_some() && identity(first) == own);
        match group {
            None => groups.push((item, Vec::new())),
            Some((first, others)) => {
                if preference(&item) > preference(first) {
                    std::mem::swap(first, &mut item);
                }
                others.push(item);
            }
        }
    }
    groups
}

#[cfg(test)]
mod tests {
    use super::group_same;

    #[test]
    fn entries_for_one_slurm_cluster_are_one_group() {
        let items = vec![("a", Some(1), 0), ("b", None, 9), ("c", Some(1), 5), ("d", None, 0), ("e", Some(1), 5)];
        let groups = group_same(items, |item| item.1, |item| item.2);
        let names = groups.iter().map(|(first, others)| (first.0, others.iter().map(|other| other.0).collect()));
        let expected: [(&str, Vec<&str>); 3] = [("c", vec!["a", "e"]), ("b", vec![]), ("d", vec![])];
        assert_eq!(names.collect::<Vec<_>>(), expected, "what is not known to be the same stays apart");
    }
}
