//! Tables `clusters` and `cluster_host_keys`.

use super::{Connection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, HostName, Label, Slug};

/// A cluster this portal knows.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Cluster {
    /// Which.
    #[sqlx(try_from = "i64")]
    pub id: ClusterId,
    /// Short name.
    pub slug: String,
    /// Name for people.
    pub title: String,
    /// Login host.
    pub host: String,
    /// Port of its SSH server.
    #[sqlx(try_from = "i64")]
    pub port: u16,
}

/// Stores a cluster with its pinned host keys.
pub async fn add(
    db: &mut Connection,
    slug: &Slug,
    title: &Label,
    (host, port): (&HostName, u16),
    host_keys: &[String],
    now: UnixTime,
) -> Result<ClusterId> {
    let id: i64 = sqlx::query_scalar(
        "INSERT INTO clusters (slug, title, host, port, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING id",
    )
    .bind(slug.as_str())
    .bind(title.as_str())
    .bind(host.as_str())
    .bind(i64::from(port))
    .bind(now.0)
    .fetch_one(&mut *db)
    .await?;
    for line in host_keys {
        sqlx::query(
            "INSERT INTO cluster_host_keys (cluster_id, line, pinned_at) VALUES ($1, $2, $3)",
        )
        .bind(id)
        .bind(line)
        .bind(now.0)
        .execute(&mut *db)
        .await?;
    }
    Ok(ClusterId(id))
}

/// All clusters, by name.
pub async fn list(db: &mut Connection) -> Result<Vec<Cluster>> {
    Ok(sqlx::query_as("SELECT id, slug, title, host, port FROM clusters ORDER BY title")
        .fetch_all(db)
        .await?)
}

/// The pinned host keys of a cluster, as `ssh-ed25519 AAAA…` lines.
pub async fn host_keys(db: &mut Connection, id: ClusterId) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar("SELECT line FROM cluster_host_keys WHERE cluster_id = $1 ORDER BY line")
        .bind(id.0)
        .fetch_all(db)
        .await?)
}

/// Forgets a cluster. False if there is none of that name.
pub async fn remove(db: &mut Connection, slug: &Slug) -> Result<bool> {
    let done =
        sqlx::query("DELETE FROM clusters WHERE slug = $1").bind(slug.as_str()).execute(db).await?;
    Ok(done.rows_affected() == 1)
}
