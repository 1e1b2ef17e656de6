//! Table `dashboard_accesses`: browsers in which someone who is signed in may view one dashboard. Only a hash of the
//! cookie is kept. Guests are in `guest_link_accesses`.

use crate::clock::UnixTime;
use crate::domain::{DashboardId, PersonId, SessionId};
use crate::store::{DbConnection, Result};

/// Browsers at a time per session; the oldest make room.
const MAX_PER_SESSION: i64 = 1000;

/// A browser in which someone who is signed in may view a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DashboardPersonAccess {
    /// SHA-256 of its cookie.
    pub cookie_hash: Vec<u8>,
    pub dashboard_id: DashboardId,
    pub person_id: PersonId,
    /// When the session behind it was last used.
    pub session_seen_at: UnixTime,
    /// When that session expires at the latest.
    pub session_expires_at: UnixTime,
    pub expires_at: UnixTime,
}

/// An access to add.
#[derive(Debug)]
pub struct NewDashboardSession<'a> {
    /// The key in its URL.
    pub access_key: &'a str,
    /// SHA-256 of its cookie.
    pub cookie_hash: [u8; 32],
    pub dashboard: DashboardId,
    pub session: SessionId,
    pub expires_at: UnixTime,
}

pub async fn add(db: &mut DbConnection, new: &NewDashboardSession<'_>, now: UnixTime) -> Result<()> {
    sqlx::query(
        "INSERT INTO dashboard_accesses (access_key, cookie_hash, dashboard_id, session_id, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(new.access_key)
    .bind(&new.cookie_hash[..])
    .bind(new.dashboard)
    .bind(new.session)
    .bind(now)
    .bind(new.expires_at)
    .execute(&mut *db)
    .await?;
    sqlx::query(
        "DELETE FROM dashboard_accesses WHERE access_key IN (
            SELECT access_key FROM dashboard_accesses WHERE session_id = $1
            ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET $2)",
    )
    .bind(new.session)
    .bind(MAX_PER_SESSION)
    .execute(db)
    .await?;
    Ok(())
}

/// The access with this key in its URL.
pub async fn find(db: &mut DbConnection, access_key: &str) -> Result<Option<DashboardPersonAccess>> {
    Ok(sqlx::query_as(
        "SELECT a.cookie_hash, a.dashboard_id, s.person_id, s.last_seen_at AS session_seen_at,
                s.expires_at AS session_expires_at, a.expires_at
         FROM dashboard_accesses a JOIN sessions s ON s.id = a.session_id WHERE a.access_key = $1",
    )
    .bind(access_key)
    .fetch_optional(db)
    .await?)
}

/// Deletes expired accesses.
pub async fn sweep(db: &mut DbConnection, now: UnixTime) -> Result<u64> {
    let done = sqlx::query("DELETE FROM dashboard_accesses WHERE expires_at <= $1").bind(now).execute(db).await?;
    Ok(done.rows_affected())
}
