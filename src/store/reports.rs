//! Table `reports`: usage reports of groups, as they were when someone froze them.

use super::guest_links::is_paused;
use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{GroupId, PersonId, ReportId};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct FrozenReport {
    pub id: ReportId,
    pub group_id: GroupId,
    /// The group's current name.
    pub group_name: String,
    /// The display name of the person who froze it; empty if they are gone.
    pub by: String,
    pub title: String,
    /// `usage::report::UsageReport` as JSON; empty in lists.
    pub body: String,
    pub created_at: UnixTime,
    /// How many links to it work.
    pub links: i64,
}

macro_rules! select {
    ($body:literal, $rest:literal) => {
        concat!(
            "SELECT r.id, r.group_id, g.name AS group_name, coalesce(p.display_name, '') AS by, r.title, ",
            $body,
            " AS body, r.created_at, (
                SELECT count(*) FROM guest_links l LEFT JOIN people maker ON maker.id = l.created_by
                WHERE l.report_id = r.id AND l.revoked_at IS NULL AND l.expires_at > $2 AND NOT ",
            is_paused!(),
            ") AS links
             FROM reports r JOIN groups g ON g.id = r.group_id LEFT JOIN people p ON p.id = r.person_id ",
            $rest
        )
    };
}

pub async fn add(
    db: &mut DbConnection,
    group: GroupId,
    by: PersonId,
    title: &str,
    body: &str,
    now: UnixTime,
) -> Result<ReportId> {
    scalar_one!(
        db,
        "INSERT INTO reports (group_id, person_id, title, body, created_at) VALUES ($1, $2, $3, $4, $5) RETURNING id",
        [group, by, title, body, now]
    )
}

/// One of a group's reports.
pub async fn get(db: &mut DbConnection, group: GroupId, id: ReportId, now: UnixTime) -> Result<Option<FrozenReport>> {
    fetch_optional!(
        db,
        select!("r.body", "WHERE r.group_id = $3 AND r.id = $1 AND r.removed_at IS NULL"),
        [id, now, group]
    )
}

/// A group's reports, newest first, without their content.
pub async fn list_for_group(db: &mut DbConnection, group: GroupId, now: UnixTime) -> Result<Vec<FrozenReport>> {
    fetch_all!(
        db,
        select!("''", "WHERE r.group_id = $1 AND r.removed_at IS NULL ORDER BY r.id DESC LIMIT 500"),
        [group, now]
    )
}

/// Counts a group's reports.
pub async fn count(db: &mut DbConnection, group: GroupId) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM reports WHERE group_id = $1 AND removed_at IS NULL", [group])
}

/// Deletes a report; guests who came by a link lose access at once. False if there was none.
pub async fn remove(db: &mut DbConnection, group: GroupId, id: ReportId, now: UnixTime) -> Result<bool> {
    execute!(
        db,
        "DELETE FROM guest_link_accesses WHERE link_id IN (
            SELECT l.id FROM guest_links l JOIN reports r ON r.id = l.report_id
            WHERE r.id = $1 AND r.group_id = $2)",
        [id, group]
    )?;
    // The content goes now. The row stays for a while, so that its links can say that the report was deleted.
    affects_row!(
        db,
        "UPDATE reports SET removed_at = $3, body = '' WHERE id = $1 AND group_id = $2 AND removed_at IS NULL",
        [id, group, now]
    )
}

/// Deletes the rows of reports that were removed before then.
pub async fn delete_removed(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    affected_rows!(db, "DELETE FROM reports WHERE removed_at < $1", [before])
}
