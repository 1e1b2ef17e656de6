//! What of a change its owner is told: that a job started, ended, or will never start. Once each.

use super::merge::{Change, News};
use super::picture::Picture;
use crate::clock::UnixTime;
use crate::domain::PersonId;
use crate::explain::waiting;
use crate::slurm::job::{JobStage, JobState};
use crate::store::notifications::NewJobNotification;
use crate::store::{self, StoreError};

/// Writes the notice of a change, if it is worth one.
pub async fn add(
    tx: &mut store::DbConnection,
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
    let job = &change.record.job;
    let new = NewJobNotification {
        person,
        job: change.record.id,
        kind,
        state: job.state.slurm_name(),
        restarts: i64::from(job.restarts),
        is_quiet: kind == "ended" && is_by_owner(change),
    };
    store::notifications::add(tx, &new, now).await
}

/// Whether there may be something to tell.
pub fn is_news(change: &Change) -> bool {
    change.news.is_some() || can_never_start(change)
}

/// Who cancels a job knows it. The queue does not say who it was, and it is nearly always the owner; where the
/// accounting names the centre's own user, the owner is told.
fn is_by_owner(change: &Change) -> bool {
    change.record.job.state == JobState::Cancelled && change.record.cancelled_by != "0"
}

fn can_never_start(change: &Change) -> bool {
    let job = &change.record.job;
    job.state.stage() == JobStage::Pending && waiting::can_never_start(&job.reason)
}
