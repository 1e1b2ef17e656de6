//! Entries of the portal that lead to one and the same cluster: noticed when one is added, and once people are connected.

use super::cluster_profile::hops;
use super::connection_pool::ConnectionPool;
use crate::domain::ClusterId;
use crate::sites::Site;
use crate::store::clusters::{Cluster, PinnedHostKey};
use crate::store::{self, StoreError};

/// Another entry that seems to be the same cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SameClusterEntry {
    pub slug: String,
    pub title: String,
    pub evidence: SameClusterEvidence,
}

/// Why two entries seem to be the same cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SameClusterEvidence {
    /// They have the same login host and port.
    LoginHost,
    /// Their login hosts show the same host key.
    HostKey,
    /// Slurm gives the same cluster name and controller; holds the name.
    Slurm(String),
}

impl SameClusterEvidence {
    /// The rest of a sentence that starts with the other entry's title.
    pub fn words(&self) -> String {
        match self {
            Self::LoginHost => "has the same login host".to_owned(),
            Self::HostKey => "has a login host with the same host key".to_owned(),
            Self::Slurm(name) => format!("leads to the same Slurm cluster, {name}"),
        }
    }
}

impl ConnectionPool {
    /// Entries that have the login host of a new cluster, or a key that its login host shows: `ssh-ed25519 AAAA…`.
    pub async fn find_same_hosts(&self, site: &Site, shown: &[String]) -> Result<Vec<SameClusterEntry>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let mut same = Vec::new();
        for row in store::clusters::list(&mut db).await? {
            let pins = store::clusters::list_host_keys(&mut db, row.id).await?;
            let is_shown = |(hop, line): &PinnedHostKey| hop == hops::LOGIN && shown.contains(line);
            let evidence = if has_login_host(&row, site) {
                SameClusterEvidence::LoginHost
            } else if pins.iter().any(is_shown) {
                SameClusterEvidence::HostKey
            } else {
                continue;
            };
            same.push(SameClusterEntry { slug: row.slug, title: row.title, evidence });
        }
        Ok(same)
    }

    /// Other entries that lead to the same Slurm cluster, as far as people who connected have shown.
    pub async fn find_same_slurm(&self, cluster: ClusterId) -> Result<Vec<SameClusterEntry>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let known = store::connections::list_slurm_identities(&mut db).await?;
        let own: Vec<_> = known.iter().filter(|one| one.cluster_id == cluster).collect();
        let mut same: Vec<SameClusterEntry> = Vec::new();
        for row in store::clusters::list(&mut db).await?.into_iter().filter(|row| row.id != cluster) {
            let is_same = |one: &&store::connections::SlurmIdentity| {
                let mut theirs = known.iter().filter(|other| other.cluster_id == row.id);
                theirs.any(|other| (&other.name, &other.controller) == (&one.name, &one.controller))
            };
            if let Some(one) = own.iter().copied().find(is_same) {
                let evidence = SameClusterEvidence::Slurm(one.name.clone());
                same.push(SameClusterEntry { slug: row.slug, title: row.title, evidence });
            }
        }
        Ok(same)
    }
}

fn has_login_host(row: &Cluster, site: &Site) -> bool {
    let mut names = site.login.host.iter().chain(&site.login.also);
    row.port == site.login.port && names.any(|name| name.as_str().eq_ignore_ascii_case(&row.host))
}
