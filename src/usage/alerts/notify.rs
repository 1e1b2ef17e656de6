//! Notifies PIs about their groups, after something was read for them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use super::{
    AllocationOutlook, UsageAlertChoice, UsageAlertKind, UsageAlertMessage, allocation_outlook, belongs_to_group,
    list_failing_jobs_alerts, quota_alert, runs_out_alert_key, storage_alert, used_part,
};
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::auth::{AuthError, Permission, Viewer};
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::cluster::ClusterAccountId;
use crate::core::lock;
use crate::domain::{GroupId, PersonId};
use crate::jobs::queue_snapshot::PersonSharesAndQuotas;
use crate::store::allocations::Allocation;
use crate::store::{self, StoreError};
use crate::usage::group_usage::{GroupAccountUsage, GroupUsage};
use crate::usage::report::clean_name;
use crate::usage::service::UsageService;

/// Each reader's alerts are checked at most this often.
const CHECK_EVERY: Duration = Duration::from_mins(2);
/// Storage figures older than this, in seconds, are not trusted.
const STORAGE_MAX_AGE: i64 = 2 * SECONDS_PER_DAY;

/// What a check of a group found.
#[derive(Default)]
struct UsageAlertFindings {
    messages: Vec<UsageAlertMessage>,
    /// Keys of alerts that no longer apply.
    cleared: Vec<String>,
}

impl UsageService {
    /// The accounts of a group whose current allocation is used up, in words. Doesn't count as viewing the usage.
    pub async fn used_up_accounts(&self, viewer: &Viewer, group: GroupId) -> Result<Vec<String>, StoreError> {
        let records = self.load_context(viewer, group).await?;
        let view = self.build_group_usage(viewer, group, &records).await?;
        let allocations = store::allocations::list_for_group(&mut *self.0.core.store.read().await?, group).await?;
        let used_up = |allocation: &Allocation| {
            let account = view.account_of(allocation)?;
            let is_used_up = used_part(account, allocation).is_some_and(|part| part >= 1.0);
            let (name, title) = (clean_name(&account.details.account), clean_name(&account.details.title));
            is_used_up.then(|| format!("{name} on {title}"))
        };
        Ok(allocations.iter().filter_map(used_up).collect())
    }

    /// The alerts that a person wants for a group.
    pub async fn alerts(&self, person: PersonId, group: GroupId) -> Result<Vec<UsageAlertChoice>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let rows = store::usage_alerts::list_kinds(&mut db, person, group).await?;
        Ok(rows.iter().filter_map(|(kind, percent)| UsageAlertChoice::from_row(kind, *percent)).collect())
    }

    /// Sets the alerts that a PI wants for their group.
    pub async fn set_alerts(
        &self,
        actor: &Actor,
        person: PersonId,
        group: GroupId,
        alerts: &[UsageAlertChoice],
    ) -> Result<(), AuthError> {
        let (mut tx, group_row) = self.begin_change(actor, group).await?;
        let percent = |alert: &UsageAlertChoice| alert.kind.default_percent().map(|_| i64::from(alert.percent));
        let rows: Vec<_> = alerts.iter().map(|alert| (alert.kind.as_str(), percent(alert))).collect();
        store::usage_alerts::replace_kinds(&mut tx, person, group, &rows).await?;
        let words: Vec<String> = alerts.iter().map(|alert| alert.words()).collect();
        let detail = if words.is_empty() { "No alerts".to_owned() } else { words.join(", ") };
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
        let mut groups: BTreeMap<GroupId, Vec<UsageAlertChoice>> = BTreeMap::new();
        for (group, kind, percent) in &wanted {
            groups.entry(*group).or_default().extend(UsageAlertChoice::from_row(kind, *percent));
        }
        for (group, alerts) in groups {
            // Former PIs are not notified.
            if viewer.may(Permission::ManageUsage(group)).is_err() {
                continue;
            }
            let records = self.load_context(&viewer, group).await?;
            let view = self.build_group_usage(&viewer, group, &records).await?;
            let findings = self.collect_alerts(&view, reader, &alerts).await?;
            self.send_alerts(person, group, &findings).await?;
        }
        Ok(())
    }

    async fn collect_alerts(
        &self,
        view: &GroupUsage,
        reader: ClusterAccountId,
        alerts: &[UsageAlertChoice],
    ) -> Result<UsageAlertFindings, StoreError> {
        let is_here = |account: &&GroupAccountUsage| account.details.cluster == reader.cluster;
        let here: Vec<&GroupAccountUsage> = view.accounts.iter().filter(is_here).collect();
        let Some(first) = here.first() else { return Ok(UsageAlertFindings::default()) };
        let percent_of =
            |kind: UsageAlertKind| alerts.iter().find(|alert| alert.kind == kind).map(|alert| alert.percent);
        let (quota, runs_out) = (percent_of(UsageAlertKind::Quota), percent_of(UsageAlertKind::RunsOut));
        let UsageAlertFindings { mut messages, mut cleared } = UsageAlertFindings::default();
        let mut db = self.0.core.store.read().await?;
        if quota.is_some() || runs_out.is_some() {
            for allocation in store::allocations::list_for_group(&mut db, view.group).await? {
                let is_its = |account: &&&GroupAccountUsage| {
                    account.details.account == allocation.account && allocation.cluster_id == reader.cluster
                };
                let Some(account) = here.iter().find(is_its) else { continue };
                messages.extend(quota.and_then(|percent| quota_alert(account, &allocation, percent)));
                match runs_out.map(|_| allocation_outlook(account, &allocation)) {
                    Some(AllocationOutlook::RunsOut(message)) => messages.push(message),
                    Some(AllocationOutlook::Lasts) => cleared.push(runs_out_alert_key(allocation.id)),
                    Some(AllocationOutlook::Unclear) | None => {}
                }
            }
        }
        if let Some(percent) = percent_of(UsageAlertKind::Storage) {
            let queue = store::queues::get(&mut db, reader.person, reader.cluster).await?;
            let resources: PersonSharesAndQuotas = serde_json::from_str(&queue.standing).unwrap_or_default();
            let now = self.0.core.clock.now();
            let at = resources.places_at.map(UnixTime);
            if at.is_some_and(|at| now.since(at) < STORAGE_MAX_AGE) {
                let accounts: BTreeSet<&str> = here.iter().map(|account| account.details.account.as_str()).collect();
                let theirs = resources.places.iter().filter(|area| belongs_to_group(area, &accounts));
                let (title, slug) = (&first.details.title, &first.details.slug);
                messages.extend(theirs.filter_map(|area| storage_alert(area, title, slug, first.today, percent)));
            }
        }
        if let Some(percent) = percent_of(UsageAlertKind::Failing) {
            messages.extend(list_failing_jobs_alerts(view, &first.details.slug, percent));
        }
        Ok(UsageAlertFindings { messages, cleared })
    }

    async fn send_alerts(
        &self,
        person: PersonId,
        group: GroupId,
        findings: &UsageAlertFindings,
    ) -> Result<(), StoreError> {
        let core = &self.0.core;
        let mut new: Vec<&UsageAlertMessage> = Vec::new();
        let mut is_changed = false;
        let mut db = core.store.read().await?;
        for message in &findings.messages {
            if !store::usage_alerts::was_notified(&mut db, person, group, &message.dedup_key).await? {
                new.push(message);
            }
        }
        for key in &findings.cleared {
            is_changed |= store::usage_alerts::was_notified(&mut db, person, group, key).await?;
        }
        drop(db);
        if new.is_empty() && !is_changed {
            return Ok(());
        }
        let now = core.clock.now();
        let mut tx = core.store.write().await?;
        for key in &findings.cleared {
            store::usage_alerts::clear_notified_person(&mut tx, person, group, key).await?;
        }
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
