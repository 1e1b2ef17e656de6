//! Table `share_points`: fair share over time, as one person's connection told it.

use super::{Connection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId};

/// No more than one point of an account within this many seconds.
pub const APART: i64 = 6 * 3600;

/// What an account was meant to have and had used at a moment, each as a part of the whole.
#[derive(Debug, Clone, Copy, PartialEq, sqlx::FromRow)]
pub struct SharePoint {
    /// When.
    #[sqlx(try_from = "i64")]
    pub at: UnixTime,
    /// What was meant for it.
    pub share: f64,
    /// What it used.
    pub used: f64,
}

/// Adds a point, if the last one is long enough ago. True if it was added.
pub async fn add(
    db: &mut Connection,
    person: PersonId,
    cluster: ClusterId,
    account: &str,
    point: SharePoint,
) -> Result<bool> {
    let done = sqlx::query(
        "INSERT INTO share_points (person_id, cluster_id, account, at, share, used)
         SELECT $1, $2, $3, $4, $5, $6 WHERE NOT EXISTS (
             SELECT 1 FROM share_points
             WHERE person_id = $1 AND cluster_id = $2 AND account = $3 AND at > $7)",
    )
    .bind(person.0)
    .bind(cluster.0)
    .bind(account)
    .bind(point.at.0)
    .bind(point.share)
    .bind(point.used)
    .bind(point.at.0 - APART)
    .execute(db)
    .await?;
    Ok(done.rows_affected() > 0)
}

/// The points of an account since a moment, the oldest first.
pub async fn since(
    db: &mut Connection,
    person: PersonId,
    cluster: ClusterId,
    account: &str,
    from: UnixTime,
) -> Result<Vec<SharePoint>> {
    Ok(sqlx::query_as(
        "SELECT at, share, used FROM share_points
         WHERE person_id = $1 AND cluster_id = $2 AND account = $3 AND at >= $4 ORDER BY at",
    )
    .bind(person.0)
    .bind(cluster.0)
    .bind(account)
    .bind(from.0)
    .fetch_all(db)
    .await?)
}

/// Deletes points older than a moment. Gives how many.
pub async fn sweep(db: &mut Connection, until: UnixTime) -> Result<u64> {
    let done =
        sqlx::query("DELETE FROM share_points WHERE at < $1").bind(until.0).execute(db).await?;
    Ok(done.rows_affected())
}
