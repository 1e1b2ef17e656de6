//! Why jobs of a list failed, in a few words, from what is stored. No cluster is asked: a job whose page was never opened
//! has only its exit code.

use std::collections::HashMap;

use crate::domain::JobRowId;
use crate::error::AppError;
use crate::explain::verdict::{EndedJobFacts, verdict};
use crate::jobs::{JobDetails, JobRecord};
use crate::logs::findings;
use crate::store;
use crate::web::http::extractors::RequestContext;
use crate::web::pages::jobs::list_row::JobListRow;

/// Adds the hints to the rows and to the tasks that are shown below them.
pub async fn add_failure_hints(context: &RequestContext, rows: &mut [JobListRow]) -> Result<(), AppError> {
    let failed = failed_jobs(rows);
    if failed.is_empty() {
        return Ok(());
    }
    let mut db = context.app.store.read().await?;
    let stored: HashMap<_, _> = store::queues::list_job_details(&mut db, &failed).await?.into_iter().collect();
    drop(db);
    for row in rows {
        add_hint(row, &stored);
        row.tasks.iter_mut().for_each(|task| add_hint(task, &stored));
    }
    Ok(())
}

fn failed_jobs(rows: &[JobListRow]) -> Vec<JobRowId> {
    let shown = rows.iter().flat_map(|row| std::iter::once(row).chain(&row.tasks));
    shown.filter_map(|row| row.failure.as_ref()).map(|record| record.id).collect()
}

fn add_hint(row: &mut JobListRow, stored: &HashMap<i64, String>) {
    let Some(record) = &row.failure else { return };
    let details = stored.get(&record.id.0).and_then(|json| serde_json::from_str(json).ok()).unwrap_or_default();
    row.failure_hint = failure_hint(record, &details, row.label);
}

/// The verdict's title; empty if it only repeats the state. Where nothing more is known, the exit code helps most.
fn failure_hint(record: &JobRecord, details: &JobDetails, label: &str) -> String {
    let findings = findings::find_errors(&details.log_end).list;
    let facts = EndedJobFacts { usage: details.usage.as_ref(), findings: &findings, ..EndedJobFacts::new(&record.job) };
    let title = verdict(&facts).title;
    let code = record.job.exit.map_or(0, |exit| exit.code);
    if title == label {
        String::new()
    } else if title == "Failed with an error" && code > 0 {
        format!("Exit code {code}")
    } else {
        title
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::slurm::job::{ExitStatus, JobState, SlurmJob};

    fn hint(state: JobState, log_end: &[&str], label: &str) -> String {
        let exit = Some(ExitStatus { code: 2, signal: 0 });
        let job = SlurmJob { state, exit, start: Some(UnixTime(10)), end: Some(UnixTime(90)), ..SlurmJob::default() };
        let log_end = log_end.iter().map(|line| (*line).to_owned()).collect();
        let details = JobDetails { log_end, ..JobDetails::default() };
        failure_hint(&JobRecord::new(job, UnixTime(90)), &details, label)
    }

    #[test]
    fn a_failed_job_says_why_in_a_few_words() {
        let missing = ["python: can't open file 'train.py': [Errno 2] No such file or directory"];
        assert_eq!(hint(JobState::Failed, &missing, "Failed"), "File or folder not found");
        assert_eq!(hint(JobState::Failed, &[], "Failed"), "Exit code 2", "nothing was read from its output");
        assert_eq!(hint(JobState::Timeout, &[], "Timed out"), "", "its state says it");
    }
}
