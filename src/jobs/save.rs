//! Saves the result of a refresh: changes, timeline events and notifications in one transaction.

use std::sync::Arc;

use super::queue_diff::{JobChange, NotifiedTransition};
use super::queue_monitor::QueueMonitor;
use super::queue_snapshot::{PersonQueueSnapshot, PersonSharesAndQuotas};
use super::{JobRecord, change_notifications};
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::cluster::queue::QueueReadReply;
use crate::domain::JobRowId;
use crate::slurm::fair_share::SshareRow;
use crate::slurm::job::JobStage;
use crate::store::fair_share_history::FairSharePoint;
use crate::store::jobs::JobEvent;
use crate::store::{self, StoreError};

/// The time of the last read is saved at least this often, even if nothing else changed.
const SAVE_SEEN_EVERY: i64 = 300;

pub(super) struct QueueChangeSet {
    /// New or changed jobs.
    pub changes: Vec<JobChange>,
    /// Records that no longer stand for any task.
    pub gone: Vec<Arc<JobRecord>>,
    /// The accounting period that was read.
    pub history: Option<(UnixTime, UnixTime)>,
    /// How far the owner's notifications reach.
    pub notified_until: Option<UnixTime>,
}

impl QueueMonitor {
    /// Saves changes, timeline events and notifications in one transaction. Returns the changes with their database
    /// IDs.
    pub(super) async fn save_update(
        &self,
        key: ClusterAccountId,
        before: &PersonQueueSnapshot,
        change_set: QueueChangeSet,
        now: UnixTime,
    ) -> Result<(Vec<JobChange>, Vec<Arc<JobRecord>>), StoreError> {
        let QueueChangeSet { mut changes, gone, history, notified_until } = change_set;
        let has_lasting = changes.iter().any(|change| change.is_worth_saving) || !gone.is_empty();
        let is_due = notified_until.is_none_or(|seen| now.since(seen) >= SAVE_SEEN_EVERY);
        if !has_lasting && history.is_none() && !is_due {
            return Ok((changes, gone));
        }
        let mut tx = self.0.core.store.write().await?;
        for change in changes.iter_mut().filter(|change| change.is_worth_saving) {
            let row = change.record.to_row(key.person, key.cluster);
            let id = store::jobs::save(&mut tx, &row).await?;
            change.record.id = id;
            save_event(&mut tx, id, change, now).await?;
            change_notifications::save_notification(&mut tx, key.person, change, before, now).await?;
        }
        for record in &gone {
            store::jobs::remove(&mut tx, record.id).await?;
        }
        store::queues::mark_seen(&mut tx, key.person, key.cluster, now).await?;
        if let Some((from, until)) = history {
            let known_range = store::queues::get(&mut tx, key.person, key.cluster).await?.history();
            let from = known_range.map_or(from, |(first, _)| first.min(from));
            let until = known_range.map_or(until, |(_, last)| last.max(until));
            store::queues::set_history(&mut tx, key.person, key.cluster, (from, until)).await?;
        }
        store::commit(tx).await?;
        Ok((changes, gone))
    }

    /// Saves fair share, storage and quota, as far as they were read.
    pub(super) async fn save_resources(
        &self,
        key: ClusterAccountId,
        before: &PersonSharesAndQuotas,
        reply: &mut QueueReadReply,
        now: UnixTime,
    ) -> Option<PersonSharesAndQuotas> {
        let mut resources = before.clone();
        if let Some(shares) = reply.fair_share.take() {
            (resources.shares, resources.shares_at) = (shares, Some(now.0));
        }
        if let Some(places) = reply.storage_quotas.take() {
            (resources.places, resources.places_at) = (places, Some(now.0));
        }
        if let Some(per_user) = reply.storage_per_user.take() {
            (resources.per_user, resources.per_user_at) = (per_user, Some(now.0));
        }
        if let Some(cost) = reply.cost.take() {
            (resources.cost, resources.cost_at) = (Some(cost), Some(now.0));
        }
        if resources == *before {
            return None;
        }
        let saved = async {
            let json = serde_json::to_string(&resources).unwrap_or_default();
            let mut tx = self.0.core.store.write().await?;
            store::queues::set_standing(&mut tx, key.person, key.cluster, &json).await?;
            if resources.shares_at != before.shares_at {
                for (account, point) in fair_share_points(&resources.shares, now) {
                    let (person, cluster) = (key.person, key.cluster);
                    store::fair_share_history::add(&mut tx, person, cluster, account, point).await?;
                }
            }
            store::commit(tx).await
        };
        if let Err(error) = saved.await {
            tracing::warn!(%error, "Could not save fair share and storage");
        }
        Some(resources)
    }
}

/// The fair-share history points: one for each account that reports both share and usage.
fn fair_share_points(shares: &[SshareRow], now: UnixTime) -> impl Iterator<Item = (&str, FairSharePoint)> {
    shares.iter().filter(|share| share.user.is_none()).filter_map(move |share| {
        let part = |part: Option<f64>| part.filter(|part| part.is_finite());
        let (share_of, used) = (part(share.norm_shares)?, part(share.effective_usage)?);
        Some((share.account.as_str(), FairSharePoint { at: now, share: share_of, used }))
    })
}

/// Adds an event to a job's timeline.
async fn save_event(
    tx: &mut store::DbConnection,
    id: JobRowId,
    change: &JobChange,
    now: UnixTime,
) -> Result<(), StoreError> {
    // For a job that is new to the portal, its own times tell what came before.
    if !change.is_new_state || change.is_new {
        return Ok(());
    }
    let job = &change.record.job;
    let (at, detail) = match job.state.stage() {
        JobStage::Pending => (job.submitted, &job.reason),
        JobStage::Running => (job.start, &job.node_list),
        JobStage::Ended => (job.end, &job.reason),
    };
    // A requeued, suspended or resumed job changes now; its earlier times are already recorded.
    let at = if job.state.is_over() || change.transition == Some(NotifiedTransition::Started) {
        at.unwrap_or(now)
    } else {
        now
    };
    let event = JobEvent { at, state: job.state.slurm_name().to_owned(), detail: detail.clone() };
    store::jobs::add_event(tx, id, &event).await
}
