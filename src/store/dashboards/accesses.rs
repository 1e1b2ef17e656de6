//! Table `dashboard_accesses`: browsers that may view one dashboard. Only a hash of the cookie is kept.

use crate::clock::UnixTime;
use crate::domain::{DashboardId, DashboardLinkId, PersonId, SessionId};
use crate::store::{DbConnection, Result};

/// What gives a browser access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashboardAccessGrant {
    /// The person is signed in to the portal.
    Session(SessionId),
    /// It followed a guest link.
    GuestLink(DashboardLinkId),
}

/// A browser that may view a dashboard.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DashboardBrowserAccess {
    /// The key in its URL.
    pub access_key: String,
    /// SHA-256 of its cookie.
    pub cookie_hash: Vec<u8>,
    pub dashboard_id: DashboardId,
    session_id: Option<SessionId>,
    link_id: Option<DashboardLinkId>,
    person_id: Option<PersonId>,
    session_seen_at: Option<UnixTime>,
    session_expires_at: Option<UnixTime>,
    /// Whether the passphrase is still missing.
    pub is_locked: bool,
    pub expires_at: UnixTime,
}

impl DashboardBrowserAccess {
    /// The viewer, if they are signed in.
    pub fn person(&self) -> Option<PersonId> {
        self.person_id
    }

    /// When the session behind it was last used, and when it expires at the latest.
    pub fn session_times(&self) -> Option<(UnixTime, UnixTime)> {
        self.session_seen_at.zip(self.session_expires_at)
    }

    pub fn grant(&self) -> Option<DashboardAccessGrant> {
        let session = self.session_id.map(DashboardAccessGrant::Session);
        session.or_else(|| self.link_id.map(DashboardAccessGrant::GuestLink))
    }
}

/// An access to add.
#[derive(Debug)]
pub struct NewDashboardAccess<'a> {
    /// The key in its URL.
    pub access_key: &'a str,
    /// SHA-256 of its cookie.
    pub cookie_hash: [u8; 32],
    pub dashboard: DashboardId,
    pub grant: DashboardAccessGrant,
    /// Whether the passphrase is still missing.
    pub is_locked: bool,
    pub expires_at: UnixTime,
}

/// Browsers at a time per session or link; the oldest make room.
const MAX_PER_GRANT: i64 = 1000;
/// How many of them may still lack the passphrase. These only displace each other.
const MAX_LOCKED: i64 = 100;

pub async fn add(db: &mut DbConnection, new: &NewDashboardAccess<'_>, now: UnixTime) -> Result<()> {
    let (session, link) = match new.grant {
        DashboardAccessGrant::Session(id) => (Some(id), None),
        DashboardAccessGrant::GuestLink(id) => (None, Some(id)),
    };
    sqlx::query(
        "INSERT INTO dashboard_accesses (access_key, cookie_hash, dashboard_id, session_id, link_id, is_locked, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
    )
    .bind(new.access_key)
    .bind(&new.cookie_hash[..])
    .bind(new.dashboard)
    .bind(session)
    .bind(link)
    .bind(new.is_locked)
    .bind(now)
    .bind(new.expires_at)
    .execute(&mut *db)
    .await?;
    sqlx::query(
        "DELETE FROM dashboard_accesses WHERE access_key IN (
            SELECT access_key FROM dashboard_accesses WHERE session_id IS $1 AND link_id IS $2 AND is_locked = $4
            ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET $3)",
    )
    .bind(session)
    .bind(link)
    .bind(if new.is_locked { MAX_LOCKED } else { MAX_PER_GRANT })
    .bind(new.is_locked)
    .execute(db)
    .await?;
    Ok(())
}

/// The access with this key in its URL.
pub async fn find(db: &mut DbConnection, access_key: &str) -> Result<Option<DashboardBrowserAccess>> {
    Ok(sqlx::query_as(
        "SELECT a.access_key, a.cookie_hash, a.dashboard_id, a.session_id, a.link_id, s.person_id,
                s.last_seen_at AS session_seen_at, s.expires_at AS session_expires_at, a.is_locked, a.expires_at
         FROM dashboard_accesses a LEFT JOIN sessions s ON s.id = a.session_id WHERE a.access_key = $1",
    )
    .bind(access_key)
    .fetch_optional(db)
    .await?)
}

/// Unlocks an access after the right passphrase.
pub async fn unlock(db: &mut DbConnection, access_key: &str) -> Result<()> {
    sqlx::query("UPDATE dashboard_accesses SET is_locked = 0 WHERE access_key = $1")
        .bind(access_key)
        .execute(db)
        .await?;
    Ok(())
}

/// Deletes expired accesses.
pub async fn sweep(db: &mut DbConnection, now: UnixTime) -> Result<u64> {
    let done = sqlx::query("DELETE FROM dashboard_accesses WHERE expires_at <= $1").bind(now).execute(db).await?;
    Ok(done.rows_affected())
}
