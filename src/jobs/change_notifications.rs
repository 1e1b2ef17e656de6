//! Decides which changes notify a job's owner: it started, it ended, or it will never start. Once each.

use super::queue_diff::{JobChange, NotifiedTransition};
use super::queue_snapshot::PersonQueueSnapshot;
use crate::clock::UnixTime;
use crate::domain::PersonId;
use crate::explain::waiting;
use crate::slurm::job::{JobStage, JobState};
use crate::store::notifications::NewJobNotification;
use crate::store::{self, StoreError};

/// Saves the notification for a change, if it is worth one.
pub async fn save_notification(
    tx: &mut store::DbConnection,
    person: PersonId,
    change: &JobChange,
    before: &PersonQueueSnapshot,
    now: UnixTime,
) -> Result<(), StoreError> {
    let kind = match change.transition {
        Some(NotifiedTransition::Started) => "started",
        Some(NotifiedTransition::Ended) => "ended",
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
        is_quiet: kind == "ended" && is_cancelled_by_owner(change),
    };
    store::notifications::add(tx, &new, now).await
}

/// A quick check; [`save_notification`] decides.
pub fn is_notable(change: &JobChange) -> bool {
    change.transition.is_some() || can_never_start(change)
}

/// People know about jobs they cancel themselves. The queue does not say who cancelled a job, but it is nearly always
/// the owner. If accounting names root, the owner is notified.
fn is_cancelled_by_owner(change: &JobChange) -> bool {
    change.record.job.state == JobState::Cancelled && change.record.cancelled_by != "0"
}

fn can_never_start(change: &JobChange) -> bool {
    let job = &change.record.job;
    job.state.stage() == JobStage::Pending && waiting::can_never_start(&job.reason)
}
