//! What of a change its owner is told: that a job started, ended, or will never start. Once each.

use super::merge::{Change, News};
use super::picture::Picture;
use crate::clock::UnixTime;
use crate::domain::PersonId;
use crate::explain::waiting;
use crate::slurm::job::Stage;
use crate::store::{self, StoreError};

/// Writes the notice of a change, if it is worth one.
pub async fn add(
    tx: &mut store::Connection,
    person: PersonId,
    change: &Change,
    before: &Picture,
    now: UnixTime,
) -> Result<(), StoreError> {
    let kind = match change.news {
        Some(News::Started) => "started",
        Some(News::Ended) => "ended",
        None if can_never_start(change) && before.seen.is_some() => "never",
        None => return Ok(()),
    };
    let restarts = i64::from(change.record.job.restarts);
    store::notices::add(tx, person, change.record.id, kind, restarts, now).await?;
    Ok(())
}

fn can_never_start(change: &Change) -> bool {
    let job = &change.record.job;
    job.state.stage() == Stage::Waiting && waiting::can_never_start(&job.reason)
}
