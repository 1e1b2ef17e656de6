//! Tables `usage_alerts` and `usage_alerts_sent`: the alerts that PIs want, and those that they already got.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, GroupId, PersonId};

/// The alerts that a person wants for a group: codes of `usage::alerts::UsageAlertKind`, and from which percentage.
pub async fn list_kinds(db: &mut DbConnection, person: PersonId, group: GroupId) -> Result<Vec<(String, Option<i64>)>> {
    fetch_all!(
        db,
        "SELECT kind, percent FROM usage_alerts WHERE person_id = $1 AND group_id = $2 ORDER BY kind",
        [person, group]
    )
}

/// The groups with an account on a cluster for which a person wants alerts, which ones, and from which percentage.
pub async fn list_for_cluster(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
) -> Result<Vec<(GroupId, String, Option<i64>)>> {
    fetch_all!(
        db,
        "SELECT group_id, kind, percent FROM usage_alerts WHERE person_id = $1 AND group_id IN (
            SELECT group_id FROM group_accounts WHERE cluster_id = $2) ORDER BY group_id, kind",
        [person, cluster]
    )
}

/// The people who want alerts for a group.
pub async fn list_people(db: &mut DbConnection, group: GroupId) -> Result<Vec<PersonId>> {
    scalar_all!(db, "SELECT DISTINCT person_id FROM usage_alerts WHERE group_id = $1 ORDER BY 1", [group])
}

/// Replaces the alerts that a person wants for a group.
pub async fn replace_kinds(
    db: &mut DbConnection,
    person: PersonId,
    group: GroupId,
    kinds: &[(&'static str, Option<i64>)],
) -> Result<()> {
    execute!(db, "DELETE FROM usage_alerts WHERE person_id = $1 AND group_id = $2", [person, group])?;
    for (kind, percent) in kinds {
        execute!(
            db,
            "INSERT INTO usage_alerts (person_id, group_id, kind, percent) VALUES ($1, $2, $3, $4)",
            [person, group, *kind, *percent]
        )?;
    }
    Ok(())
}

/// Whether a person already got this alert.
pub async fn was_notified(db: &mut DbConnection, person: PersonId, group: GroupId, dedup_key: &str) -> Result<bool> {
    scalar_one!(
        db,
        "SELECT EXISTS (SELECT 1 FROM usage_alerts_sent WHERE person_id = $1 AND group_id = $2 AND dedup_key = $3)",
        [person, group, dedup_key]
    )
}

/// Records that a person gets this alert. False if they already got it.
pub async fn mark_notified(
    db: &mut DbConnection,
    person: PersonId,
    group: GroupId,
    dedup_key: &str,
    now: UnixTime,
) -> Result<bool> {
    affects_row!(
        db,
        "INSERT INTO usage_alerts_sent (person_id, group_id, dedup_key, at) VALUES ($1, $2, $3, $4) ON CONFLICT DO NOTHING",
        [person, group, dedup_key, now]
    )
}

/// Forgets that anyone got an alert about a group, whatever it said after this key, so that it is sent again.
pub async fn clear_notified(db: &mut DbConnection, group: GroupId, dedup_key: &str) -> Result<()> {
    execute!(
        db,
        "DELETE FROM usage_alerts_sent
         WHERE group_id = $1 AND (dedup_key = $2 OR substr(dedup_key, 1, length($2) + 1) = $2 || ':')",
        [group, dedup_key]
    )
}

/// Forgets that a person got an alert, so that it is sent again. True if they had got it.
pub async fn clear_notified_person(
    db: &mut DbConnection,
    person: PersonId,
    group: GroupId,
    dedup_key: &str,
) -> Result<bool> {
    affects_row!(
        db,
        "DELETE FROM usage_alerts_sent WHERE person_id = $1 AND group_id = $2 AND dedup_key = $3",
        [person, group, dedup_key]
    )
}

/// Deletes records of alerts sent before then.
pub async fn sweep(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    affected_rows!(db, "DELETE FROM usage_alerts_sent WHERE at < $1", [before])
}
