//! What is done now and then: deleting what has run out.

use std::time::Duration;

use crate::app::AppState;
use crate::clock::Day;
use crate::store;

/// How often.
const EVERY: Duration = Duration::from_hours(1);

/// How often measured durations are folded into their histograms. Until then each one takes memory.
const FOLD_EVERY: Duration = Duration::from_secs(5);
/// Notices are kept for this many seconds: 90 days.
const NOTICES_KEPT_FOR: i64 = 90 * 86_400;
/// Jobs that are over are kept for this many seconds after their end: a year.
const JOBS_KEPT_FOR: i64 = 366 * 86_400;

/// What leaders were told about their groups is known for this many seconds: longer than any allocation lasts.
const TOLD_KEPT_FOR: i64 = 3 * 366 * 86_400;

/// Fair share over time is kept for this many seconds: a year and a month.
const SHARES_KEPT_FOR: i64 = 400 * 86_400;

/// What someone read of their group's use is kept for this many seconds after they last looked: half a year. It can be
/// read again.
const BOOKS_KEPT_FOR: i64 = 183 * 86_400;

/// So many days of it are kept: somewhat more than two years.
const DAYS_KEPT: i64 = 800;

/// Dashboards and reports that were deleted are kept for this many seconds: a day, until their jobs are long over.
const BOARDS_KEPT_FOR: i64 = 86_400;

/// Runs until the portal stops.
pub async fn run(app: AppState) {
    let mut hours = tokio::time::interval(EVERY);
    let mut folds = tokio::time::interval(FOLD_EVERY);
    loop {
        tokio::select! {
            () = app.stop.cancelled() => return,
            _ = hours.tick() => tidy(&app).await,
            _ = folds.tick() => app.metrics.run_upkeep(),
        }
    }
}

/// Deletes sessions that ran out, and what is older than it should be kept: activity and tries to connect.
pub async fn tidy(app: &AppState) {
    let result = async {
        let sessions = app.auth.sweep_sessions().await?;
        let until = app.clock.now().plus(-i64::from(app.config.activity.keep_days) * 86_400);
        let now = app.clock.now();
        let mut tx = app.store.write().await?;
        let entries = store::activity::sweep(&mut tx, until).await?
            + store::lines::sweep_connects(&mut tx, until).await?
            + store::notices::forget(&mut tx, now.plus(-NOTICES_KEPT_FOR)).await?
            + store::jobs::forget(&mut tx, now.plus(-JOBS_KEPT_FOR)).await?
            + store::share_points::sweep(&mut tx, now.plus(-SHARES_KEPT_FOR)).await?
            + store::recipes::forget_ownerless(&mut tx).await?
            + store::boards::accesses::sweep(&mut tx, now).await?
            + store::reports::links::sweep(&mut tx, now).await?
            + store::reports::forget_removed(&mut tx, now.plus(-BOARDS_KEPT_FOR)).await?
            + store::usage::forget(&mut tx, now.plus(-BOOKS_KEPT_FOR)).await?
            + store::usage::sweep(&mut tx, Day::of(now).plus(-DAYS_KEPT)).await?
            + store::usage_alerts::sweep(&mut tx, now.plus(-TOLD_KEPT_FOR)).await?
            + store::boards::forget_removed(&mut tx, now.plus(-BOARDS_KEPT_FOR)).await?;
        store::commit(tx).await?;
        if entries > 0 {
            app.bell.forget();
        }
        app.store.scrub().await?;
        Ok::<_, crate::auth::AuthError>((sessions, entries))
    };
    match result.await {
        Ok((0, 0)) => {}
        Ok((sessions, entries)) => tracing::info!(sessions, entries, "Deleted what had run out"),
        Err(error) => {
            tracing::warn!(%error, "What has run out could not be deleted; it is tried again in an hour");
        }
    }
}
