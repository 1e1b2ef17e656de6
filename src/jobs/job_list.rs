//! The job list as people see it: each array is one item, and running jobs come first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::job_record::JobRecord;
use crate::clock::UnixTime;
use crate::explain::waiting::can_never_start;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::{JobStage, JobState, SlurmJob};

#[derive(Debug, Clone)]
pub struct JobListItem {
    /// The job, or the record that represents its array: a waiting or running one if there is one.
    pub head: Arc<JobRecord>,
    /// For an array: its records, the pending remainder first, then by task.
    pub tasks: Vec<Arc<JobRecord>>,
    /// Its tasks by state.
    pub counts: JobCounts,
    /// Whether it is pending and can never start as requested.
    pub is_stuck: bool,
}

/// Jobs or tasks by state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCounts {
    pub waiting: u64,
    pub running: u64,
    pub done: u64,
    pub cancelled: u64,
    /// Unsuccessful, for whatever reason.
    pub bad: u64,
    /// Of `bad`, those whose node failed or didn't boot.
    pub node_failed: u64,
}

impl JobCounts {
    /// Counts one record; an array's pending remainder counts once per task.
    pub fn add(&mut self, record: &JobRecord) {
        let tasks = record.job.tasks.as_ref().map_or(1, ArrayTaskSet::len);
        self.add_tasks(record.job.state, record.is_over, tasks);
    }

    /// Counts tasks that are in the same state.
    pub fn add_tasks(&mut self, state: JobState, is_over: bool, tasks: u64) {
        let reached = if is_over { JobStage::Ended } else { state.stage() };
        let count = match (reached, state.is_failure()) {
            (JobStage::Pending, _) => &mut self.waiting,
            (JobStage::Running, _) => &mut self.running,
            (JobStage::Ended, false) if state == JobState::Cancelled => &mut self.cancelled,
            (JobStage::Ended, false) => &mut self.done,
            (JobStage::Ended, true) => &mut self.bad,
        };
        *count += tasks;
        if matches!(state, JobState::NodeFail | JobState::BootFail) {
            self.node_failed += tasks;
        }
    }

    /// Anything counts as running while any of its tasks runs.
    pub const fn stage(self) -> JobStage {
        if self.running > 0 {
            JobStage::Running
        } else if self.waiting > 0 {
            JobStage::Pending
        } else {
            JobStage::Ended
        }
    }

    pub fn add_all(&mut self, others: Self) {
        self.waiting += others.waiting;
        self.running += others.running;
        self.done += others.done;
        self.cancelled += others.cancelled;
        self.bad += others.bad;
        self.node_failed += others.node_failed;
    }

    /// Unsuccessful for another reason than a node.
    pub const fn failed(self) -> u64 {
        self.bad.saturating_sub(self.node_failed)
    }

    pub const fn ended(self) -> u64 {
        self.done + self.cancelled + self.bad
    }

    pub const fn total(self) -> u64 {
        self.waiting + self.running + self.ended()
    }
}

/// The stage of a record; a job that the cluster has forgotten counts as ended.
pub fn record_stage(record: &JobRecord) -> JobStage {
    if record.is_over { JobStage::Ended } else { record.job.state.stage() }
}

/// Whether it has started, as far as is known. A job that has ended may never have started.
pub fn has_begun(record: &JobRecord) -> bool {
    let job = &record.job;
    match record_stage(record) {
        JobStage::Pending => false,
        JobStage::Running => true,
        JobStage::Ended => {
            let has_run = job.start.is_some() && (job.end > job.start || record.is_lost());
            has_run || !job.node_list.is_empty()
        }
    }
}

/// Whether it is pending and can never start as requested.
fn is_stuck(record: &JobRecord) -> bool {
    record_stage(record) == JobStage::Pending && can_never_start(&record.job.reason)
}

/// Sorts running before pending before ended; newest first, and pending jobs by priority.
pub type JobListSortKey = (JobStage, Reverse<u64>, Reverse<UnixTime>, Reverse<u64>);

impl JobListItem {
    /// A job outside an array, or one task shown alone.
    pub fn single(record: Arc<JobRecord>) -> Self {
        let mut counts = JobCounts::default();
        counts.add(&record);
        Self { is_stuck: is_stuck(&record), head: record, tasks: Vec::new(), counts }
    }

    pub fn is_array(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// An array counts as running while any of its tasks runs.
    pub const fn stage(&self) -> JobStage {
        self.counts.stage()
    }

    pub fn sort_key(&self) -> JobListSortKey {
        let stage = self.stage();
        let job = &self.head.job;
        let (first, at) = match stage {
            JobStage::Running => (JobStage::Pending, job.start),
            JobStage::Pending => (JobStage::Running, None),
            JobStage::Ended => (JobStage::Ended, job.end),
        };
        let rank = if stage == JobStage::Pending { job.priority } else { 0 };
        (first, Reverse(rank), Reverse(at.unwrap_or(UnixTime(0))), Reverse(job.id.number))
    }
}

pub fn list_items<'a>(records: impl Iterator<Item = &'a Arc<JobRecord>>) -> Vec<JobListItem> {
    let mut arrays: HashMap<u64, Vec<Arc<JobRecord>>> = HashMap::new();
    let mut list = Vec::new();
    for record in records {
        let is_task = record.job.id.task.is_some() || record.job.tasks.is_some();
        if is_task {
            arrays.entry(record.job.id.number).or_default().push(record.clone());
        } else {
            list.push(JobListItem::single(record.clone()));
        }
    }
    list.extend(arrays.into_values().map(array_item));
    list.sort_by_cached_key(JobListItem::sort_key);
    list
}

/// Builds one item from an array's records.
pub fn array_item(mut tasks: Vec<Arc<JobRecord>>) -> JobListItem {
    tasks.sort_by_key(|record| record.job.id.task);
    let mut counts = JobCounts::default();
    for record in &tasks {
        counts.add(record);
    }
    // The head is an active task if there is one, else the latest.
    let order = |record: &&Arc<JobRecord>| match record_stage(record) {
        JobStage::Running => (0, Reverse(record.job.start)),
        JobStage::Pending => (1, Reverse(None)),
        JobStage::Ended => (2, Reverse(record.job.end)),
    };
    let head = tasks.iter().min_by_key(order).cloned();
    let head = head.unwrap_or_else(|| Arc::new(JobRecord::new(SlurmJob::default(), UnixTime(0))));
    JobListItem { is_stuck: is_stuck(&head), head, tasks, counts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::job::JobId;

    fn record(number: u64, task: Option<u32>, state: JobState) -> Arc<JobRecord> {
        let job = SlurmJob { id: JobId { number, task }, state, ..SlurmJob::default() };
        Arc::new(JobRecord::new(job, UnixTime(1)))
    }

    #[test]
    fn a_job_that_was_cancelled_while_pending_has_not_begun() {
        let ended = |start: Option<i64>, end: i64, nodes: &str| {
            let mut record = JobRecord::clone(&record(7, None, JobState::Cancelled));
            record.is_over = true;
            (record.job.start, record.job.end) = (start.map(UnixTime), Some(UnixTime(end)));
            nodes.clone_into(&mut record.job.node_list);
            has_begun(&record)
        };
        assert!(!ended(None, 9, "") && !ended(Some(9), 9, ""));
        assert!(ended(Some(5), 9, "") && ended(Some(9), 9, "c1"));
        assert!(has_begun(&record(7, None, JobState::Running)) && !has_begun(&record(7, None, JobState::Pending)));
    }

    #[test]
    fn an_array_is_one_entry_that_counts_its_tasks() {
        let mut rest = JobRecord::clone(&record(7, None, JobState::Pending));
        rest.job.tasks = ArrayTaskSet::parse("5-9");
        let rows = [
            record(7, Some(1), JobState::Completed),
            record(7, Some(2), JobState::Failed),
            record(7, Some(3), JobState::Running),
            Arc::new(rest),
            record(8, None, JobState::Completed),
            record(9, None, JobState::Pending),
        ];
        let list = list_items(rows.iter());
        let numbers: Vec<u64> = list.iter().map(|entry| entry.head.job.id.number).collect();
        assert_eq!(numbers, [7, 9, 8], "what runs, what waits, what ended");
        let array = &list[0];
        assert_eq!(array.counts, JobCounts { waiting: 5, running: 1, done: 1, cancelled: 0, bad: 1, node_failed: 0 });
        assert_eq!(array.head.job.id.task, Some(3));
        assert_eq!(array.tasks[0].job.tasks.as_ref().unwrap().len(), 5);
    }
}
