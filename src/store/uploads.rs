//! Table `uploads`: files on their way to a cluster, and how far each of them got.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId, SharedPathId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(rename_all = "snake_case")]
pub enum UploadState {
    /// Bytes arrive, or are being checked.
    Receiving,
    /// All bytes are there and checked, but the name is taken: the owner decides.
    NameTaken,
    /// The file is under its final name.
    Finished,
}

impl UploadState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Receiving => "receiving",
            Self::NameTaken => "name_taken",
            Self::Finished => "finished",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct StoredUpload {
    pub id: String,
    pub person_id: PersonId,
    pub cluster_id: ClusterId,
    /// The drop-box that a guest uploads to; none if the person uploads.
    pub drop_box_id: Option<SharedPathId>,
    /// The file's path on the cluster, encoded.
    pub target: String,
    /// The path that it is written to first, encoded.
    pub temporary: String,
    /// As the client sent it, or only the file's name if that was long.
    pub metadata: String,
    pub size: i64,
    /// So many bytes are certainly on the cluster.
    pub confirmed: i64,
    /// Of the checksum of these bytes, to be continued.
    pub checksum_state: u32,
    /// Whether it may replace a file with the same name.
    pub replaces: bool,
    /// The file's own time.
    pub modified_at: Option<UnixTime>,
    pub state: UploadState,
    /// Why it does not go on, as a sentence; empty if it does.
    pub problem: String,
    /// The IP address of whoever began it; empty if that was an older version.
    pub address: String,
    pub created_at: UnixTime,
    /// When something last arrived.
    pub touched_at: UnixTime,
}

impl StoredUpload {
    pub const fn is_received(&self) -> bool {
        self.confirmed == self.size
    }
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, person_id, cluster_id, drop_box_id, target, temporary, metadata, size, confirmed, checksum_state, replaces,
                    modified_at, state, problem, address, created_at, touched_at FROM uploads ",
            $rest
        )
    };
}

pub async fn add(db: &mut DbConnection, upload: &StoredUpload) -> Result<()> {
    execute!(
        db,
        "INSERT INTO uploads (id, person_id, cluster_id, drop_box_id, target, temporary, metadata, size, confirmed,
                              checksum_state, replaces, modified_at, state, problem, address, created_at, touched_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        upload.{
            id, person_id, cluster_id, drop_box_id, target, temporary, metadata, size, confirmed, checksum_state,
            replaces, modified_at, state, problem, address, created_at, touched_at
        }
    )
}

/// An upload of a person, or of a guest to one of their drop-boxes.
pub async fn find(
    db: &mut DbConnection,
    person: PersonId,
    drop_box: Option<SharedPathId>,
    id: &str,
) -> Result<Option<StoredUpload>> {
    fetch_optional!(db, select!("WHERE id = $1 AND person_id = $2 AND drop_box_id IS $3"), [id, person, drop_box])
}

/// A person's uploads to a cluster that are not finished, the newest first.
pub async fn list_unfinished(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    most: i64,
) -> Result<Vec<StoredUpload>> {
    let sql = select!(
        "WHERE person_id = $1 AND cluster_id = $2 AND drop_box_id IS NULL AND state <> 'finished'
         ORDER BY touched_at DESC, id LIMIT $3"
    );
    fetch_all!(db, sql, [person, cluster, most])
}

/// All unfinished uploads to a person's account on a cluster, those of guests included.
pub async fn list_for_account(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    most: i64,
) -> Result<Vec<StoredUpload>> {
    let sql = select!("WHERE person_id = $1 AND cluster_id = $2 AND state <> 'finished' ORDER BY id LIMIT $3");
    fetch_all!(db, sql, [person, cluster, most])
}

/// Deletes all uploads to a person's account on a cluster, those of guests included. The files stay.
pub async fn delete_for_account(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<u64> {
    execute!(
        db,
        "UPDATE shared_paths SET used_bytes = used_bytes - u.bytes, used_files = used_files - u.files
         FROM (SELECT drop_box_id, sum(size) AS bytes, count(*) AS files FROM uploads
               WHERE person_id = $1 AND cluster_id = $2 AND state <> 'finished' GROUP BY drop_box_id) u
         WHERE shared_paths.id = u.drop_box_id",
        [person, cluster]
    )?;
    affected_rows!(db, "DELETE FROM uploads WHERE person_id = $1 AND cluster_id = $2", [person, cluster])
}

/// Counts a person's own uploads.
pub async fn count(db: &mut DbConnection, person: PersonId) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM uploads WHERE person_id = $1 AND drop_box_id IS NULL", [person])
}

/// Saves how far it got.
pub async fn save_progress(
    db: &mut DbConnection,
    id: &str,
    confirmed: i64,
    checksum_state: u32,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "UPDATE uploads SET confirmed = $2, checksum_state = $3, touched_at = $4, problem = '' WHERE id = $1",
        [id, confirmed, checksum_state, now]
    )
}

pub async fn set_state(db: &mut DbConnection, id: &str, state: UploadState, problem: &str) -> Result<()> {
    execute!(db, "UPDATE uploads SET state = $2, problem = $3 WHERE id = $1", [id, state, problem])
}

pub async fn set_target(db: &mut DbConnection, id: &str, target: &str) -> Result<()> {
    execute!(db, "UPDATE uploads SET target = $2 WHERE id = $1", [id, target])
}

/// Deletes an upload. What an unfinished one would have taken of a drop-box is free again.
pub async fn delete(db: &mut DbConnection, id: &str) -> Result<()> {
    execute!(
        db,
        "UPDATE shared_paths SET used_bytes = used_bytes - u.size, used_files = used_files - 1
         FROM (SELECT drop_box_id, size FROM uploads WHERE id = $1 AND state <> 'finished') u
         WHERE shared_paths.id = u.drop_box_id",
        [id]
    )?;
    execute!(db, "DELETE FROM uploads WHERE id = $1", [id])
}

/// Deletes a person's finished uploads from the table; the files stay.
pub async fn delete_finished(db: &mut DbConnection, person: PersonId) -> Result<u64> {
    affected_rows!(
        db,
        "DELETE FROM uploads WHERE person_id = $1 AND drop_box_id IS NULL AND state = 'finished'",
        [person]
    )
}

/// The people and clusters with unfinished uploads that nothing has arrived for since `until`.
pub async fn list_expired_accounts(db: &mut DbConnection, until: UnixTime) -> Result<Vec<(PersonId, ClusterId)>> {
    fetch_all!(
        db,
        "SELECT DISTINCT person_id, cluster_id FROM uploads WHERE state <> 'finished' AND touched_at <= $1",
        [until]
    )
}

/// These uploads of one of them, the oldest first.
pub async fn list_expired(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    until: UnixTime,
    most: i64,
) -> Result<Vec<StoredUpload>> {
    let sql = select!(
        "WHERE person_id = $1 AND cluster_id = $2 AND state <> 'finished' AND touched_at <= $3
         ORDER BY touched_at, id LIMIT $4"
    );
    fetch_all!(db, sql, [person, cluster, until, most])
}

/// Deletes finished uploads that ended before `finished_until`, and any that nothing has arrived for since `until`.
pub async fn sweep(db: &mut DbConnection, finished_until: UnixTime, until: UnixTime) -> Result<u64> {
    affected_rows!(
        db,
        "DELETE FROM uploads WHERE (state = 'finished' AND touched_at <= $1) OR touched_at <= $2",
        [finished_until, until]
    )
}
