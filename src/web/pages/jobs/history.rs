//! The rows of the job history, an array as one row. Only the page that is shown is read.

use std::collections::HashMap;
use std::sync::Arc;

use crate::domain::PersonId;
use crate::error::AppError;
use crate::jobs::JobRecord;
use crate::jobs::job_list::JobCounts;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::{JobStage, JobState};
use crate::store;
use crate::store::DbConnection;
use crate::store::jobs::{JobHistorySearch, StoredJobRow, StoredTaskCount};
use crate::web::http::extractors::{CurrentPerson, RequestContext};
use crate::web::pages::jobs::cluster_queues::PersonClusterQueue;
use crate::web::pages::jobs::list::row_builder;
use crate::web::pages::jobs::list_row::{JobListRow, JobRowBuilder, JobTimeCell};

/// The rows after the first `skip`, at most `most`, and how many there are in all. `open`: the array that is expanded.
pub async fn load_history_rows(
    context: &RequestContext,
    me: &CurrentPerson,
    queues: &[PersonClusterQueue],
    search: &JobHistorySearch,
    (skip, most): (usize, usize),
    open: &str,
) -> Result<(Vec<JobListRow>, usize), AppError> {
    let (now, person) = (context.app.clock.now(), me.0.person.id);
    let (offset, most) = (i64::try_from(skip).unwrap_or(0), i64::try_from(most).unwrap_or(0));
    let mut db = context.app.store.read().await?;
    let (found, total) = store::jobs::search_history(&mut db, person, search, offset, most).await?;
    let arrays: Vec<_> = found.iter().filter(|row| is_task(row)).map(|row| (row.cluster_id, row.number)).collect();
    let counts = sum_counts(&store::jobs::count_array_tasks(&mut db, person, &arrays).await?);
    let mut rows = Vec::new();
    for row in found {
        let Some(queue) = find_queue(queues, row.cluster_id) else { continue };
        let builder = row_builder(queue, now, open);
        let counts = counts.get(&(row.cluster_id, row.number)).filter(|_| is_task(&row)).copied();
        let Some(counts) = counts else {
            rows.push(builder.record_row(&JobRecord::from_row(row), false));
            continue;
        };
        let tasks = load_open_tasks(&mut db, &builder, &row).await?;
        rows.push(ended_array_row(&builder, &JobRecord::from_row(row), counts, &tasks));
    }
    Ok((rows, usize::try_from(total).unwrap_or(0)))
}

fn find_queue(queues: &[PersonClusterQueue], cluster: i64) -> Option<&PersonClusterQueue> {
    let mut entries = queues.iter().flat_map(|queue| std::iter::once(queue).chain(&queue.other_entries));
    entries.find(|entry| entry.cluster().id.0 == cluster)
}

const fn is_task(row: &StoredJobRow) -> bool {
    row.task >= 0 || !row.tasks.is_empty()
}

/// The tasks of each array, by its cluster and number.
fn sum_counts(counted: &[StoredTaskCount]) -> HashMap<(i64, i64), JobCounts> {
    let mut sums: HashMap<_, JobCounts> = HashMap::new();
    for one in counted {
        let tasks = ArrayTaskSet::parse(&one.tasks).map_or(1, |tasks| tasks.len());
        let count = tasks.saturating_mul(u64::try_from(one.row_count).unwrap_or(0));
        let sum = sums.entry((one.cluster_id, one.number)).or_default();
        sum.add_tasks(JobState::parse(&one.state), one.is_over, count);
    }
    sums
}

/// The tasks of the array if it is the one that is expanded.
async fn load_open_tasks(
    db: &mut DbConnection,
    builder: &JobRowBuilder<'_>,
    row: &StoredJobRow,
) -> Result<Vec<Arc<JobRecord>>, AppError> {
    if builder.open != format!("{}-{}", builder.cluster.slug, row.number) {
        return Ok(Vec::new());
    }
    let (person, cluster) = (PersonId(row.person_id), builder.cluster.id);
    let rows = store::jobs::list_array_tasks(db, person, cluster, row.number).await?;
    Ok(rows.into_iter().map(|row| Arc::new(JobRecord::from_row(row))).collect())
}

/// The row of an array of which something has ended. While the rest is pending or runs, it has no end.
fn ended_array_row(
    builder: &JobRowBuilder<'_>,
    head: &JobRecord,
    counts: JobCounts,
    tasks: &[Arc<JobRecord>],
) -> JobListRow {
    let mut row = builder.array_row(head, counts, tasks);
    if counts.stage() == JobStage::Pending {
        (row.kind, row.label) = ("waiting", "Pending");
    }
    if counts.stage() != JobStage::Ended {
        row.time = JobTimeCell::Ended { at: None, lasted: String::new() };
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tasks_that_never_started_count_one_by_one() {
        let counted = |state: &str, tasks: &str, is_over, row_count| StoredTaskCount {
            cluster_id: 3,
            number: 7,
            state: state.to_owned(),
            tasks: tasks.to_owned(),
            is_over,
            row_count,
        };
        let sums = sum_counts(&[
            counted("COMPLETED", "", true, 4),
            counted("TIMEOUT", "", true, 2),
            counted("CANCELLED", "10-19", true, 1),
            counted("RUNNING", "", false, 1),
        ]);
        let counts = JobCounts { waiting: 0, running: 1, done: 4, cancelled: 10, bad: 2, node_failed: 0 };
        assert_eq!(sums[&(3, 7)], counts);
        assert_eq!(counts.stage(), JobStage::Running);
    }
}
