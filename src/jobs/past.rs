//! What someone's earlier runs used: from what is kept of them, and what is missing asked of the cluster once.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::paper::Paper;
use super::record::Record;
use super::watch::QueueKey;
use crate::cluster::{ConnectionPool, past_runs};
use crate::explain::right_size::PastRun;
use crate::store::{self, Store, StoreError};

/// What the cluster told is not asked for again within this time.
const KEPT_FOR: Duration = Duration::from_mins(10);
/// After a failure, not sooner than this.
const AGAIN_AFTER: Duration = Duration::from_mins(1);
/// So many jobs are remembered.
const MOST_KEPT: usize = 2000;
/// Of an array, no more tasks are looked up.
const MOST_TASKS: usize = 20;

/// The past of people's jobs.
#[derive(Clone)]
pub struct Past(Arc<Inner>);

struct Inner {
    store: Store,
    lines: ConnectionPool,
    told: Mutex<HashMap<(QueueKey, u64), Told>>,
    /// Held while the cluster is asked: whoever wants the same meanwhile finds it told.
    asking: tokio::sync::Mutex<()>,
}

/// What the cluster told of one job, and until when that counts.
struct Told {
    until: Instant,
    runs: Vec<PastRun>,
}

/// What is kept of one job.
enum Kept {
    /// All that is needed.
    Runs(Vec<PastRun>),
    /// It is not over.
    GoesOn,
    /// Not what it used.
    Lacking,
}

impl Past {
    /// Nothing is known yet.
    pub fn new(store: Store, lines: ConnectionPool) -> Self {
        let told = Mutex::default();
        Self(Arc::new(Inner { store, lines, told, asking: tokio::sync::Mutex::default() }))
    }

    /// The runs of these jobs, at most ten of them; those that are not over are left out. Asks the cluster at most once,
    /// over the person's own connection, and does without if there is none.
    pub async fn runs(&self, key: QueueKey, numbers: &[u64]) -> Result<Vec<PastRun>, StoreError> {
        let mut runs = Vec::new();
        let mut lacking = Vec::new();
        for number in numbers.iter().take(past_runs::MAX_PAST_JOBS) {
            match self.kept(key, *number).await? {
                Kept::Runs(kept) => runs.extend(kept),
                Kept::Lacking if !lacking.contains(number) => lacking.push(*number),
                Kept::Lacking | Kept::GoesOn => {}
            }
        }
        if !lacking.is_empty() {
            let _asking = self.0.asking.lock().await;
            self.ask(key, &lacking).await;
            let told = self.told();
            let of = |number: &u64| told.get(&(key, *number)).map(|told| told.runs.clone());
            runs.extend(lacking.iter().filter_map(of).flatten());
        }
        runs.retain(|run| run.state.is_over());
        Ok(runs)
    }

    /// Asks for those that were not told lately.
    async fn ask(&self, key: QueueKey, numbers: &[u64]) {
        let now = Instant::now();
        let unknown: Vec<u64> = {
            let told = self.told();
            let is_known =
                |number: &u64| told.get(&(key, *number)).is_some_and(|told| told.until > now);
            numbers.iter().copied().filter(|number| !is_known(number)).collect()
        };
        if unknown.is_empty() {
            return;
        }
        let answer = match self.0.lines.connection(key.line()) {
            Ok(line) => past_runs::load_past_runs(&line, &unknown).await,
            Err(error) => Err(error),
        };
        let kept_for = if answer.is_ok() { KEPT_FOR } else { AGAIN_AFTER };
        let answer = answer.unwrap_or_default();
        let mut told = self.told();
        if told.len() >= MOST_KEPT {
            told.retain(|_, told| told.until > now);
        }
        for number in unknown {
            let runs = answer.iter().filter(|run| run.number == number).cloned().collect();
            told.insert((key, number), Told { until: now + kept_for, runs });
        }
    }

    async fn kept(&self, key: QueueKey, number: u64) -> Result<Kept, StoreError> {
        let mut db = self.0.store.read().await?;
        let small = i64::try_from(number).unwrap_or(-1);
        let rows = store::jobs::list_array_tasks(&mut db, key.person, key.cluster, small).await?;
        let mut runs = Vec::new();
        for record in rows.into_iter().take(MOST_TASKS).map(Record::of) {
            if !record.is_over {
                return Ok(Kept::GoesOn);
            }
            let paper = store::queues::load_job_details(&mut db, record.id).await?;
            let paper: Option<Paper> = paper.and_then(|(json, _)| serde_json::from_str(&json).ok());
            let Some(usage) = paper.as_ref().and_then(Paper::usage) else {
                return Ok(Kept::Lacking);
            };
            let job = record.job;
            runs.push(PastRun {
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
        Ok(if runs.is_empty() { Kept::Lacking } else { Kept::Runs(runs) })
    }

    fn told(&self) -> MutexGuard<'_, HashMap<(QueueKey, u64), Told>> {
        self.0.told.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
