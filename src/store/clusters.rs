//! Tables `clusters` and `host_keys`.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, DisplayName, HostName, Slug};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Cluster {
    pub id: ClusterId,
    pub slug: String,
    pub title: String,
    pub host: String,
    pub port: u16,
    /// The site description, as JSON; empty if nothing more is known.
    pub site: String,
    retired_at: Option<UnixTime>,
    alarm_at: Option<UnixTime>,
    /// The host key that the server showed instead of a pinned one.
    pub alarm: String,
}

impl Cluster {
    /// When the cluster was retired.
    pub fn retired_at(&self) -> Option<UnixTime> {
        self.retired_at
    }

    /// Since when its host key is in doubt.
    pub fn alarm_at(&self) -> Option<UnixTime> {
        self.alarm_at
    }
}

/// What an administrator sets for a cluster.
pub struct ClusterSettings<'a> {
    pub title: &'a DisplayName,
    pub host: &'a HostName,
    pub port: u16,
    /// The site description, as JSON.
    pub site: &'a str,
}

/// A pinned host key: the host, and the line `ssh-ed25519 AAAA…`.
pub type PinnedHostKey = (String, String);

macro_rules! columns {
    () => {
        "SELECT id, slug, title, host, port, site, retired_at, alarm_at, alarm FROM clusters "
    };
}

pub async fn add(
    db: &mut DbConnection,
    slug: &Slug,
    details: &ClusterSettings<'_>,
    now: UnixTime,
) -> Result<ClusterId> {
    scalar_one!(
        db,
        "INSERT INTO clusters (slug, title, host, port, site, created_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
        [slug.as_str(), details.title.as_str(), details.host.as_str(), details.port, details.site, now]
    )
}

/// Changes the description of a cluster.
pub async fn update(db: &mut DbConnection, id: ClusterId, details: &ClusterSettings<'_>) -> Result<()> {
    execute!(
        db,
        "UPDATE clusters SET title = $2, host = $3, port = $4, site = $5 WHERE id = $1",
        [id, details.title.as_str(), details.host.as_str(), details.port, details.site]
    )
}

pub async fn replace_host_keys(
    db: &mut DbConnection,
    id: ClusterId,
    pins: &[PinnedHostKey],
    now: UnixTime,
) -> Result<()> {
    execute!(db, "DELETE FROM host_keys WHERE cluster_id = $1", [id])?;
    for (hop, line) in pins {
        execute!(
            db,
            "INSERT INTO host_keys (cluster_id, hop, line, pinned_at) VALUES ($1, $2, $3, $4)",
            [id, hop, line, now]
        )?;
    }
    Ok(())
}

pub async fn list_host_keys(db: &mut DbConnection, id: ClusterId) -> Result<Vec<PinnedHostKey>> {
    fetch_all!(db, "SELECT hop, line FROM host_keys WHERE cluster_id = $1 ORDER BY hop, line", [id])
}

/// All clusters by name, retired ones last.
pub async fn list(db: &mut DbConnection) -> Result<Vec<Cluster>> {
    fetch_all!(db, concat!(columns!(), "ORDER BY retired_at IS NOT NULL, title"))
}

pub async fn find_by_slug(db: &mut DbConnection, slug: &str) -> Result<Option<Cluster>> {
    fetch_optional!(db, concat!(columns!(), "WHERE slug = $1"), [slug])
}

pub async fn get(db: &mut DbConnection, id: ClusterId) -> Result<Option<Cluster>> {
    fetch_optional!(db, concat!(columns!(), "WHERE id = $1"), [id])
}

/// Retires a cluster, or puts it back into use.
pub async fn set_retired(db: &mut DbConnection, id: ClusterId, at: Option<UnixTime>) -> Result<()> {
    execute!(db, "UPDATE clusters SET retired_at = $2 WHERE id = $1", [id, at])
}

/// Raises the alarm about a cluster's host key, or clears it.
pub async fn set_alarm(db: &mut DbConnection, id: ClusterId, alarm: Option<(UnixTime, &str)>) -> Result<()> {
    execute!(
        db,
        "UPDATE clusters SET alarm_at = $2, alarm = $3 WHERE id = $1",
        [id, alarm.map(|(at, _)| at), alarm.map_or("", |(_, text)| text)]
    )
}

/// Deletes a cluster. False if there is none with this slug.
pub async fn remove(db: &mut DbConnection, slug: &Slug) -> Result<bool> {
    affects_row!(db, "DELETE FROM clusters WHERE slug = $1", [slug.as_str()])
}
