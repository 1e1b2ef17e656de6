//! Tables `dashboards` and `dashboard_runs` (in `runs`): dashboards, and the jobs that serve them.

pub mod accesses;
pub mod runs;

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, DashboardId, GroupId, PersonId};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Dashboard {
    pub id: DashboardId,
    /// The owner. Its jobs run as this person.
    pub person_id: PersonId,
    /// The owner's display name.
    pub owner_name: String,
    /// Whether the owner's account is disabled.
    pub is_owner_off: bool,
    pub cluster_id: ClusterId,
    pub slug: String,
    pub cluster: String,
    pub kind: String,
    pub title: String,
    places: String,
    /// The time limit of a run.
    pub minutes: i64,
    /// Account to charge; empty for the person's default.
    pub account: String,
    group_id: Option<GroupId>,
    /// The group whose members can see it.
    pub group_name: Option<String>,
    /// How often members may start it per day.
    pub wakes_per_day: i64,
    /// The time limit of a run that a member starts.
    pub wake_minutes: i64,
    pub created_at: UnixTime,
    removed_at: Option<UnixTime>,
}

impl Dashboard {
    /// The folders it shows: absolute paths on the cluster.
    pub fn places(&self) -> Vec<String> {
        serde_json::from_str(&self.places).unwrap_or_default()
    }

    /// The group whose members can see it.
    pub const fn group(&self) -> Option<GroupId> {
        self.group_id
    }

    pub const fn is_removed(&self) -> bool {
        self.removed_at.is_some()
    }
}

/// A dashboard to add.
#[derive(Debug)]
pub struct NewDashboardRow<'a> {
    pub person: PersonId,
    pub cluster: ClusterId,
    pub kind: &'a str,
    pub title: &'a str,
    pub places: &'a [String],
    /// The time limit of a run.
    pub minutes: i64,
    pub account: &'a str,
    /// The token of the form that created it.
    pub form: &'a str,
}

/// What the owner can change at any time.
#[derive(Debug, Clone, Copy)]
pub struct DashboardOwnerSettings<'a> {
    pub title: &'a str,
    /// The group whose members can see it.
    pub group: Option<GroupId>,
    /// How often members may start it per day.
    pub wakes_per_day: i64,
    /// The time limit of a run that a member starts.
    pub wake_minutes: i64,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT b.id, b.person_id, p.display_name AS owner_name, p.disabled_at IS NOT NULL AS is_owner_off,
                    b.cluster_id, c.slug, c.title AS cluster, b.kind, b.title, b.places, b.minutes, b.account,
                    b.group_id, g.name AS group_name, b.wakes_per_day, b.wake_minutes, b.created_at, b.removed_at
             FROM dashboards b
             JOIN people p ON p.id = b.person_id
             JOIN clusters c ON c.id = b.cluster_id
             LEFT JOIN groups g ON g.id = b.group_id ",
            $rest
        )
    };
}

pub async fn add(db: &mut DbConnection, new: &NewDashboardRow<'_>, now: UnixTime) -> Result<DashboardId> {
    let places = serde_json::to_string(new.places).unwrap_or_default();
    scalar_one!(
        db,
        "INSERT INTO dashboards (person_id, cluster_id, kind, title, places, minutes, account, form, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id",
        [new.person, new.cluster, new.kind, new.title, places, new.minutes, new.account, new.form, now]
    )
}

/// The dashboard that a form created.
pub async fn find_by_form(db: &mut DbConnection, person: PersonId, form: &str) -> Result<Option<DashboardId>> {
    scalar_optional!(db, "SELECT id FROM dashboards WHERE person_id = $1 AND form = $2", [person, form])
}

/// The dashboard of a person that a job on a cluster serves.
pub async fn find_by_job(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    job: i64,
) -> Result<Option<DashboardId>> {
    scalar_optional!(
        db,
        "SELECT b.id FROM dashboards b
         JOIN dashboard_runs r ON r.dashboard_id = b.id
         JOIN submissions s ON s.id = r.submission_id
         WHERE b.person_id = $1 AND b.cluster_id = $2 AND s.number = $3 AND b.removed_at IS NULL
         ORDER BY b.id DESC LIMIT 1",
        [person, cluster, job]
    )
}

/// A dashboard, deleted or not.
pub async fn get(db: &mut DbConnection, id: DashboardId) -> Result<Option<Dashboard>> {
    fetch_optional!(db, select!("WHERE b.id = $1"), [id])
}

/// A person's own dashboards and those that their groups can see, newest first.
pub async fn list(db: &mut DbConnection, person: PersonId) -> Result<Vec<Dashboard>> {
    fetch_all!(
        db,
        select!(
            "WHERE b.removed_at IS NULL AND p.disabled_at IS NULL AND (b.person_id = $1
                OR b.group_id IN (SELECT group_id FROM memberships WHERE person_id = $1))
             ORDER BY b.id DESC LIMIT 500"
        ),
        [person]
    )
}

pub async fn count_for_person(db: &mut DbConnection, person: PersonId) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM dashboards WHERE person_id = $1 AND removed_at IS NULL", [person])
}

/// The folders that a person's dashboards on a cluster showed, latest first.
pub async fn list_recent_places(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    kind: &str,
) -> Result<Vec<Vec<String>>> {
    let rows: Vec<String> = scalar_all!(
        db,
        "SELECT places FROM dashboards WHERE person_id = $1 AND cluster_id = $2 AND kind = $3
         GROUP BY places ORDER BY max(id) DESC LIMIT 10",
        [person, cluster, kind]
    )?;
    Ok(rows.iter().filter_map(|row| serde_json::from_str(row).ok()).collect())
}

/// Saves what the owner can change.
pub async fn update_settings(
    db: &mut DbConnection,
    id: DashboardId,
    settings: DashboardOwnerSettings<'_>,
) -> Result<()> {
    execute!(
        db,
        "UPDATE dashboards SET title = $2, group_id = $3, wakes_per_day = $4, wake_minutes = $5 WHERE id = $1",
        [id, settings.title, settings.group, settings.wakes_per_day, settings.wake_minutes]
    )
}

/// Hides a person's dashboards from a group that they have left.
pub async fn hide_from_group(db: &mut DbConnection, person: PersonId, group: GroupId) -> Result<()> {
    execute!(db, "UPDATE dashboards SET group_id = NULL WHERE person_id = $1 AND group_id = $2", [person, group])
}

/// Marks a dashboard as deleted; its guest links and accesses end at once.
pub async fn remove(db: &mut DbConnection, id: DashboardId, now: UnixTime) -> Result<bool> {
    execute!(db, "DELETE FROM guest_links WHERE dashboard_id = $1", [id])?;
    execute!(db, "DELETE FROM dashboard_accesses WHERE dashboard_id = $1", [id])?;
    affects_row!(db, "UPDATE dashboards SET removed_at = $2 WHERE id = $1 AND removed_at IS NULL", [id, now])
}

/// Deletes the rows of dashboards that were removed before then and have no open runs.
pub async fn delete_removed(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    affected_rows!(
        db,
        "DELETE FROM dashboards WHERE removed_at < $1
           AND NOT EXISTS (SELECT 1 FROM dashboard_runs r WHERE r.dashboard_id = dashboards.id AND r.over_at IS NULL)",
        [before]
    )
}
