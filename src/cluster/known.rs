//! A cluster with everything that is known of it: its site's description, its pinned host keys, the way to it.

use std::sync::Arc;

use crate::domain::{HostName, LineRole, RemoteUser, Slug};
use crate::sites::{AuthFactor, Site};
use crate::ssh::host_keys::HostKey;
use crate::ssh::route::{RouteHost, SshRoute};
use crate::ssh::{ClusterConnection, CommandDialect, ControlMaster};
use crate::store::{self, clusters::Cluster};

/// A cluster with its description.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its row.
    pub row: Cluster,
    /// What it is like.
    pub site: Site,
    /// Its pinned host keys, by host: `login`, `jump`, `robot`.
    pub pins: Vec<(String, HostKey)>,
}

/// The host names under which keys are pinned.
pub mod hops {
    /// The login host.
    pub const LOGIN: &str = "login";
    /// The host before it.
    pub const JUMP: &str = "jump";
    /// The automation host.
    pub const ROBOT: &str = "robot";
}

impl Known {
    /// Reads a cluster with this short name.
    pub async fn by_slug(db: &mut store::Connection, slug: &str) -> store::Result<Option<Self>> {
        match store::clusters::by_slug(db, slug).await? {
            Some(row) => Self::of(db, row).await.map(Some),
            None => Ok(None),
        }
    }

    /// Completes a row.
    pub async fn of(db: &mut store::Connection, row: Cluster) -> store::Result<Self> {
        let pins = store::clusters::pins(db, row.id).await?;
        let pins = pins
            .into_iter()
            .filter_map(|(hop, line)| Some((hop, HostKey::parse(&line)?)))
            .collect();
        let slug = row.slug.parse().map_err(|_| store::StoreError::Malformed("clusters.slug"))?;
        Ok(Self { site: description(&row, slug), row, pins })
    }

    /// The keys that one of its hosts may show.
    pub fn keys_of(&self, hop: &str) -> Vec<HostKey> {
        self.pins.iter().filter(|(of, _)| of == hop).map(|(_, key)| key.clone()).collect()
    }

    /// The way to one of its hosts. None if the description does not tell.
    pub fn route(&self, role: LineRole, user: RemoteUser) -> Option<SshRoute> {
        let (host, port, hop) = match role {
            LineRole::Login => (self.row.host.parse().ok()?, self.row.port, hops::LOGIN),
            LineRole::Robot => {
                let (host, port) = self.robot_host()?;
                (host, port, hops::ROBOT)
            }
        };
        let jump = self.site.login.jump.as_ref().filter(|_| role == LineRole::Login).map(|jump| {
            RouteHost {
                host: jump.host.0.clone(),
                port: jump.port,
                host_keys: self.keys_of(hops::JUMP),
            }
        });
        let target = RouteHost { host, port, host_keys: self.keys_of(hop) };
        let ways = &self.site.login.accepts;
        let takes_password = role == LineRole::Login
            && (ways.is_empty() || ways.iter().any(|way| way.contains(&AuthFactor::Password)));
        Some(SshRoute { name: self.slug().clone(), user, target, jump, takes_password })
    }

    /// The automation host, if the site has one.
    pub fn robot_host(&self) -> Option<(HostName, u16)> {
        let robot = self.site.automation.as_ref()?;
        Some((robot.hosts.first()?.0.clone(), robot.port))
    }

    /// A connection over a master, within this site's limits.
    pub fn line_on(
        &self,
        master: ControlMaster,
        dialect: CommandDialect,
    ) -> Arc<ClusterConnection> {
        let limits = &self.site.limits;
        ClusterConnection::new(
            master,
            dialect,
            usize::from(limits.sessions),
            u32::from(limits.calls_per_minute),
        )
    }

    /// Its short name.
    pub const fn slug(&self) -> &Slug {
        &self.site.name.0
    }

    /// Whether one may connect to it at present.
    pub fn is_open(&self) -> bool {
        self.row.retired().is_none() && self.row.alarmed().is_none()
    }
}

/// What a row says of its cluster. Name, host and port have columns of their own, which count.
fn description(row: &Cluster, slug: Slug) -> Site {
    let name = crate::sites::SiteName(slug);
    let mut site = Site::from_json(&row.site)
        .unwrap_or_else(|_| Site::with_defaults(name.clone(), &row.title));
    site.name = name;
    site.title.clone_from(&row.title);
    site.login.host = row.host.parse().ok().map(crate::sites::SiteHost);
    site.login.port = row.port;
    site
}
