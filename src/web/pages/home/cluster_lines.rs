//! The clusters on the home page: a line for each one in use, with its worst figure, and one line that names those that
//! aren't connected.

use std::sync::Arc;

use crate::app::AppState;
use crate::clock::UnixTime;
use crate::cluster::{ClusterAccount, ConnectionStatus};
use crate::domain::ClusterId;
use crate::store::cluster_preferences::ClusterPreferences;
use crate::store::clusters::Cluster;
use crate::web::pages::home::PortalSetupFacts;
use crate::web::pages::home::resource_bars::{OwnClusterResources, WorstResourceFigure};
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;

/// How many clusters are shown; the rest are on the page of all clusters.
const MAX_CLUSTERS: usize = 8;

pub struct HomeClusters {
    /// Connected, connecting or blocked: a line each.
    pub in_use: Vec<HomeClusterLine>,
    /// Set up, but not connected: named in one line.
    pub away: Vec<HomeClusterLine>,
    /// Those that the person hasn't set up.
    pub unused: Vec<Cluster>,
    /// How many clusters aren't shown.
    pub more: usize,
}

/// A cluster and the person's connection to it.
pub struct HomeClusterLine {
    pub cluster: Cluster,
    pub kind: &'static str,
    pub label: &'static str,
    pub user: String,
    pub since: Option<UnixTime>,
    /// Whether one click may be enough to reconnect.
    pub can_reconnect: bool,
    /// Fair share and storage as last read; `None` if there is nothing to show.
    pub resources: Option<OwnClusterResources>,
    pub worst: WorstResourceFigure,
}

impl HomeClusters {
    /// The clusters of the portal that the person hasn't hidden, in their own order, or else those in use first.
    pub fn list(
        app: &AppState,
        overview: &PortalSetupFacts,
        preferences: &ClusterPreferences,
        accounts: &[Arc<ClusterAccount>],
        queues: &[PersonClusterQueue],
    ) -> Self {
        let account_on = |cluster: &Cluster| accounts.iter().find(|account| account.id.cluster == cluster.id);
        let shown = overview.clusters.iter().filter(|cluster| !preferences.is_hidden(cluster.id));
        let mut clusters: Vec<_> = shown.map(|cluster| (cluster, account_on(cluster))).collect();
        clusters.sort_by_key(|(cluster, account)| (preferences.rank(cluster.id), account.is_none()));
        let more = clusters.len().saturating_sub(MAX_CLUSTERS);
        clusters.truncate(MAX_CLUSTERS);
        let mut sorted = Self { in_use: Vec::new(), away: Vec::new(), unused: Vec::new(), more };
        for (cluster, account) in clusters {
            let Some(account) = account else {
                sorted.unused.push(cluster.clone());
                continue;
            };
            let line = HomeClusterLine::new(app, cluster, account, queues);
            let list = if line.is_away() { &mut sorted.away } else { &mut sorted.in_use };
            list.push(line);
        }
        sorted
    }

    pub const fn is_empty(&self) -> bool {
        self.in_use.is_empty() && self.away.is_empty() && self.unused.is_empty()
    }

    /// The names of those that aren't connected.
    pub fn away_names(&self) -> String {
        join_names(self.away.iter().map(|line| line.cluster.title.as_str()), "and")
    }

    /// What needs attention on a cluster that isn't connected.
    pub fn away_warning(&self) -> Option<&HomeClusterLine> {
        let urgent = self.away.iter().filter(|line| !line.worst.level.is_empty());
        urgent.max_by_key(|line| line.worst.level == "danger")
    }

    /// The clusters whose connections the page watches.
    pub fn watched(&self) -> Vec<ClusterId> {
        let lines = self.in_use.iter().chain(&self.away).map(|line| line.cluster.id);
        lines.chain(self.unused.iter().map(|cluster| cluster.id)).collect()
    }

    /// The short name of a cluster that is connected; empty if none is.
    pub fn connected_slug(&self) -> &str {
        let connected = self.in_use.iter().find(|line| line.since.is_some());
        connected.map_or("", |line| line.cluster.slug.as_str())
    }
}

impl HomeClusterLine {
    fn new(app: &AppState, cluster: &Cluster, account: &ClusterAccount, queues: &[PersonClusterQueue]) -> Self {
        let status = account.status(&app.connections);
        let (kind, label) = match &status {
            _ if cluster.alarm_at().is_some() => ("failed", "Blocked"),
            ConnectionStatus::Up(_) => ("ok", "Connected"),
            ConnectionStatus::Connecting(_) => ("waiting", "Connecting"),
            ConnectionStatus::Down => ("neutral", "Not connected"),
        };
        let queue = queues.iter().find(|queue| queue.account.id == account.id);
        let resources = queue.and_then(OwnClusterResources::from_queue);
        Self {
            cluster: cluster.clone(),
            kind,
            label,
            user: account.remote_user.clone(),
            since: if let ConnectionStatus::Up(open) = &status { Some(open.since) } else { None },
            can_reconnect: kind == "neutral" && account.connected_at.is_some(),
            worst: resources.as_ref().map(OwnClusterResources::worst).unwrap_or_default(),
            resources,
        }
    }

    fn is_away(&self) -> bool {
        self.kind == "neutral"
    }
}

/// `A`, `A and B`, `A, B and C`; or with another word than "and".
pub fn join_names<'a>(names: impl Iterator<Item = &'a str>, conjunction: &str) -> String {
    let names: Vec<&str> = names.collect();
    match names.as_slice() {
        [] => String::new(),
        [only] => (*only).to_owned(),
        [first @ .., last] => format!("{} {conjunction} {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::join_names;

    #[test]
    fn names_in_a_sentence() {
        for (names, expected) in
            [(&[][..], ""), (&["Fram"], "Fram"), (&["A", "B"], "A and B"), (&["A", "B", "C"], "A, B and C")]
        {
            assert_eq!(join_names(names.iter().copied(), "and"), expected);
        }
        assert_eq!(join_names(["A", "B", "C"].into_iter(), "or"), "A, B or C");
    }
}
