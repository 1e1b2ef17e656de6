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
}

pub async fn add(db: &mut DbConnection, name: &DisplayName, now: UnixTime) -> Result<GroupId> {
    Ok(sqlx::query_scalar("INSERT INTO groups (name, created_at) VALUES ($1, $2) RETURNING id")
        .bind(name.as_str())
        .bind(now)
        .fetch_one(db)
        .await?)
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
    Ok(sqlx::query_as(select_group!("ORDER BY g.name")).fetch_all(db).await?)
}

pub async fn get(db: &mut DbConnection, id: GroupId) -> Result<Option<Group>> {
    Ok(sqlx::query_as(select_group!("WHERE g.id = $1")).bind(id).fetch_optional(db).await?)
}

pub async fn find_by_name(db: &mut DbConnection, name: &DisplayName) -> Result<Option<GroupId>> {
    Ok(sqlx::query_scalar("SELECT id FROM groups WHERE name = $1").bind(name.as_str()).fetch_optional(db).await?)
}

pub async fn rename(db: &mut DbConnection, id: GroupId, name: &DisplayName) -> Result<()> {
    sqlx::query("UPDATE groups SET name = $2 WHERE id = $1").bind(id).bind(name.as_str()).execute(db).await?;
    Ok(())
}

/// Adds someone to a group, or changes their role there.
pub async fn set_member(
    db: &mut DbConnection,
    group: GroupId,
    person: PersonId,
    role: GroupRole,
    now: UnixTime,
) -> Result<()> {
    sqlx::query(
        "INSERT INTO memberships (group_id, person_id, role, since) VALUES ($1, $2, $3, $4)
         ON CONFLICT (group_id, person_id) DO UPDATE SET role = excluded.role",
    )
    .bind(group)
    .bind(person)
    .bind(role.as_str())
    .bind(now)
    .execute(db)
    .await?;
    Ok(())
}

/// Removes someone from a group. False if they were not in it.
pub async fn remove_member(db: &mut DbConnection, group: GroupId, person: PersonId) -> Result<bool> {
    let done = sqlx::query("DELETE FROM memberships WHERE group_id = $1 AND person_id = $2")
        .bind(group)
        .bind(person)
        .execute(db)
        .await?;
    Ok(done.rows_affected() == 1)
}

pub async fn list_for_person(db: &mut DbConnection, person: PersonId) -> Result<Vec<Membership>> {
    Ok(sqlx::query_as(
        "SELECT m.group_id, g.name AS group_name, m.role FROM memberships m JOIN groups g ON g.id = m.group_id
         WHERE m.person_id = $1 ORDER BY g.name",
    )
    .bind(person)
    .fetch_all(db)
    .await?)
}

/// The members of a group, PIs first.
pub async fn list_members(db: &mut DbConnection, group: GroupId) -> Result<Vec<GroupMember>> {
    Ok(sqlx::query_as(
        "SELECT m.person_id, p.name, p.display_name, p.disabled_at IS NOT NULL AS is_disabled, m.since, m.role
         FROM memberships m JOIN people p ON p.id = m.person_id
         WHERE m.group_id = $1 ORDER BY m.role DESC, p.display_name",
    )
    .bind(group)
    .fetch_all(db)
    .await?)
}
