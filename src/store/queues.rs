//! Tables `queues`, `job_details` and `preferences`: how much of a person's queue is known, what was read for a job's
//! page, and a person's choices.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, JobRowId, PersonId};

/// How much of a person's queue on a cluster is known.
#[derive(Debug, Clone, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct QueueReadRow {
    /// When the queue was last read.
    pub seen_at: Option<UnixTime>,
    history_from: Option<UnixTime>,
    history_until: Option<UnixTime>,
    /// Fair share, storage and quota, as JSON.
    pub standing: String,
}

impl QueueReadRow {
    /// The span of time for which the accounting was read.
    pub fn history(&self) -> Option<(UnixTime, UnixTime)> {
        self.history_from.zip(self.history_until)
    }
}

pub async fn get(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<QueueReadRow> {
    let row = fetch_optional!(
        db,
        "SELECT seen_at, history_from, history_until, standing FROM queues WHERE person_id = $1 AND cluster_id = $2",
        [person, cluster]
    )?;
    Ok(row.unwrap_or_default())
}

/// Records that the queue was read.
pub async fn mark_seen(db: &mut DbConnection, person: PersonId, cluster: ClusterId, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "INSERT INTO queues (person_id, cluster_id, seen_at) VALUES ($1, $2, $3)
         ON CONFLICT (person_id, cluster_id) DO UPDATE SET seen_at = $3",
        [person, cluster, now]
    )
}

/// Saves the span of time for which the accounting was read.
pub async fn set_history(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    (from, until): (UnixTime, UnixTime),
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO queues (person_id, cluster_id, history_from, history_until) VALUES ($1, $2, $3, $4)
         ON CONFLICT (person_id, cluster_id) DO UPDATE SET history_from = $3, history_until = $4",
        [person, cluster, from, until]
    )
}

/// Saves fair share, storage and quota.
pub async fn set_standing(db: &mut DbConnection, person: PersonId, cluster: ClusterId, standing: &str) -> Result<()> {
    execute!(
        db,
        "INSERT INTO queues (person_id, cluster_id, standing) VALUES ($1, $2, $3)
         ON CONFLICT (person_id, cluster_id) DO UPDATE SET standing = $3",
        [person, cluster, standing]
    )
}

/// Deletes what is known about a person's queue on a cluster. Jobs stay.
pub async fn remove(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<()> {
    execute!(db, "DELETE FROM queues WHERE person_id = $1 AND cluster_id = $2", [person, cluster])
}

/// What was read for a job's page, and when.
pub async fn load_job_details(db: &mut DbConnection, job: JobRowId) -> Result<Option<(String, UnixTime)>> {
    fetch_optional!(db, "SELECT details, read_at FROM job_details WHERE job_id = $1", [job])
}

/// What was read for the pages of several jobs, without their scripts.
pub async fn list_job_details(db: &mut DbConnection, jobs: &[JobRowId]) -> Result<Vec<(i64, String)>> {
    let ids: Vec<String> = jobs.iter().map(ToString::to_string).collect();
    fetch_all!(
        db,
        "SELECT job_id, json_remove(details, '$.script') FROM job_details
         WHERE job_id IN (SELECT value FROM json_each($1))",
        [format!("[{}]", ids.join(","))]
    )
}

pub async fn save_job_details(db: &mut DbConnection, job: JobRowId, details: &str, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "INSERT INTO job_details (job_id, details, read_at) VALUES ($1, $2, $3)
         ON CONFLICT (job_id) DO UPDATE SET details = $2, read_at = $3",
        [job, details, now]
    )
}

/// One of a person's preferences.
pub async fn load_preference(db: &mut DbConnection, person: PersonId, name: &str) -> Result<Option<String>> {
    scalar_optional!(db, "SELECT value FROM preferences WHERE person_id = $1 AND name = $2", [person, name])
}

pub async fn set_preference(db: &mut DbConnection, person: PersonId, name: &str, value: &str) -> Result<()> {
    execute!(
        db,
        "INSERT INTO preferences (person_id, name, value) VALUES ($1, $2, $3)
         ON CONFLICT (person_id, name) DO UPDATE SET value = $3",
        [person, name, value]
    )
}
