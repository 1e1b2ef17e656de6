//! A cluster with everything that is known about it: its site description, its pinned host keys, the route to it.

use std::sync::Arc;

use crate::domain::{ConnectionRole, HostName, RemoteUser, Slug};
use crate::sites::{Site, SiteLoginFactor};
use crate::ssh::host_keys::HostKey;
use crate::ssh::route::{SshRoute, SshRouteHost};
use crate::ssh::{ClusterConnection, ControlMaster, RemoteCommandMode};
use crate::store;
use crate::store::clusters::{Cluster, PinnedHostKey};

#[derive(Debug, Clone)]
pub struct ClusterProfile {
    pub row: Cluster,
    pub site: Arc<Site>,
    /// Its pinned host keys, by host: `login`, `jump`, `robot`.
    pub pins: Vec<(String, HostKey)>,
}

/// The names of the hosts under which keys are pinned.
pub mod hops {
    pub const LOGIN: &str = "login";
    pub const JUMP: &str = "jump";
    /// Stored as `robot` since 0.1.0.
    pub const AUTOMATION: &str = "robot";
}

impl ClusterProfile {
    /// Loads the cluster with this short name.
    pub async fn find_by_slug(db: &mut store::DbConnection, slug: &str) -> store::Result<Option<Self>> {
        match store::clusters::find_by_slug(db, slug).await? {
            Some(row) => Self::load(db, row).await.map(Some),
            None => Ok(None),
        }
    }

    pub async fn load(db: &mut store::DbConnection, row: Cluster) -> store::Result<Self> {
        let pins = store::clusters::list_host_keys(db, row.id).await?;
        Self::parse(row, &pins)
    }

    pub(super) fn parse(row: Cluster, pins: &[PinnedHostKey]) -> store::Result<Self> {
        let pins = pins.iter().filter_map(|(hop, line)| Some((hop.clone(), HostKey::parse(line)?))).collect();
        let slug = row.slug.parse().map_err(|_| store::StoreError::Malformed("clusters.slug"))?;
        Ok(Self { site: Arc::new(site_from_row(&row, slug)), row, pins })
    }

    /// The keys that one of its hosts may show.
    pub fn host_keys(&self, hop: &str) -> Vec<HostKey> {
        self.pins.iter().filter(|(of, _)| of == hop).map(|(_, key)| key.clone()).collect()
    }

    /// The route to one of its hosts. `None` if the site description lacks it.
    pub fn route(&self, role: ConnectionRole, user: RemoteUser) -> Option<SshRoute> {
        let (host, port, hop) = match role {
            ConnectionRole::Login => (self.row.host.parse().ok()?, self.row.port, hops::LOGIN),
            ConnectionRole::Automation => {
                let (host, port) = self.automation_host()?;
                (host, port, hops::AUTOMATION)
            }
        };
        let jump = self.site.login.jump.as_ref().filter(|_| role == ConnectionRole::Login).map(|jump| SshRouteHost {
            host: jump.host.0.clone(),
            port: jump.port,
            host_keys: self.host_keys(hops::JUMP),
        });
        let target = SshRouteHost { host, port, host_keys: self.host_keys(hop) };
        let ways = &self.site.login.accepts;
        let takes_password = role == ConnectionRole::Login
            && (ways.is_empty() || ways.iter().any(|way| way.contains(&SiteLoginFactor::Password)));
        Some(SshRoute { name: self.slug().clone(), user, target, jump, takes_password })
    }

    pub fn automation_host(&self) -> Option<(HostName, u16)> {
        let robot = self.site.automation.as_ref()?;
        Some((robot.hosts.first()?.0.clone(), robot.port))
    }

    /// A connection over a control master, within this site's limits.
    pub fn new_connection(&self, master: ControlMaster, dialect: RemoteCommandMode) -> Arc<ClusterConnection> {
        let limits = &self.site.limits;
        ClusterConnection::new(master, dialect, usize::from(limits.sessions), u32::from(limits.calls_per_minute))
    }

    pub fn slug(&self) -> &Slug {
        &self.site.name.0
    }

    /// Whether people can connect to it at present.
    pub fn is_open(&self) -> bool {
        self.row.retired_at().is_none() && self.row.alarm_at().is_none()
    }
}

/// The site description in a cluster's row. Name, host and port have columns of their own, which take precedence.
fn site_from_row(row: &Cluster, slug: Slug) -> Site {
    let name = crate::sites::SiteName(slug);
    let mut site = Site::from_json(&row.site).unwrap_or_else(|_| Site::with_defaults(name.clone(), &row.title));
    site.name = name;
    site.title.clone_from(&row.title);
    site.login.host = row.host.parse().ok().map(crate::sites::SiteHost);
    site.login.port = row.port;
    site
}
