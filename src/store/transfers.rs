//! Table `transfers`: work on files that goes on in the background, and how far it is.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId, RemoteName, RemotePath, TransferId, codes};

/// Whoever doesn't connect for most of a year won't miss what is left.
const MAX_CLEAN_UP_WAIT_SECS: i64 = 300 * 86_400;

/// What a transfer does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TransferKind {
    /// Deletes items.
    Delete,
    /// Copies items to another folder, on the same cluster or another one.
    Copy,
    /// Downloads a web address into a folder.
    Fetch,
    /// Packs items into an archive beside them.
    Compress,
    /// Unpacks one archive into a new folder beside it.
    Extract,
}

codes!(TransferKind { Delete = "delete", Copy = "copy", Fetch = "fetch", Compress = "compress", Extract = "extract" });

#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(rename_all = "snake_case")]
pub enum TransferState {
    /// It waits for its turn, or for a connection.
    Queued,
    Running,
    /// Its owner paused it.
    Paused,
    Done,
    Failed,
    Cancelled,
}

impl TransferState {
    pub const fn is_over(self) -> bool {
        matches!(self, Self::Done | Self::Failed | Self::Cancelled)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Transfer {
    pub id: TransferId,
    pub person_id: PersonId,
    kind: String,
    pub cluster_id: ClusterId,
    folder: Vec<u8>,
    names: Vec<u8>,
    /// Where a download comes from.
    pub url: String,
    /// The cluster that copies go to, if it is another one.
    pub target_cluster_id: Option<ClusterId>,
    target_folder: Vec<u8>,
    /// Random; part of its hidden names.
    pub token: String,
    pub state: TransferState,
    pub files_done: i64,
    /// 0 if they weren't counted.
    pub files_total: i64,
    pub bytes_done: i64,
    /// 0 if it isn't known.
    pub bytes_total: i64,
    /// Where to go on from, as JSON.
    pub checkpoint: String,
    /// Why it failed, or what to know about the result.
    pub message: String,
    /// Whether it is over and something may be left on the cluster.
    pub is_clean_up_due: bool,
    /// Whether its owner removed it from the list, or it is old: it goes once nothing is left.
    pub is_dismissed: bool,
    pub created_at: UnixTime,
    pub started_at: Option<UnixTime>,
    pub ended_at: Option<UnixTime>,
}

impl Transfer {
    pub fn kind(&self) -> Option<TransferKind> {
        TransferKind::parse(&self.kind)
    }

    /// Where the items are, or where a download goes.
    pub fn folder(&self) -> RemotePath {
        RemotePath::parse(&self.folder).unwrap_or_else(|_| RemotePath::root())
    }

    pub fn names(&self) -> Vec<RemoteName> {
        self.names.split(|byte| *byte == 0).filter_map(|name| RemoteName::parse(name).ok()).collect()
    }

    /// Where copies go.
    pub fn target_folder(&self) -> Option<RemotePath> {
        RemotePath::parse(&self.target_folder).ok()
    }

    /// The archive that items are packed into.
    pub fn archive_path(&self) -> Option<RemotePath> {
        self.target_folder()
    }

    pub fn target_cluster(&self) -> ClusterId {
        self.target_cluster_id.unwrap_or(self.cluster_id)
    }
}

/// A transfer to start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewTransfer {
    pub person: PersonId,
    pub kind: TransferKind,
    pub cluster: ClusterId,
    /// Where the items are, or where a download goes.
    pub folder: RemotePath,
    pub names: Vec<RemoteName>,
    /// Empty unless it is a download.
    pub url: String,
    /// Where copies go, or the archive that items are packed into.
    pub target: Option<(ClusterId, RemotePath)>,
}

/// How far a transfer is.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TransferCounts {
    pub files_done: i64,
    pub files_total: i64,
    pub bytes_done: i64,
    pub bytes_total: i64,
}

/// As much of an open transfer as decides whether it can run now.
#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::FromRow)]
pub struct OpenTransfer {
    pub id: TransferId,
    pub person_id: PersonId,
    pub cluster_id: ClusterId,
    pub target_cluster_id: Option<ClusterId>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, person_id, kind, cluster_id, folder, names, url, target_cluster_id, target_folder, token, state,
                    files_done, files_total, bytes_done, bytes_total, checkpoint, message, is_clean_up_due,
                    is_dismissed, created_at, started_at, ended_at FROM transfers ",
            $rest
        )
    };
}

/// Adds a transfer that waits for its turn.
pub async fn add(db: &mut DbConnection, new: &NewTransfer, token: &str, now: UnixTime) -> Result<TransferId> {
    let mut names = Vec::new();
    for name in &new.names {
        names.extend_from_slice(name.as_bytes());
        names.push(0);
    }
    let target_cluster = new.target.as_ref().map(|(cluster, _)| *cluster).filter(|cluster| *cluster != new.cluster);
    let target_folder = new.target.as_ref().map(|(_, folder)| folder.as_bytes().to_vec()).unwrap_or_default();
    scalar_one!(
        db,
        "INSERT INTO transfers (person_id, kind, cluster_id, folder, names, url, target_cluster_id, target_folder, token,
                                state, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, 'queued', $10) RETURNING id",
        [
            new.person, new.kind.as_str(), new.cluster, new.folder.as_bytes(), names, &new.url, target_cluster,
            target_folder, token, now
        ]
    )
}

pub async fn get(db: &mut DbConnection, id: TransferId) -> Result<Option<Transfer>> {
    fetch_optional!(db, select!("WHERE id = $1"), [id])
}

/// A person's transfers: open ones first, then the latest.
pub async fn list(db: &mut DbConnection, person: PersonId, most: i64) -> Result<Vec<Transfer>> {
    let sql =
        select!("WHERE person_id = $1 AND is_dismissed = 0 ORDER BY ended_at IS NOT NULL, ended_at DESC, id LIMIT $2");
    fetch_all!(db, sql, [person, most])
}

/// Archives that someone's items on a cluster were packed into, the latest first.
pub async fn list_archives(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    most: i64,
) -> Result<Vec<Vec<u8>>> {
    scalar_all!(
        db,
        "SELECT target_folder FROM transfers WHERE person_id = $1 AND cluster_id = $2 AND kind = $3
         ORDER BY id DESC LIMIT $4",
        [person, cluster, TransferKind::Compress.as_str(), most]
    )
}

/// What waits for its turn or was running, oldest first.
pub async fn list_due(db: &mut DbConnection) -> Result<Vec<OpenTransfer>> {
    fetch_all!(
        db,
        "SELECT id, person_id, cluster_id, target_cluster_id FROM transfers
         WHERE ended_at IS NULL AND state IN ('queued', 'running') ORDER BY id"
    )
}

/// How many open transfers each person has.
pub async fn count_open(db: &mut DbConnection) -> Result<Vec<(PersonId, i64)>> {
    fetch_all!(db, "SELECT person_id, count(*) FROM transfers WHERE ended_at IS NULL GROUP BY person_id")
}

pub async fn count_open_of(db: &mut DbConnection, person: PersonId) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM transfers WHERE person_id = $1 AND ended_at IS NULL", [person])
}

/// Marks one that waits as running. Returns whether it still waited.
pub async fn mark_running(db: &mut DbConnection, id: TransferId, now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE transfers SET state = 'running', started_at = coalesce(started_at, $2)
         WHERE id = $1 AND state IN ('queued', 'running')",
        [id, now]
    )
}

/// Puts one that runs back into the queue.
pub async fn mark_waiting(db: &mut DbConnection, id: TransferId) -> Result<()> {
    execute!(db, "UPDATE transfers SET state = 'queued' WHERE id = $1 AND state = 'running'", [id])
}

/// Saves how far it is.
pub async fn save_progress(
    db: &mut DbConnection,
    id: TransferId,
    counts: &TransferCounts,
    checkpoint: &str,
) -> Result<()> {
    execute!(
        db,
        "UPDATE transfers SET files_done = $2, files_total = $3, bytes_done = $4, bytes_total = $5, checkpoint = $6
         WHERE id = $1",
        [id, counts.files_done, counts.files_total, counts.bytes_done, counts.bytes_total, checkpoint]
    )
}

/// Saves where to go on from.
pub async fn set_checkpoint(db: &mut DbConnection, id: TransferId, checkpoint: &str) -> Result<()> {
    execute!(db, "UPDATE transfers SET checkpoint = $2 WHERE id = $1", [id, checkpoint])
}

/// Says what to know about it.
pub async fn set_message(db: &mut DbConnection, id: TransferId, message: &str) -> Result<()> {
    execute!(db, "UPDATE transfers SET message = $2 WHERE id = $1", [id, message])
}

/// Ends one whose work is done. Returns whether it did: its owner may have cancelled it meanwhile.
pub async fn finish(
    db: &mut DbConnection,
    id: TransferId,
    state: TransferState,
    message: &str,
    now: UnixTime,
) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE transfers SET state = $2, message = $3, ended_at = $4 WHERE id = $1 AND ended_at IS NULL",
        [id, state, message, now]
    )
}

/// Pauses one that isn't over.
pub async fn pause(db: &mut DbConnection, person: PersonId, id: TransferId) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE transfers SET state = 'paused' WHERE person_id = $1 AND id = $2 AND state IN ('queued', 'running')",
        [person, id]
    )
}

/// Puts a paused one back into the queue, or a failed one that is to be tried again.
pub async fn resume(db: &mut DbConnection, person: PersonId, id: TransferId) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE transfers SET state = 'queued', message = '', ended_at = NULL
         WHERE person_id = $1 AND id = $2 AND state IN ('paused', 'failed') AND is_dismissed = 0",
        [person, id]
    )
}

/// Ends one at its owner's request.
pub async fn cancel(db: &mut DbConnection, person: PersonId, id: TransferId, now: UnixTime) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE transfers SET state = 'cancelled', ended_at = $3, is_clean_up_due = 1
         WHERE person_id = $1 AND id = $2 AND ended_at IS NULL",
        [person, id, now]
    )
}

/// Ends all of a person's that have to do with a cluster; failed ones can't be tried again.
pub async fn cancel_for_cluster(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    now: UnixTime,
) -> Result<u64> {
    affected_rows!(
        db,
        "UPDATE transfers SET state = 'cancelled', ended_at = coalesce(ended_at, $3), is_clean_up_due = 1
         WHERE person_id = $1 AND (cluster_id = $2 OR target_cluster_id = $2) AND (ended_at IS NULL OR state = 'failed')",
        [person, cluster, now]
    )
}

/// What a failed one left can be resumed until nobody sees it any more.
macro_rules! has_leftovers {
    () => {
        "(is_clean_up_due = 1 OR (state = 'failed' AND checkpoint <> ''))"
    };
}

/// Removes one that is over from the list. If something may be left on the cluster, it is kept out of sight until that is
/// removed.
pub async fn dismiss(db: &mut DbConnection, person: PersonId, id: TransferId) -> Result<bool> {
    let is_hidden = affects_row!(
        db,
        concat!(
            "UPDATE transfers SET is_dismissed = 1, is_clean_up_due = 1
             WHERE person_id = $1 AND id = $2 AND ended_at IS NOT NULL AND ",
            has_leftovers!()
        ),
        [person, id]
    )?;
    let is_gone = affects_row!(
        db,
        "DELETE FROM transfers WHERE person_id = $1 AND id = $2 AND ended_at IS NOT NULL AND is_clean_up_due = 0",
        [person, id]
    )?;
    Ok(is_hidden || is_gone)
}

/// Removes all that went well or were cancelled from a person's list; those with something left on the cluster stay.
pub async fn clear(db: &mut DbConnection, person: PersonId) -> Result<u64> {
    affected_rows!(
        db,
        "DELETE FROM transfers WHERE person_id = $1 AND state IN ('done', 'cancelled') AND is_clean_up_due = 0",
        [person]
    )
}

/// Deletes transfers that ended before this time, as soon as nothing of them is left on the cluster.
pub async fn sweep(db: &mut DbConnection, before: UnixTime) -> Result<u64> {
    execute!(
        db,
        concat!(
            "UPDATE transfers SET is_dismissed = 1, is_clean_up_due = 1
             WHERE ended_at < $1 AND is_dismissed = 0 AND ",
            has_leftovers!()
        ),
        [before]
    )?;
    affected_rows!(
        db,
        "DELETE FROM transfers WHERE (ended_at < $1 AND is_clean_up_due = 0) OR ended_at < $2",
        [before, before.plus(-MAX_CLEAN_UP_WAIT_SECS)]
    )
}

/// What is over and may have left something, oldest first.
pub async fn list_to_clean_up(db: &mut DbConnection) -> Result<Vec<OpenTransfer>> {
    fetch_all!(
        db,
        "SELECT id, person_id, cluster_id, target_cluster_id FROM transfers WHERE is_clean_up_due = 1 ORDER BY id"
    )
}

/// Nothing is left of it; says what to know, unless that is empty.
pub async fn finish_clean_up(db: &mut DbConnection, id: TransferId, message: &str) -> Result<()> {
    execute!(db, "DELETE FROM transfers WHERE id = $1 AND is_dismissed = 1", [id])?;
    execute!(
        db,
        "UPDATE transfers SET is_clean_up_due = 0, message = CASE $2 WHEN '' THEN message ELSE $2 END WHERE id = $1",
        [id, message]
    )
}

#[cfg(test)]
mod tests;
