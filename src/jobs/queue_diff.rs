//! Compares the known jobs with what the cluster reports. Pure: the caller saves the changes and notifies people.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::job_record::JobRecord;
use crate::clock::UnixTime;
use crate::slurm::accounting::AccountingExtra;
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::job::{JobId, JobStage, JobState, SlurmJob};

/// How long to ask about a job that disappeared from the queue before its end becomes "unknown".
const LOST_AFTER: i64 = 15 * 60;

/// A suspended time that differs by less than this many seconds from the known one is the same: clocks and answers
/// vary a little, and the record of a running job shouldn't change with each read.
const SUSPENDED_TOLERANCE_S: u64 = 10;

/// The most tasks that are stored one by one when they ended together.
const MAX_TASKS: usize = 5000;

pub type JobRecordMap = HashMap<JobId, Arc<JobRecord>>;

/// The changes that people want to be notified about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotifiedTransition {
    Started,
    Ended,
}

/// A new or changed job.
#[derive(Debug, Clone, PartialEq)]
pub struct JobChange {
    /// Its new record.
    pub record: JobRecord,
    /// Whether its state changed, which adds an event to its timeline.
    pub is_new_state: bool,
    pub is_new: bool,
    /// Whether it needs saving: priorities and expected starts change all the time.
    pub is_worth_saving: bool,
    /// What to notify its owner about.
    pub transition: Option<NotifiedTransition>,
}

#[derive(Debug, Default)]
pub struct QueueDiff {
    /// New or changed jobs.
    pub changes: Vec<JobChange>,
    /// Pending remainders of arrays whose tasks have all started.
    pub gone: Vec<Arc<JobRecord>>,
    /// Jobs that left the queue; accounting should know them.
    pub missing: Vec<Arc<JobRecord>>,
    /// Tasks that no longer wait but never started as far as the queue shows, with the record they were part of.
    pub vanished: Vec<(JobId, Arc<JobRecord>)>,
}

/// Compares with the queue. `notified_until` is how far the owner's notifications reach: earlier ends are not announced.
/// `None` on the first read.
pub fn diff_queue(
    records: &JobRecordMap,
    reported: Vec<SlurmJob>,
    notified_until: Option<UnixTime>,
    now: UnixTime,
) -> QueueDiff {
    let mut diff = QueueDiff::default();
    let reported: Vec<SlurmJob> = reported.into_iter().flat_map(split_ended_tasks).collect();
    let ids: HashSet<JobId> = reported.iter().map(|job| job.id).collect();
    let numbers: HashSet<u64> = reported.iter().map(|job| job.id.number).collect();
    diff.vanished = vanished_tasks(records, &reported, &ids, &numbers);
    for job in reported {
        let change = match records.get(&job.id) {
            None => Some(new_job_change(job, notified_until, now)),
            Some(record) => known_job_change(record, job, now),
        };
        diff.changes.extend(change);
    }
    for record in records.values().filter(|record| !record.is_over && !ids.contains(&record.job.id)) {
        if record.job.tasks.is_some() && numbers.contains(&record.job.id.number) {
            diff.gone.push(record.clone());
        } else {
            diff.missing.push(record.clone());
        }
    }
    diff
}

fn vanished_tasks(
    records: &JobRecordMap,
    reported: &[SlurmJob],
    ids: &HashSet<JobId>,
    numbers: &HashSet<u64>,
) -> Vec<(JobId, Arc<JobRecord>)> {
    let waiting: HashMap<u64, &ArrayTaskSet> =
        reported.iter().filter_map(|job| Some((job.id.number, job.tasks.as_ref()?))).collect();
    let mut vanished = Vec::new();
    for record in records.values().filter(|record| !record.is_over && numbers.contains(&record.job.id.number)) {
        let number = record.job.id.number;
        let left = waiting.get(&number);
        for task in record.job.tasks.iter().flat_map(ArrayTaskSet::iter).take(MAX_TASKS) {
            let id = JobId { number, task: Some(task) };
            let waits = left.is_some_and(|left| left.contains(task));
            if !waits && !ids.contains(&id) && !records.contains_key(&id) {
                vanished.push((id, record.clone()));
            }
        }
    }
    vanished
}

/// A task that no longer waits and that neither the queue nor accounting has seen start was cancelled before.
pub fn cancelled_before_start(id: JobId, rest: &JobRecord, now: UnixTime) -> JobChange {
    let job = SlurmJob {
        id,
        tasks: None,
        state: JobState::Cancelled,
        reason: String::new(),
        start: None,
        end: Some(now),
        ..rest.job.clone()
    };
    let record = JobRecord::new(job, now);
    JobChange { record, is_new_state: true, is_new: true, is_worth_saving: true, transition: None }
}

/// Slurm reports array tasks that were cancelled together before they started in one row, like pending ones. They are
/// stored one by one, because a combined record is reserved for pending tasks.
fn split_ended_tasks(job: SlurmJob) -> Vec<SlurmJob> {
    match job.tasks.clone().filter(|_| job.state.is_over()) {
        None => vec![job],
        Some(tasks) => tasks
            .iter()
            .take(MAX_TASKS)
            .map(|task| SlurmJob { id: JobId { task: Some(task), ..job.id }, tasks: None, ..job.clone() })
            .collect(),
    }
}

fn new_job_change(job: SlurmJob, notified_until: Option<UnixTime>, now: UnixTime) -> JobChange {
    let record = JobRecord::new(job, now);
    let is_unannounced = |at: Option<UnixTime>| matches!((at, notified_until), (Some(at), Some(until)) if at > until);
    let transition = match record.job.state.stage() {
        JobStage::Ended if is_unannounced(record.job.end) => Some(NotifiedTransition::Ended),
        JobStage::Running if is_unannounced(record.job.start) => Some(NotifiedTransition::Started),
        _ => None,
    };
    JobChange { record, is_new_state: true, is_new: true, is_worth_saving: true, transition }
}

fn known_job_change(record: &Arc<JobRecord>, mut job: SlurmJob, now: UnixTime) -> Option<JobChange> {
    if record.is_over {
        // Requeued after its end, or a reused job ID.
        let lives_again = !job.state.is_over() && job.submitted > record.job.end;
        let was_lost = record.is_lost() && job.state.is_over();
        if !lives_again && !was_lost {
            return None;
        }
    }
    if job.exit.is_none() {
        job.exit = record.job.exit.filter(|_| job.state.is_over());
    }
    let is_running = job.state == JobState::Running && record.job.restarts == job.restarts;
    if is_running && job.suspended_s.abs_diff(record.job.suspended_s) < SUSPENDED_TOLERANCE_S {
        job.suspended_s = record.job.suspended_s;
    }
    if record.job == job && !record.is_over {
        return None;
    }
    let (before, after) = (record.job.state.stage(), job.state.stage());
    let transition = match (before, after) {
        (JobStage::Ended, JobStage::Ended) if record.is_lost() => Some(NotifiedTransition::Ended),
        (JobStage::Pending | JobStage::Running, JobStage::Ended) => Some(NotifiedTransition::Ended),
        (JobStage::Pending, JobStage::Running) => Some(NotifiedTransition::Started),
        _ => None,
    };
    let is_new_state = record.job.state != job.state || record.job.restarts != job.restarts;
    let passing = SlurmJob {
        priority: job.priority,
        suspended_s: job.suspended_s,
        start: if job.state.stage() == JobStage::Pending { job.start } else { record.job.start },
        ..record.job.clone()
    };
    // One that was listed when it was submitted is not saved yet.
    let is_lasting = passing != job || record.is_over || record.id.0 == 0;
    let record = JobRecord {
        is_over: job.state.is_over(),
        is_settled: false,
        cancelled_by: String::new(),
        job,
        seen: now,
        ..JobRecord::clone(record)
    };
    Some(JobChange { record, is_new_state, is_new: false, is_worth_saving: is_lasting, transition })
}

/// Compares with accounting, which knows ends that the queue has forgotten. Unfinished jobs are left to the queue.
pub fn diff_accounting(
    records: &JobRecordMap,
    reported: Vec<(SlurmJob, AccountingExtra)>,
    notified_until: Option<UnixTime>,
    now: UnixTime,
) -> Vec<JobChange> {
    let over = reported.into_iter().filter(|(job, _)| job.state.is_over());
    let over = over.flat_map(|(job, extra)| split_ended_tasks(job).into_iter().map(move |job| (job, extra.clone())));
    over.filter_map(|(job, extra)| match records.get(&job.id) {
        None => {
            let mut change = new_job_change(job, notified_until, now);
            change.record.is_settled = true;
            change.record.submit_line = extra.submit_line;
            change.record.cancelled_by = extra.cancelled_by.unwrap_or_default();
            Some(change)
        }
        Some(record) if record.is_settled && record.is_over => None,
        // The queue shows it alive, in a later run than this one.
        Some(record) if !record.is_over && job.end < record.job.submitted => None,
        Some(record) => Some(confirmed_end(record, job, extra, now)),
    })
    .collect()
}

fn confirmed_end(record: &Arc<JobRecord>, mut job: SlurmJob, extra: AccountingExtra, now: UnixTime) -> JobChange {
    // Keep what only the queue reports.
    job.priority = record.job.priority;
    job.dependency.clone_from(&record.job.dependency);
    job.restarts = record.job.restarts;
    job.suspended_s = record.job.suspended_s;
    if job.reason.is_empty() {
        job.reason.clone_from(&record.job.reason);
    }
    if job.node_list.is_empty() {
        job.node_list.clone_from(&record.job.node_list);
    }
    let is_new_state = record.job.state != job.state;
    let was_open = !record.is_over || record.is_lost();
    let record = JobRecord {
        job,
        submit_line: extra.submit_line,
        cancelled_by: extra.cancelled_by.unwrap_or_default(),
        is_over: true,
        is_settled: true,
        seen: now,
        ..JobRecord::clone(record)
    };
    let transition = was_open.then_some(NotifiedTransition::Ended);
    JobChange { record, is_new_state, is_new: false, is_worth_saving: true, transition }
}

/// Picks the jobs that neither the queue nor accounting has known for too long: they ended in an unknown way.
/// `missed` says since when each has been missing.
pub fn lost_jobs(
    missing: &[Arc<JobRecord>],
    answered: &[JobChange],
    missed: &HashMap<JobId, UnixTime>,
    now: UnixTime,
) -> Vec<JobChange> {
    let answered: HashSet<JobId> = answered.iter().map(|change| change.record.job.id).collect();
    let lost = |record: &Arc<JobRecord>| {
        let since = missed.get(&record.job.id).filter(|_| !answered.contains(&record.job.id))?;
        (now.since(*since) >= LOST_AFTER).then(|| {
            let mut record = JobRecord::clone(record);
            record.job.state = JobState::Unknown;
            record.job.end = Some(*since);
            record.is_over = true;
            let transition = Some(NotifiedTransition::Ended);
            JobChange { record, is_new_state: true, is_new: false, is_worth_saving: true, transition }
        })
    };
    missing.iter().filter_map(lost).collect()
}

#[cfg(test)]
mod tests;
