//! Table `usage_jobs`: the jobs behind the sums, one row for each day on which a job ran.

use crate::clock::Day;
use crate::domain::UsageSourceId;
use crate::store::{DbConnection, Result};

/// A row of plain numbers, which the `usage` module interprets.
#[derive(Debug, Clone, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct StoredUsageJob {
    /// The day; the last one where several days are combined.
    pub day: i64,
    pub raw: i64,
    /// When this run started.
    pub start_at: i64,
    pub number: i64,
    /// The array task's index; -1 for none.
    pub task: i64,
    /// The user: an id of `usage_names`.
    pub user_id: i64,
    /// The job type: an id of `usage_names`.
    pub kind_id: i64,
    pub state: i64,
    /// Seconds on this day, or on all combined days.
    pub seconds: i64,
    /// Elapsed seconds in total, so far.
    pub elapsed_s: i64,
    /// Seconds in the queue.
    pub wait_s: i64,
    pub cores: i64,
    pub memory_mb: i64,
    pub gpus: String,
    /// CPU time; -1 if not measured.
    pub cpu_s: i64,
    /// Peak memory; -1 if not measured.
    pub rss_mb: i64,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageJobFilter {
    /// First day.
    pub from: Day,
    /// Last day, included.
    pub until: Day,
    pub user: Option<String>,
    pub kind: Option<String>,
    /// Outcomes, as numbers; empty for all.
    pub states: Vec<i64>,
    /// Only jobs that had a GPU.
    pub with_gpus: bool,
    /// At most this many.
    pub limit: i64,
}

pub async fn add(db: &mut DbConnection, source: UsageSourceId, row: &StoredUsageJob) -> Result<()> {
    execute!(
        db,
        "INSERT INTO usage_jobs (source_id, day, raw, start_at, number, task, user_id, kind_id, state, seconds, elapsed_s,
                                 wait_s, cores, memory_mb, gpus, cpu_s, rss_mb)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
        [source], row.{
            day, raw, start_at, number, task, user_id, kind_id, state, seconds, elapsed_s, wait_s, cores, memory_mb,
            gpus, cpu_s, rss_mb
        }
    )
}

/// Sums over jobs with the same GPUs.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageGpuTotal {
    pub gpus: String,
    pub jobs: i64,
    /// Seconds within the days of the filter.
    pub seconds: i64,
    /// Core seconds within the days of the filter.
    pub core_s: i64,
    /// Core seconds since the jobs started, also on other days.
    pub run_core_s: i64,
}

// The jobs of a source, each once, with its seconds on all days of the filter. The last day's row knows how it ended:
// with max(day), SQLite takes the other columns from that row.
macro_rules! from_fitting {
    ($select:literal, $rest:literal) => {
        concat!(
            "SELECT ",
            $select,
            " FROM (SELECT max(day) AS day, raw, start_at, number, task, user_id, kind_id, state,
                sum(seconds) AS seconds, elapsed_s, wait_s, cores, memory_mb, gpus, cpu_s, rss_mb
             FROM usage_jobs WHERE source_id = $1 AND day BETWEEN $2 AND $3
               AND ($4 IS NULL OR user_id = (SELECT id FROM usage_names WHERE name = $4))
               AND ($5 IS NULL OR kind_id = (SELECT id FROM usage_names WHERE name = $5))
               AND (NOT $7 OR gpus <> '')
             GROUP BY raw, start_at
             HAVING $6 = '[]' OR state IN (SELECT value FROM json_each($6))) ",
            $rest
        )
    };
}

/// The matching jobs, those with the most core seconds first.
pub async fn find(
    db: &mut DbConnection,
    source: UsageSourceId,
    filter: &UsageJobFilter,
) -> Result<Vec<StoredUsageJob>> {
    fetch_all!(
        db,
        from_fitting!("*", "ORDER BY seconds * cores DESC, raw, start_at LIMIT $8"),
        [source, filter.from, filter.until, &filter.user, &filter.kind, states(filter), filter.with_gpus, filter.limit]
    )
}

/// The sums over all matching jobs, however many there are.
pub async fn sum_by_gpus(
    db: &mut DbConnection,
    source: UsageSourceId,
    filter: &UsageJobFilter,
) -> Result<Vec<UsageGpuTotal>> {
    fetch_all!(
        db,
        from_fitting!(
            "gpus, count(*) AS jobs, sum(seconds) AS seconds, sum(seconds * cores) AS core_s,
         sum(elapsed_s * cores) AS run_core_s",
            "GROUP BY gpus"
        ),
        [source, filter.from, filter.until, &filter.user, &filter.kind, states(filter), filter.with_gpus]
    )
}

fn states(filter: &UsageJobFilter) -> String {
    serde_json::to_string(&filter.states).unwrap_or_default()
}
