//! The list of jobs as people read it: an array is one entry, what runs comes first.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::Arc;

use super::job_record::JobRecord;
use crate::clock::UnixTime;
use crate::explain::waiting::can_never_start;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::{JobStage, JobState, SlurmJob};

/// One job, or an array with its tasks.
#[derive(Debug, Clone)]
pub struct JobListItem {
    /// The job, or the one that stands for its array: one that waits or runs if there is one.
    pub head: Arc<JobRecord>,
    /// For an array: its rows, the waiting rest first, then by task.
    pub tasks: Vec<Arc<JobRecord>>,
    /// What its tasks do.
    pub counts: JobCounts,
    /// Whether it waits and can never start as it is.
    pub is_stuck: bool,
}

/// How many jobs or tasks do what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobCounts {
    pub waiting: u64,
    pub running: u64,
    pub done: u64,
    pub cancelled: u64,
    pub bad: u64,
}

impl JobCounts {
    /// Counts one record; a waiting rest counts for each of its tasks.
    pub fn add(&mut self, record: &JobRecord) {
        let tasks = record.job.tasks.as_ref().map_or(1, ArrayTaskSet::len);
        let is_cancelled = record.job.state == JobState::Cancelled;
        let place = match (record_stage(record), record.job.state.is_failure()) {
            (JobStage::Pending, _) => &mut self.waiting,
            (JobStage::Running, _) => &mut self.running,
            (JobStage::Ended, false) if is_cancelled => &mut self.cancelled,
            (JobStage::Ended, false) => &mut self.done,
            (JobStage::Ended, true) => &mut self.bad,
        };
        *place += tasks;
    }

    pub fn add_all(&mut self, others: Self) {
        self.waiting += others.waiting;
        self.running += others.running;
        self.done += others.done;
        self.cancelled += others.cancelled;
        self.bad += others.bad;
    }

    /// Those that are over.
    pub const fn ended(self) -> u64 {
        self.done + self.cancelled + self.bad
    }

    pub const fn total(self) -> u64 {
        self.waiting + self.running + self.ended()
    }
}

/// Where in its life a record is; one that the cluster forgot is over.
pub fn record_stage(record: &JobRecord) -> JobStage {
    if record.is_over { JobStage::Ended } else { record.job.state.stage() }
}

/// Whether it waits and can never start as it is.
fn is_stuck(record: &JobRecord) -> bool {
    record_stage(record) == JobStage::Pending && can_never_start(&record.job.reason)
}

/// What an entry is sorted by: what runs, what waits, what ended; the latest first, and what waits by its rank.
pub type JobSortKey = (JobStage, Reverse<u64>, Reverse<UnixTime>, Reverse<u64>);

impl JobListItem {
    /// One that is no array, or a task by itself.
    pub fn single(record: Arc<JobRecord>) -> Self {
        let mut counts = JobCounts::default();
        counts.add(&record);
        Self { is_stuck: is_stuck(&record), head: record, tasks: Vec::new(), counts }
    }

    /// Whether it is an array.
    pub fn is_array(&self) -> bool {
        !self.tasks.is_empty()
    }

    /// Where in its life it is: an array runs while any task does.
    pub fn stage(&self) -> JobStage {
        if self.counts.running > 0 {
            JobStage::Running
        } else if self.counts.waiting > 0 {
            JobStage::Pending
        } else {
            JobStage::Ended
        }
    }

    /// What it is sorted by.
    pub fn sort_key(&self) -> JobSortKey {
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
        let is_part = record.job.id.task.is_some() || record.job.tasks.is_some();
        if is_part {
            arrays.entry(record.job.id.number).or_default().push(record.clone());
        } else {
            list.push(JobListItem::single(record.clone()));
        }
    }
    list.extend(arrays.into_values().map(array_item));
    list.sort_by_cached_key(JobListItem::sort_key);
    list
}

/// An array of its rows.
pub fn array_item(mut tasks: Vec<Arc<JobRecord>>) -> JobListItem {
    tasks.sort_by_key(|record| record.job.id.task);
    let mut counts = JobCounts::default();
    for record in &tasks {
        counts.add(record);
    }
    // What stands for all: what goes on now, else what came last.
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
        assert_eq!(
            array.counts,
            JobCounts { waiting: 5, running: 1, done: 1, cancelled: 0, bad: 1 }
        );
        assert_eq!(array.head.job.id.task, Some(3));
        assert_eq!(array.tasks[0].job.tasks.as_ref().unwrap().len(), 5);
    }
}
