//! Tables `favourite_folders` and `recent_folders`: the folders on clusters that a person comes back to.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId, RemotePath};

/// How many favourites a person can have, on all clusters together.
pub const MAX_FAVOURITES: i64 = 30;
/// How many of the folders that a person opened last are kept, for each cluster.
pub const MAX_RECENT: i64 = 12;

fn parse_paths(rows: &[Vec<u8>]) -> Vec<RemotePath> {
    rows.iter().filter_map(|path| RemotePath::parse(path).ok()).collect()
}

/// A person's favourites on a cluster, in the order of their paths.
pub async fn list_favourites(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<Vec<RemotePath>> {
    let rows: Vec<Vec<u8>> = scalar_all!(
        db,
        "SELECT path FROM favourite_folders WHERE person_id = $1 AND cluster_id = $2 ORDER BY path",
        [person, cluster]
    )?;
    Ok(parse_paths(&rows))
}

pub async fn is_favourite(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    path: &RemotePath,
) -> Result<bool> {
    let found: Option<i64> = scalar_optional!(
        db,
        "SELECT 1 FROM favourite_folders WHERE person_id = $1 AND cluster_id = $2 AND path = $3",
        [person, cluster, path.as_bytes()]
    )?;
    Ok(found.is_some())
}

/// Adds a favourite. False if the person has as many as they can have.
pub async fn add_favourite(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    path: &RemotePath,
    now: UnixTime,
) -> Result<bool> {
    if is_favourite(db, person, cluster, path).await? {
        return Ok(true);
    }
    affects_row!(
        db,
        "INSERT INTO favourite_folders (person_id, cluster_id, path, added_at)
         SELECT $1, $2, $3, $4 WHERE (SELECT count(*) FROM favourite_folders WHERE person_id = $1) < $5",
        [person, cluster, path.as_bytes(), now, MAX_FAVOURITES]
    )
}

pub async fn remove_favourite(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    path: &RemotePath,
) -> Result<()> {
    execute!(
        db,
        "DELETE FROM favourite_folders WHERE person_id = $1 AND cluster_id = $2 AND path = $3",
        [person, cluster, path.as_bytes()]
    )
}

/// The folders that a person opened last on a cluster, the latest first.
pub async fn list_recent(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<Vec<RemotePath>> {
    let rows: Vec<Vec<u8>> = scalar_all!(
        db,
        "SELECT path FROM recent_folders WHERE person_id = $1 AND cluster_id = $2
         ORDER BY opened_at DESC, rowid DESC LIMIT $3",
        [person, cluster, MAX_RECENT]
    )?;
    Ok(parse_paths(&rows))
}

/// Records that a folder was opened, and drops the oldest beyond the limit.
pub async fn mark_opened(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    path: &RemotePath,
    now: UnixTime,
) -> Result<()> {
    // A new row each time: of several in one second, the one with the highest number is the latest.
    execute!(
        db,
        "REPLACE INTO recent_folders (person_id, cluster_id, path, opened_at) VALUES ($1, $2, $3, $4)",
        [person, cluster, path.as_bytes(), now]
    )?;
    execute!(
        db,
        "DELETE FROM recent_folders WHERE person_id = $1 AND cluster_id = $2 AND rowid NOT IN (
           SELECT rowid FROM recent_folders WHERE person_id = $1 AND cluster_id = $2
           ORDER BY opened_at DESC, rowid DESC LIMIT $3)",
        [person, cluster, MAX_RECENT]
    )
}

/// The cluster on which a person opened a folder last.
pub async fn find_last_cluster(db: &mut DbConnection, person: PersonId) -> Result<Option<ClusterId>> {
    scalar_optional!(
        db,
        "SELECT cluster_id FROM recent_folders WHERE person_id = $1 ORDER BY opened_at DESC, rowid DESC LIMIT 1",
        [person]
    )
}

/// Deletes a person's favourites and recent folders on a cluster.
pub async fn remove_for_cluster(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<()> {
    execute!(db, "DELETE FROM favourite_folders WHERE person_id = $1 AND cluster_id = $2", [person, cluster])?;
    execute!(db, "DELETE FROM recent_folders WHERE person_id = $1 AND cluster_id = $2", [person, cluster])
}
