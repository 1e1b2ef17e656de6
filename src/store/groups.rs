//! Tables `groups` and `memberships`.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{DisplayName, GroupId, GroupRole, PersonId};

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Group {
    pub id: GroupId,
    pub name: String,
    /// How many active people belong to it.
    pub people: i64,
}

/// A person's membership in a group.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct Membership {
    pub group_id: GroupId,
    pub group_name: String,
    role: String,
}

#[derive(Debug, Clone, sqlx::FromRow)]
pub struct GroupMember {
    pub person_id: PersonId,
    pub name: String,
    pub display_name: String,
    /// Whether the account is disabled.
    pub is_disabled: bool,
    /// Member since.
    pub since: UnixTime,
    role: String,
}

impl Membership {
    pub fn role(&self) -> GroupRole {
        // The CHECK constraint allows no third value; the role with fewer rights is the safe fallback.
        self.role.parse().unwrap_or(GroupRole::Member)
    }
}

impl GroupMember {
    pub fn role(&self) -> GroupRole {
        self.role.parse().unwrap_or(GroupRole::Member)
    }

    /// Whether they lead the group and can sign in.
    pub fn is_active_pi(&self) -> bool {
        self.role() == GroupRole::Pi && !self.is_disabled
    }
}

pub async fn add(db: &mut DbConnection, name: &DisplayName, now: UnixTime) -> Result<GroupId> {
    scalar_one!(db, "INSERT INTO groups (name, created_at) VALUES ($1, $2) RETURNING id", [name.as_str(), now])
}

macro_rules! select_group {
    ($tail:literal) => {
        concat!(
            "SELECT g.id, g.name,
               (SELECT count(*) FROM memberships m JOIN people p ON p.id = m.person_id
                 WHERE m.group_id = g.id AND p.disabled_at IS NULL) AS people
             FROM groups g ",
            $tail
        )
    };
}

pub async fn list(db: &mut DbConnection) -> Result<Vec<Group>> {
    fetch_all!(db, select_group!("ORDER BY g.name"))
}

pub async fn get(db: &mut DbConnection, id: GroupId) -> Result<Option<Group>> {
    fetch_optional!(db, select_group!("WHERE g.id = $1"), [id])
}

pub async fn find_by_name(db: &mut DbConnection, name: &DisplayName) -> Result<Option<GroupId>> {
    scalar_optional!(db, "SELECT id FROM groups WHERE name = $1", [name.as_str()])
}

pub async fn rename(db: &mut DbConnection, id: GroupId, name: &DisplayName) -> Result<()> {
    execute!(db, "UPDATE groups SET name = $2 WHERE id = $1", [id, name.as_str()])
}

/// Adds someone to a group, or changes their role there.
pub async fn set_member(
    db: &mut DbConnection,
    group: GroupId,
    person: PersonId,
    role: GroupRole,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO memberships (group_id, person_id, role, since) VALUES ($1, $2, $3, $4)
         ON CONFLICT (group_id, person_id) DO UPDATE SET role = excluded.role",
        [group, person, role.as_str(), now]
    )
}

/// Removes someone from a group. False if they were not in it.
pub async fn remove_member(db: &mut DbConnection, group: GroupId, person: PersonId) -> Result<bool> {
    affects_row!(db, "DELETE FROM memberships WHERE group_id = $1 AND person_id = $2", [group, person])
}

pub async fn list_for_person(db: &mut DbConnection, person: PersonId) -> Result<Vec<Membership>> {
    fetch_all!(
        db,
        "SELECT m.group_id, g.name AS group_name, m.role FROM memberships m JOIN groups g ON g.id = m.group_id
         WHERE m.person_id = $1 ORDER BY g.name",
        [person]
    )
}

/// The members of a group, PIs first.
pub async fn list_members(db: &mut DbConnection, group: GroupId) -> Result<Vec<GroupMember>> {
    fetch_all!(
        db,
        "SELECT m.person_id, p.name, p.display_name, p.disabled_at IS NOT NULL AS is_disabled, m.since, m.role
         FROM memberships m JOIN people p ON p.id = m.person_id
         WHERE m.group_id = $1 ORDER BY m.role DESC, p.display_name",
        [group]
    )
}

/// The groups that would have members but no PI who can sign in, if this person were not their PI.
pub async fn list_led_alone(db: &mut DbConnection, person: PersonId) -> Result<Vec<Group>> {
    fetch_all!(
        db,
        select_group!(
            "JOIN memberships own ON own.group_id = g.id AND own.person_id = $1 AND own.role = 'pi'
             WHERE EXISTS (SELECT 1 FROM memberships m WHERE m.group_id = g.id AND m.person_id <> $1)
               AND NOT EXISTS (SELECT 1 FROM memberships m JOIN people p ON p.id = m.person_id
                 WHERE m.group_id = g.id AND m.person_id <> $1 AND m.role = 'pi' AND p.disabled_at IS NULL)
             ORDER BY g.name"
        ),
        [person]
    )
}
