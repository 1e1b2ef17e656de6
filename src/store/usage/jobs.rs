//! Table `usage_jobs`: the jobs behind the sums, one row for each day on which a job ran.

use crate::clock::Day;
use crate::domain::{UsageSourceId, codes};
use crate::store::{DbConnection, Result};

/// A row of plain numbers, which the `usage` module interprets.
#[derive(Debug, Clone, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct StoredUsageJob {
    /// The day; the last one where several days are combined.
    pub day: i64,
    pub raw: i64,
    /// When this run started.
    pub start_at: i64,
    /// -1 if not known.
    pub submitted_at: i64,
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
    pub partition: String,
    pub qos: String,
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
    pub partition: Option<String>,
    pub qos: Option<String>,
    /// Only jobs that had a GPU of this model; empty for GPUs of unknown model.
    pub gpu_model: Option<String>,
    pub order: UsageJobOrder,
    /// At most this many.
    pub limit: i64,
}

/// What jobs are sorted by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UsageJobOrder {
    pub column: UsageJobColumn,
    pub is_ascending: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum UsageJobColumn {
    #[default]
    CoreHours,
    GpuHours,
    Job,
    User,
    Outcome,
    Started,
    RunTime,
    Wait,
    Cores,
    CpuEfficiency,
    MemoryEfficiency,
}

codes!(UsageJobColumn {
    CoreHours = "cores",
    GpuHours = "gpus",
    Job = "job",
    User = "member",
    Outcome = "outcome",
    Started = "started",
    RunTime = "run-time",
    Wait = "wait",
    Cores = "allocated",
    CpuEfficiency = "cpu",
    MemoryEfficiency = "memory",
});

pub async fn add(db: &mut DbConnection, source: UsageSourceId, row: &StoredUsageJob) -> Result<()> {
    execute!(
        db,
        "INSERT INTO usage_jobs (source_id, day, raw, start_at, number, task, user_id, kind_id, state, seconds, elapsed_s,
                                 wait_s, cores, memory_mb, gpus, cpu_s, rss_mb, submitted_at, partition, qos)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20)",
        [source], row.{
            day, raw, start_at, number, task, user_id, kind_id, state, seconds, elapsed_s, wait_s, cores, memory_mb,
            gpus, cpu_s, rss_mb, submitted_at, partition, qos
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
                sum(seconds) AS seconds, elapsed_s, wait_s, cores, memory_mb, gpus, cpu_s, rss_mb, submitted_at,
                partition, qos
             FROM usage_jobs WHERE source_id = $1 AND day BETWEEN $2 AND $3
               AND ($4 IS NULL OR user_id = (SELECT id FROM usage_names WHERE name = $4))
               AND ($5 IS NULL OR kind_id = (SELECT id FROM usage_names WHERE name = $5))
               AND (NOT $7 OR gpus <> '')
               AND ($8 IS NULL OR partition = $8) AND ($9 IS NULL OR qos = $9)
               AND ($10 IS NULL OR instr(',' || gpus, ',' || $10 || ':') > 0)
             GROUP BY raw, start_at
             HAVING $6 = '[]' OR state IN (SELECT value FROM json_each($6))) ",
            $rest
        )
    };
}

// What jobs are sorted by, as a `UsageJobColumn` names it; the number of GPUs follows the last colon of each model.
// Jobs that were not measured come below all others.
macro_rules! sorted {
    ($end:literal) => {
        concat!(
            "CASE $11 WHEN 'gpus' THEN seconds * CASE WHEN gpus <> '' AND
                     json_valid('[\"' || replace(gpus, ',', '\",\"') || '\"]') THEN
                   (SELECT sum(CAST(substr(value, length(rtrim(value, '0123456789')) + 1) AS INTEGER))
                    FROM json_each('[\"' || replace(gpus, ',', '\",\"') || '\"]')) ELSE 0 END
               WHEN 'job' THEN number WHEN 'member' THEN (SELECT name FROM usage_names WHERE id = user_id)
               WHEN 'outcome' THEN state WHEN 'started' THEN start_at WHEN 'run-time' THEN elapsed_s
               WHEN 'wait' THEN wait_s WHEN 'allocated' THEN cores
               WHEN 'cpu' THEN iif(cpu_s >= 0 AND elapsed_s * cores > 0, 1.0 * cpu_s / (elapsed_s * cores), -1)
               WHEN 'memory' THEN iif(rss_mb >= 0 AND memory_mb > 0, 1.0 * rss_mb / memory_mb, -1)
               ELSE seconds * cores END ",
            $end
        )
    };
}

/// The matching jobs, in the order of the filter.
pub async fn find(
    db: &mut DbConnection,
    source: UsageSourceId,
    filter: &UsageJobFilter,
) -> Result<Vec<StoredUsageJob>> {
    let UsageJobOrder { column, is_ascending } = filter.order;
    let sql = if is_ascending {
        concat!(from_fitting!("*", "ORDER BY "), sorted!("ASC, raw, start_at LIMIT $12"))
    } else {
        concat!(from_fitting!("*", "ORDER BY "), sorted!("DESC, raw, start_at LIMIT $12"))
    };
    fetch_all!(
        db,
        sql,
        [
            source,
            filter.from,
            filter.until,
            &filter.user,
            &filter.kind,
            states(filter),
            filter.with_gpus,
            &filter.partition,
            &filter.qos,
            &filter.gpu_model,
            column.as_str(),
            filter.limit
        ]
    )
}

/// The last run of one job, of a given user or of anyone; seconds are those of all its days.
pub async fn find_one(
    db: &mut DbConnection,
    source: UsageSourceId,
    user: Option<&String>,
    number: i64,
    task: i64,
) -> Result<Option<StoredUsageJob>> {
    fetch_optional!(
        db,
        "SELECT max(day) AS day, raw, start_at, submitted_at, number, task, user_id, kind_id, state,
                sum(seconds) AS seconds, elapsed_s, wait_s, cores, memory_mb, gpus, cpu_s, rss_mb, partition, qos
         FROM usage_jobs WHERE source_id = $1 AND number = $2 AND task = $3
           AND ($4 IS NULL OR user_id = (SELECT id FROM usage_names WHERE name = $4))
         GROUP BY raw, start_at ORDER BY start_at DESC LIMIT 1",
        [source, number, task, user]
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
        [
            source,
            filter.from,
            filter.until,
            &filter.user,
            &filter.kind,
            states(filter),
            filter.with_gpus,
            &filter.partition,
            &filter.qos,
            &filter.gpu_model
        ]
    )
}

fn states(filter: &UsageJobFilter) -> String {
    serde_json::to_string(&filter.states).unwrap_or_default()
}
