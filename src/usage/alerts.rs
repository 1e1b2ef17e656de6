//! Alerts for a group's PIs: an allocation nearly used up or running out early, storage nearly full, many failing jobs.
//! Pure functions decide what is worth an alert; each alert is sent once per period.

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

/// From this percentage, storage is called nearly full.
const NEARLY_FULL_PERCENT: u8 = 85;
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
    /// An allocation will be used up before its period ends.
    RunsOut,
}

codes!(UsageAlertKind { Quota = "quota", Storage = "storage", Failing = "failing", RunsOut = "runs-out" });

impl UsageAlertKind {
    /// The percentage that applies unless the PI chooses another: of an allocation, of storage, of failed jobs.
    pub const fn default_percent(self) -> Option<u8> {
        match self {
            Self::Quota => Some(80),
            Self::Storage => Some(90),
            Self::Failing => Some(50),
            Self::RunsOut => None,
        }
    }
}

/// An alert that a PI wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UsageAlertChoice {
    pub kind: UsageAlertKind,
    /// From this percentage; 0 for kinds without one.
    pub percent: u8,
}

impl UsageAlertChoice {
    /// As the activity log names it.
    fn words(self) -> String {
        let percent = self.percent;
        match self.kind {
            UsageAlertKind::Quota => format!("allocation {percent}% used"),
            UsageAlertKind::Storage => format!("storage {percent}% full"),
            UsageAlertKind::Failing => format!("{percent}% of a member's jobs failed"),
            UsageAlertKind::RunsOut => "allocation runs out early".to_owned(),
        }
    }

    /// From what is stored; without a percentage, the kind's own applies.
    pub(super) fn from_row(kind: &str, percent: Option<i64>) -> Option<Self> {
        let kind = UsageAlertKind::parse(kind)?;
        let percent = percent.and_then(|percent| u8::try_from(percent).ok());
        Some(Self { kind, percent: percent.or(kind.default_percent()).unwrap_or(0) })
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageAlertMessage {
    /// Subject and period of the alert, so that it is sent only once.
    pub dedup_key: String,
    pub text: String,
}

/// The keys of the alerts about an allocation, which begin like this.
pub(super) fn allocation_alert_keys(allocation: AllocationId) -> [String; 2] {
    [format!("quota:{allocation}"), runs_out_alert_key(allocation)]
}

/// The key of the alert that an allocation will be used up early. An allocation is one period.
pub(super) fn runs_out_alert_key(allocation: AllocationId) -> String {
    format!("runs-out:{allocation}")
}

/// The used part of an allocation, as far as usage was read; none outside of its period.
pub fn used_part(account: &GroupAccountUsage, allocation: &Allocation) -> Option<f64> {
    let (begins, ends) = (allocation.begins(), allocation.ends());
    if !(begins..=ends).contains(&account.today) {
        return None;
    }
    let unit = AllocationUnit::parse(&allocation.unit)?;
    let hours: f64 = account.usage_by_day(unit.measure, begins, ends).iter().map(|day| day.1).sum();
    Some(unit.from_hours(hours) / allocation.amount)
}

/// Above this part of an allocation, the used amount is told instead of a percentage.
const CLEARLY_OVERUSED: f64 = 1.01;

/// The alert for an allocation that is mostly used.
pub fn quota_alert(account: &GroupAccountUsage, allocation: &Allocation, percent: u8) -> Option<UsageAlertMessage> {
    let unit = AllocationUnit::parse(&allocation.unit)?;
    let part = used_part(account, allocation)?;
    let whose = (clean_name(&account.details.account), clean_name(&account.details.title));
    (part * 100.0 >= f64::from(percent)).then(|| UsageAlertMessage {
        dedup_key: format!("quota:{}:{percent}", allocation.id),
        text: describe_used_part(
            part,
            (allocation.amount, &unit.words(account.details.site_unit())),
            allocation.ends(),
            &whose,
        ),
    })
}

/// How much of what was granted, with its unit, is used. `whose` is the account and its cluster.
fn describe_used_part(part: f64, (amount, unit): (f64, &str), ends: Day, whose: &(String, String)) -> String {
    let (account, cluster) = whose;
    let (granted, ends) = (format::fine_amount(amount), ends.words());
    if part > CLEARLY_OVERUSED {
        let used = format::amount(part * amount);
        return format!("{account} has used {used} {unit} on {cluster}, more than the {granted} granted until {ends}.");
    }
    format!("{account} has used {} of the {granted} {unit} granted on {cluster} until {ends}.", format::percent(part))
}

/// Whether an allocation lasts for its period, as far as its forecast tells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AllocationOutlook {
    /// Even at the pace of quiet weeks it is used up before the period ends.
    RunsOut(UsageAlertMessage),
    /// Even at the pace of busy weeks it lasts.
    Lasts,
    /// It depends, or too little is known.
    Unclear,
}

pub fn allocation_outlook(account: &GroupAccountUsage, allocation: &Allocation) -> AllocationOutlook {
    let unit = AllocationUnit::parse(&allocation.unit);
    let Some(unit) = unit.filter(|_| (allocation.begins()..=allocation.ends()).contains(&account.today)) else {
        return AllocationOutlook::Unclear;
    };
    let forecast = account.forecast(allocation, unit, account.today);
    let (Some(early), Some(late)) = forecast.runs_out else {
        let lasts = forecast.at_end.is_some() && forecast.runs_out.0.is_none();
        return if lasts { AllocationOutlook::Lasts } else { AllocationOutlook::Unclear };
    };
    let when = if early == late {
        format!("around {}", early.words())
    } else {
        format!("between {} and {}", early.words(), late.words())
    };
    AllocationOutlook::RunsOut(UsageAlertMessage {
        dedup_key: runs_out_alert_key(allocation.id),
        text: format!(
            "If usage continues as in the last {} weeks, the {} {} granted to {} on {} will run out {when}, before the \
             period ends on {}.",
            forecast.weeks,
            format::fine_amount(allocation.amount),
            unit.words(account.details.site_unit()),
            clean_name(&account.details.account),
            clean_name(&account.details.title),
            allocation.ends().words()
        ),
    })
}

/// The alert for group storage that is nearly full. Once a month and percentage.
pub fn storage_alert(
    area: &StorageQuota,
    cluster: &str,
    slug: &str,
    today: Day,
    percent: u8,
) -> Option<UsageAlertMessage> {
    let is_full =
        |used: u64, limit: u64| limit > 0 && u128::from(used) * 100 >= u128::from(limit) * u128::from(percent);
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
    let is_default = Some(percent) == UsageAlertKind::Storage.default_percent();
    let suffix = if is_default { String::new() } else { format!(":{percent}") };
    let state = if percent >= NEARLY_FULL_PERCENT { "is nearly full" } else { "is filling up" };
    Some(UsageAlertMessage {
        dedup_key: format!("storage:{slug}:{label}:{}{suffix}", today.month()),
        text: format!("{label} on {} {state}: {what}.", clean_name(cluster)),
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

/// The alert for one person's jobs of one day on one cluster, if there were many and more than a percentage failed.
pub fn failing_jobs_alert(
    name: &str,
    user: &str,
    cluster: &str,
    slug: &str,
    day: Day,
    totals: &UsageTotals,
    percent: u8,
) -> Option<UsageAlertMessage> {
    let bad = totals.failed + totals.timed_out + totals.memory_out;
    (totals.jobs >= MIN_JOBS && 100 * bad > totals.jobs * u64::from(percent)).then(|| UsageAlertMessage {
        dedup_key: format!("failing:{slug}:{}:{}", clean_name(user), day.0),
        text: format!(
            "{} of {} jobs by {name} that ended on {} on {} were unsuccessful. {name} may need help.",
            format::number(bad),
            format::number(totals.jobs),
            clean_name(cluster),
            day.words(),
            name = clean_name(name)
        ),
    })
}

/// Alerts for members with many failing jobs today or yesterday.
fn list_failing_jobs_alerts(view: &GroupUsage, slug: &str, percent: u8) -> Vec<UsageAlertMessage> {
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
        let name = view.known_name(details.cluster, user).unwrap_or(user);
        failing_jobs_alert(name, user, &details.title, &details.slug, day, &totals, percent)
    };
    days.into_iter().filter_map(alert).collect()
}

#[cfg(test)]
mod tests;
