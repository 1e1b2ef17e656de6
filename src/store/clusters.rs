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
pub struct ClusterDetails<'a> {
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

pub async fn add(db: &mut DbConnection, slug: &Slug, what: &ClusterDetails<'_>, now: UnixTime) -> Result<ClusterId> {
    Ok(sqlx::query_scalar(
        "INSERT INTO clusters (slug, title, host, port, site, created_at) VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
    )
    .bind(slug.as_str())
    .bind(what.title.as_str())
    .bind(what.host.as_str())
    .bind(what.port)
    .bind(what.site)
    .bind(now)
    .fetch_one(db)
    .await?)
}

/// Changes the description of a cluster.
pub async fn update(db: &mut DbConnection, id: ClusterId, what: &ClusterDetails<'_>) -> Result<()> {
    sqlx::query("UPDATE clusters SET title = $2, host = $3, port = $4, site = $5 WHERE id = $1")
        .bind(id)
        .bind(what.title.as_str())
        .bind(what.host.as_str())
        .bind(what.port)
        .bind(what.site)
        .execute(db)
        .await?;
    Ok(())
}

pub async fn replace_host_keys(
    db: &mut DbConnection,
    id: ClusterId,
    pins: &[PinnedHostKey],
    now: UnixTime,
) -> Result<()> {
    sqlx::query("DELETE FROM host_keys WHERE cluster_id = $1").bind(id).execute(&mut *db).await?;
    for (hop, line) in pins {
        sqlx::query("INSERT INTO host_keys (cluster_id, hop, line, pinned_at) VALUES ($1, $2, $3, $4)")
            .bind(id)
            .bind(hop)
            .bind(line)
            .bind(now)
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

pub async fn list_host_keys(db: &mut DbConnection, id: ClusterId) -> Result<Vec<PinnedHostKey>> {
    Ok(sqlx::query_as("SELECT hop, line FROM host_keys WHERE cluster_id = $1 ORDER BY hop, line")
        .bind(id)
        .fetch_all(db)
        .await?)
}

/// The pinned host keys of the login host, as `ssh-ed25519 AAAA…` lines.
pub async fn list_login_host_keys(db: &mut DbConnection, id: ClusterId) -> Result<Vec<String>> {
    let pins = list_host_keys(db, id).await?;
    Ok(pins.into_iter().filter(|(hop, _)| hop == "login").map(|(_, line)| line).collect())
}

/// All clusters by name, retired ones last.
pub async fn list(db: &mut DbConnection) -> Result<Vec<Cluster>> {
    Ok(sqlx::query_as(concat!(columns!(), "ORDER BY retired_at IS NOT NULL, title")).fetch_all(db).await?)
}

pub async fn find_by_slug(db: &mut DbConnection, slug: &str) -> Result<Option<Cluster>> {
    Ok(sqlx::query_as(concat!(columns!(), "WHERE slug = $1")).bind(slug).fetch_optional(db).await?)
}

pub async fn get(db: &mut DbConnection, id: ClusterId) -> Result<Option<Cluster>> {
    Ok(sqlx::query_as(concat!(columns!(), "WHERE id = $1")).bind(id).fetch_optional(db).await?)
}

/// Retires a cluster, or puts it back into use.
pub async fn set_retired(db: &mut DbConnection, id: ClusterId, at: Option<UnixTime>) -> Result<()> {
    sqlx::query("UPDATE clusters SET retired_at = $2 WHERE id = $1").bind(id).bind(at).execute(db).await?;
    Ok(())
}

/// Raises the alarm about a cluster's host key, or clears it.
pub async fn set_alarm(db: &mut DbConnection, id: ClusterId, alarm: Option<(UnixTime, &str)>) -> Result<()> {
    sqlx::query("UPDATE clusters SET alarm_at = $2, alarm = $3 WHERE id = $1")
        .bind(id)
        .bind(alarm.map(|(at, _)| at))
        .bind(alarm.map_or("", |(_, text)| text))
        .execute(db)
        .await?;
    Ok(())
}

/// Deletes a cluster. False if there is none with this slug.
pub async fn remove(db: &mut DbConnection, slug: &Slug) -> Result<bool> {
    let done = sqlx::query("DELETE FROM clusters WHERE slug = $1").bind(slug.as_str()).execute(db).await?;
    Ok(done.rows_affected() == 1)
}
