//! Tables `recipes` and `recipe_versions`: saved recipes. Nothing here changes a version once it is written.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{DisplayName, GroupId, PersonId, RecipeId};

/// A saved recipe, without its text.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct SavedRecipeRow {
    pub id: RecipeId,
    owner_id: Option<PersonId>,
    /// The owner's display name; none if the owner is gone.
    pub owner_name: Option<String>,
    group_id: Option<GroupId>,
    /// The group it is published to.
    pub group_name: Option<String>,
    pub title: String,
    archived_at: Option<UnixTime>,
    pub version: i64,
    /// When the newest version was written.
    pub changed_at: UnixTime,
}

impl SavedRecipeRow {
    pub fn owner(&self) -> Option<PersonId> {
        self.owner_id
    }

    /// The group it is published to.
    pub fn group(&self) -> Option<GroupId> {
        self.group_id
    }

    pub const fn is_archived(&self) -> bool {
        self.archived_at.is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct RecipeVersion {
    /// The version number, from 1.
    pub version: i64,
    /// The complete recipe file.
    pub text: String,
    /// The author's display name.
    pub author_name: String,
    /// What is new in this version.
    pub note: String,
    pub created_at: UnixTime,
}

/// A version to add.
#[derive(Debug, Clone, Copy)]
pub struct NewRecipeVersion<'a> {
    pub recipe: RecipeId,
    pub version: i64,
    /// The complete recipe file.
    pub text: &'a str,
    pub author: PersonId,
    /// The author's display name.
    pub author_name: &'a str,
    /// What is new in this version.
    pub note: &'a str,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.owner_id, p.display_name AS owner_name, r.group_id, g.name AS group_name, r.title,
                    r.archived_at, v.version, v.created_at AS changed_at
             FROM recipes r
             JOIN recipe_versions v ON v.recipe_id = r.id
                  AND v.version = (SELECT max(version) FROM recipe_versions WHERE recipe_id = r.id)
             LEFT JOIN people p ON p.id = r.owner_id
             LEFT JOIN groups g ON g.id = r.group_id ",
            $rest
        )
    };
}

/// Adds a recipe, still without a version.
pub async fn add(
    db: &mut DbConnection,
    owner: PersonId,
    group: Option<GroupId>,
    title: &DisplayName,
    now: UnixTime,
) -> Result<RecipeId> {
    scalar_one!(
        db,
        "INSERT INTO recipes (owner_id, group_id, title, created_at) VALUES ($1, $2, $3, $4) RETURNING id",
        [owner, group, title.as_str(), now]
    )
}

pub async fn add_version(db: &mut DbConnection, new: &NewRecipeVersion<'_>, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "INSERT INTO recipe_versions (recipe_id, version, text, author_id, author_name, note, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        [new.recipe, new.version, new.text, new.author, new.author_name, new.note, now]
    )
}

/// A recipe, deleted or not.
pub async fn get(db: &mut DbConnection, id: RecipeId) -> Result<Option<SavedRecipeRow>> {
    fetch_optional!(db, select!("WHERE r.id = $1"), [id])
}

/// A person's own recipes and those of their groups, by title; those of every group if `of_all_groups`.
pub async fn list(db: &mut DbConnection, person: PersonId, of_all_groups: bool) -> Result<Vec<SavedRecipeRow>> {
    let sql = select!(
        "WHERE r.archived_at IS NULL AND (r.owner_id = $1 OR ($2 AND r.group_id IS NOT NULL)
           OR r.group_id IN (SELECT group_id FROM memberships WHERE person_id = $1))
         ORDER BY r.title COLLATE NOCASE, r.id"
    );
    fetch_all!(db, sql, [person, of_all_groups])
}

/// Counts a person's recipes that are not deleted.
pub async fn count_for_person(db: &mut DbConnection, owner: PersonId) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM recipes WHERE owner_id = $1 AND archived_at IS NULL", [owner])
}

pub async fn find_version(db: &mut DbConnection, id: RecipeId, number: i64) -> Result<Option<RecipeVersion>> {
    fetch_optional!(
        db,
        "SELECT version, text, author_name, note, created_at FROM recipe_versions
         WHERE recipe_id = $1 AND version = $2",
        [id, number]
    )
}

/// All versions, newest first, without their texts.
pub async fn list_versions(db: &mut DbConnection, id: RecipeId) -> Result<Vec<RecipeVersion>> {
    fetch_all!(
        db,
        "SELECT version, '' AS text, author_name, note, created_at FROM recipe_versions
         WHERE recipe_id = $1 ORDER BY version DESC",
        [id]
    )
}

/// Saves the title of the newest version.
pub async fn set_title(db: &mut DbConnection, id: RecipeId, title: &DisplayName) -> Result<()> {
    execute!(db, "UPDATE recipes SET title = $2 WHERE id = $1", [id, title.as_str()])
}

/// Publishes a recipe to a group, or to none.
pub async fn set_group(db: &mut DbConnection, id: RecipeId, group: Option<GroupId>) -> Result<()> {
    execute!(db, "UPDATE recipes SET group_id = $2 WHERE id = $1", [id, group])
}

/// Hides a recipe from people; jobs that were made with it still refer to it.
pub async fn archive(db: &mut DbConnection, id: RecipeId, now: UnixTime) -> Result<()> {
    execute!(db, "UPDATE recipes SET archived_at = $2 WHERE id = $1", [id, now])
}

/// Deletes recipes that nobody can reach any more: private ones of people who are gone.
pub async fn delete_ownerless(db: &mut DbConnection) -> Result<u64> {
    affected_rows!(db, "DELETE FROM recipes WHERE owner_id IS NULL AND group_id IS NULL")
}
