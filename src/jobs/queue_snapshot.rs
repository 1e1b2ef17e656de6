//! What is known of one person's jobs on one cluster at a moment. Pages are made from it; nobody asks a cluster to see
//! it.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

use super::job_list::{JobListItem, list_items};
use super::job_record::JobRecord;
use super::queue_diff::JobRecords;
use crate::clock::UnixTime;
use crate::sites::cost::CostReport;
use crate::sites::quota::StorageQuota;
use crate::sites::storage_per_user::UserStorageUse;
use crate::slurm::fair_share::SshareRow;
use crate::slurm::job::{JobStage, SlurmJob};
use crate::slurm::pending_counts::PendingJobCounts;
use crate::slurm::priority_factors::SprioFactors;

#[derive(Debug, Clone, Default)]
pub struct QueueSnapshot {
    /// The person's own jobs: those that are not over, and those that ended lately.
    pub records: JobRecords,
    /// When the queue was last seen; none if never.
    pub seen: Option<UnixTime>,
    /// Why the last try to see it gave nothing.
    pub trouble: Option<QueueReadError>,
    /// Why the accounting gave nothing, although the queue did.
    pub accounting_trouble: Option<QueueReadError>,
    /// From when the history is known.
    pub history_from: Option<UnixTime>,
    /// Who waits before whom, in all of the queue.
    pub ahead: Option<PendingJobCounts>,
    /// What the person's waiting jobs have their rank from, by Slurm's own number.
    pub factors: HashMap<u64, SprioFactors>,
    /// The jobs of the person's accounts, if someone wanted to see them.
    pub group: Option<Arc<GroupQueue>>,
    /// Fair-share, storage and quota.
    pub resources: Arc<ResourceSnapshot>,
    /// Whether the queue was longer than is read.
    pub is_cut: bool,
    /// Counts the pictures: another number, another picture.
    pub version: u64,
    /// The list of jobs, made when it is first wanted.
    pub(super) items: OnceLock<(Vec<JobListItem>, u64)>,
}

/// The jobs of a person's accounts, as the cluster shows them to this person.
#[derive(Debug, Clone, Default)]
pub struct GroupQueue {
    /// All jobs that are not over, the person's own included.
    pub jobs: Vec<SlurmJob>,
    pub seen: Option<UnixTime>,
    /// Whether the list was longer than is read.
    pub is_cut: bool,
    waiting: HashMap<String, u64>,
}

impl GroupQueue {
    /// The jobs as they were seen.
    pub fn new(jobs: Vec<SlurmJob>, seen: UnixTime, is_cut: bool) -> Self {
        let mut waiting: HashMap<String, u64> = HashMap::new();
        let in_line =
            |job: &&SlurmJob| job.state.stage() == JobStage::Pending && is_competing(&job.reason);
        for job in jobs.iter().filter(in_line) {
            *waiting.entry(job.account.clone()).or_default() += 1;
        }
        Self { jobs, seen: Some(seen), is_cut, waiting }
    }

    /// How many jobs of an account stand in line.
    pub fn waiting_in_account(&self, account: &str) -> u64 {
        self.waiting.get(account).copied().unwrap_or(0)
    }
}

/// Why something could not be learnt.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QueueReadError {
    /// There is no connection; the person can open it.
    NotConnected,
    /// The person is signed in nowhere, and the portal was not allowed to work alone.
    OwnerAway,
    /// The host key is in doubt.
    HostKeyInDoubt,
    /// Slurm's controller did not answer; what it said.
    Controller(String),
    /// Slurm's accounting did not answer; what it said.
    Accounting(String),
    /// Something else, in words.
    Other(String),
}

/// How a person stands on a cluster. Kept as JSON: every field may be missing.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ResourceSnapshot {
    /// Fair-share of the person's accounts.
    pub shares: Vec<SshareRow>,
    pub shares_at: Option<i64>,
    /// How full their folders are.
    pub places: Vec<StorageQuota>,
    pub places_at: Option<i64>,
    /// Who has how much in the folders of projects: for those who lead a group.
    pub per_user: Vec<UserStorageUse>,
    pub per_user_at: Option<i64>,
    /// What is left of their quota of computing time.
    pub cost: Option<CostReport>,
    pub cost_at: Option<i64>,
}

/// Whether a job that waits for this reason competes with others for the same machines.
fn is_competing(reason: &str) -> bool {
    matches!(reason, "" | "None" | "Priority" | "Resources")
}

impl QueueSnapshot {
    /// The records of an array, or of the one job of this number.
    pub fn records_of_number(&self, number: u64) -> impl Iterator<Item = &Arc<JobRecord>> {
        self.records.values().filter(move |record| record.job.id.number == number)
    }

    /// The person's jobs as a list, arrays as one.
    pub fn items(&self) -> &[JobListItem] {
        &self.list_once().0
    }

    /// How many of their jobs stand in line; an array counts once, as it does for the scheduler.
    pub fn waiting_count(&self) -> u64 {
        self.list_once().1
    }

    fn list_once(&self) -> &(Vec<JobListItem>, u64) {
        self.items.get_or_init(|| {
            let entries = list_items(self.records.values());
            let competes = |entry: &&JobListItem| {
                entry.counts.waiting > 0 && is_competing(&entry.head.job.reason)
            };
            let waiting = entries.iter().filter(competes).count();
            let waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
            (entries, waiting)
        })
    }

    /// Whether any job is not over.
    pub fn has_unfinished(&self) -> bool {
        self.records.values().any(|record| !record.is_over)
    }
}
