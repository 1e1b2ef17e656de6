//! What administrators decide: which clusters there are, what they are like, and which host keys are believed.

use super::known::{Known, hops};
use super::lines::Lines;
use crate::auth::activity::{About, Actor, Event, record};
use crate::auth::{Action, AuthError};
use crate::domain::{ClusterId, HostName, Label};
use crate::sites::{Site, SiteError};
use crate::ssh::host_keys::{self, HostKey, HostKeyScanError};
use crate::store::clusters::{Description, Pin};
use crate::store::{self, StoreError};

/// Why a decision was not carried out.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// The description cannot be used.
    #[error(transparent)]
    Site(#[from] SiteError),
    /// The name for people cannot be used.
    #[error("{0}")]
    Title(&'static str),
    /// There is a cluster of this short name.
    #[error("There is a cluster with this short name already.")]
    Taken,
    /// No host key was given for one of its hosts.
    #[error("At least one host key of each host must be pinned.")]
    NoHostKey,
    /// The account.
    #[error(transparent)]
    Auth(#[from] AuthError),
    /// The database.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// One of a cluster's hosts with the keys it shows.
pub struct Scanned {
    /// `login`, `jump` or `robot`.
    pub hop: &'static str,
    /// The host.
    pub host: HostName,
    /// Its port.
    pub port: u16,
    /// What it shows, or why nothing.
    pub shown: Result<Vec<HostKey>, HostKeyScanError>,
    /// The fingerprints that its centre publishes.
    pub published: Vec<String>,
}

impl Scanned {
    /// Whether one of the keys it shows is a published one.
    pub fn is_as_published(&self) -> bool {
        self.shown.as_ref().is_ok_and(|keys| keys.iter().any(|key| self.is_published(key)))
    }

    /// Whether the centre publishes other keys than the host shows.
    pub fn differs(&self) -> bool {
        !self.published.is_empty() && self.shown.is_ok() && !self.is_as_published()
    }

    /// Whether a key is a published one.
    pub fn is_published(&self, key: &HostKey) -> bool {
        self.published.iter().any(|published| *published == key.fingerprint())
    }
}

/// Asks each host of a site for its keys. A host behind a jump host cannot be asked from here.
pub async fn scan(site: &Site) -> Vec<Scanned> {
    let mut scanned = Vec::new();
    for (hop, host, port, published) in hosts(site) {
        let shown = host_keys::scan(&host, port).await;
        scanned.push(Scanned { hop, host, port, shown, published });
    }
    scanned
}

/// The hosts of a site whose keys must be pinned.
pub fn hosts(site: &Site) -> Vec<(&'static str, HostName, u16, Vec<String>)> {
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
    if let Some(robot) = &site.automation
        && let Some(host) = robot.hosts.first()
    {
        hosts.push((hops::ROBOT, host.0.clone(), robot.port, words(&robot.fingerprints)));
    }
    hosts
}

impl Lines {
    /// Adds a cluster with its pinned host keys.
    pub async fn add_cluster(
        &self,
        actor: &Actor,
        site: &Site,
        pins: &[Pin],
    ) -> Result<ClusterId, Refused> {
        refuse_unpinned(site, pins)?;
        let (title, json) = (title(site)?, site.to_json()?);
        let host = site.host()?;
        let now = self.0.clock.now();
        let mut tx = self.0.store.write().await?;
        self.0.auth.authorise(&mut tx, actor, Action::ManageClusters).await?;
        let what = Description { title: &title, host: &host.0, port: site.login.port, site: &json };
        let id = match store::clusters::add(&mut tx, &site.name.0, &what, now).await {
            Err(StoreError::Taken) => return Err(Refused::Taken),
            other => other?,
        };
        store::clusters::pin(&mut tx, id, pins, now).await?;
        self.note(&mut tx, actor, Event::ClusterAdded, site.name.as_str()).await?;
        store::commit(tx).await?;
        Ok(id)
    }

    /// Changes what is known of a cluster. Where it leads elsewhere, its connections are closed.
    pub async fn change_cluster(
        &self,
        actor: &Actor,
        known: &Known,
        site: &Site,
        pins: Option<&[Pin]>,
    ) -> Result<(), Refused> {
        let (title, json) = (title(site)?, site.to_json()?);
        let host = site.host()?;
        let mut tx = self.0.store.write().await?;
        self.0.auth.authorise(&mut tx, actor, Action::ManageClusters).await?;
        let what = Description { title: &title, host: &host.0, port: site.login.port, site: &json };
        store::clusters::describe(&mut tx, known.row.id, &what).await?;
        if let Some(pins) = pins {
            refuse_unpinned(site, pins)?;
            store::clusters::pin(&mut tx, known.row.id, pins, self.0.clock.now()).await?;
            store::clusters::set_alarm(&mut tx, known.row.id, None).await?;
        }
        self.note(&mut tx, actor, Event::ClusterChanged, &known.row.slug).await?;
        store::commit(tx).await?;
        if pins.is_some() {
            self.set_alarm(known.row.id, false);
            self.close_cluster(known.row.id).await;
        }
        Ok(())
    }

    /// Takes a cluster out of use, closing every connection to it, or back into use.
    pub async fn set_retired(
        &self,
        actor: &Actor,
        known: &Known,
        retired: bool,
    ) -> Result<(), Refused> {
        let mut tx = self.0.store.write().await?;
        self.0.auth.authorise(&mut tx, actor, Action::ManageClusters).await?;
        let at = retired.then(|| self.0.clock.now());
        store::clusters::set_retired(&mut tx, known.row.id, at).await?;
        let event = if retired { Event::ClusterRetired } else { Event::ClusterRestored };
        self.note(&mut tx, actor, event, &known.row.slug).await?;
        store::commit(tx).await?;
        if retired {
            self.close_cluster(known.row.id).await;
        }
        Ok(())
    }

    /// Forgets a cluster that is out of use.
    pub async fn remove_cluster(&self, actor: &Actor, known: &Known) -> Result<(), Refused> {
        let mut tx = self.0.store.write().await?;
        self.0.auth.authorise(&mut tx, actor, Action::ManageClusters).await?;
        store::clusters::remove(&mut tx, known.slug()).await?;
        self.note(&mut tx, actor, Event::ClusterRemoved, &known.row.slug).await?;
        store::commit(tx).await?;
        self.close_cluster(known.row.id).await;
        Ok(())
    }

    /// Pins other host keys: the alarm is over, and everyone connects anew.
    pub async fn pin_host_keys(
        &self,
        actor: &Actor,
        known: &Known,
        pins: &[Pin],
    ) -> Result<(), Refused> {
        refuse_unpinned(&known.site, pins)?;
        let mut tx = self.0.store.write().await?;
        self.0.auth.authorise(&mut tx, actor, Action::ManageClusters).await?;
        store::clusters::pin(&mut tx, known.row.id, pins, self.0.clock.now()).await?;
        store::clusters::set_alarm(&mut tx, known.row.id, None).await?;
        self.note(&mut tx, actor, Event::HostKeysPinned, &known.row.slug).await?;
        store::commit(tx).await?;
        self.set_alarm(known.row.id, false);
        self.close_cluster(known.row.id).await;
        Ok(())
    }

    /// The alarm was false: the pinned keys stay, connections go on.
    pub async fn end_alarm(&self, actor: &Actor, known: &Known) -> Result<(), Refused> {
        let mut tx = self.0.store.write().await?;
        self.0.auth.authorise(&mut tx, actor, Action::ManageClusters).await?;
        store::clusters::set_alarm(&mut tx, known.row.id, None).await?;
        self.note(&mut tx, actor, Event::HostKeyAlarmEnded, &known.row.slug).await?;
        store::commit(tx).await?;
        self.set_alarm(known.row.id, false);
        Ok(())
    }

    async fn note(
        &self,
        db: &mut store::Connection,
        actor: &Actor,
        event: Event,
        slug: &str,
    ) -> Result<(), StoreError> {
        let about = About { subject: slug, ..About::default() };
        record(db, actor, event, about, self.0.clock.now()).await
    }
}

fn title(site: &Site) -> Result<Label, Refused> {
    site.title.parse().map_err(|error: crate::domain::NameError| Refused::Title(error.0))
}

/// The login host and the host before it must be pinned; the automation host may be pinned later.
fn refuse_unpinned(site: &Site, pins: &[Pin]) -> Result<(), Refused> {
    let pinned =
        |hop: &str| pins.iter().any(|(of, line)| of == hop && HostKey::parse(line).is_some());
    let missing = hosts(site).iter().any(|(hop, ..)| *hop != hops::ROBOT && !pinned(hop));
    if missing || pins.iter().any(|(_, line)| HostKey::parse(line).is_none()) {
        return Err(Refused::NoHostKey);
    }
    Ok(())
}
