//! Table `usage_jobs`: the jobs behind the sums, a row for each day on which a job ran.

use crate::clock::Day;
use crate::domain::UsageSourceId;
use crate::store::{DbConnection, Result};

/// A row: numbers only; the room of usage gives them their meaning.
#[derive(Debug, Clone, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct UsageJobRow {
    /// Which day; the last one where several are told together.
    pub day: i64,
    pub raw: i64,
    /// When this run began.
    pub start_at: i64,
    pub number: i64,
    /// Which task; -1 for none.
    pub task: i64,
    /// Whose: a number of `usage_names`.
    pub user_id: i64,
    /// Of what sort, likewise.
    pub kind_id: i64,
    pub state: i64,
    /// Seconds on this day, or on all days that are told together.
    pub seconds: i64,
    /// Seconds in all, so far.
    pub elapsed_s: i64,
    /// Seconds it had waited.
    pub wait_s: i64,
    pub cores: i64,
    pub memory_mb: i64,
    pub gpus: String,
    /// Processor time used; -1: not measured.
    pub cpu_s: i64,
    /// The most memory held; -1: not measured.
    pub rss_mb: i64,
}

/// Which jobs are looked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UsageJobFilter {
    /// From this day …
    pub from: Day,
    /// … to this one.
    pub until: Day,
    pub user: Option<String>,
    pub kind: Option<String>,
    /// With these ends, as numbers; empty: all.
    pub states: Vec<i64>,
    /// Only those that held a GPU.
    pub with_gpus: bool,
    /// No more than this.
    pub limit: i64,
}

pub async fn add(db: &mut DbConnection, source: UsageSourceId, row: &UsageJobRow) -> Result<()> {
    sqlx::query(
        "INSERT INTO usage_jobs (source_id, day, raw, start_at, number, task, user_id, kind_id, state, seconds, elapsed_s,
                                 wait_s, cores, memory_mb, gpus, cpu_s, rss_mb)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17)",
    )
    .bind(source)
    .bind(row.day)
    .bind(row.raw)
    .bind(row.start_at)
    .bind(row.number)
    .bind(row.task)
    .bind(row.user_id)
    .bind(row.kind_id)
    .bind(row.state)
    .bind(row.seconds)
    .bind(row.elapsed_s)
    .bind(row.wait_s)
    .bind(row.cores)
    .bind(row.memory_mb)
    .bind(&row.gpus)
    .bind(row.cpu_s)
    .bind(row.rss_mb)
    .execute(db)
    .await?;
    Ok(())
}

/// Jobs with the same GPUs, together.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct UsageJobTotal {
    pub gpus: String,
    pub jobs: i64,
    /// Seconds in the whole time.
    pub seconds: i64,
    /// Seconds of cores in the whole time.
    pub core_s: i64,
    /// Seconds of cores since they began, also on other days.
    pub run_core_s: i64,
}

// The jobs of a source, each once with its seconds in the whole time. The last day's row knows how it ended: with
// max(day), SQLite takes the other columns from that row.
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

/// Those that held most, first.
pub async fn find(
    db: &mut DbConnection,
    source: UsageSourceId,
    filter: &UsageJobFilter,
) -> Result<Vec<UsageJobRow>> {
    Ok(sqlx::query_as(from_fitting!("*", "ORDER BY seconds * cores DESC, raw, start_at LIMIT $8"))
        .bind(source)
        .bind(filter.from)
        .bind(filter.until)
        .bind(&filter.user)
        .bind(&filter.kind)
        .bind(states(filter))
        .bind(filter.with_gpus)
        .bind(filter.limit)
        .fetch_all(db)
        .await?)
}

/// What all of them come to, however many.
pub async fn sum_by_gpus(
    db: &mut DbConnection,
    source: UsageSourceId,
    filter: &UsageJobFilter,
) -> Result<Vec<UsageJobTotal>> {
    Ok(sqlx::query_as(from_fitting!(
        "gpus, count(*) AS jobs, sum(seconds) AS seconds, sum(seconds * cores) AS core_s,
         sum(elapsed_s * cores) AS run_core_s",
        "GROUP BY gpus"
    ))
    .bind(source)
    .bind(filter.from)
    .bind(filter.until)
    .bind(&filter.user)
    .bind(&filter.kind)
    .bind(states(filter))
    .bind(filter.with_gpus)
    .fetch_all(db)
    .await?)
}

fn states(filter: &UsageJobFilter) -> String {
    serde_json::to_string(&filter.states).unwrap_or_default()
}
