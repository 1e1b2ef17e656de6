//! Job details for the job page: read when someone opens it, and stored in the database so that they outlive the
//! cluster's memory of the job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use super::job_details::JobDetails;
use super::job_record::JobRecord;
use super::queue_monitor::is_recent;
use crate::cluster::job_details_query::{self, JobDetailsRequest};
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::{Core, lock};
use crate::slurm::job::{JobId, JobStage};
use crate::store::{self, StoreError};

/// How often the details of an unfinished job are read again while its page is open.
const REFRESH_EVERY: Duration = Duration::from_mins(1);
/// The shortest pause after a failed read.
const RETRY_AFTER: Duration = Duration::from_secs(20);
/// Roughly how late accounting learns that a job ended; each further try waits twice as long.
const ACCOUNTING_LAG: Duration = Duration::from_secs(3);
/// Not every site records everything, so stop asking at some point.
const MAX_TRIES: u32 = 6;
/// How long details stay in memory after they were last viewed.
const ENTRY_TTL: Duration = Duration::from_mins(10);
/// The most entries in memory.
const MAX_ENTRIES: usize = 2000;

/// Job details, and why they may be out of date.
#[derive(Debug, Clone, Default)]
pub struct LoadedJobDetails {
    pub details: Arc<JobDetails>,
    /// Why the last read failed, in words.
    pub trouble: Option<String>,
}

type JobDetailsCacheEntry = Arc<tokio::sync::Mutex<CachedJobDetails>>;

#[derive(Default)]
struct CachedJobDetails {
    loaded: LoadedJobDetails,
    is_loaded: bool,
    asked_at: Option<Instant>,
    /// Consecutive tries that returned less than accounting should have.
    tries: u32,
    viewed_at: Option<Instant>,
}

#[derive(Clone)]
pub struct JobDetailsCache(pub(super) Arc<JobDetailsCacheInner>);

pub(super) struct JobDetailsCacheInner {
    pub(super) core: Core,
    pub(super) connections: ConnectionPool,
    /// When the accounting was asked for jobs that the portal does not know.
    pub(super) asked_for: Mutex<HashMap<(ClusterAccountId, JobId), Instant>>,
    entries: Mutex<HashMap<(ClusterAccountId, JobId), JobDetailsCacheEntry>>,
}

impl JobDetailsCache {
    /// Starts empty; details are loaded from the database on demand.
    pub fn new(core: Core, connections: ConnectionPool) -> Self {
        Self(Arc::new(JobDetailsCacheInner {
            core,
            connections,
            asked_for: Mutex::default(),
            entries: Mutex::default(),
        }))
    }

    /// Returns what is known, without asking the cluster.
    pub async fn get_cached(&self, key: ClusterAccountId, record: &JobRecord) -> Result<LoadedJobDetails, StoreError> {
        let entry = self.entry(key, record.job.id);
        // Another request is reading from the cluster right now: the database's copy will do.
        let Ok(mut cached) = entry.try_lock() else {
            let details = self.load_known(key, record).await?.with_expected_paths(&record.job);
            return Ok(LoadedJobDetails { details: Arc::new(details), trouble: None });
        };
        self.load(&mut cached, key, record).await?;
        Ok(cached.loaded.clone())
    }

    /// Returns the details, reading them again if they are old. Simultaneous callers share one read.
    pub async fn get_fresh(&self, key: ClusterAccountId, record: &JobRecord) -> Result<LoadedJobDetails, StoreError> {
        let entry = self.entry(key, record.job.id);
        let mut cached = entry.lock().await;
        self.load(&mut cached, key, record).await?;
        let now = Instant::now();
        if !is_due(&cached, record, now) {
            return Ok(cached.loaded.clone());
        }
        cached.asked_at = Some(now);
        let job = &record.job;
        let running_s =
            (job.state.stage() == JobStage::Running && !record.is_over).then(|| job.running_s(self.0.core.clock.now()));
        let request = JobDetailsRequest { id: job.id, raw_id: job.raw_id, running_s, is_over: record.is_over };
        let reply = match self.0.connections.connection(key.connection_key()) {
            Ok(connection) => job_details_query::load_job_details(&connection, request).await,
            Err(error) => Err(error),
        };
        match reply {
            Ok(reply) => {
                let details =
                    JobDetails::clone(&cached.loaded.details).merged_with(reply, job, self.0.core.clock.now());
                self.save(record, &details).await?;
                let is_same = cached.loaded.details.state == details.state;
                cached.tries = if is_same && is_incomplete(&details) { cached.tries + 1 } else { 0 };
                cached.loaded = LoadedJobDetails { details: Arc::new(details), trouble: None };
            }
            Err(error) => cached.loaded.trouble = Some(error.to_string()),
        }
        Ok(cached.loaded.clone())
    }

    /// Saves the end of an ended job's output, because the file may be deleted.
    pub async fn save_log_end(
        &self,
        key: ClusterAccountId,
        record: &JobRecord,
        lines: &[String],
    ) -> Result<(), StoreError> {
        let entry = self.entry(key, record.job.id);
        let mut cached = entry.lock().await;
        self.load(&mut cached, key, record).await?;
        let details = JobDetails::clone(&cached.loaded.details).with_log_end(lines);
        if details.log_end != cached.loaded.details.log_end {
            self.save(record, &details).await?;
            cached.loaded.details = Arc::new(details);
        }
        Ok(())
    }

    /// The script that the portal submitted for a job; empty if it was submitted elsewhere.
    async fn submitted_script(&self, key: ClusterAccountId, record: &JobRecord) -> Result<String, StoreError> {
        let number = i64::try_from(record.job.id.number).unwrap_or(-1);
        let mut db = self.0.core.store.read().await?;
        let submission = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
        Ok(submission.map(|submission| submission.script).unwrap_or_default())
    }

    async fn load(
        &self,
        cached: &mut CachedJobDetails,
        key: ClusterAccountId,
        record: &JobRecord,
    ) -> Result<(), StoreError> {
        cached.viewed_at = Some(Instant::now());
        if !cached.is_loaded {
            cached.loaded.details = Arc::new(self.load_known(key, record).await?);
            // A job that was submitted a moment ago isn't stored yet.
            cached.is_loaded = record.id.0 != 0;
        }
        if cached.loaded.details.lacks_paths(&record.job) {
            let details = JobDetails::clone(&cached.loaded.details).with_expected_paths(&record.job);
            cached.loaded.details = Arc::new(details);
        }
        Ok(())
    }

    /// What the database has: the stored details, and the script if the portal submitted the job.
    async fn load_known(&self, key: ClusterAccountId, record: &JobRecord) -> Result<JobDetails, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let stored = store::queues::load_job_details(&mut db, record.id).await?;
        drop(db);
        let mut details: JobDetails = stored.and_then(|(json, _)| serde_json::from_str(&json).ok()).unwrap_or_default();
        if details.script.is_empty() {
            // The portal's own copy of the script does not depend on what the cluster keeps.
            details.script = self.submitted_script(key, record).await?;
        }
        Ok(details)
    }

    /// Nothing is stored about other people's jobs.
    async fn save(&self, record: &JobRecord, details: &JobDetails) -> Result<(), StoreError> {
        if record.id.0 == 0 {
            return Ok(());
        }
        let json = serde_json::to_string(details).unwrap_or_default();
        let mut tx = self.0.core.store.write().await?;
        store::queues::save_job_details(&mut tx, record.id, &json, self.0.core.clock.now()).await?;
        store::commit(tx).await
    }

    fn entry(&self, key: ClusterAccountId, id: JobId) -> JobDetailsCacheEntry {
        let mut entries = lock(&self.0.entries);
        if entries.len() >= MAX_ENTRIES {
            let now = Instant::now();
            entries.retain(|_, entry| {
                // A locked entry is in use.
                entry.try_lock().map_or(true, |cached| is_recent(cached.viewed_at, now, ENTRY_TTL))
            });
        }
        entries.entry((key, id)).or_default().clone()
    }
}

/// Whether to read again: nothing is known, the job has changed, or the details are old and the job is unfinished.
fn is_due(cached: &CachedJobDetails, record: &JobRecord, now: Instant) -> bool {
    let details = &cached.loaded.details;
    let waited = |least: Duration| cached.asked_at.is_none_or(|asked| now.saturating_duration_since(asked) >= least);
    let changed = details.state != record.job.state.slurm_name() || details.restarts != record.job.restarts;
    if cached.loaded.trouble.is_some() || details.read_at == 0 {
        return waited(RETRY_AFTER);
    }
    if changed {
        return waited(ACCOUNTING_LAG);
    }
    if record.is_over {
        return is_incomplete(details) && cached.tries < MAX_TRIES && waited(ACCOUNTING_LAG * 2_u32.pow(cached.tries));
    }
    waited(REFRESH_EVERY)
}

/// Whether accounting, which learns of ends a little late, still has data to deliver.
fn is_incomplete(details: &JobDetails) -> bool {
    details.submit_line.is_empty() || details.usage.is_none()
}
