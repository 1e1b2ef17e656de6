//! Table `people`.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{DisplayName, PersonId, SignInName};

/// A person as the rest of the program sees them.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Person {
    pub id: PersonId,
    /// The user name for signing in.
    pub name: String,
    pub display_name: String,
    pub is_admin: bool,
    /// Whether the second factor is on.
    pub has_totp: bool,
    /// Whether the account is disabled.
    pub is_disabled: bool,
    pub created_at: UnixTime,
}

/// A person with what is needed to check a sign-in.
#[derive(sqlx::FromRow)]
pub struct PersonCredentials {
    #[sqlx(flatten)]
    pub person: Person,
    pub password_sealed: Vec<u8>,
    /// The sealed TOTP secret.
    pub totp_sealed: Option<Vec<u8>>,
    /// The last time step whose code was used.
    pub totp_last_step: i64,
}

/// A row of the people page.
#[derive(Debug, sqlx::FromRow)]
pub struct PersonListItem {
    #[sqlx(flatten)]
    pub person: Person,
    /// Groups and roles, e.g. `Smith Lab (pi), Jones Lab (member)`.
    pub groups: String,
    /// Last request of any of their browsers.
    pub last_seen_at: Option<UnixTime>,
}

macro_rules! columns {
    () => {
        "p.id, p.name, p.display_name, p.is_admin, p.totp_sealed IS NOT NULL AS has_totp,
         p.disabled_at IS NOT NULL AS is_disabled, p.created_at"
    };
}

pub(super) use columns;

/// Adds a person. Set the password in the same transaction: until then, nobody can sign in.
pub async fn add(
    db: &mut DbConnection,
    name: &SignInName,
    display_name: &DisplayName,
    is_admin: bool,
    now: UnixTime,
) -> Result<PersonId> {
    scalar_one!(
        db,
        "INSERT INTO people (name, display_name, is_admin, password_sealed, password_changed_at, created_at)
         VALUES ($1, $2, $3, x'', $4, $4) RETURNING id",
        [name.as_str(), display_name.as_str(), is_admin, now]
    )
}

pub async fn get(db: &mut DbConnection, id: PersonId) -> Result<Option<Person>> {
    fetch_optional!(db, concat!("SELECT ", columns!(), " FROM people p WHERE p.id = $1"), [id])
}

/// The person with this user name, with their credentials.
pub async fn find_by_name(db: &mut DbConnection, name: &SignInName) -> Result<Option<PersonCredentials>> {
    fetch_optional!(
        db,
        concat!(
            "SELECT ",
            columns!(),
            ", p.password_sealed, p.totp_sealed, p.totp_last_step FROM people p WHERE p.name = $1"
        ),
        [name.as_str()]
    )
}

pub async fn load_credentials(db: &mut DbConnection, id: PersonId) -> Result<Option<PersonCredentials>> {
    fetch_optional!(
        db,
        concat!(
            "SELECT ",
            columns!(),
            ", p.password_sealed, p.totp_sealed, p.totp_last_step FROM people p WHERE p.id = $1"
        ),
        [id]
    )
}

pub async fn list(db: &mut DbConnection) -> Result<Vec<PersonListItem>> {
    fetch_all!(
        db,
        concat!(
            "SELECT ",
            columns!(),
            ", coalesce((SELECT group_concat(g.name || CASE m.role WHEN 'pi' THEN ' (PI)' ELSE '' END, ', ')
                      FROM memberships m JOIN groups g ON g.id = m.group_id WHERE m.person_id = p.id), '') AS groups,
           (SELECT max(at) FROM (
                SELECT last_seen_at AS at FROM sessions WHERE person_id = p.id
                UNION ALL SELECT at FROM activity WHERE actor_id = p.id)) AS last_seen_at
         FROM people p ORDER BY p.display_name COLLATE NOCASE, p.name"
        )
    )
}

/// How many administrators can still sign in.
pub async fn count_active_admins(db: &mut DbConnection) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM people WHERE is_admin AND disabled_at IS NULL")
}

/// Counts all people, including disabled ones.
pub async fn count(db: &mut DbConnection) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM people")
}

/// Sets the password hash, which is sealed.
pub async fn set_password(db: &mut DbConnection, id: PersonId, sealed: &[u8], now: UnixTime) -> Result<()> {
    execute!(db, "UPDATE people SET password_sealed = $2, password_changed_at = $3 WHERE id = $1", [id, sealed, now])
}

pub async fn set_display_name(db: &mut DbConnection, id: PersonId, name: &DisplayName) -> Result<()> {
    execute!(db, "UPDATE people SET display_name = $2 WHERE id = $1", [id, name.as_str()])
}

/// Makes someone an administrator, or takes that role away.
pub async fn set_admin(db: &mut DbConnection, id: PersonId, is_admin: bool) -> Result<()> {
    execute!(db, "UPDATE people SET is_admin = $2 WHERE id = $1", [id, is_admin])
}

/// Disables (`Some`) or enables (`None`) the account.
pub async fn set_disabled(db: &mut DbConnection, id: PersonId, at: Option<UnixTime>) -> Result<()> {
    execute!(db, "UPDATE people SET disabled_at = $2 WHERE id = $1", [id, at])
}

/// Turns the second factor on (sealed secret) or off.
pub async fn set_totp(db: &mut DbConnection, id: PersonId, sealed: Option<&[u8]>, step: i64) -> Result<()> {
    execute!(db, "UPDATE people SET totp_sealed = $2, totp_last_step = $3 WHERE id = $1", [id, sealed, step])
}

/// Marks a time step as used. False if it or a later one was used before: the code is spent.
pub async fn use_totp_step(db: &mut DbConnection, id: PersonId, step: i64) -> Result<bool> {
    affects_row!(db, "UPDATE people SET totp_last_step = $2 WHERE id = $1 AND totp_last_step < $2", [id, step])
}

/// Deletes a person with everything that is theirs alone. Group recipes and reports stay without an owner, and the
/// activity log keeps its names.
pub async fn delete(db: &mut DbConnection, id: PersonId, now: UnixTime) -> Result<bool> {
    execute!(db, "UPDATE guest_links SET revoked_at = $2 WHERE created_by = $1 AND revoked_at IS NULL", [id, now])?;
    affects_row!(db, "DELETE FROM people WHERE id = $1", [id])
}

/// How much of a person's own would be deleted with their account.
#[derive(Debug, Clone, Copy, sqlx::FromRow)]
pub struct PersonBelongings {
    pub ssh_keys: i64,
    /// Clusters that they have a user name for.
    pub clusters: i64,
    pub jobs: i64,
    pub dashboards: i64,
    /// Guest links that have neither expired nor been revoked, to what wasn't deleted.
    pub guest_links: i64,
    /// Recipes that no group uses.
    pub recipes: i64,
}

pub async fn count_belongings(db: &mut DbConnection, id: PersonId, now: UnixTime) -> Result<PersonBelongings> {
    fetch_one!(
        db,
        "SELECT (SELECT count(*) FROM ssh_keys WHERE person_id = $1) AS ssh_keys,
           (SELECT count(DISTINCT cluster_id) FROM connections WHERE person_id = $1) AS clusters,
           (SELECT count(*) FROM jobs WHERE person_id = $1) AS jobs,
           (SELECT count(*) FROM dashboards WHERE person_id = $1 AND removed_at IS NULL) AS dashboards,
           (SELECT count(*) FROM guest_links l LEFT JOIN dashboards d ON d.id = l.dashboard_id
              LEFT JOIN reports r ON r.id = l.report_id
              WHERE l.created_by = $1 AND l.revoked_at IS NULL AND l.expires_at > $2
                AND d.removed_at IS NULL AND r.removed_at IS NULL) AS guest_links,
           (SELECT count(*) FROM recipes WHERE owner_id = $1 AND group_id IS NULL AND archived_at IS NULL) AS recipes",
        [id, now]
    )
}
