//! Table `usage_daily`: sums of a day by person and job type.

use crate::clock::Day;
use crate::domain::UsageSourceId;
use crate::store::{DbConnection, Result};

/// A row of plain numbers, which the `usage` module interprets.
#[derive(Debug, Clone, PartialEq, Eq, Default, sqlx::FromRow)]
pub struct UsageDailyRow {
    pub day: i64,
    /// The user: an id of `usage_names`.
    pub user_id: i64,
    /// The job type: an id of `usage_names`.
    pub kind_id: i64,
    pub core_s: i64,
    /// The site's own unit.
    pub site_ms: i64,
    pub gpu_s: i64,
    pub gpus: String,
    pub jobs: i64,
    pub done: i64,
    /// Including `node_failed` and `interrupted`.
    pub failed: i64,
    pub node_failed: i64,
    pub interrupted: i64,
    /// Including `missed_deadline`.
    pub timed_out: i64,
    pub missed_deadline: i64,
    pub memory_out: i64,
    pub cancelled: i64,
    /// Core seconds allocated to jobs whose usage was measured.
    pub held_core_s: i64,
    pub used_core_s: i64,
    /// Memory allocated to jobs whose usage was measured.
    pub held_mb_s: i64,
    pub used_mb_s: i64,
    /// GPU seconds allocated to jobs whose usage was measured.
    pub held_gpu_s: i64,
    pub used_gpu_s: i64,
    pub lost_core_s: i64,
    pub lost_gpu_s: i64,
    /// Over-requested cores.
    pub spare_core_s: i64,
    /// Over-requested memory.
    pub spare_mb_s: i64,
    /// Over-requested GPUs.
    pub spare_gpu_s: i64,
    pub partitions: String,
    pub qos: String,
    pub waits: String,
}

pub async fn add(db: &mut DbConnection, source: UsageSourceId, row: &UsageDailyRow) -> Result<()> {
    execute!(
        db,
        "INSERT INTO usage_daily (source_id, day, user_id, kind_id, core_s, site_ms, gpu_s, gpus, jobs, done, failed,
                                  timed_out, memory_out, cancelled, held_core_s, used_core_s, held_mb_s, used_mb_s,
                                  held_gpu_s, used_gpu_s, lost_core_s, lost_gpu_s, spare_core_s, spare_mb_s, waits,
                                  node_failed, interrupted, missed_deadline, spare_gpu_s, partitions, qos)
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22,
                 $23, $24, $25, $26, $27, $28, $29, $30, $31)",
        [source], row.{
            day, user_id, kind_id, core_s, site_ms, gpu_s, gpus, jobs, done, failed, timed_out, memory_out, cancelled,
            held_core_s, used_core_s, held_mb_s, used_mb_s, held_gpu_s, used_gpu_s, lost_core_s, lost_gpu_s,
            spare_core_s, spare_mb_s, waits, node_failed, interrupted, missed_deadline, spare_gpu_s, partitions, qos
        }
    )
}

/// The rows of a source between two days, both included, in order.
pub async fn list_between(
    db: &mut DbConnection,
    source: UsageSourceId,
    from: Day,
    until: Day,
) -> Result<Vec<UsageDailyRow>> {
    fetch_all!(
        db,
        "SELECT day, user_id, kind_id, core_s, site_ms, gpu_s, gpus, jobs, done, failed, timed_out, memory_out,
                cancelled, held_core_s, used_core_s, held_mb_s, used_mb_s, held_gpu_s, used_gpu_s, lost_core_s,
                lost_gpu_s, spare_core_s, spare_mb_s, waits, node_failed, interrupted, missed_deadline, spare_gpu_s,
                partitions, qos
         FROM usage_daily WHERE source_id = $1 AND day BETWEEN $2 AND $3 ORDER BY day, user_id, kind_id",
        [source, from, until]
    )
}
