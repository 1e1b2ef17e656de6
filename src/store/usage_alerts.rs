//! Tables `usage_alerts` and `usage_alerts_sent`: the alerts that PIs want, and those that they already got.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, GroupId, PersonId};

/// The alerts that a person wants for a group: codes of `usage::alerts::UsageAlertKind`.
pub async fn list_kinds(db: &mut DbConnection, person: PersonId, group: GroupId) -> Result<Vec<String>> {
    Ok(sqlx::query_scalar("SELECT kind FROM usage_alerts WHERE person_id = $1 AND group_id = $2 ORDER BY kind")
        .bind(person)
        .bind(group)
        .fetch_all(db)
        .await?)
}

/// The groups with an account on a cluster for which a person wants alerts, and which ones.
pub async fn list_for_cluster(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
) -> Result<Vec<(GroupId, String)>> {
    Ok(sqlx::query_as(
        "SELECT group_id, kind FROM usage_alerts WHERE person_id = $1 AND group_id IN (
            SELECT group_id FROM group_accounts WHERE cluster_id = $2) ORDER BY group_id, kind",
    )
    .bind(person)
    .bind(cluster)
    .fetch_all(db)
    .await?)
}

/// Replaces the alerts that a person wants for a group.
pub async fn replace_kinds(
    db: &mut DbConnection,
    person: PersonId,
    group: GroupId,
    kinds: &[&'static str],
) -> Result<()> {
    sqlx::query("DELETE FROM usage_alerts WHERE person_id = $1 AND group_id = $2")
        .bind(person)
        .bind(group)
        .execute(&mut *db)
        .await?;
    for kind in kinds {
        sqlx::query("INSERT INTO usage_alerts (person_id, group_id, kind) VALUES ($1, $2, $3)")
            .bind(person)
            .bind(group)
            .bind(*kind)
            .execute(&mut *db)
            .await?;
    }
    Ok(())
}

/// Whether a person already got this alert.
pub async fn was_notified(db: &mut DbConnection, person: PersonId, group: GroupId, dedup_key: &str) -> Result<bool> {
    Ok(sqlx::query_scalar(
        "SELECT EXISTS (SELECT 1 FROM usage_alerts_sent WHERE person_id = $1 AND group_id = $2 AND dedup_key = $3)",
    )
    .bind(person)
    .bind(group)
    .bind(dedup_key)
    .fetch_one(db)
    .await?)
}

/// Records that a person gets this alert. False if they already got it.
pub async fn mark_notified(
    db: &mut DbConnection,
    person: PersonId,
    group: GroupId,
    dedup_key: &str,
    now: UnixTime,
) -> Result<bool> {
    let done = sqlx::query(
        "INSERT INTO usage_alerts_sent (person_id, group_id, dedup_key, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
    )
    .bind(person)
    .bind(group)
    .bind(dedup_key)
    .bind(now)
    .execute(db)
    .await?;
    Ok(done.rows_affected() == 1)
}

/// Forgets that anyone got an alert about a group, so that it is sent again.
pub async fn clear_notified(db: &mut DbConnection, group: GroupId, dedup_key: &str) -> Result<()> {
    sqlx::query("DELETE FROM usage_alerts_sent WHERE group_id = $1 AND dedup_key = $2")
        .bind(group)
        .bind(dedup_key)
        .execute(db)
        .await?;
    Ok(())
}

/// Deletes records of alerts sent before then.
pub async fn sweep(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    let done = sqlx::query("DELETE FROM usage_alerts_sent WHERE at < $1").bind(before).execute(db).await?;
    Ok(done.rows_affected())
}
