//! Table `one_time_links`: links that work once. Only a hash of the secret part is kept.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{GroupId, GroupRole, OneTimeLinkId, PersonId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(rename_all = "lowercase")]
pub enum OneTimeLinkPurpose {
    /// Creates the first administrator.
    Setup,
    /// Invites someone into a group.
    Join,
    /// Lets someone choose a new password.
    Reset,
}

/// A link to add.
#[derive(Debug)]
pub struct NewOneTimeLink<'a> {
    pub purpose: OneTimeLinkPurpose,
    /// SHA-256 of the secret part.
    pub token_hash: [u8; 32],
    /// Who it is for, in its maker's words.
    pub label: &'a str,
    /// For an invitation: the group, and the role there.
    pub group_role: Option<(GroupId, GroupRole)>,
    pub person: Option<PersonId>,
    /// Who made it; none for the command line and the setup link.
    pub created_by: Option<PersonId>,
    pub expires_at: UnixTime,
}

impl NewOneTimeLink<'_> {
    /// A link for nobody in particular.
    pub const fn new(purpose: OneTimeLinkPurpose, token_hash: [u8; 32], expires_at: UnixTime) -> Self {
        Self { purpose, token_hash, label: "", group_role: None, person: None, created_by: None, expires_at }
    }
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct OneTimeLink {
    pub id: OneTimeLinkId,
    /// Who it is for.
    pub label: String,
    group_id: Option<GroupId>,
    /// The group it invites to.
    pub group_name: Option<String>,
    role: Option<String>,
    pub person_id: Option<PersonId>,
    pub created_by_name: Option<String>,
    pub created_at: UnixTime,
    pub expires_at: UnixTime,
    pub used_at: Option<UnixTime>,
    pub used_by_name: Option<String>,
    pub revoked_at: Option<UnixTime>,
}

impl OneTimeLink {
    /// For an invitation: the group, and the role there.
    pub fn group_role(&self) -> Option<(GroupId, GroupRole)> {
        Some((self.group_id?, self.role.as_deref()?.parse().ok()?))
    }

    /// Whether it still works.
    pub fn is_open(&self, now: UnixTime) -> bool {
        self.used_at.is_none() && self.revoked_at.is_none() && now < self.expires_at
    }
}

macro_rules! select_link {
    ($tail:literal) => {
        concat!(
            "SELECT l.id, l.label, l.group_id, g.name AS group_name, l.role, l.person_id,
                    maker.display_name AS created_by_name, l.created_at, l.expires_at, l.used_at,
                    user.display_name AS used_by_name, l.revoked_at
             FROM one_time_links l LEFT JOIN groups g ON g.id = l.group_id
                  LEFT JOIN people maker ON maker.id = l.created_by
                  LEFT JOIN people user ON user.id = l.used_by ",
            $tail
        )
    };
}

pub async fn add(db: &mut DbConnection, link: &NewOneTimeLink<'_>, now: UnixTime) -> Result<OneTimeLinkId> {
    scalar_one!(
        db,
        "INSERT INTO one_time_links (purpose, token_hash, label, group_id, role, person_id, created_by, created_at, expires_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9) RETURNING id",
        [
            link.purpose, &link.token_hash[..], link.label, link.group_role.map(|(group, _)| group),
            link.group_role.map(|(_, role)| role.as_str()), link.person, link.created_by, now, link.expires_at
        ]
    )
}

/// The link with this secret, whether or not it still works.
pub async fn find(
    db: &mut DbConnection,
    purpose: OneTimeLinkPurpose,
    token_hash: &[u8; 32],
) -> Result<Option<OneTimeLink>> {
    fetch_optional!(db, select_link!("WHERE l.purpose = $1 AND l.token_hash = $2"), [purpose, &token_hash[..]])
}

pub async fn get(db: &mut DbConnection, id: OneTimeLinkId) -> Result<Option<OneTimeLink>> {
    fetch_optional!(db, select_link!("WHERE l.id = $1"), [id])
}

/// The newest invitations to a group.
pub async fn list_invitations(db: &mut DbConnection, group: GroupId) -> Result<Vec<OneTimeLink>> {
    fetch_all!(db, select_link!("WHERE l.purpose = 'join' AND l.group_id = $1 ORDER BY l.id DESC LIMIT 100"), [group])
}

/// Uses up a link. False if it no longer works: someone was quicker.
pub async fn use_up(db: &mut DbConnection, id: OneTimeLinkId, by: PersonId, now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE one_time_links SET used_at = $2, used_by = $3
         WHERE id = $1 AND used_at IS NULL AND revoked_at IS NULL AND expires_at > $2",
        [id, now, by]
    )
}

/// Revokes a link. False if it was used or revoked before.
pub async fn revoke(db: &mut DbConnection, id: OneTimeLinkId, now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE one_time_links SET revoked_at = $2 WHERE id = $1 AND used_at IS NULL AND revoked_at IS NULL",
        [id, now]
    )
}

/// Revokes every open setup link.
pub async fn revoke_setup(db: &mut DbConnection, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE one_time_links SET revoked_at = $1 WHERE purpose = 'setup' AND used_at IS NULL AND revoked_at IS NULL",
        [now]
    )
}

/// Revokes a person's open reset links.
pub async fn revoke_resets(db: &mut DbConnection, person: PersonId, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE one_time_links SET revoked_at = $2
         WHERE purpose = 'reset' AND person_id = $1 AND used_at IS NULL AND revoked_at IS NULL",
        [person, now]
    )
}

/// Revokes the open invitations to a group that a person made.
pub async fn revoke_invitations_by(
    db: &mut DbConnection,
    group: GroupId,
    person: PersonId,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "UPDATE one_time_links SET revoked_at = $3
         WHERE purpose = 'join' AND group_id = $1 AND created_by = $2 AND used_at IS NULL AND revoked_at IS NULL",
        [group, person, now]
    )
}

/// Revokes every open link made for (or by) a person.
pub async fn revoke_for_person(db: &mut DbConnection, person: PersonId, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE one_time_links SET revoked_at = $2
         WHERE (person_id = $1 OR created_by = $1) AND used_at IS NULL AND revoked_at IS NULL",
        [person, now]
    )
}
