//! Usage of someone's earlier runs: from the database, with the rest read from the cluster once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::job_details::JobDetails;
use super::job_record::JobRecord;
use crate::cluster::{ClusterAccountId, ConnectionPool, past_runs};
use crate::core::{Core, lock};
use crate::explain::right_size::PastJobRun;
use crate::store::{self, StoreError};

/// How long an answer from the cluster is reused.
const FETCHED_TTL: Duration = Duration::from_mins(10);
/// The shortest pause after a failed read.
const RETRY_AFTER: Duration = Duration::from_mins(1);
/// The most jobs in memory.
const MAX_ENTRIES: usize = 2000;
/// The most tasks of an array that are looked up.
const MAX_TASKS: usize = 20;

#[derive(Clone)]
pub struct PastRunsCache(Arc<PastRunsCacheInner>);

struct PastRunsCacheInner {
    core: Core,
    connections: ConnectionPool,
    fetched: Mutex<HashMap<(ClusterAccountId, u64), FetchedPastRuns>>,
    /// Held during a read, so that simultaneous callers find its result.
    fetch_lock: tokio::sync::Mutex<()>,
}

/// The cluster's answer for one job, and how long it is valid.
struct FetchedPastRuns {
    until: Instant,
    runs: Vec<PastJobRun>,
}

/// What the database has about one job.
enum StoredPastRunsLookup {
    /// Complete.
    Runs(Vec<PastJobRun>),
    /// The job is unfinished.
    NotOver,
    /// Its usage is missing.
    Incomplete,
}

impl PastRunsCache {
    pub fn new(core: Core, connections: ConnectionPool) -> Self {
        Self(Arc::new(PastRunsCacheInner {
            core,
            connections,
            fetched: Mutex::default(),
            fetch_lock: tokio::sync::Mutex::default(),
        }))
    }

    /// Loads the runs of at most ten of these jobs, leaving out unfinished ones. Asks the cluster at most once, over
    /// the person's own connection, and does without if there is none.
    pub async fn load_runs(&self, key: ClusterAccountId, numbers: &[u64]) -> Result<Vec<PastJobRun>, StoreError> {
        let mut runs = Vec::new();
        let mut incomplete = Vec::new();
        for number in numbers.iter().take(past_runs::MAX_PAST_JOBS) {
            match self.load_stored(key, *number).await? {
                StoredPastRunsLookup::Runs(stored) => runs.extend(stored),
                StoredPastRunsLookup::Incomplete if !incomplete.contains(number) => incomplete.push(*number),
                StoredPastRunsLookup::Incomplete | StoredPastRunsLookup::NotOver => {}
            }
        }
        if !incomplete.is_empty() {
            let _guard = self.0.fetch_lock.lock().await;
            self.fetch_missing(key, &incomplete).await;
            let fetched = lock(&self.0.fetched);
            let of = |number: &u64| fetched.get(&(key, *number)).map(|fetched| fetched.runs.clone());
            runs.extend(incomplete.iter().filter_map(of).flatten());
        }
        runs.retain(|run| run.state.is_over());
        Ok(runs)
    }

    /// Reads those that were not read recently.
    async fn fetch_missing(&self, key: ClusterAccountId, numbers: &[u64]) {
        let now = Instant::now();
        let unknown: Vec<u64> = {
            let fetched = lock(&self.0.fetched);
            let is_known = |number: &u64| fetched.get(&(key, *number)).is_some_and(|fetched| fetched.until > now);
            numbers.iter().copied().filter(|number| !is_known(number)).collect()
        };
        if unknown.is_empty() {
            return;
        }
        let reply = match self.0.connections.connection(key.connection_key()) {
            Ok(connection) => past_runs::load_past_runs(&connection, &unknown).await,
            Err(error) => Err(error),
        };
        let ttl = if reply.is_ok() { FETCHED_TTL } else { RETRY_AFTER };
        let reply = reply.unwrap_or_default();
        let mut fetched = lock(&self.0.fetched);
        if fetched.len() >= MAX_ENTRIES {
            fetched.retain(|_, fetched| fetched.until > now);
        }
        for number in unknown {
            let runs = reply.iter().filter(|run| run.number == number).cloned().collect();
            fetched.insert((key, number), FetchedPastRuns { until: now + ttl, runs });
        }
    }

    async fn load_stored(&self, key: ClusterAccountId, number: u64) -> Result<StoredPastRunsLookup, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let job_number = i64::try_from(number).unwrap_or(-1);
        let rows = store::jobs::list_array_tasks(&mut db, key.person, key.cluster, job_number).await?;
        let mut runs = Vec::new();
        for record in rows.into_iter().take(MAX_TASKS).map(JobRecord::from_row) {
            if !record.is_over {
                return Ok(StoredPastRunsLookup::NotOver);
            }
            let details = store::queues::load_job_details(&mut db, record.id).await?;
            let details: Option<JobDetails> = details.and_then(|(json, _)| serde_json::from_str(&json).ok());
            let Some(usage) = details.and_then(|details| details.usage) else {
                return Ok(StoredPastRunsLookup::Incomplete);
            };
            let job = record.job;
            runs.push(PastJobRun {
                number,
                state: job.state,
                minutes: job.time_limit.minutes(),
                memory_mb: job.memory_mb,
                cores: job.cpus,
                nodes: job.nodes,
                gpus: job.gpus,
                usage,
            });
        }
        Ok(if runs.is_empty() { StoredPastRunsLookup::Incomplete } else { StoredPastRunsLookup::Runs(runs) })
    }
}
