//! Table `fair_share_history`: fair share over time, as read over one person's connection.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId};

/// At most one point per account within this many seconds.
pub const MIN_INTERVAL_SECONDS: i64 = 6 * 3600;

/// An account's target share and its usage at a moment, each as a fraction of the whole.
#[derive(Debug, Clone, Copy, PartialEq, sqlx::FromRow)]
pub struct FairSharePoint {
    pub at: UnixTime,
    /// The target share.
    pub share: f64,
    pub used: f64,
}

/// Adds a point if the last one is old enough. True if it was added.
pub async fn add(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    account: &str,
    point: FairSharePoint,
) -> Result<bool> {
    Ok(affected_rows!(
        db,
        "INSERT INTO fair_share_history (person_id, cluster_id, account, at, share, used)
         SELECT $1, $2, $3, $4, $5, $6 WHERE NOT EXISTS (
             SELECT 1 FROM fair_share_history
             WHERE person_id = $1 AND cluster_id = $2 AND account = $3 AND at > $7)",
        [person, cluster, account, point.at, point.share, point.used, point.at.plus(-MIN_INTERVAL_SECONDS)]
    )? > 0)
}

/// The points of an account since a given time, oldest first.
pub async fn list_since(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    account: &str,
    from: UnixTime,
) -> Result<Vec<FairSharePoint>> {
    fetch_all!(
        db,
        "SELECT at, share, used FROM fair_share_history
         WHERE person_id = $1 AND cluster_id = $2 AND account = $3 AND at >= $4 ORDER BY at",
        [person, cluster, account, from]
    )
}

/// Deletes points older than `until` and returns how many.
pub async fn sweep(db: &mut DbConnection, until: UnixTime) -> Result<u64> {
    affected_rows!(db, "DELETE FROM fair_share_history WHERE at < $1", [until])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::{Store, commit};

    #[tokio::test]
    async fn points_are_hours_apart_and_run_out() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let mut tx = store.write().await.unwrap();
        sqlx::query("PRAGMA defer_foreign_keys = ON").execute(&mut *tx).await.unwrap();
        let (person, cluster) = (PersonId(1), ClusterId(1));
        let point = |at: i64| FairSharePoint { at: UnixTime(at), share: 0.2, used: 0.4 };
        let mut added = Vec::new();
        for at in [0, 10, MIN_INTERVAL_SECONDS - 1, MIN_INTERVAL_SECONDS, MIN_INTERVAL_SECONDS + 9] {
            added.push(add(&mut tx, person, cluster, "a", point(at)).await.unwrap());
        }
        assert_eq!(added, [true, false, false, true, false]);
        assert!(add(&mut tx, person, cluster, "b", point(10)).await.unwrap(), "another account");
        let found = list_since(&mut tx, person, cluster, "a", UnixTime(1)).await.unwrap();
        assert_eq!(found, [point(MIN_INTERVAL_SECONDS)]);
        assert_eq!(sweep(&mut tx, UnixTime(MIN_INTERVAL_SECONDS)).await.unwrap(), 2);
        assert_eq!(sweep(&mut tx, UnixTime(i64::MAX)).await.unwrap(), 1);
        commit(tx).await.unwrap();
    }
}
