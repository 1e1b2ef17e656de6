//! Notifies PIs about their groups, after something was read for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::{
    UsageAlertKind, UsageAlertMessage, belongs_to_group, list_failing_jobs_alerts, quota_alert, storage_alert,
};
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::cluster::ClusterAccountId;
use crate::core::lock;
use crate::domain::{GroupId, PersonId};
use crate::jobs::queue_snapshot::PersonSharesAndQuotas;
use crate::store::{self, StoreError};
use crate::usage::group_usage::{GroupAccountUsage, GroupUsage};
use crate::usage::service::UsageService;

/// Each reader's alerts are checked at most this often.
const CHECK_EVERY: Duration = Duration::from_mins(2);
/// Storage figures older than this, in seconds, are not trusted.
const STORAGE_MAX_AGE: i64 = 2 * SECONDS_PER_DAY;

impl UsageService {
    /// The alerts that a person wants for a group.
    pub async fn alerts(&self, person: PersonId, group: GroupId) -> Result<Vec<UsageAlertKind>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let words = store::usage_alerts::list_kinds(&mut db, person, group).await?;
        Ok(words.iter().filter_map(|word| UsageAlertKind::parse(word)).collect())
    }

    /// Sets the alerts that a PI wants for their group.
    pub async fn set_alerts(
        &self,
        actor: &Actor,
        person: PersonId,
        group: GroupId,
        alerts: &[UsageAlertKind],
    ) -> Result<(), AuthError> {
        let (mut tx, group_row) = self.begin_change(actor, group).await?;
        let words: Vec<&'static str> = alerts.iter().map(|alert| alert.as_str()).collect();
        store::usage_alerts::replace_kinds(&mut tx, person, group, &words).await?;
        let detail = if words.is_empty() { "nothing".to_owned() } else { words.join(", ") };
        let about = ActivityDetails { person: Some(person), subject: &group_row.name, detail: &detail };
        record(&mut tx, actor, ActivityEventKind::UsageAlertsSet, about, self.0.core.clock.now()).await?;
        store::commit(tx).await?;
        // Alerts that already apply are sent soon.
        lock(&self.0.alerts_checked_at).retain(|reader, _| reader.person != person);
        Ok(())
    }

    /// Checks now and then, after something was read for a person, whether they should be notified.
    pub(in crate::usage) async fn check_alerts(&self, reader: ClusterAccountId) {
        let is_early = lock(&self.0.alerts_checked_at).get(&reader).is_some_and(|at| at.elapsed() < CHECK_EVERY);
        if is_early {
            return;
        }
        lock(&self.0.alerts_checked_at).insert(reader, Instant::now());
        if let Err(error) = self.notify_leader(reader).await {
            tracing::warn!(%error, "Could not check usage alerts");
        }
    }

    /// Notifies a person about their groups on one cluster, once per alert.
    pub async fn notify_leader(&self, reader: ClusterAccountId) -> Result<(), StoreError> {
        let core = &self.0.core;
        let ClusterAccountId { person, cluster } = reader;
        let mut db = core.store.read().await?;
        let wanted = store::usage_alerts::list_for_cluster(&mut db, person, cluster).await?;
        let viewer = core.auth.viewer(&mut db, person).await?;
        drop(db);
        let Some(viewer) = viewer.filter(|_| !wanted.is_empty()) else { return Ok(()) };
        let mut groups: BTreeMap<GroupId, Vec<UsageAlertKind>> = BTreeMap::new();
        for (group, word) in &wanted {
            groups.entry(*group).or_default().extend(UsageAlertKind::parse(word));
        }
        for (group, alerts) in groups {
            // Former PIs are not notified.
            if viewer.may(Permission::ManageUsage(group)).is_err() {
                continue;
            }
            let records = self.load_context(&viewer, group).await?;
            let view = self.build_group_usage(&viewer, group, &records).await?;
            let messages = self.collect_alerts(&view, reader, &alerts).await?;
            self.send_alerts(person, group, &messages).await?;
        }
        Ok(())
    }

    async fn collect_alerts(
        &self,
        view: &GroupUsage,
        reader: ClusterAccountId,
        alerts: &[UsageAlertKind],
    ) -> Result<Vec<UsageAlertMessage>, StoreError> {
        let is_here = |account: &&GroupAccountUsage| account.details.cluster == reader.cluster;
        let here: Vec<&GroupAccountUsage> = view.accounts.iter().filter(is_here).collect();
        let Some(first) = here.first() else { return Ok(Vec::new()) };
        let mut messages = Vec::new();
        let mut db = self.0.core.store.read().await?;
        if alerts.contains(&UsageAlertKind::Quota) {
            for allocation in store::allocations::list_for_group(&mut db, view.group).await? {
                let is_its = |account: &&&GroupAccountUsage| {
                    account.details.account == allocation.account && allocation.cluster_id == reader.cluster
                };
                let account = here.iter().find(is_its);
                messages.extend(account.and_then(|account| quota_alert(account, &allocation)));
            }
        }
        if alerts.contains(&UsageAlertKind::Storage) {
            let queue = store::queues::get(&mut db, reader.person, reader.cluster).await?;
            let resources: PersonSharesAndQuotas = serde_json::from_str(&queue.standing).unwrap_or_default();
            let now = self.0.core.clock.now();
            let at = resources.places_at.map(UnixTime);
            if at.is_some_and(|at| now.since(at) < STORAGE_MAX_AGE) {
                let accounts: BTreeSet<&str> = here.iter().map(|account| account.details.account.as_str()).collect();
                let theirs = resources.places.iter().filter(|area| belongs_to_group(area, &accounts));
                let (title, slug) = (&first.details.title, &first.details.slug);
                messages.extend(theirs.filter_map(|area| storage_alert(area, title, slug, first.today)));
            }
        }
        if alerts.contains(&UsageAlertKind::Failing) {
            messages.extend(list_failing_jobs_alerts(view, &first.details.slug));
        }
        Ok(messages)
    }

    async fn send_alerts(
        &self,
        person: PersonId,
        group: GroupId,
        messages: &[UsageAlertMessage],
    ) -> Result<(), StoreError> {
        let core = &self.0.core;
        let mut new: Vec<&UsageAlertMessage> = Vec::new();
        let mut db = core.store.read().await?;
        for message in messages {
            if !store::usage_alerts::was_notified(&mut db, person, group, &message.dedup_key).await? {
                new.push(message);
            }
        }
        drop(db);
        if new.is_empty() {
            return Ok(());
        }
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        for message in new {
            if store::usage_alerts::mark_notified(&mut tx, person, group, &message.dedup_key, now).await? {
                store::notifications::add_group(&mut tx, person, group, &message.text, now).await?;
            }
        }
        store::commit(tx).await?;
        self.0.notifications.notify(person);
        Ok(())
    }
}
