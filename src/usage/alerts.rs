//! Alerts for a group's PIs: an allocation nearly used up, storage nearly full, many failing jobs. Pure functions
//! decide what is worth an alert; each alert is sent once per period.

mod notify;

use std::collections::{BTreeMap, BTreeSet};

use super::group_usage::{GroupAccountUsage, GroupUsage};
use super::report::clean_name;
use super::totals::UsageTotals;
use super::units::AllocationUnit;
use crate::clock::Day;
use crate::domain::{AllocationId, codes};
use crate::format;
use crate::sites::quota::StorageQuota;
use crate::store::allocations::Allocation;

/// The used fraction of an allocation from which an alert is sent.
const QUOTA_THRESHOLD: f64 = 0.8;
/// The used fraction of storage from which an alert is sent: nine tenths.
const STORAGE_THRESHOLD: (u64, u64) = (9, 10);
/// At least this many jobs must have ended within a day.
const MIN_JOBS: u64 = 10;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsageAlertKind {
    /// An allocation is nearly used up.
    Quota,
    /// A storage area is nearly full.
    Storage,
    /// Many of a member's jobs fail.
    Failing,
}

codes!(UsageAlertKind { Quota = "quota", Storage = "storage", Failing = "failing" });

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAlertMessage {
    /// Subject and period of the alert, so that it is sent only once.
    pub dedup_key: String,
    pub text: String,
}

/// The key of the alert that most of an allocation is used.
pub(super) fn quota_alert_key(allocation: AllocationId) -> String {
    format!("quota:{allocation}:80")
}

/// The alert for an allocation that is mostly used.
pub fn quota_alert(account: &GroupAccountUsage, allocation: &Allocation) -> Option<UsageAlertMessage> {
    let (begins, ends) = (allocation.begins(), allocation.ends());
    if !(begins..=ends).contains(&account.today) {
        return None;
    }
    let unit = AllocationUnit::parse(&allocation.unit)?;
    let hours: f64 = account.usage_by_day(unit.measure, begins, ends).iter().map(|day| day.1).sum();
    let part = unit.from_hours(hours) / allocation.amount;
    (part >= QUOTA_THRESHOLD).then(|| UsageAlertMessage {
        dedup_key: quota_alert_key(allocation.id),
        text: format!(
            "{} of the {} {} granted to {} on {} has been used; the period ends on {}.",
            format::percent(part),
            format::amount(allocation.amount),
            unit.words(account.details.site_unit()),
            clean_name(&account.details.account),
            clean_name(&account.details.title),
            ends.words()
        ),
    })
}

/// The alert for group storage that is nearly full. Once a month.
pub fn storage_alert(area: &StorageQuota, cluster: &str, slug: &str, today: Day) -> Option<UsageAlertMessage> {
    let is_full = |used: u64, limit: u64| {
        limit > 0
            && u128::from(used) * u128::from(STORAGE_THRESHOLD.1) >= u128::from(limit) * u128::from(STORAGE_THRESHOLD.0)
    };
    let space = area.limit_bytes.filter(|limit| is_full(area.used_bytes, *limit));
    let files = area.files.zip(area.files_limit).filter(|(used, limit)| is_full(*used, *limit));
    let what = match (space, files) {
        (Some(limit), _) => {
            format!("{} of its space is used", used_percent(area.used_bytes, limit))
        }
        (None, Some((used, limit))) => {
            format!("{} of its file limit is used", used_percent(used, limit))
        }
        (None, None) => return None,
    };
    let label = clean_name(&area.label);
    Some(UsageAlertMessage {
        dedup_key: format!("storage:{slug}:{label}:{}", today.month()),
        text: format!("{label} on {} is nearly full: {what}.", clean_name(cluster)),
    })
}

#[expect(clippy::cast_precision_loss, reason = "a part for people")]
fn used_percent(used: u64, limit: u64) -> String {
    format::percent(used as f64 / limit as f64)
}

/// Whether a storage area belongs to the group, not to one person.
pub fn belongs_to_group(area: &StorageQuota, accounts: &BTreeSet<&str>) -> bool {
    let label = area.label.to_lowercase();
    let is_own = label.contains("(user ") || label.contains("home");
    let names = |account: &&str| {
        let is_edge = |c: char| !(c.is_alphanumeric() || c == '-' || c == '_');
        label.split(is_edge).any(|word| word == account.to_lowercase())
    };
    !is_own && (label.contains("project") || accounts.iter().any(names))
}

/// The alert for one person's jobs of one day on one cluster, if there were many and most failed.
pub fn failing_jobs_alert(
    name: &str,
    user: &str,
    cluster: &str,
    slug: &str,
    day: Day,
    totals: &UsageTotals,
) -> Option<UsageAlertMessage> {
    let bad = totals.failed + totals.timed_out + totals.memory_out;
    (totals.jobs >= MIN_JOBS && 2 * bad > totals.jobs).then(|| UsageAlertMessage {
        dedup_key: format!("failing:{slug}:{}:{}", clean_name(user), day.0),
        text: format!(
            "{} of {} jobs by {} that ended on {} on {} were unsuccessful. They may need help.",
            format::number(bad),
            format::number(totals.jobs),
            clean_name(name),
            clean_name(cluster),
            day.words()
        ),
    })
}

/// Alerts for members with many failing jobs today or yesterday.
fn list_failing_jobs_alerts(view: &GroupUsage, slug: &str) -> Vec<UsageAlertMessage> {
    let mut days: BTreeMap<(Day, &str), (UsageTotals, &GroupAccountUsage)> = BTreeMap::new();
    for account in view.accounts.iter().filter(|account| account.details.slug == slug) {
        for usage in &account.usage {
            for (day, row) in usage.rows_between(account.today.plus(-1), account.today) {
                if !row.user.is_empty() {
                    let entry = days.entry((day, &row.user));
                    entry.or_insert_with(|| (UsageTotals::default(), account)).0.add(&row.totals);
                }
            }
        }
    }
    let alert = |((day, user), (totals, account)): ((Day, &str), (UsageTotals, &GroupAccountUsage))| {
        let details = &account.details;
        let person = view.people.get(&(details.cluster, user.to_owned()));
        let name = person.map_or(user, |person| &person.name);
        failing_jobs_alert(name, user, &details.title, &details.slug, day, &totals)
    };
    days.into_iter().filter_map(alert).collect()
}

#[cfg(test)]
mod tests;
