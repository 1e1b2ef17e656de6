//! The papers that people look at: read when someone looks, kept in the database, so that they outlive the cluster's
//! memory of the job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::job_details::JobDetails;
use super::job_record::JobRecord;
use super::queue_monitor::is_recent;
use crate::cluster::job_details_query::{self, JobDetailsQuery};
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::Core;
use crate::slurm::job::{JobId, JobStage};
use crate::store::{self, StoreError};

/// While someone looks at a job that is not over, its paper is asked for again after this long.
const REFRESH_EVERY: Duration = Duration::from_mins(1);
/// After a failure, not sooner than this.
const RETRY_AFTER: Duration = Duration::from_secs(20);
/// The accounting learns of an end about so late; each further try waits twice as long.
const ACCOUNTING_LAG: Duration = Duration::from_secs(3);
/// Not every site keeps everything.
const MAX_TRIES: u32 = 6;
/// Papers are kept in memory for this long after someone looked.
const ENTRY_TTL: Duration = Duration::from_mins(10);
/// So many are kept at most.
const MAX_ENTRIES: usize = 2000;

/// A paper, and why it may be old.
#[derive(Debug, Clone, Default)]
pub struct LoadedJobDetails {
    pub details: Arc<JobDetails>,
    /// Why the last try to read it gave nothing, in words.
    pub trouble: Option<String>,
}

type SharedDetailsEntry = Arc<tokio::sync::Mutex<DetailsEntry>>;

#[derive(Default)]
struct DetailsEntry {
    loaded: LoadedJobDetails,
    is_loaded: bool,
    asked_at: Option<Instant>,
    /// Tries in a row that brought less than the accounting should have.
    tries: u32,
    viewed_at: Option<Instant>,
}

/// The papers that people look at.
#[derive(Clone)]
pub struct JobDetailsCache(Arc<JobDetailsCacheInner>);

struct JobDetailsCacheInner {
    core: Core,
    connections: ConnectionPool,
    entries: Mutex<HashMap<(ClusterAccountId, JobId), SharedDetailsEntry>>,
}

impl JobDetailsCache {
    /// None yet; they come from the database as they are asked for.
    pub fn new(core: Core, connections: ConnectionPool) -> Self {
        Self(Arc::new(JobDetailsCacheInner { core, connections, entries: Mutex::default() }))
    }

    /// What is known, without asking the cluster.
    pub async fn get_cached(
        &self,
        key: ClusterAccountId,
        record: &JobRecord,
    ) -> Result<LoadedJobDetails, StoreError> {
        let place = self.entry(key, record.job.id);
        // Someone asks the cluster at the moment: what the database has is as good.
        let Ok(mut held) = place.try_lock() else {
            return Ok(LoadedJobDetails {
                details: Arc::new(self.load_stored(record).await?),
                trouble: None,
            });
        };
        self.load(&mut held, key, record).await?;
        Ok(held.loaded.clone())
    }

    /// What is known, asked anew if it is old. Whoever asks for the same at the same time waits for one answer.
    pub async fn get_fresh(
        &self,
        key: ClusterAccountId,
        record: &JobRecord,
    ) -> Result<LoadedJobDetails, StoreError> {
        let place = self.entry(key, record.job.id);
        let mut held = place.lock().await;
        self.load(&mut held, key, record).await?;
        let now = Instant::now();
        if !is_due(&held, record, now) {
            return Ok(held.loaded.clone());
        }
        held.asked_at = Some(now);
        let job = &record.job;
        let running_s = (job.state.stage() == JobStage::Running && !record.is_over)
            .then(|| job.start.map_or(0, |start| self.0.core.clock.now().since(start).max(0)))
            .and_then(|seconds| u64::try_from(seconds).ok());
        let wanted =
            JobDetailsQuery { id: job.id, raw_id: job.raw_id, running_s, is_over: record.is_over };
        let told = match self.0.connections.connection(key.connection_key()) {
            Ok(line) => job_details_query::load_job_details(&line, wanted).await,
            Err(error) => Err(error),
        };
        match told {
            Ok(told) => {
                let paper = JobDetails::clone(&held.loaded.details).merged_with(
                    told,
                    job,
                    self.0.core.clock.now(),
                );
                self.save(record, &paper).await?;
                let is_same = held.loaded.details.state == paper.state;
                held.tries = if is_same && is_incomplete(&paper) { held.tries + 1 } else { 0 };
                held.loaded = LoadedJobDetails { details: Arc::new(paper), trouble: None };
            }
            Err(error) => held.loaded.trouble = Some(error.to_string()),
        }
        Ok(held.loaded.clone())
    }

    /// Keeps the end of the output of a job that is over: the file may be cleared away.
    pub async fn save_log_end(
        &self,
        key: ClusterAccountId,
        record: &JobRecord,
        lines: &[String],
    ) -> Result<(), StoreError> {
        let place = self.entry(key, record.job.id);
        let mut held = place.lock().await;
        self.load(&mut held, key, record).await?;
        let paper = JobDetails::clone(&held.loaded.details).with_log_end(lines);
        if paper.log_end != held.loaded.details.log_end {
            self.save(record, &paper).await?;
            held.loaded.details = Arc::new(paper);
        }
        Ok(())
    }

    /// The script that this portal submitted for a job; empty if it did not.
    async fn submitted_script(
        &self,
        key: ClusterAccountId,
        record: &JobRecord,
    ) -> Result<String, StoreError> {
        let number = i64::try_from(record.job.id.number).unwrap_or(-1);
        let mut db = self.0.core.store.read().await?;
        let one = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
        Ok(one.map(|one| one.script).unwrap_or_default())
    }

    async fn load(
        &self,
        held: &mut DetailsEntry,
        key: ClusterAccountId,
        record: &JobRecord,
    ) -> Result<(), StoreError> {
        held.viewed_at = Some(Instant::now());
        if !held.is_loaded {
            let mut paper = self.load_stored(record).await?;
            if paper.script.is_empty() && record.id.0 != 0 {
                // What was submitted here is kept here, whatever the cluster keeps.
                paper.script = self.submitted_script(key, record).await?;
            }
            held.loaded.details = Arc::new(paper);
            held.is_loaded = true;
        }
        Ok(())
    }

    async fn load_stored(&self, record: &JobRecord) -> Result<JobDetails, StoreError> {
        if record.id.0 == 0 {
            return Ok(JobDetails::default());
        }
        let mut db = self.0.core.store.read().await?;
        let found = store::queues::load_job_details(&mut db, record.id).await?;
        Ok(found.and_then(|(json, _)| serde_json::from_str(&json).ok()).unwrap_or_default())
    }

    /// Of jobs that are not the person's own, nothing is kept.
    async fn save(&self, record: &JobRecord, paper: &JobDetails) -> Result<(), StoreError> {
        if record.id.0 == 0 {
            return Ok(());
        }
        let json = serde_json::to_string(paper).unwrap_or_default();
        let mut tx = self.0.core.store.write().await?;
        store::queues::save_job_details(&mut tx, record.id, &json, self.0.core.clock.now()).await?;
        store::commit(tx).await
    }

    fn entry(&self, key: ClusterAccountId, id: JobId) -> SharedDetailsEntry {
        let mut places = self.0.entries.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MAX_ENTRIES {
            let now = Instant::now();
            places.retain(|_, place| {
                // One that is locked is in use.
                place.try_lock().map_or(true, |held| is_recent(held.viewed_at, now, ENTRY_TTL))
            });
        }
        places.entry((key, id)).or_default().clone()
    }
}

/// Whether it is time to ask: nothing is known, the job has changed since, or it is old and the job goes on.
fn is_due(held: &DetailsEntry, record: &JobRecord, now: Instant) -> bool {
    let paper = &held.loaded.details;
    let waited = |least: Duration| {
        held.asked_at.is_none_or(|asked| now.saturating_duration_since(asked) >= least)
    };
    let changed =
        paper.state != record.job.state.slurm_name() || paper.restarts != record.job.restarts;
    if held.loaded.trouble.is_some() || paper.read_at == 0 {
        return waited(RETRY_AFTER);
    }
    if changed {
        return waited(ACCOUNTING_LAG);
    }
    if record.is_over {
        return is_incomplete(paper)
            && held.tries < MAX_TRIES
            && waited(ACCOUNTING_LAG * 2_u32.pow(held.tries));
    }
    waited(REFRESH_EVERY)
}

/// Whether the accounting, which learns of ends a little late, has not told its part yet.
fn is_incomplete(paper: &JobDetails) -> bool {
    paper.submit_line.is_empty() || paper.usage.is_none()
}
