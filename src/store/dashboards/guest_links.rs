//! Table `dashboard_guest_links`: links that show guests one dashboard. Only a hash of the secret part is kept.

use crate::clock::UnixTime;
use crate::domain::{DashboardId, DashboardLinkId, PersonId};
use crate::store::guest_links::StoredGuestLinkTerms;
use crate::store::{DbConnection, Result};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DashboardGuestLink {
    pub id: DashboardLinkId,
    pub dashboard_id: DashboardId,
    pub dashboard_title: String,
    /// The dashboard's owner.
    pub person_id: PersonId,
    /// The owner's display name.
    pub owner_name: String,
    /// Label, passphrase, expiry and usage.
    #[sqlx(flatten)]
    pub terms: StoredGuestLinkTerms,
}

impl DashboardGuestLink {
    /// Who made it, where that needs saying: only a dashboard's owner makes links to it.
    pub const fn maker(&self) -> &'static str {
        ""
    }

    /// Whether its maker has lost the right to share: a dashboard's owner never does.
    pub const fn is_orphan(&self) -> bool {
        false
    }
}

/// A guest link to add.
#[derive(Debug)]
pub struct NewDashboardGuestLink<'a> {
    pub dashboard: DashboardId,
    /// SHA-256 of the secret part.
    pub token_hash: [u8; 32],
    /// Who it is for.
    pub label: &'a str,
    /// The hash of the passphrase; empty if there is none.
    pub passphrase: &'a str,
    pub expires_at: UnixTime,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT l.id, l.dashboard_id, b.title AS dashboard_title, b.person_id, p.display_name AS owner_name, l.label,
                    l.passphrase, l.created_at, l.expires_at, l.revoked_at, l.opened, l.opened_at
             FROM dashboard_guest_links l JOIN dashboards b ON b.id = l.dashboard_id JOIN people p ON p.id = b.person_id ",
            $rest
        )
    };
}

pub async fn add(db: &mut DbConnection, new: &NewDashboardGuestLink<'_>, now: UnixTime) -> Result<DashboardLinkId> {
    Ok(sqlx::query_scalar(
        "INSERT INTO dashboard_guest_links (dashboard_id, token_hash, label, passphrase, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6) RETURNING id",
    )
    .bind(new.dashboard)
    .bind(&new.token_hash[..])
    .bind(new.label)
    .bind(new.passphrase)
    .bind(now)
    .bind(new.expires_at)
    .fetch_one(db)
    .await?)
}

/// The link with this secret, whether or not it still works.
pub async fn find(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<Option<DashboardGuestLink>> {
    Ok(sqlx::query_as(select!("WHERE l.token_hash = $1 AND b.removed_at IS NULL"))
        .bind(&token_hash[..])
        .fetch_optional(db)
        .await?)
}

pub async fn get(db: &mut DbConnection, id: DashboardLinkId) -> Result<Option<DashboardGuestLink>> {
    Ok(sqlx::query_as(select!("WHERE l.id = $1")).bind(id).fetch_optional(db).await?)
}

/// The links of a dashboard, newest first. Working links come before ended ones, so that none of them is cut off.
pub async fn list_for_dashboard(
    db: &mut DbConnection,
    dashboard: DashboardId,
    now: UnixTime,
) -> Result<Vec<DashboardGuestLink>> {
    Ok(sqlx::query_as(select!(
        "WHERE l.dashboard_id = $1 ORDER BY l.revoked_at IS NULL AND l.expires_at > $2 DESC, l.id DESC LIMIT 200"
    ))
    .bind(dashboard)
    .bind(now)
    .fetch_all(db)
    .await?)
}

/// Working links to dashboards whose owners belong to a group of this PI; for an administrator, to all dashboards.
pub async fn list_overseen(
    db: &mut DbConnection,
    pi: PersonId,
    is_admin: bool,
    now: UnixTime,
) -> Result<Vec<DashboardGuestLink>> {
    Ok(sqlx::query_as(select!(
        "WHERE l.revoked_at IS NULL AND l.expires_at > $3 AND b.removed_at IS NULL AND ($2 OR b.person_id IN (
            SELECT theirs.person_id FROM memberships theirs JOIN memberships mine
            ON mine.group_id = theirs.group_id WHERE mine.person_id = $1 AND mine.role = 'pi'))
         ORDER BY p.display_name, l.id DESC LIMIT 1000"
    ))
    .bind(pi)
    .bind(is_admin)
    .bind(now)
    .fetch_all(db)
    .await?)
}

/// Counts the working links of a dashboard.
pub async fn count_open(db: &mut DbConnection, dashboard: DashboardId, now: UnixTime) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM dashboard_guest_links WHERE dashboard_id = $1 AND revoked_at IS NULL AND expires_at > $2",
    )
    .bind(dashboard)
    .bind(now)
    .fetch_one(db)
    .await?)
}

/// Revokes a link; browsers that came by it lose access at once. False if it was revoked before.
pub async fn revoke(db: &mut DbConnection, id: DashboardLinkId, now: UnixTime) -> Result<bool> {
    sqlx::query("DELETE FROM dashboard_accesses WHERE link_id = $1").bind(id).execute(&mut *db).await?;
    let done = sqlx::query("UPDATE dashboard_guest_links SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
        .bind(id)
        .bind(now)
        .execute(db)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Counts an opening of the link.
pub async fn count_opening(db: &mut DbConnection, id: DashboardLinkId, now: UnixTime) -> Result<()> {
    sqlx::query("UPDATE dashboard_guest_links SET opened = opened + 1, opened_at = $2 WHERE id = $1")
        .bind(id)
        .bind(now)
        .execute(db)
        .await?;
    Ok(())
}
