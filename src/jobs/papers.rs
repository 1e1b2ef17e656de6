//! The papers that people look at: read when someone looks, kept in the database, so that they outlive the cluster's
//! memory of the job.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::paper::Paper;
use super::record::Record;
use super::watch::{QueueKey, recent};
use crate::clock::Clock;
use crate::cluster::ConnectionPool;
use crate::cluster::job_details_query::{self, JobDetailsQuery};
use crate::slurm::job::{JobId, JobStage};
use crate::store::{self, Store, StoreError};

/// While someone looks at a job that is not over, its paper is asked for again after this long.
const EVERY: Duration = Duration::from_mins(1);
/// After a failure, not sooner than this.
const AGAIN_AFTER: Duration = Duration::from_secs(20);
/// The accounting learns of an end about so late; each further try waits twice as long.
const LAG: Duration = Duration::from_secs(3);
/// Not every site keeps everything.
const MOST_TRIES: u32 = 6;
/// Papers are kept in memory for this long after someone looked.
const KEPT_FOR: Duration = Duration::from_mins(10);
/// So many are kept at most.
const MOST_KEPT: usize = 2000;

/// A paper, and why it may be old.
#[derive(Debug, Clone, Default)]
pub struct Sheet {
    /// What is known.
    pub paper: Arc<Paper>,
    /// Why the last try to read it gave nothing, in words.
    pub trouble: Option<String>,
}

type Place = Arc<tokio::sync::Mutex<Held>>;

#[derive(Default)]
struct Held {
    sheet: Sheet,
    is_loaded: bool,
    asked: Option<Instant>,
    /// Tries in a row that brought less than the accounting should have.
    tries: u32,
    looked: Option<Instant>,
}

/// The papers that people look at.
#[derive(Clone)]
pub struct Papers(Arc<Inner>);

struct Inner {
    store: Store,
    clock: Clock,
    lines: ConnectionPool,
    places: Mutex<HashMap<(QueueKey, JobId), Place>>,
}

impl Papers {
    /// None yet; they come from the database as they are asked for.
    pub fn new(store: Store, clock: Clock, lines: ConnectionPool) -> Self {
        Self(Arc::new(Inner { store, clock, lines, places: Mutex::default() }))
    }

    /// What is known, without asking the cluster.
    pub async fn known(&self, key: QueueKey, record: &Record) -> Result<Sheet, StoreError> {
        let place = self.place(key, record.job.id);
        // Someone asks the cluster at the moment: what the database has is as good.
        let Ok(mut held) = place.try_lock() else {
            return Ok(Sheet { paper: Arc::new(self.stored(record).await?), trouble: None });
        };
        self.load(&mut held, key, record).await?;
        Ok(held.sheet.clone())
    }

    /// What is known, asked anew if it is old. Whoever asks for the same at the same time waits for one answer.
    pub async fn look(&self, key: QueueKey, record: &Record) -> Result<Sheet, StoreError> {
        let place = self.place(key, record.job.id);
        let mut held = place.lock().await;
        self.load(&mut held, key, record).await?;
        let now = Instant::now();
        if !is_due(&held, record, now) {
            return Ok(held.sheet.clone());
        }
        held.asked = Some(now);
        let job = &record.job;
        let running_s = (job.state.stage() == JobStage::Running && !record.is_over)
            .then(|| job.start.map_or(0, |start| self.0.clock.now().since(start).max(0)))
            .and_then(|seconds| u64::try_from(seconds).ok());
        let wanted =
            JobDetailsQuery { id: job.id, raw_id: job.raw_id, running_s, is_over: record.is_over };
        let told = match self.0.lines.connection(key.line()) {
            Ok(line) => job_details_query::load_job_details(&line, wanted).await,
            Err(error) => Err(error),
        };
        match told {
            Ok(told) => {
                let paper = Paper::clone(&held.sheet.paper).taking(told, job, self.0.clock.now());
                self.keep(record, &paper).await?;
                let is_same = held.sheet.paper.state == paper.state;
                held.tries = if is_same && is_lacking(&paper) { held.tries + 1 } else { 0 };
                held.sheet = Sheet { paper: Arc::new(paper), trouble: None };
            }
            Err(error) => held.sheet.trouble = Some(error.to_string()),
        }
        Ok(held.sheet.clone())
    }

    /// Keeps the end of the output of a job that is over: the file may be cleared away.
    pub async fn keep_log(
        &self,
        key: QueueKey,
        record: &Record,
        lines: &[String],
    ) -> Result<(), StoreError> {
        let place = self.place(key, record.job.id);
        let mut held = place.lock().await;
        self.load(&mut held, key, record).await?;
        let paper = Paper::clone(&held.sheet.paper).with_log(lines);
        if paper.log_end != held.sheet.paper.log_end {
            self.keep(record, &paper).await?;
            held.sheet.paper = Arc::new(paper);
        }
        Ok(())
    }

    /// The script that this portal submitted for a job; empty if it did not.
    async fn submitted(&self, key: QueueKey, record: &Record) -> Result<String, StoreError> {
        let number = i64::try_from(record.job.id.number).unwrap_or(-1);
        let mut db = self.0.store.read().await?;
        let one = store::submissions::find_by_job(&mut db, key.person, key.cluster, number).await?;
        Ok(one.map(|one| one.script).unwrap_or_default())
    }

    async fn load(
        &self,
        held: &mut Held,
        key: QueueKey,
        record: &Record,
    ) -> Result<(), StoreError> {
        held.looked = Some(Instant::now());
        if !held.is_loaded {
            let mut paper = self.stored(record).await?;
            if paper.script.is_empty() && record.id.0 != 0 {
                // What was submitted here is kept here, whatever the cluster keeps.
                paper.script = self.submitted(key, record).await?;
            }
            held.sheet.paper = Arc::new(paper);
            held.is_loaded = true;
        }
        Ok(())
    }

    async fn stored(&self, record: &Record) -> Result<Paper, StoreError> {
        if record.id.0 == 0 {
            return Ok(Paper::default());
        }
        let mut db = self.0.store.read().await?;
        let found = store::queues::load_job_details(&mut db, record.id).await?;
        Ok(found.and_then(|(json, _)| serde_json::from_str(&json).ok()).unwrap_or_default())
    }

    /// Of jobs that are not the person's own, nothing is kept.
    async fn keep(&self, record: &Record, paper: &Paper) -> Result<(), StoreError> {
        if record.id.0 == 0 {
            return Ok(());
        }
        let json = serde_json::to_string(paper).unwrap_or_default();
        let mut tx = self.0.store.write().await?;
        store::queues::save_job_details(&mut tx, record.id, &json, self.0.clock.now()).await?;
        store::commit(tx).await
    }

    fn place(&self, key: QueueKey, id: JobId) -> Place {
        let mut places = self.0.places.lock().unwrap_or_else(PoisonError::into_inner);
        if places.len() >= MOST_KEPT {
            let now = Instant::now();
            places.retain(|_, place| {
                // One that is locked is in use.
                place.try_lock().map_or(true, |held| recent(held.looked, now, KEPT_FOR))
            });
        }
        places.entry((key, id)).or_default().clone()
    }
}

/// Whether it is time to ask: nothing is known, the job has changed since, or it is old and the job goes on.
fn is_due(held: &Held, record: &Record, now: Instant) -> bool {
    let paper = &held.sheet.paper;
    let waited = |least: Duration| {
        held.asked.is_none_or(|asked| now.saturating_duration_since(asked) >= least)
    };
    let changed =
        paper.state != record.job.state.slurm_name() || paper.restarts != record.job.restarts;
    if held.sheet.trouble.is_some() || paper.read_at == 0 {
        return waited(AGAIN_AFTER);
    }
    if changed {
        return waited(LAG);
    }
    if record.is_over {
        return is_lacking(paper) && held.tries < MOST_TRIES && waited(LAG * 2_u32.pow(held.tries));
    }
    waited(EVERY)
}

/// Whether the accounting, which learns of ends a little late, has not told its part yet.
fn is_lacking(paper: &Paper) -> bool {
    paper.submit_line.is_empty() || paper.usage.is_none()
}
