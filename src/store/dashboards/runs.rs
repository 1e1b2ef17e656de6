//! Table `dashboard_runs`: the jobs that serve a dashboard.

use crate::clock::UnixTime;
use crate::domain::{DashboardId, DashboardRunId, PersonId, SubmissionId};
use crate::store::{DbConnection, Result, StoreError};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DashboardRunState {
    /// Submitted; not a job yet.
    Asked,
    /// Its job is pending.
    Waiting,
    /// The job runs; the dashboard is being prepared or started.
    Starting,
    /// The dashboard answers, or did when last reached.
    Ready,
    Over,
}

impl DashboardRunState {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Asked => "asked",
            Self::Waiting => "waiting",
            Self::Starting => "starting",
            Self::Ready => "ready",
            Self::Over => "over",
        }
    }
}

impl TryFrom<String> for DashboardRunState {
    type Error = StoreError;

    fn try_from(word: String) -> Result<Self> {
        let all = [Self::Asked, Self::Waiting, Self::Starting, Self::Ready, Self::Over];
        let known = all.into_iter().find(|state| state.as_str() == word);
        known.ok_or(StoreError::Malformed("dashboard_runs.state"))
    }
}

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct DashboardRun {
    pub id: DashboardRunId,
    pub dashboard_id: DashboardId,
    /// The name of its folder on the cluster.
    pub name: String,
    pub folder: String,
    pub submission_id: Option<SubmissionId>,
    /// The job ID, once there is one.
    pub job: Option<i64>,
    /// Who started it, if not its owner.
    pub woken_by_name: Option<String>,
    #[sqlx(try_from = "String")]
    pub state: DashboardRunState,
    /// The stage that its job last reported: a code of `dashboards::job_report::DashboardStage`.
    pub stage: String,
    /// Why it should stop; empty if it should not.
    pub stop: String,
    pub end: String,
    /// Its last message, in words.
    pub message: String,
    /// The time limit.
    pub minutes: i64,
    /// A follow-up run starts no earlier than this.
    pub begin_at: Option<UnixTime>,
    /// When it was requested.
    pub asked_at: UnixTime,
    /// When its job started.
    pub started_at: Option<UnixTime>,
    /// When it first answered.
    pub ready_at: Option<UnixTime>,
    /// When someone last viewed it.
    pub used_at: Option<UnixTime>,
    pub over_at: Option<UnixTime>,
}

impl DashboardRun {
    /// When its time limit ends, once it has started.
    pub fn ends_at(&self) -> Option<UnixTime> {
        self.started_at.map(|at| at.plus(self.minutes * 60))
    }
}

/// A run to add.
#[derive(Debug)]
pub struct NewDashboardRun<'a> {
    pub dashboard: DashboardId,
    pub name: &'a str,
    pub folder: &'a str,
    /// Who starts it, if not its owner.
    pub woken_by: Option<PersonId>,
    pub minutes: i64,
    /// The earliest start.
    pub begin_at: Option<UnixTime>,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT r.id, r.dashboard_id, r.name, r.folder, r.submission_id, s.number AS job,
                    w.display_name AS woken_by_name, r.state, r.stage, r.stop, r.end, r.message, r.minutes, r.begin_at,
                    r.asked_at, r.started_at, r.ready_at, r.used_at, r.over_at
             FROM dashboard_runs r
             LEFT JOIN submissions s ON s.id = r.submission_id
             LEFT JOIN people w ON w.id = r.woken_by ",
            $rest
        )
    };
}

pub async fn add(db: &mut DbConnection, new: &NewDashboardRun<'_>, now: UnixTime) -> Result<DashboardRunId> {
    scalar_one!(
        db,
        "INSERT INTO dashboard_runs (dashboard_id, name, folder, woken_by, state, minutes, begin_at, asked_at)
         VALUES ($1, $2, $3, $4, 'asked', $5, $6, $7) RETURNING id",
        [new.dashboard, new.name, new.folder, new.woken_by, new.minutes, new.begin_at, now]
    )
}

/// All runs that are not over, of all dashboards.
pub async fn list_open(db: &mut DbConnection) -> Result<Vec<DashboardRun>> {
    fetch_all!(db, select!("WHERE r.over_at IS NULL ORDER BY r.id"))
}

/// The last runs of a dashboard, newest first.
pub async fn list_for_dashboard(db: &mut DbConnection, dashboard: DashboardId, most: i64) -> Result<Vec<DashboardRun>> {
    fetch_all!(db, select!("WHERE r.dashboard_id = $1 ORDER BY r.id DESC LIMIT $2"), [dashboard, most])
}

pub async fn get(db: &mut DbConnection, id: DashboardRunId) -> Result<Option<DashboardRun>> {
    fetch_optional!(db, select!("WHERE r.id = $1"), [id])
}

/// How often someone other than the owner started a dashboard since then.
pub async fn count_wakes(db: &mut DbConnection, dashboard: DashboardId, since: UnixTime) -> Result<i64> {
    scalar_one!(
        db,
        "SELECT count(*) FROM dashboard_runs WHERE dashboard_id = $1 AND woken_by IS NOT NULL AND asked_at >= $2",
        [dashboard, since]
    )
}

pub async fn set_submission(db: &mut DbConnection, id: DashboardRunId, submission: SubmissionId) -> Result<()> {
    execute!(db, "UPDATE dashboard_runs SET submission_id = $2 WHERE id = $1", [id, submission])
}

pub async fn set_state(
    db: &mut DbConnection,
    id: DashboardRunId,
    state: DashboardRunState,
    (reported, message): (&str, &str),
) -> Result<()> {
    execute!(
        db,
        "UPDATE dashboard_runs SET state = $2, message = $3, stage = $4 WHERE id = $1 AND over_at IS NULL",
        [id, state.as_str(), message, reported]
    )
}

/// Records when its job started.
pub async fn set_started(db: &mut DbConnection, id: DashboardRunId, at: UnixTime) -> Result<()> {
    execute!(db, "UPDATE dashboard_runs SET started_at = $2 WHERE id = $1 AND over_at IS NULL", [id, at])
}

/// Records that it answers. Counts as used: someone is about to view it.
pub async fn mark_ready(db: &mut DbConnection, id: DashboardRunId, now: UnixTime) -> Result<()> {
    execute!(
        db,
        "UPDATE dashboard_runs SET state = 'ready', message = '', ready_at = coalesce(ready_at, $2),
                used_at = coalesce(used_at, $2)
         WHERE id = $1 AND over_at IS NULL",
        [id, now]
    )
}

/// Records that someone viewed it.
pub async fn mark_used(db: &mut DbConnection, id: DashboardRunId, at: UnixTime) -> Result<()> {
    execute!(db, "UPDATE dashboard_runs SET used_at = max(coalesce(used_at, 0), $2) WHERE id = $1", [id, at])
}

/// Requests that a run stops, and why. False if it is over, or a stop was requested before.
pub async fn request_stop(db: &mut DbConnection, id: DashboardRunId, why: &str) -> Result<bool> {
    affects_row!(db, "UPDATE dashboard_runs SET stop = $2 WHERE id = $1 AND over_at IS NULL AND stop = ''", [id, why])
}

pub async fn mark_over(
    db: &mut DbConnection,
    id: DashboardRunId,
    end: &str,
    message: &str,
    at: UnixTime,
) -> Result<bool> {
    affects_row!(
        db,
        "UPDATE dashboard_runs SET state = 'over', end = $2, message = $3, over_at = $4
         WHERE id = $1 AND over_at IS NULL",
        [id, end, message, at]
    )
}
