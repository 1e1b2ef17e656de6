//! Tables `guest_links` and `guest_link_accesses`: links that show guests one dashboard, report, file or folder, or let
//! them upload, and the browsers that followed them. Only hashes of secrets are kept.

use sqlx::sqlite::SqliteRow;
use sqlx::{FromRow, Row as _};

use super::shared_paths::SharedPathKind;
use super::{DbConnection, Result};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::domain::{ClusterId, DashboardId, GroupId, GuestLinkId, PersonId, ReportId, SharedPathId};

/// Ended links to reports and files are listed for this many seconds: 90 days.
const KEEP_ENDED_SECONDS: i64 = 90 * SECONDS_PER_DAY;
/// Browsers at a time per link; the oldest make room.
const MAX_ACCESSES: i64 = 1000;
/// How many of them may still lack the passphrase. These only displace each other.
const MAX_LOCKED_ACCESSES: i64 = 100;

/// What a guest link leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestLinkTarget {
    Dashboard(DashboardId),
    /// A frozen report of a group.
    Report(GroupId, ReportId),
    /// A file or a folder on a cluster, to read.
    Files(SharedPathId),
    /// A folder on a cluster, to upload into.
    DropBox(SharedPathId),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestLinkTargetKind {
    Dashboard,
    Report,
    Files,
    DropBox,
}

impl GuestLinkTarget {
    pub const fn kind(self) -> GuestLinkTargetKind {
        match self {
            Self::Dashboard(_) => GuestLinkTargetKind::Dashboard,
            Self::Report(..) => GuestLinkTargetKind::Report,
            Self::Files(_) => GuestLinkTargetKind::Files,
            Self::DropBox(_) => GuestLinkTargetKind::DropBox,
        }
    }

    /// Whether it is about files on a cluster.
    pub const fn is_to_files(self) -> bool {
        matches!(self, Self::Files(_) | Self::DropBox(_))
    }

    /// The values of `dashboard_id`, `report_id` and `shared_path_id`.
    const fn columns(self) -> (Option<DashboardId>, Option<ReportId>, Option<SharedPathId>) {
        match self {
            Self::Dashboard(id) => (Some(id), None, None),
            Self::Report(_, id) => (None, Some(id), None),
            Self::Files(id) | Self::DropBox(id) => (None, None, Some(id)),
        }
    }
}

impl FromRow<'_, SqliteRow> for GuestLinkTarget {
    fn from_row(row: &SqliteRow) -> sqlx::Result<Self> {
        if let Some(id) = row.try_get("dashboard_id")? {
            return Ok(Self::Dashboard(id));
        }
        let Some(id) = row.try_get("shared_path_id")? else {
            return Ok(Self::Report(row.try_get("group_id")?, row.try_get("report_id")?));
        };
        Ok(match row.try_get("shared_kind")? {
            SharedPathKind::DropBox => Self::DropBox(id),
            SharedPathKind::File | SharedPathKind::Folder => Self::Files(id),
        })
    }
}

#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct GuestLink {
    pub id: GuestLinkId,
    #[sqlx(flatten)]
    pub target: GuestLinkTarget,
    /// The title of what it leads to.
    pub title: String,
    /// The person who made it; for a dashboard or files that is their owner.
    pub created_by: Option<PersonId>,
    /// Their display name; empty if they are gone.
    pub maker_name: String,
    /// Whether it lets nobody in for now, because its maker may not share what it leads to: their account is disabled
    /// or gone, or they are no longer a PI of the report's group.
    pub is_paused: bool,
    /// Who it is for, in its maker's words.
    pub label: String,
    /// The hash of the passphrase; empty if there is none.
    pub passphrase: String,
    pub created_at: UnixTime,
    pub expires_at: UnixTime,
    pub revoked_at: Option<UnixTime>,
    /// How often it was opened.
    pub opened: i64,
    pub opened_at: Option<UnixTime>,
}

impl GuestLink {
    /// Whether it has neither expired nor been revoked.
    pub fn is_open(&self, now: UnixTime) -> bool {
        self.revoked_at.is_none() && now < self.expires_at
    }

    /// Whether it lets anyone in now.
    pub fn is_usable(&self, now: UnixTime) -> bool {
        self.is_open(now) && !self.is_paused
    }

    /// Whether it asks for a passphrase.
    pub const fn asks_passphrase(&self) -> bool {
        !self.passphrase.is_empty()
    }

    /// Who made it, where that needs saying: all PIs of a group see the links to its reports, but only the owner of a
    /// dashboard or of files sees and makes those to them.
    pub fn maker(&self) -> &str {
        match self.target {
            GuestLinkTarget::Report(..) => &self.maker_name,
            GuestLinkTarget::Dashboard(_) | GuestLinkTarget::Files(_) | GuestLinkTarget::DropBox(_) => "",
        }
    }
}

/// Whether the link `l` of the person `maker` is paused; `r` is the report that it leads to, if any.
macro_rules! is_paused {
    () => {
        "(maker.id IS NULL OR maker.disabled_at IS NOT NULL OR (l.report_id IS NOT NULL AND NOT EXISTS (
            SELECT 1 FROM memberships m
            WHERE m.group_id = r.group_id AND m.person_id = maker.id AND m.role = 'pi')))"
    };
}
pub(super) use is_paused;

/// Links to what was not deleted.
macro_rules! select {
    ($condition:literal) => {
        select!("", "guest_links l", $condition)
    };
    ($columns:literal, $from:literal, $condition:literal) => {
        concat!(
            "SELECT ",
            $columns,
            "l.id, l.dashboard_id, l.report_id, l.shared_path_id, s.kind AS shared_kind, r.group_id,
                    coalesce(d.title, r.title, s.title) AS title, l.created_by,
                    coalesce(maker.display_name, '') AS maker_name, ",
            is_paused!(),
            " AS is_paused, l.label, l.passphrase, l.created_at, l.expires_at, l.revoked_at, l.opened, l.opened_at
             FROM ",
            $from,
            " LEFT JOIN dashboards d ON d.id = l.dashboard_id LEFT JOIN reports r ON r.id = l.report_id
              LEFT JOIN shared_paths s ON s.id = l.shared_path_id LEFT JOIN people maker ON maker.id = l.created_by
             WHERE d.removed_at IS NULL AND r.removed_at IS NULL AND ",
            $condition
        )
    };
}

/// A guest link to add.
#[derive(Debug)]
pub struct NewGuestLink<'a> {
    pub target: GuestLinkTarget,
    pub created_by: PersonId,
    /// SHA-256 of the secret part.
    pub token_hash: [u8; 32],
    /// Who it is for.
    pub label: &'a str,
    /// The hash of the passphrase; empty if there is none.
    pub passphrase: &'a str,
    pub expires_at: UnixTime,
}

pub async fn add(db: &mut DbConnection, new: &NewGuestLink<'_>, now: UnixTime) -> Result<()> {
    let (dashboard, report, shared_path) = new.target.columns();
    sqlx::query(
        "INSERT INTO guest_links (dashboard_id, report_id, created_by, token_hash, label, passphrase, created_at,
                                  expires_at, shared_path_id)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)",
    )
    .bind(dashboard)
    .bind(report)
    .bind(new.created_by)
    .bind(&new.token_hash[..])
    .bind(new.label)
    .bind(new.passphrase)
    .bind(now)
    .bind(new.expires_at)
    .bind(shared_path)
    .execute(db)
    .await?;
    Ok(())
}

/// The link with this secret, whether or not it still works.
pub async fn find(db: &mut DbConnection, token_hash: &[u8; 32]) -> Result<Option<GuestLink>> {
    Ok(sqlx::query_as(select!("l.token_hash = $1")).bind(&token_hash[..]).fetch_optional(db).await?)
}

pub async fn get(db: &mut DbConnection, id: GuestLinkId) -> Result<Option<GuestLink>> {
    Ok(sqlx::query_as(select!("l.id = $1")).bind(id).fetch_optional(db).await?)
}

/// The links to something, newest first. Open links come before ended ones, so that none of them is cut off.
pub async fn list(db: &mut DbConnection, target: GuestLinkTarget, now: UnixTime) -> Result<Vec<GuestLink>> {
    let (dashboard, report, shared_path) = target.columns();
    Ok(sqlx::query_as(select!(
        "(l.dashboard_id = $1 OR l.report_id = $2 OR l.shared_path_id = $4)
         ORDER BY l.revoked_at IS NULL AND l.expires_at > $3 DESC, l.id DESC LIMIT 200"
    ))
    .bind(dashboard)
    .bind(report)
    .bind(now)
    .bind(shared_path)
    .fetch_all(db)
    .await?)
}

/// Open links to dashboards and files whose owners belong to a group of this PI; for an administrator, of all people.
pub async fn list_overseen(
    db: &mut DbConnection,
    pi: PersonId,
    is_admin: bool,
    now: UnixTime,
) -> Result<Vec<GuestLink>> {
    Ok(sqlx::query_as(select!(
        "l.report_id IS NULL AND l.revoked_at IS NULL AND l.expires_at > $3
         AND ($2 OR coalesce(d.person_id, s.person_id) IN (
            SELECT theirs.person_id FROM memberships theirs JOIN memberships mine
            ON mine.group_id = theirs.group_id WHERE mine.person_id = $1 AND mine.role = 'pi'))
         ORDER BY maker.display_name, l.id DESC LIMIT 1000"
    ))
    .bind(pi)
    .bind(is_admin)
    .bind(now)
    .fetch_all(db)
    .await?)
}

/// Counts the open links to something. A paused link counts, because it may work again.
pub async fn count_open(db: &mut DbConnection, target: GuestLinkTarget, now: UnixTime) -> Result<i64> {
    let (dashboard, report, shared_path) = target.columns();
    Ok(sqlx::query_scalar(
        "SELECT count(*) FROM guest_links
         WHERE (dashboard_id = $1 OR report_id = $2 OR shared_path_id = $4) AND revoked_at IS NULL AND expires_at > $3",
    )
    .bind(dashboard)
    .bind(report)
    .bind(now)
    .bind(shared_path)
    .fetch_one(db)
    .await?)
}

/// A person's links to files and their drop-boxes, newest first; open links come before ended ones.
pub async fn list_to_files(db: &mut DbConnection, person: PersonId, now: UnixTime) -> Result<Vec<GuestLink>> {
    fetch_all!(
        db,
        select!("s.person_id = $1 ORDER BY l.revoked_at IS NULL AND l.expires_at > $2 DESC, l.id DESC LIMIT 200"),
        [person, now]
    )
}

/// Counts a person's open links to files, drop-boxes included.
pub async fn count_open_to_files(db: &mut DbConnection, person: PersonId, now: UnixTime) -> Result<i64> {
    scalar_one!(
        db,
        "SELECT count(*) FROM guest_links l JOIN shared_paths s ON s.id = l.shared_path_id
         WHERE s.person_id = $1 AND l.revoked_at IS NULL AND l.expires_at > $2",
        [person, now]
    )
}

/// Revokes a link; browsers that came by it lose access at once. False if it was revoked before.
pub async fn revoke(db: &mut DbConnection, id: GuestLinkId, now: UnixTime) -> Result<bool> {
    sqlx::query("DELETE FROM guest_link_accesses WHERE link_id = $1").bind(id).execute(&mut *db).await?;
    let done = sqlx::query("UPDATE guest_links SET revoked_at = $2 WHERE id = $1 AND revoked_at IS NULL")
        .bind(id)
        .bind(now)
        .execute(db)
        .await?;
    Ok(done.rows_affected() == 1)
}

/// Revokes all of a person's links to files on a cluster, drop-boxes included.
pub async fn revoke_to_cluster(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    now: UnixTime,
) -> Result<u64> {
    execute!(
        db,
        "DELETE FROM guest_link_accesses WHERE link_id IN (
            SELECT l.id FROM guest_links l JOIN shared_paths s ON s.id = l.shared_path_id
            WHERE s.person_id = $1 AND s.cluster_id = $2)",
        [person, cluster]
    )?;
    affected_rows!(
        db,
        "UPDATE guest_links SET revoked_at = $3 WHERE revoked_at IS NULL AND shared_path_id IN (
            SELECT id FROM shared_paths WHERE person_id = $1 AND cluster_id = $2)",
        [person, cluster, now]
    )
}

/// Counts an opening of the link.
pub async fn count_opening(db: &mut DbConnection, id: GuestLinkId, now: UnixTime) -> Result<()> {
    execute!(db, "UPDATE guest_links SET opened = opened + 1, opened_at = $2 WHERE id = $1", [id, now])
}

/// A guest's browser, which may view what its link leads to for as long as the link works.
#[derive(Debug, Clone, PartialEq, Eq, FromRow)]
pub struct GuestBrowserAccess {
    /// The key in its URL.
    pub access_key: String,
    /// SHA-256 of its cookie.
    pub cookie_hash: Vec<u8>,
    /// Whether the passphrase is still missing.
    pub is_locked: bool,
    #[sqlx(flatten)]
    pub link: GuestLink,
}

/// Gives a browser access by a link, locked if the link asks for a passphrase.
pub async fn add_access(
    db: &mut DbConnection,
    access_key: &str,
    cookie_hash: [u8; 32],
    link: &GuestLink,
    now: UnixTime,
) -> Result<()> {
    let is_locked = link.asks_passphrase();
    sqlx::query(
        "INSERT INTO guest_link_accesses (access_key, cookie_hash, link_id, is_locked, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6)",
    )
    .bind(access_key)
    .bind(&cookie_hash[..])
    .bind(link.id)
    .bind(is_locked)
    .bind(now)
    .bind(link.expires_at)
    .execute(&mut *db)
    .await?;
    sqlx::query(
        "DELETE FROM guest_link_accesses WHERE access_key IN (
            SELECT access_key FROM guest_link_accesses WHERE link_id = $1 AND is_locked = $2
            ORDER BY created_at DESC, rowid DESC LIMIT -1 OFFSET $3)",
    )
    .bind(link.id)
    .bind(is_locked)
    .bind(if is_locked { MAX_LOCKED_ACCESSES } else { MAX_ACCESSES })
    .execute(db)
    .await?;
    Ok(())
}

/// The access with this key in its URL.
pub async fn find_access(db: &mut DbConnection, access_key: &str) -> Result<Option<GuestBrowserAccess>> {
    Ok(sqlx::query_as(select!(
        "a.access_key, a.cookie_hash, a.is_locked, ",
        "guest_link_accesses a JOIN guest_links l ON l.id = a.link_id",
        "a.access_key = $1"
    ))
    .bind(access_key)
    .fetch_optional(db)
    .await?)
}

/// Unlocks an access after the right passphrase.
pub async fn unlock_access(db: &mut DbConnection, access_key: &str) -> Result<()> {
    execute!(db, "UPDATE guest_link_accesses SET is_locked = 0 WHERE access_key = $1", [access_key])
}

/// Deletes expired accesses, and links to reports and files that ended long ago.
pub async fn sweep(db: &mut DbConnection, now: UnixTime) -> Result<u64> {
    let accesses =
        sqlx::query("DELETE FROM guest_link_accesses WHERE expires_at <= $1").bind(now).execute(&mut *db).await?;
    let links = sqlx::query(
        "DELETE FROM guest_links
         WHERE dashboard_id IS NULL AND min(expires_at, coalesce(revoked_at, expires_at)) <= $1",
    )
    .bind(now.plus(-KEEP_ENDED_SECONDS))
    .execute(&mut *db)
    .await?;
    let paths = super::shared_paths::delete_unlinked(db).await?;
    Ok(accesses.rows_affected() + links.rows_affected() + paths)
}
