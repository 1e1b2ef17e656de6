//! Table `submissions`: jobs that people submitted, and how far each of them got.

mod transitions;

pub use transitions::{
    give_up, mark_accepted, mark_checked, mark_checking, mark_for_resend, mark_not_sent, mark_refused, mark_sent,
    mark_unsent, retry, set_problem,
};

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, PersonId, SubmissionId};

#[derive(Debug, Clone, Copy, PartialEq, Eq, sqlx::Type)]
#[sqlx(rename_all = "snake_case")]
pub enum SubmissionState {
    /// To be sent; nothing was sent yet.
    Ready,
    /// On its way: it may arrive at any moment.
    Sent,
    /// It may have arrived; the portal is checking.
    Checking,
    /// It became a job.
    Accepted,
    /// Slurm refused it; it is not a job.
    Refused,
    /// It certainly could not be sent; it is not a job.
    NotSent,
    /// Its owner cancelled it; it is not a job.
    GivenUp,
}

impl SubmissionState {
    /// Whether nothing more happens without its owner.
    pub const fn is_settled(self) -> bool {
        !matches!(self, Self::Ready | Self::Sent | Self::Checking)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct Submission {
    pub id: SubmissionId,
    pub person_id: PersonId,
    pub cluster_id: ClusterId,
    /// The token by which the job is found.
    pub token: String,
    pub state: SubmissionState,
    pub script: String,
    pub job_name: String,
    folders: String,
    /// What carries the token: `comment` or `name`.
    pub carrier: String,
    /// The recipe that made the script.
    pub recipe: String,
    /// The recipe's version.
    pub recipe_version: Option<i64>,
    /// The recipe's id, if it is a saved one.
    pub recipe_id: Option<i64>,
    /// The form's answers, as JSON.
    pub answers: String,
    /// The points of the sweep, as JSON; empty for a single job.
    pub sweep: String,
    /// The job ID, once there is one.
    pub number: Option<i64>,
    /// Slurm's refusal.
    pub refusal: String,
    /// Why the outcome is uncertain, or why nothing was sent.
    pub problem: String,
    /// How often it was sent, or may have been.
    pub tries: i64,
    /// When it was submitted in the portal.
    pub created_at: UnixTime,
    /// Since when it is ready to be sent.
    pub ready_at: UnixTime,
    pub sent_at: Option<UnixTime>,
    /// When the cluster last answered whether the job exists.
    pub checked_at: Option<UnixTime>,
    /// When the outcome was known.
    pub settled_at: Option<UnixTime>,
}

impl Submission {
    /// Folders to create first.
    pub fn folders(&self) -> Vec<String> {
        serde_json::from_str(&self.folders).unwrap_or_default()
    }
}

/// A job to submit, and what is stored about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SubmitRequest {
    pub person: PersonId,
    pub cluster: ClusterId,
    /// A random token that the form had from the start: one form is one request, however often it is sent.
    pub form_token: String,
    /// The whole script, with its options.
    pub script: String,
    /// The job name from the script.
    pub job_name: String,
    /// Folders to create first; the job is submitted from the first of them.
    pub folders: Vec<String>,
    /// The recipe that made the script, in words.
    pub recipe: String,
    /// The recipe's version.
    pub recipe_version: Option<i64>,
    /// The recipe's id, if it is a saved one.
    pub recipe_id: Option<i64>,
    /// The form's answers, as JSON.
    pub answers: String,
    /// The points of the sweep, as JSON; empty for a single job.
    pub sweep: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, person_id, cluster_id, token, state, script, job_name, folders, carrier, recipe, recipe_version,
                    recipe_id, answers, sweep, number, refusal, problem, tries, created_at, ready_at, sent_at,
                    checked_at, settled_at FROM submissions ",
            $rest
        )
    };
}

/// Adds a submission that is ready to be sent. `token` is what the job will be found by, `carrier` what carries it.
pub async fn add(
    db: &mut DbConnection,
    new: &SubmitRequest,
    token: &str,
    carrier: &str,
    now: UnixTime,
) -> Result<SubmissionId> {
    scalar_one!(
        db,
        "INSERT INTO submissions (person_id, cluster_id, token, form, state, script, job_name, folders, carrier, recipe,
                                  recipe_version, recipe_id, answers, sweep, created_at, ready_at)
         VALUES ($1, $2, $3, $4, 'ready', $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $14)
         RETURNING id",
        [
            new.person, new.cluster, token, &new.form_token, &new.script, &new.job_name,
            serde_json::to_string(&new.folders).unwrap_or_else(|_| "[]".to_owned()), carrier, &new.recipe,
            new.recipe_version, new.recipe_id, &new.answers, &new.sweep, now
        ]
    )
}

/// The submission that a form made before.
pub async fn find_by_form(db: &mut DbConnection, person: PersonId, form: &str) -> Result<Option<SubmissionId>> {
    scalar_optional!(db, "SELECT id FROM submissions WHERE person_id = $1 AND form = $2", [person, form])
}

pub async fn get(db: &mut DbConnection, id: SubmissionId) -> Result<Option<Submission>> {
    fetch_optional!(db, select!("WHERE id = $1"), [id])
}

/// The submission that became this job.
pub async fn find_by_job(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    number: i64,
) -> Result<Option<Submission>> {
    let sql = select!("WHERE person_id = $1 AND cluster_id = $2 AND number = $3 ORDER BY id DESC LIMIT 1");
    fetch_optional!(db, sql, [person, cluster, number])
}

/// A person's last jobs from a recipe on a cluster, newest first.
pub async fn list_by_recipe(
    db: &mut DbConnection,
    person: PersonId,
    cluster: ClusterId,
    recipe: &str,
    most: i64,
) -> Result<Vec<Submission>> {
    let sql = select!(
        "WHERE person_id = $1 AND cluster_id = $2 AND recipe = $3 AND number IS NOT NULL ORDER BY id DESC LIMIT $4"
    );
    fetch_all!(db, sql, [person, cluster, recipe, most])
}

/// A person's open submissions on a cluster, in order.
pub async fn list_open(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<Vec<Submission>> {
    let sql = select!("WHERE person_id = $1 AND cluster_id = $2 AND settled_at IS NULL ORDER BY id");
    fetch_all!(db, sql, [person, cluster])
}

/// Counts a person's open submissions.
pub async fn count_open(db: &mut DbConnection, person: PersonId) -> Result<i64> {
    scalar_one!(db, "SELECT count(*) FROM submissions WHERE person_id = $1 AND settled_at IS NULL", [person])
}

/// All people and clusters with open submissions.
pub async fn list_open_accounts(db: &mut DbConnection) -> Result<Vec<(PersonId, ClusterId)>> {
    fetch_all!(db, "SELECT DISTINCT person_id, cluster_id FROM submissions WHERE settled_at IS NULL")
}

/// When a submission of this person was last sent to a cluster.
pub async fn last_sent_at(db: &mut DbConnection, person: PersonId, cluster: ClusterId) -> Result<Option<UnixTime>> {
    scalar_one!(db, "SELECT max(sent_at) FROM submissions WHERE person_id = $1 AND cluster_id = $2", [person, cluster])
}
