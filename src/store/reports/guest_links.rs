//! Tables `report_guest_links` and `report_accesses`: links that show guests one report, and the browsers that
//! followed them. Only hashes of secrets are kept.

use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::{GroupId, PersonId, ReportId, ReportLinkId};
use crate::store::guest_links::StoredGuestLinkTerms;
use crate::store::{DbConnection, Result};

/// Links that have ended are listed for this many seconds: 90 days.
const KEEP_ENDED_SECONDS: i64 = 90 * SECONDS_PER_DAY;

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ReportGuestLink {
    pub id: ReportLinkId,
    pub report_id: ReportId,
    pub report_title: String,
    pub group_id: GroupId,
    pub group_name: String,
    /// The display name of the person who made the link; empty if they are gone.
    pub owner_name: String,
    /// The person who made the link.
    pub person_id: Option<PersonId>,
    /// Whether their account is disabled or gone, or they are no longer a PI of the group.
    pub is_owner_off: bool,
    /// Label, passphrase, expiry and usage.
    #[sqlx(flatten)]
    pub terms: StoredGuestLinkTerms,
}

impl ReportGuestLink {
    /// Whether it lets anyone in now.
    pub fn is_usable(&self, now: UnixTime) -> bool {
        self.terms.is_open(now) && !self.is_owner_off
    }

    /// Who made it: the group's other PIs see the link, too.
    pub fn maker(&self) -> &str {
        &self.owner_name
    }

    /// Whether it is paused: it lets nobody in while its maker is not a PI of the group.
    pub const fn is_orphan(&self) -> bool {
        self.is_owner_off
    }
}

/// Whether the person who made the link `l` to the report `r` may still share it.
macro_rules! is_led {
    () => {
        "EXISTS (SELECT 1 FROM memberships m JOIN people maker ON maker.id = m.person_id
                 WHERE m.group_id = r.group_id AND m.person_id = l.person_id AND m.role = 'pi'
                   AND maker.disabled_at IS NULL)"
    };
}
pub(super) use is_led;

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT l.id, l.report_id, r.title AS report_title, r.group_id, g.name AS group_name,
                    coalesce(p.display_name, '') AS owner_name, l.person_id, NOT ",
            is_led!(),
            " AS is_owner_off, l.label, l.passphrase, l.created_at, l.expires_at, l.revoked_at, l.opened, l.opened_at
             FROM report_guest_links l JOIN reports r ON r.id = l.report_id AND r.removed_at IS NULL
                  JOIN groups g ON g.id = r.group_id LEFT JOIN people p ON p.id = l.person_id ",
            $rest
        )
    };
}

/// A guest link to add.
#[derive(Debug)]
pub struct NewReportGuestLink<'a> {
    pub report: ReportId,
    pub maker: PersonId,
    /// SHA-256 of the secret part.
    pub token_hash: [u8; 32],
    /// Who it is for.
    pub label: &'a str,
    /// The hash of the passphrase; empty if there is none.
    pub passphrase: &'a str,
    pub expires_at: UnixTime,
}

pub async fn add(db: &mut DbConnection, new: &NewReportGuestLink<'_>, now: UnixTime) -> Result<ReportLinkId> {
    Ok(sqlx::query_scalar(
        "INSERT INTO report_guest_links (report_id, token_hash, label, passphrase, created_at, expires_at, person_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id",
    )
    .bind(new.report)
    .bind(&new.token_hash[..])
    .bind(new.label)
    .bind(new.passphrase)
    .bind(now)
    .bind(new.expires_at)
    .bind(new.maker)
    .fetch_one(db)
    .await?)
}

/// The link with this secret, whether or not it still works; none if its report was deleted.
pub async fn find(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<Option<ReportGuestLink>> {
    Ok(sqlx::query_as(select!("WHERE l.token_hash = $1")).bind(&token_hash[..]).fetch_optional(db).await?)
}

pub async fn get(db: &mut DbConnection, id: ReportLinkId) -> Result<Option<ReportGuestLink>> {
    Ok(sqlx::query_as(select!("WHERE l.id = $1")).bind(id).fetch_optional(db).await?)
}

/// The links of a report, newest first. Open links come before ended ones, so that none of them is cut off.
pub async fn list_for_report(db: &mut DbConnection, report: ReportId, now: UnixTime) -> Result<Vec<ReportGuestLink>> {
    Ok(sqlx::query_as(select!(
        "WHERE l.report_id = $1 ORDER BY l.revoked_at IS NULL AND l.expires_at > $2 DESC, l.id DESC LIMIT 200"
    ))
    .bind(report)
    .bind(now)
    .fetch_all(db)
    .await?)
}

/// Counts the open links of a report. A paused link counts, because it may work again.
pub async fn count_open(db: &mut DbConnection, report: ReportId, now: UnixTime) -> Result<i64> {
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM report_guest_links WHERE report_id = $1 AND revoked_at IS NULL AND expires_at > $2",
    )
    .bind(report)
    .bind(now)
    .fetch_one(db)
    .await?)
}

/// Revokes a link; browsers that came by it lose access at once. False if it was revoked before.
pub async fn revoke(db: &mut DbConnection, id: ReportLinkId, now: UnixTime) -> Result<bool> {
    sqlx::query("DELETE FROM report_accesses WHERE link_id = $1").bind(id).execute(&mut *db).await?;
    let done = sqlx::query("UPDATE report_guest_links SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
        .bind(id)
        .bind(now)
        .execute(db)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Counts an opening of the link.
pub async fn count_opening(db: &mut DbConnection, id: ReportLinkId, now: UnixTime) -> Result<()> {
    sqlx::query("UPDATE report_guest_links SET opened = opened + 1, opened_at = $2 WHERE id = $1")
        .bind(id)
        .bind(now)
        .execute(db)
        .await?;
    Ok(())
}

/// A browser that may view a report.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct ReportGuestAccess {
    /// SHA-256 of its cookie.
    pub cookie_hash: Vec<u8>,
    /// The link it followed.
    pub link_id: ReportLinkId,
    /// Whether the passphrase is still missing.
    pub is_locked: bool,
    pub expires_at: UnixTime,
}

/// Browsers at a time per link; the oldest make room.
const MAX_PER_LINK: i64 = 1000;
/// How many of them may still lack the passphrase. These only displace each other.
const MAX_LOCKED: i64 = 100;

/// Gives a browser access.
pub async fn add_access(
    db: &mut DbConnection,
    access_key: &str,
    access: &ReportGuestAccess,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO report_accesses (access_key, cookie_hash, link_id, is_locked, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(access_key)
    .bind(&access.cookie_hash)
    .bind(access.link_id)
    .bind(access.is_locked)
    .bind(now)
    .bind(access.expires_at)
    .execute(&mut *db)
    .await?;
    sqlx::query(
        "DELETE FROM report_accesses WHERE access_key IN (
            SELECT access_key FROM report_accesses WHERE link_id = $1 AND is_locked = $3
            ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET $2)",
    )
    .bind(access.link_id)
    .bind(if access.is_locked { MAX_LOCKED } else { MAX_PER_LINK })
    .bind(access.is_locked)
    .execute(db)
    .await?;
    Ok(())
}

/// The access with this key in its URL.
pub async fn find_access(db: &mut DbConnection, access_key: &str) -> Result<Option<ReportGuestAccess>> {
    Ok(sqlx::query_as("SELECT cookie_hash, link_id, is_locked, expires_at FROM report_accesses WHERE access_key = $1")
        .bind(access_key)
        .fetch_optional(db)
        .await?)
}

/// Unlocks an access after the right passphrase.
pub async fn unlock(db: &mut DbConnection, access_key: &str) -> Result<()> {
    sqlx::query("UPDATE report_accesses SET is_locked = 0 WHERE access_key = $1").bind(access_key).execute(db).await?;
    Ok(())
}

/// Deletes expired accesses.
pub async fn sweep(db: &mut DbConnection, now: UnixTime) -> Result<u64> {
    let done = sqlx::query("DELETE FROM report_accesses WHERE expires_at <= $1").bind(now).execute(&mut *db).await?;
    let ended =
        sqlx::query("DELETE FROM report_guest_links WHERE min(expires_at, coalesce(revoked_at, expires_at)) <= $1")
            .bind(now.plus(-KEEP_ENDED_SECONDS))
            .execute(db)
            .await?;
    Ok(done.rows_affected() + ended.rows_affected())
}
