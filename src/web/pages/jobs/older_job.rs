//! A job that left the queue before the portal saw it: the group's usage figures tell something of it, and the accounting
//! is asked for the rest when its owner opens the page.

use std::time::Duration;

use crate::error::AppError;
use crate::web::pages::jobs::job_lookup::{JobOfPage, JobPageRequest};

/// How long a fragment waits for the accounting.
const ACCOUNTING_TIMEOUT: Duration = Duration::from_secs(12);

/// What the page says about such a job.
#[derive(Hash)]
pub struct OlderJobNote {
    /// How it ended, in the words of the figures.
    pub outcome: &'static str,
    /// What would tell more.
    pub advice: String,
}

impl OlderJobNote {
    /// None for jobs that the portal has a record of.
    pub fn new(found: &JobOfPage) -> Option<Self> {
        let older = found.from_usage.as_ref()?;
        let title = &found.queue.cluster().title;
        let advice = if found.queue.is_connected {
            format!("If Slurm's accounting on {title} still has the job, the rest appears here in a moment.")
        } else {
            format!("Connect to {title}, and the portal will ask Slurm's accounting for the rest.")
        };
        Some(Self { outcome: older.outcome().title(), advice })
    }
}

/// Asks the accounting for a job that only the figures know, and finds it again if that told more.
pub async fn complete(request: &JobPageRequest, found: JobOfPage) -> Result<JobOfPage, AppError> {
    let Some(older) = &found.from_usage else { return Ok(found) };
    let details = &request.context.app.job_details;
    let asking = details.load_older_job(found.queue.account.id, &older.user, found.id);
    match tokio::time::timeout(ACCOUNTING_TIMEOUT, asking).await {
        Ok(Ok(true)) => request.find_job().await,
        Ok(Err(error)) => Err(error.into()),
        _ => Ok(found),
    }
}
