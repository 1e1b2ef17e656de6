//! Jobs that are older than what the portal has read of the queue and the accounting: loaded one by one, when their
//! owner opens them.

use std::time::{Duration, Instant};

use super::job_details_cache::JobDetailsCache;
use super::job_record::JobRecord;
use crate::cluster::ClusterAccountId;
use crate::cluster::accounted_jobs::load_accounted_job;
use crate::core::lock;
use crate::slurm::job::JobId;
use crate::store::{self, StoreError};

/// The accounting is asked for the same job again after this long.
const ASK_EVERY: Duration = Duration::from_mins(10);
/// At most this many jobs are remembered as asked for.
const MAX_ASKED: usize = 2000;

impl JobDetailsCache {
    /// Asks the accounting for a person's own job and stores what it tells. True if the job is known from now on.
    pub async fn load_older_job(&self, key: ClusterAccountId, user: &str, id: JobId) -> Result<bool, StoreError> {
        let Ok(connection) = self.0.connections.connection(key.connection_key()) else { return Ok(false) };
        {
            let mut asked = lock(&self.0.asked_for);
            if asked.get(&(key, id)).is_some_and(|at| at.elapsed() < ASK_EVERY) {
                return Ok(false);
            }
            if asked.len() >= MAX_ASKED {
                asked.clear();
            }
            asked.insert((key, id), Instant::now());
        }
        let found = load_accounted_job(&connection, id).await.ok().flatten();
        // Ids are given again after years; another person's job is not theirs to see here.
        let Some((job, extra)) = found.filter(|(job, _)| job.user == user && job.state.is_over()) else {
            return Ok(false);
        };
        let now = self.0.core.clock.now();
        let record = JobRecord {
            submit_line: extra.submit_line,
            cancelled_by: extra.cancelled_by.unwrap_or_default(),
            is_settled: true,
            ..JobRecord::new(job, now)
        };
        let mut tx = self.0.core.store.write().await?;
        store::jobs::save(&mut tx, &record.to_row(key.person, key.cluster)).await?;
        store::commit(tx).await?;
        Ok(true)
    }
}
