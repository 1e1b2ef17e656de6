//! Whether the portal is healthy: for `/healthz` and `portolan doctor`.

use std::path::Path;

use crate::core::Core;
use crate::store;

/// With less free space, writes will soon fail.
pub const MIN_FREE_BYTES: u64 = 100 * 1024 * 1024;
/// How far the clock may be behind the newest entry of the activity log.
pub const MAX_CLOCK_SKEW_SECS: i64 = 120;

/// Problems as sentences; empty if the portal is healthy.
pub async fn find_problems(core: &Core) -> Vec<String> {
    let mut problems = Vec::new();
    match newest_activity(core).await {
        Err(error) => problems.push(format!("The database isn't responding: {error}.")),
        Ok(Some(newest)) => {
            let behind = newest.since(core.clock.now());
            if behind > MAX_CLOCK_SKEW_SECS {
                problems.push(format!(
                    "The clock is behind: the newest entry in the activity log is {behind} s in the future. One-time codes are rejected until the clock is correct."
                ));
            }
        }
        Ok(None) => {}
    }
    match free_space(&core.config.data_dir) {
        Ok(free) if free < MIN_FREE_BYTES => {
            problems.push(format!("The data folder's disk is almost full: {} MB left.", free / 1_000_000));
        }
        Ok(_) => {}
        Err(error) => problems.push(format!("The data folder can't be checked: {error}.")),
    }
    problems
}

async fn newest_activity(core: &Core) -> store::Result<Option<crate::clock::UnixTime>> {
    let mut db = core.store.read().await?;
    store::activity::newest_at(&mut db).await
}

/// Bytes available on a folder's disk.
pub fn free_space(dir: &Path) -> std::io::Result<u64> {
    let stat = rustix::fs::statvfs(dir)?;
    Ok(stat.f_bavail.saturating_mul(stat.f_frsize))
}
