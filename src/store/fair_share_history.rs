//! Table `fair_share_history`: fair share over time, as read over people's connections. A group sees what its members read.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, GroupId, PersonId};

/// At most one point per person and account within this many seconds, and one per group and account in what pages show.
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

/// The points of an account since a given time, oldest first, that any member of a group has read: one series, whoever of
/// them looks at it.
pub async fn list_since(
    db: &mut DbConnection,
    group: GroupId,
    cluster: ClusterId,
    account: &str,
    from: UnixTime,
) -> Result<Vec<FairSharePoint>> {
    let read: Vec<FairSharePoint> = fetch_all!(
        db,
        "SELECT at, share, used FROM fair_share_history
         WHERE person_id IN (SELECT person_id FROM memberships WHERE group_id = $1)
           AND cluster_id = $2 AND account = $3 AND at >= $4
         ORDER BY at, person_id",
        [group, cluster, account, from]
    )?;
    // Fixed intervals: the choice must not depend on where the series begins. The last point of each stays.
    let mut points: Vec<FairSharePoint> = Vec::new();
    for point in read {
        let interval = |point: &FairSharePoint| point.at.0.div_euclid(MIN_INTERVAL_SECONDS);
        match points.last_mut() {
            Some(last) if interval(last) == interval(&point) => *last = point,
            _ => points.push(point),
        }
    }
    Ok(points)
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
    async fn points_are_hours_apart_shared_by_the_group_and_run_out() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let mut tx = store.write().await.unwrap();
        sqlx::query("PRAGMA defer_foreign_keys = ON").execute(&mut *tx).await.unwrap();
        let sql = "INSERT INTO memberships (group_id, person_id, role, since)
                   VALUES (1, 1, 'pi', 0), (1, 2, 'member', 0), (2, 3, 'pi', 0)";
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
        let (person, cluster) = (PersonId(1), ClusterId(1));
        let point = |at: i64| FairSharePoint { at: UnixTime(at), share: 0.2, used: 0.4 };
        let mut added = Vec::new();
        for at in [0, 10, MIN_INTERVAL_SECONDS - 1, MIN_INTERVAL_SECONDS, MIN_INTERVAL_SECONDS + 9] {
            added.push(add(&mut tx, person, cluster, "a", point(at)).await.unwrap());
        }
        assert_eq!(added, [true, false, false, true, false]);
        assert!(add(&mut tx, person, cluster, "b", point(10)).await.unwrap(), "another account");
        let later = [MIN_INTERVAL_SECONDS + 100, 3 * MIN_INTERVAL_SECONDS];
        for at in later {
            assert!(add(&mut tx, PersonId(2), cluster, "a", point(at)).await.unwrap(), "another member");
        }
        let found = list_since(&mut tx, GroupId(1), cluster, "a", UnixTime(1)).await.unwrap();
        assert_eq!(found, later.map(point), "one point for each interval, whoever read it");
        assert_eq!(list_since(&mut tx, GroupId(2), cluster, "a", UnixTime(0)).await.unwrap(), []);
        assert_eq!(sweep(&mut tx, UnixTime(MIN_INTERVAL_SECONDS)).await.unwrap(), 2);
        assert_eq!(sweep(&mut tx, UnixTime(i64::MAX)).await.unwrap(), 3);
        for sql in ["DELETE FROM memberships", "DELETE FROM fair_share_history"] {
            sqlx::query(sql).execute(&mut *tx).await.unwrap();
        }
        commit(tx).await.unwrap();
    }
}
