//! Whether a job can be resubmitted: from the form that it was submitted with, or from its script. Doesn't contact any
//! cluster.

use crate::error::AppError;
use crate::jobs::job_list::record_stage;
use crate::jobs::{JobDetails, JobRecord};
use crate::slurm::job::JobStage;
use crate::store;
use crate::web::http::extractors::RequestContext;
use crate::web::pages::jobs::job_lookup::JobOfPage;

/// How long after a job's end its script may still turn up in the accounting, in seconds.
const SCRIPT_GRACE_SECONDS: i64 = 600;

/// Whether the viewer can resubmit it, as far as is known; while nothing is known, they can try.
pub async fn can_resubmit(
    context: &RequestContext,
    found: &JobOfPage,
    record: &JobRecord,
    details: &JobDetails,
) -> Result<bool, AppError> {
    if !found.is_own || !is_script_gone(record, details) {
        return Ok(found.is_own);
    }
    let account = found.queue.account.id;
    let Ok(number) = i64::try_from(found.id.number) else { return Ok(false) };
    let mut db = context.app.store.read().await?;
    Ok(store::submissions::find_by_job(&mut db, account.person, account.cluster, number).await?.is_some())
}

/// Whether the cluster was asked about a job that has ended, and no longer has its script.
fn is_script_gone(record: &JobRecord, details: &JobDetails) -> bool {
    let Some(read_at) = details.read_at() else { return false };
    // If the accounting knows the job, it would know the script as well.
    let is_accounted = !details.submit_line.is_empty() && details.state == record.job.state.slurm_name();
    let is_late = record.job.end.is_some_and(|end| read_at.since(end) > SCRIPT_GRACE_SECONDS);
    record_stage(record) == JobStage::Ended && details.script.trim().is_empty() && (is_accounted || is_late)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::slurm::job::{JobState, SlurmJob};

    #[test]
    fn a_script_is_gone_once_the_cluster_said_so() {
        let job = SlurmJob { state: JobState::Completed, end: Some(UnixTime(1000)), ..SlurmJob::default() };
        let ended = JobRecord { is_over: true, ..JobRecord::new(job, UnixTime(900)) };
        let details = |script: &str, line: &str, read_at: i64| JobDetails {
            script: script.into(),
            submit_line: line.into(),
            state: "COMPLETED".into(),
            read_at,
            ..JobDetails::default()
        };
        assert!(!is_script_gone(&ended, &JobDetails::default()), "nobody has asked");
        assert!(!is_script_gone(&ended, &details("#!/bin/sh", "sbatch x", 2000)));
        assert!(!is_script_gone(&ended, &details("", "", 1005)), "the accounting is late");
        assert!(is_script_gone(&ended, &details("", "sbatch x", 1005)));
        assert!(is_script_gone(&ended, &details("", "", 1000 + SCRIPT_GRACE_SECONDS + 1)));
        let running = SlurmJob { state: JobState::Running, ..SlurmJob::default() };
        let running = JobRecord::new(running, UnixTime(900));
        assert!(!is_script_gone(&running, &details("", "sbatch x", 1005)));
    }
}
