//! What is known about one person's jobs on one cluster at one moment. Pages render from it and never wait for a
//! cluster.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::job_list::{JobListItem, list_items};
use super::job_record::JobRecord;
use super::queue_diff::JobRecordMap;
use crate::clock::UnixTime;
use crate::sites::cost::AllocationBalanceReport;
use crate::sites::quota::StorageQuota;
use crate::sites::storage_per_user::UserProjectStorage;
use crate::slurm::fair_share::SshareRow;
use crate::slurm::job::{JobStage, SlurmJob};
use crate::slurm::pending_counts::PendingPriorityCounts;
use crate::slurm::priority_factors::SprioFactors;

/// Within this many seconds, Slurm has looked at all pending jobs again.
const SCHEDULER_LAG: i64 = 300;

#[derive(Debug, Clone, Default)]
pub struct PersonQueueSnapshot {
    /// The person's own jobs: unfinished ones, and those that ended recently.
    pub records: JobRecordMap,
    /// When the queue was last read; none if never.
    pub seen: Option<UnixTime>,
    /// Why the last queue read failed.
    pub trouble: Option<QueueReadError>,
    /// Why accounting could not be read although the queue could.
    pub accounting_trouble: Option<QueueReadError>,
    /// How far back the history reaches.
    pub history_from: Option<UnixTime>,
    /// Pending jobs of the whole cluster, by priority.
    pub ahead: Option<PendingPriorityCounts>,
    /// Priority factors of the person's pending jobs, by Slurm's raw job ID.
    pub factors: HashMap<u64, SprioFactors>,
    /// The jobs of the person's accounts, if someone asked for them.
    pub group: Option<Arc<GroupQueue>>,
    /// Fair share, storage and quota.
    pub resources: Arc<PersonSharesAndQuotas>,
    /// Since when someone has been waiting for newer ones.
    pub resources_wanted: Option<UnixTime>,
    /// Whether the queue was longer than the portal reads.
    pub is_cut: bool,
    /// Increases with every new snapshot.
    pub version: u64,
    /// The job list, built on first use.
    pub(super) items: OnceLock<(Vec<JobListItem>, u64)>,
}

/// The jobs of a person's accounts, as far as the cluster shows them to this person.
#[derive(Debug, Clone, Default)]
pub struct GroupQueue {
    /// All unfinished jobs, including the person's own.
    pub jobs: Vec<SlurmJob>,
    pub seen: Option<UnixTime>,
    /// Whether the list was longer than the portal reads.
    pub is_cut: bool,
    waiting: HashMap<String, u64>,
    /// The accounts with jobs that have started.
    running: HashSet<String>,
}

impl GroupQueue {
    pub fn new(jobs: Vec<SlurmJob>, seen: UnixTime, is_cut: bool) -> Self {
        let mut waiting: HashMap<String, u64> = HashMap::new();
        let is_waiting = |job: &&SlurmJob| job.state.stage() == JobStage::Pending && is_competing(&job.reason);
        for job in jobs.iter().filter(is_waiting) {
            *waiting.entry(job.account.clone()).or_default() += 1;
        }
        let running = jobs.iter().filter(|job| job.state.stage() == JobStage::Running);
        let running = running.map(|job| job.account.clone()).collect();
        Self { jobs, seen: Some(seen), is_cut, waiting, running }
    }

    /// Whether any job of an account has started and not ended.
    pub fn has_running(&self, account: &str) -> bool {
        self.running.contains(account)
    }

    /// How many jobs of an account are pending.
    pub fn waiting_in_account(&self, account: &str) -> u64 {
        self.waiting.get(account).copied().unwrap_or(0)
    }
}

/// Why a read failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueReadError {
    /// There is no connection; the person can open one.
    NotConnected,
    /// The person is signed out, and did not allow the portal to work without them.
    OwnerAway,
    /// The host key has changed or is not confirmed.
    HostKeyInDoubt,
    /// Slurm's controller did not answer; its message.
    Controller(String),
    /// Slurm's accounting did not answer; its message.
    Accounting(String),
    /// Anything else, in words.
    Other(String),
}

/// A person's resources on a cluster. Stored as JSON, so every field may be missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct PersonSharesAndQuotas {
    /// Fair share of the person's accounts.
    pub shares: Vec<SshareRow>,
    pub shares_at: Option<i64>,
    /// How full their folders are.
    pub places: Vec<StorageQuota>,
    pub places_at: Option<i64>,
    /// Storage per user in project folders, for PIs.
    pub per_user: Vec<UserProjectStorage>,
    pub per_user_at: Option<i64>,
    /// What is left of their computing quota.
    pub cost: Option<AllocationBalanceReport>,
    pub cost_at: Option<i64>,
}

/// Whether a job with this pending reason competes with others for the same nodes.
fn is_competing(reason: &str) -> bool {
    matches!(reason, "" | "None" | "Priority" | "Resources")
}

impl PersonQueueSnapshot {
    /// The records of an array, or of the one job with this ID.
    pub fn records_of_number(&self, number: u64) -> impl Iterator<Item = &Arc<JobRecord>> {
        self.records.values().filter(move |record| record.job.id.number == number)
    }

    /// The person's jobs as a list, each array as one item.
    pub fn items(&self) -> &[JobListItem] {
        &self.list_once().0
    }

    /// How many of their jobs are pending; an array counts once, as it does for the scheduler.
    pub fn waiting_count(&self) -> u64 {
        self.list_once().1
    }

    fn list_once(&self) -> &(Vec<JobListItem>, u64) {
        self.items.get_or_init(|| {
            let items = list_items(self.records.values());
            let competes = |item: &&JobListItem| item.counts.waiting > 0 && is_competing(&item.head.job.reason);
            let waiting = items.iter().filter(competes).count();
            let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
            (items, waiting)
        })
    }

    /// Whether none of the person's jobs runs, and Slurm has had time to notice those that ended.
    pub fn is_idle(&self, now: UnixTime) -> bool {
        let is_idle = |record: &Arc<JobRecord>| match record.ended_at() {
            Some(end) => now.since(end) > SCHEDULER_LAG,
            None => record.job.state.stage() == JobStage::Pending,
        };
        self.seen.is_some() && !self.is_cut && self.records.values().all(is_idle)
    }

    /// Whether the jobs of the person's accounts were read a moment ago, and all of them.
    pub fn is_group_current(&self, now: UnixTime) -> bool {
        let is_current =
            |group: &Arc<GroupQueue>| !group.is_cut && group.seen.is_some_and(|seen| now.since(seen) <= SCHEDULER_LAG);
        self.group.as_ref().is_some_and(is_current)
    }

    pub fn has_unfinished(&self) -> bool {
        self.records.values().any(|record| !record.is_over)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::job::{JobId, JobState};

    #[test]
    fn idle_is_who_has_nothing_running_and_no_recent_end() {
        let now = UnixTime(10_000);
        let snapshot = |jobs: &[(JobState, i64)]| {
            let record = |(number, (state, end)): (u64, &(JobState, i64))| {
                let id = JobId::without_task(number);
                let job = SlurmJob { id, state: *state, end: Some(UnixTime(*end)), ..SlurmJob::default() };
                (id, Arc::new(JobRecord::new(job, UnixTime(1))))
            };
            PersonQueueSnapshot {
                records: (1..).zip(jobs).map(record).collect(),
                seen: Some(now),
                ..PersonQueueSnapshot::default()
            }
        };
        assert!(snapshot(&[(JobState::Pending, 0), (JobState::Completed, 9_000)]).is_idle(now));
        assert!(!snapshot(&[(JobState::Pending, 0), (JobState::Completed, 9_900)]).is_idle(now));
        assert!(!snapshot(&[(JobState::Pending, 0), (JobState::Running, 20_000)]).is_idle(now));
        assert!(!PersonQueueSnapshot::default().is_idle(now), "nothing was read");
    }
}
