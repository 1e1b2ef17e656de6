//! What administrators decide: which clusters there are, how they are described, and which host keys are trusted.

use super::cluster_profile::{ClusterProfile, hops};
use super::connection_pool::ConnectionPool;
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission};
use crate::domain::{ClusterId, DisplayName, HostName};
use crate::sites::{Site, SiteError};
use crate::ssh::host_keys::{self, HostKey, HostKeyScanError};
use crate::store::clusters::{ClusterSettings, PinnedHostKey};
use crate::store::{self, StoreError};

/// Why a change was not made.
#[derive(Debug, thiserror::Error)]
pub enum ClusterChangeError {
    /// The site description is invalid.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The title is invalid.
    #[error("{0}")]
    Title(&'static str),
    #[error("A cluster with this short name already exists. Choose another one.")]
    SlugTaken,
    /// A host has no pinned key.
    #[error("Pin at least one host key for each host.")]
    NoHostKey,
    #[error(transparent)]
    Auth(#[from] AuthError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One of a cluster's hosts with the keys it shows.
pub struct ScannedHost {
    /// `login`, `jump` or `robot`.
    pub hop: &'static str,
    pub host: HostName,
    pub port: u16,
    /// The keys it shows, or why the scan failed.
    pub shown: Result<Vec<HostKey>, HostKeyScanError>,
    /// The fingerprints that its centre publishes.
    pub published: Vec<String>,
}

impl ScannedHost {
    /// Whether the centre publishes one of the keys that the host shows.
    pub fn has_published_key(&self) -> bool {
        self.shown.as_ref().is_ok_and(|keys| keys.iter().any(|key| self.is_published(key)))
    }

    /// Whether the centre publishes only keys that the host does not show.
    pub fn is_mismatch(&self) -> bool {
        !self.published.is_empty() && self.shown.is_ok() && !self.has_published_key()
    }

    pub fn is_published(&self, key: &HostKey) -> bool {
        self.published.iter().any(|published| *published == key.fingerprint())
    }
}

/// Scans the keys of each host of a site. A host behind a jump host cannot be scanned from here.
pub async fn scan_hosts(site: &Site) -> Vec<ScannedHost> {
    let mut scanned = Vec::new();
    for (hop, host, port, published) in hosts_to_pin(site) {
        let shown = host_keys::scan(&host, port).await;
        scanned.push(ScannedHost { hop, host, port, shown, published });
    }
    scanned
}

/// The hosts of a site whose keys must be pinned.
pub fn hosts_to_pin(site: &Site) -> Vec<(&'static str, HostName, u16, Vec<String>)> {
    let words = |fingerprints: &[crate::sites::HostKeyFingerprint]| {
        fingerprints.iter().map(|fingerprint| fingerprint.as_str().to_owned()).collect::<Vec<_>>()
    };
    let mut hosts = Vec::new();
    if let Some(jump) = &site.login.jump {
        hosts.push((hops::JUMP, jump.host.0.clone(), jump.port, Vec::new()));
    }
    if let Some(host) = &site.login.host {
        hosts.push((hops::LOGIN, host.0.clone(), site.login.port, words(&site.login.fingerprints)));
    }
    if let Some(automation) = &site.automation
        && let Some(host) = automation.hosts.first()
    {
        hosts.push((hops::AUTOMATION, host.0.clone(), automation.port, words(&automation.fingerprints)));
    }
    hosts
}

impl ConnectionPool {
    pub async fn add_cluster(
        &self,
        actor: &Actor,
        site: &Site,
        pins: &[PinnedHostKey],
    ) -> Result<ClusterId, ClusterChangeError> {
        check_pins(site, pins)?;
        let (title, json) = (parse_title(site)?, site.to_json()?);
        let host = site.host()?;
        let now = self.0.core.clock.now();
        let mut tx = self.begin_change(actor).await?;
        let details = ClusterSettings { title: &title, host: &host.0, port: site.login.port, site: &json };
        let id = match store::clusters::add(&mut tx, &site.name.0, &details, now).await {
            Err(StoreError::AlreadyExists) => return Err(ClusterChangeError::SlugTaken),
            other => other?,
        };
        store::clusters::replace_host_keys(&mut tx, id, pins, now).await?;
        self.finish_change(tx, actor, ActivityEventKind::ClusterAdded, title.as_str()).await?;
        Ok(id)
    }

    /// Changes a cluster's description. If it now points elsewhere, its connections are closed.
    pub async fn update_cluster(
        &self,
        actor: &Actor,
        profile: &ClusterProfile,
        site: &Site,
        pins: Option<&[PinnedHostKey]>,
    ) -> Result<(), ClusterChangeError> {
        let (title, json) = (parse_title(site)?, site.to_json()?);
        let host = site.host()?;
        let mut tx = self.begin_change(actor).await?;
        let details = ClusterSettings { title: &title, host: &host.0, port: site.login.port, site: &json };
        store::clusters::update(&mut tx, profile.row.id, &details).await?;
        if let Some(pins) = pins {
            check_pins(site, pins)?;
            store::clusters::replace_host_keys(&mut tx, profile.row.id, pins, self.0.core.clock.now()).await?;
            store::clusters::set_alarm(&mut tx, profile.row.id, None).await?;
        }
        self.finish_change(tx, actor, ActivityEventKind::ClusterChanged, title.as_str()).await?;
        if pins.is_some() {
            self.set_alarm(profile.row.id, false);
            self.close_cluster(profile.row.id).await;
        }
        Ok(())
    }

    /// Retires a cluster and closes every connection to it, or puts it back into use.
    pub async fn set_retired(
        &self,
        actor: &Actor,
        profile: &ClusterProfile,
        retired: bool,
    ) -> Result<(), ClusterChangeError> {
        let mut tx = self.begin_change(actor).await?;
        let at = retired.then(|| self.0.core.clock.now());
        store::clusters::set_retired(&mut tx, profile.row.id, at).await?;
        let event = if retired { ActivityEventKind::ClusterRetired } else { ActivityEventKind::ClusterRestored };
        self.finish_change(tx, actor, event, &profile.row.title).await?;
        if retired {
            self.close_cluster(profile.row.id).await;
        }
        Ok(())
    }

    /// Deletes a retired cluster.
    pub async fn remove_cluster(&self, actor: &Actor, profile: &ClusterProfile) -> Result<(), ClusterChangeError> {
        let mut tx = self.begin_change(actor).await?;
        store::clusters::remove(&mut tx, profile.slug()).await?;
        self.finish_change(tx, actor, ActivityEventKind::ClusterRemoved, &profile.row.title).await?;
        self.close_cluster(profile.row.id).await;
        Ok(())
    }

    /// Pins other host keys: ends the alarm, and everyone has to connect again.
    pub async fn pin_host_keys(
        &self,
        actor: &Actor,
        profile: &ClusterProfile,
        pins: &[PinnedHostKey],
    ) -> Result<(), ClusterChangeError> {
        check_pins(&profile.site, pins)?;
        let mut tx = self.begin_change(actor).await?;
        store::clusters::replace_host_keys(&mut tx, profile.row.id, pins, self.0.core.clock.now()).await?;
        store::clusters::set_alarm(&mut tx, profile.row.id, None).await?;
        self.finish_change(tx, actor, ActivityEventKind::HostKeysPinned, &profile.row.title).await?;
        self.set_alarm(profile.row.id, false);
        self.close_cluster(profile.row.id).await;
        Ok(())
    }

    /// Ends a false alarm: the pinned keys stay, and connections continue.
    pub async fn end_alarm(&self, actor: &Actor, profile: &ClusterProfile) -> Result<(), ClusterChangeError> {
        let mut tx = self.begin_change(actor).await?;
        store::clusters::set_alarm(&mut tx, profile.row.id, None).await?;
        self.finish_change(tx, actor, ActivityEventKind::HostKeyAlarmEnded, &profile.row.title).await?;
        self.set_alarm(profile.row.id, false);
        Ok(())
    }

    /// Starts a change that only administrators may make.
    async fn begin_change(&self, actor: &Actor) -> Result<store::Transaction, ClusterChangeError> {
        let mut tx = self.0.core.store.write().await?;
        self.0.core.auth.authorise(&mut tx, actor, Permission::ManageClusters).await?;
        Ok(tx)
    }

    async fn finish_change(
        &self,
        mut tx: store::Transaction,
        actor: &Actor,
        event: ActivityEventKind,
        title: &str,
    ) -> Result<(), StoreError> {
        let about = ActivityDetails { subject: title, ..ActivityDetails::default() };
        record(&mut tx, actor, event, about, self.0.core.clock.now()).await?;
        store::commit(tx).await
    }
}

fn parse_title(site: &Site) -> Result<DisplayName, ClusterChangeError> {
    site.title.parse().map_err(|error: crate::domain::NameError| ClusterChangeError::Title(error.0))
}

/// The login node and the jump host must be pinned; the automation host may be pinned later.
fn check_pins(site: &Site, pins: &[PinnedHostKey]) -> Result<(), ClusterChangeError> {
    let pinned = |hop: &str| pins.iter().any(|(of, line)| of == hop && HostKey::parse(line).is_some());
    let missing = hosts_to_pin(site).iter().any(|(hop, ..)| *hop != hops::AUTOMATION && !pinned(hop));
    if missing || pins.iter().any(|(_, line)| HostKey::parse(line).is_none()) {
        return Err(ClusterChangeError::NoHostKey);
    }
    Ok(())
}
