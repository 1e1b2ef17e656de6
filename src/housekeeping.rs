//! Periodic clean-up: deletes what has expired.

use std::time::Duration;

use metrics_exporter_prometheus::PrometheusHandle;

use crate::clock::{Day, SECONDS_PER_DAY};
use crate::core::Core;
use crate::jobs::notifications::NotificationHub;
use crate::store;

const SWEEP_INTERVAL: Duration = Duration::from_hours(1);

/// How often measured durations are folded into their histograms. Until then each one takes memory.
const METRICS_UPKEEP_INTERVAL: Duration = Duration::from_secs(5);
/// 90 days.
const NOTIFICATION_RETENTION_SECS: i64 = 90 * SECONDS_PER_DAY;
/// A year after a job's end.
const JOB_RETENTION_SECS: i64 = 366 * SECONDS_PER_DAY;

/// Usage alerts that were sent are remembered longer than any allocation lasts.
const ALERT_RETENTION_SECS: i64 = 3 * 366 * SECONDS_PER_DAY;

/// A year and a month of fair-share history.
const FAIR_SHARE_RETENTION_SECS: i64 = 400 * SECONDS_PER_DAY;

/// A usage source is kept for half a year after its owner last viewed it. It can be read again.
const USAGE_SOURCE_RETENTION_SECS: i64 = 183 * SECONDS_PER_DAY;

/// Days of usage: a little over two years.
const USAGE_RETENTION_DAYS: i64 = 800;

/// Deleted dashboards and reports are kept for a day, until their jobs are long over.
const DELETED_RETENTION_SECS: i64 = SECONDS_PER_DAY;

/// A month after a transfer's end.
const TRANSFER_RETENTION_SECS: i64 = 30 * SECONDS_PER_DAY;

pub async fn run(core: Core, notifications: NotificationHub, metrics: PrometheusHandle) {
    let mut hours = tokio::time::interval(SWEEP_INTERVAL);
    let mut folds = tokio::time::interval(METRICS_UPKEEP_INTERVAL);
    loop {
        tokio::select! {
            () = core.stop.cancelled() => return,
            _ = hours.tick() => sweep(&core, &notifications).await,
            _ = folds.tick() => metrics.run_upkeep(),
        }
    }
}

/// Deletes expired sessions and whatever is past its retention time, such as activity and connect attempts.
pub async fn sweep(core: &Core, notifications: &NotificationHub) {
    let result = async {
        let sessions = core.auth.sweep_sessions().await?;
        let until = core.clock.now().plus(-i64::from(core.config.activity.keep_days) * SECONDS_PER_DAY);
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        let entries = store::activity::sweep(&mut tx, until).await?
            + store::connections::sweep_attempts(&mut tx, until).await?
            + store::notifications::delete_before(&mut tx, now.plus(-NOTIFICATION_RETENTION_SECS)).await?
            + store::jobs::delete_ended_before(&mut tx, now.plus(-JOB_RETENTION_SECS)).await?
            + store::fair_share_history::sweep(&mut tx, now.plus(-FAIR_SHARE_RETENTION_SECS)).await?
            + store::recipes::delete_ownerless(&mut tx).await?
            + store::dashboards::accesses::sweep(&mut tx, now).await?
            + store::guest_links::sweep(&mut tx, now).await?
            + store::transfers::sweep(&mut tx, now.plus(-TRANSFER_RETENTION_SECS)).await?
            + store::reports::delete_removed(&mut tx, now.plus(-DELETED_RETENTION_SECS)).await?
            + store::usage::delete_unwanted(&mut tx, now.plus(-USAGE_SOURCE_RETENTION_SECS)).await?
            + store::usage::sweep(&mut tx, Day::from_time(now).plus(-USAGE_RETENTION_DAYS)).await?
            + store::usage_alerts::sweep(&mut tx, now.plus(-ALERT_RETENTION_SECS)).await?
            + store::dashboards::delete_removed(&mut tx, now.plus(-DELETED_RETENTION_SECS)).await?;
        store::commit(tx).await?;
        if entries > 0 {
            notifications.clear_cache();
        }
        core.store.truncate_wal().await?;
        Ok::<_, crate::auth::AuthError>((sessions, entries))
    };
    match result.await {
        Ok((0, 0)) => {}
        Ok((sessions, entries)) => tracing::info!(sessions, entries, "Deleted expired data"),
        Err(error) => {
            tracing::warn!(%error, "Could not delete expired data; will retry in an hour");
        }
    }
}
