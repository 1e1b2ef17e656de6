//! Table `shared_paths`: files and folders on clusters that guest links lead to, and drop-boxes with what they hold.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId, SharedPathId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(rename_all = "snake_case")]
pub enum SharedPathKind {
    /// A file to read.
    File,
    /// A folder to read, with all that is in it.
    Folder,
    /// A folder to upload into.
    DropBox,
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct SharedPath {
    pub id: SharedPathId,
    /// Whose connection leads to it.
    pub person_id: PersonId,
    pub cluster_id: ClusterId,
    /// The cluster's short name and its title.
    pub slug: String,
    pub cluster: String,
    /// Without links in it, encoded.
    pub path: String,
    /// Its last part, for people.
    pub title: String,
    pub kind: SharedPathKind,
    /// What all uploads to a drop-box may take.
    pub max_bytes: i64,
    pub max_files: i64,
    /// What they take, the announced sizes of unfinished ones included.
    pub used_bytes: i64,
    pub used_files: i64,
}

impl SharedPath {
    /// How many bytes and files a drop-box still takes.
    pub fn room(&self) -> (u64, u64) {
        let left = |most: i64, used: i64| u64::try_from(most - used).unwrap_or(0);
        (left(self.max_bytes, self.used_bytes), left(self.max_files, self.used_files))
    }
}

/// A path to share.
#[derive(Debug)]
pub struct NewSharedPath<'a> {
    pub person: PersonId,
    pub cluster: ClusterId,
    /// Encoded.
    pub path: &'a str,
    pub title: &'a str,
    pub kind: SharedPathKind,
    /// Of a drop-box.
    pub max_bytes: i64,
    pub max_files: i64,
}

macro_rules! select {
    ($condition:literal) => {
        concat!(
            "SELECT s.id, s.person_id, s.cluster_id, c.slug, c.title AS cluster, s.path, s.title, s.kind, s.max_bytes,
                    s.max_files, s.used_bytes, s.used_files
             FROM shared_paths s JOIN clusters c ON c.id = s.cluster_id WHERE ",
            $condition
        )
    };
}

pub async fn add(db: &mut DbConnection, new: &NewSharedPath<'_>, now: UnixTime) -> Result<SharedPathId> {
    scalar_one!(
        db,
        "INSERT INTO shared_paths (person_id, cluster_id, path, title, kind, max_bytes, max_files, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8) RETURNING id",
        [new.person, new.cluster, new.path, new.title, new.kind, new.max_bytes, new.max_files, now]
    )
}

pub async fn get(db: &mut DbConnection, id: SharedPathId) -> Result<Option<SharedPath>> {
    fetch_optional!(db, select!("s.id = $1"), [id])
}

pub async fn list(db: &mut DbConnection, person: PersonId) -> Result<Vec<SharedPath>> {
    fetch_all!(db, select!("s.person_id = $1 ORDER BY s.id DESC LIMIT 1000"), [person])
}

/// Takes room for a file in a drop-box; false if it would then hold more than its owner allows.
pub async fn reserve(db: &mut DbConnection, id: SharedPathId, size: i64) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE shared_paths SET used_bytes = used_bytes + $2, used_files = used_files + 1
         WHERE id = $1 AND kind = 'drop_box' AND $2 <= max_bytes - used_bytes AND used_files < max_files",
        [id, size]
    )
}

/// Deletes those to which no link is left.
pub async fn delete_unlinked(db: &mut DbConnection) -> Result<u64> {
    affected_rows!(
        db,
        "DELETE FROM shared_paths WHERE id NOT IN (
            SELECT shared_path_id FROM guest_links WHERE shared_path_id IS NOT NULL)"
    )
}
