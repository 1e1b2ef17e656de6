//! The known usage of one account, in memory: sums by day, person and job type.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::breakdown::UsageBreakdown;
use super::daily_totals::DayUsageBreakdown;
use super::totals::UsageTotals;
use super::wait_histogram::WaitHistogram;
use crate::clock::{Day, UnixTime};
use crate::store::usage::UsageDayReadRow;
use crate::store::usage::daily::UsageDailyRow;

/// The sums of one person and one job type on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UserDayUsage {
    /// User name on the cluster; empty for others, whose names are not kept.
    pub user: Arc<str>,
    /// The job type.
    pub kind: Arc<str>,
    pub totals: UsageTotals,
}

/// A day that was read.
#[derive(Debug, Clone)]
pub struct AccountUsageDay {
    pub read_at: UnixTime,
    /// Whether it is never read again.
    pub is_final: bool,
    /// Whether there were more jobs than could be read.
    pub is_cut: bool,
    pub rows: Arc<[UserDayUsage]>,
    /// The sum of all rows: many pages need no more.
    pub total: Arc<UsageTotals>,
}

impl AccountUsageDay {
    fn new(read: UsageDayReadRow, rows: Vec<UserDayUsage>) -> Self {
        let mut total = UsageTotals::default();
        for row in &rows {
            total.add(&row.totals);
        }
        let (read_at, is_final, is_cut) = (read.read_at, read.is_final, read.is_cut);
        Self { read_at, is_final, is_cut, rows: rows.into(), total: Arc::new(total) }
    }
}

/// All days of an account that were read.
#[derive(Debug, Clone, Default)]
pub struct AccountUsage {
    pub days: BTreeMap<Day, AccountUsageDay>,
}

impl AccountUsage {
    /// Builds it from the rows of the database.
    pub fn from_rows(days: &[UsageDayReadRow], rows: Vec<UsageDailyRow>, names: &HashMap<i64, String>) -> Self {
        let names: HashMap<i64, Arc<str>> = names.iter().map(|(id, name)| (*id, Arc::from(name.as_str()))).collect();
        let nobody: Arc<str> = Arc::from("");
        let name = |id: i64| names.get(&id).unwrap_or(&nobody).clone();
        let mut by_day: BTreeMap<Day, Vec<UserDayUsage>> = BTreeMap::new();
        for row in rows {
            let (user, kind) = (name(row.user_id), name(row.kind_id));
            by_day.entry(Day(row.day)).or_default().push(UserDayUsage { user, kind, totals: totals_from_row(&row) });
        }
        let day_usage = |read: &UsageDayReadRow| {
            (read.day, AccountUsageDay::new(*read, by_day.remove(&read.day).unwrap_or_default()))
        };
        Self { days: days.iter().map(day_usage).collect() }
    }

    /// A copy in which one day was read again.
    #[must_use]
    pub fn with_day(&self, read: UsageDayReadRow, totals: &DayUsageBreakdown) -> Self {
        let mut days = self.days.clone();
        let row = |(user, kind, totals): &(String, String, UsageTotals)| UserDayUsage {
            user: Arc::from(user.as_str()),
            kind: Arc::from(kind.as_str()),
            totals: totals.clone(),
        };
        days.insert(read.day, AccountUsageDay::new(read, totals.rows.iter().map(row).collect()));
        Self { days }
    }

    /// A copy in which one day was read again, and what was known of it stays.
    #[must_use]
    pub fn with_kept_day(&self, read: UsageDayReadRow) -> Self {
        let mut days = self.days.clone();
        if let Some(day_usage) = days.get_mut(&read.day) {
            (day_usage.read_at, day_usage.is_final) = (read.read_at, read.is_final);
        }
        Self { days }
    }

    /// A copy in which only one user keeps their name and their job types; everyone else is one sum per day.
    #[must_use]
    pub fn restricted_to(&self, user: Option<&str>) -> Self {
        let nobody: Arc<str> = Arc::from("");
        let restrict = |day_usage: &AccountUsageDay| {
            let mut others: Option<UsageTotals> = None;
            let mut rows: Vec<UserDayUsage> = Vec::new();
            for row in day_usage.rows.iter() {
                if !row.user.is_empty() && user == Some(&*row.user) {
                    rows.push(row.clone());
                } else {
                    others.get_or_insert_default().add(&row.totals);
                }
            }
            rows.extend(others.map(|totals| UserDayUsage { user: nobody.clone(), kind: nobody.clone(), totals }));
            AccountUsageDay { rows: rows.into(), ..day_usage.clone() }
        };
        Self { days: self.days.iter().map(|(day, day_usage)| (*day, restrict(day_usage))).collect() }
    }

    /// The days that were read between two days, both included.
    pub fn days_between(&self, from: Day, until: Day) -> impl Iterator<Item = (Day, &AccountUsageDay)> {
        let days = if from <= until { Some(self.days.range(from..=until)) } else { None };
        days.into_iter().flatten().map(|(day, day_usage)| (*day, day_usage))
    }

    /// The rows of these days.
    pub fn rows_between(&self, from: Day, until: Day) -> impl Iterator<Item = (Day, &UserDayUsage)> {
        self.days_between(from, until).flat_map(|(day, day_usage)| day_usage.rows.iter().map(move |row| (day, row)))
    }
}

fn totals_from_row(row: &UsageDailyRow) -> UsageTotals {
    let whole = |number: i64| u64::try_from(number).unwrap_or(0);
    let (node_failed, interrupted) = (whole(row.node_failed), whole(row.interrupted));
    let missed_deadline = whole(row.missed_deadline);
    UsageTotals {
        core_s: whole(row.core_s),
        site_ms: whole(row.site_ms),
        gpu_s: whole(row.gpu_s),
        gpus: parse_gpus(&row.gpus),
        jobs: whole(row.jobs),
        done: whole(row.done),
        failed: whole(row.failed).saturating_sub(node_failed + interrupted),
        node_failed,
        interrupted,
        timed_out: whole(row.timed_out).saturating_sub(missed_deadline),
        missed_deadline,
        memory_out: whole(row.memory_out),
        cancelled: whole(row.cancelled),
        held_core_s: whole(row.held_core_s),
        used_core_s: whole(row.used_core_s),
        held_mb_s: whole(row.held_mb_s),
        used_mb_s: whole(row.used_mb_s),
        held_gpu_s: whole(row.held_gpu_s),
        used_gpu_s: whole(row.used_gpu_s),
        lost_core_s: whole(row.lost_core_s),
        lost_gpu_s: whole(row.lost_gpu_s),
        spare_core_s: whole(row.spare_core_s),
        spare_mb_s: whole(row.spare_mb_s),
        spare_gpu_s: whole(row.spare_gpu_s),
        partitions: UsageBreakdown::parse(&row.partitions),
        qos: UsageBreakdown::parse(&row.qos),
        waits: WaitHistogram::parse(&row.waits),
    }
}

/// Converts sums to a database row.
pub fn row_from_totals(day: Day, user_id: i64, kind_id: i64, totals: &UsageTotals) -> UsageDailyRow {
    let whole = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
    UsageDailyRow {
        day: day.0,
        user_id,
        kind_id,
        core_s: whole(totals.core_s),
        site_ms: whole(totals.site_ms),
        gpu_s: whole(totals.gpu_s),
        gpus: format_gpus(&totals.gpus),
        jobs: whole(totals.jobs),
        done: whole(totals.done),
        failed: whole(totals.failed + totals.node_failed + totals.interrupted),
        node_failed: whole(totals.node_failed),
        interrupted: whole(totals.interrupted),
        timed_out: whole(totals.timed_out + totals.missed_deadline),
        missed_deadline: whole(totals.missed_deadline),
        memory_out: whole(totals.memory_out),
        cancelled: whole(totals.cancelled),
        held_core_s: whole(totals.held_core_s),
        used_core_s: whole(totals.used_core_s),
        held_mb_s: whole(totals.held_mb_s),
        used_mb_s: whole(totals.used_mb_s),
        held_gpu_s: whole(totals.held_gpu_s),
        used_gpu_s: whole(totals.used_gpu_s),
        lost_core_s: whole(totals.lost_core_s),
        lost_gpu_s: whole(totals.lost_gpu_s),
        spare_core_s: whole(totals.spare_core_s),
        spare_mb_s: whole(totals.spare_mb_s),
        spare_gpu_s: whole(totals.spare_gpu_s),
        partitions: totals.partitions.to_string(),
        qos: totals.qos.to_string(),
        waits: totals.waits.to_string(),
    }
}

/// For example `v100:3600,t4:20`; model names contain no commas and do not end with a colon.
fn format_gpus(gpus: &[(String, u64)]) -> String {
    gpus.iter().map(|(model, seconds)| format!("{model}:{seconds}")).collect::<Vec<_>>().join(",")
}

fn parse_gpus(text: &str) -> Vec<(String, u64)> {
    let parse = |piece: &str| {
        let (model, seconds) = piece.rsplit_once(':')?;
        Some((model.to_owned(), seconds.parse().ok()?))
    };
    text.split(',').filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_come_back_from_the_database() {
        let mut totals = UsageTotals {
            core_s: 1,
            site_ms: 2,
            gpu_s: 30,
            jobs: 4,
            done: 1,
            failed: 1,
            node_failed: 2,
            interrupted: 3,
            timed_out: 1,
            missed_deadline: 2,
            memory_out: 1,
            cancelled: 5,
            held_core_s: 6,
            used_core_s: 7,
            held_mb_s: 8,
            used_mb_s: 9,
            held_gpu_s: 10,
            used_gpu_s: 11,
            lost_core_s: 12,
            lost_gpu_s: 13,
            spare_core_s: 14,
            spare_mb_s: 15,
            spare_gpu_s: 16,
            partitions: UsageBreakdown::parse("cpu:1:0:1,gpu:2:3:1"),
            qos: UsageBreakdown::parse("normal:3:3:2"),
            ..UsageTotals::default()
        };
        totals.add_gpus("", 10);
        totals.add_gpus("a100_1g.5gb", 20);
        totals.waits.record(500);
        assert_eq!(totals_from_row(&row_from_totals(Day(3), 1, 2, &totals)), totals);
        let names = HashMap::from([(1, "bob".to_owned()), (2, "fit".to_owned())]);
        let day = UsageDayReadRow { day: Day(3), read_at: UnixTime(9), is_final: true, is_cut: false };
        let usage = AccountUsage::from_rows(&[day], vec![row_from_totals(Day(3), 1, 2, &totals)], &names);
        let all: Vec<_> = usage.rows_between(Day(0), Day(9)).collect();
        assert_eq!((all.len(), &*all[0].1.user, &*all[0].1.kind), (1, "bob", "fit"));
        assert_eq!(usage.rows_between(Day(4), Day(9)).count(), 0);
        assert_eq!(usage.rows_between(Day(9), Day(4)).count(), 0, "nothing, and no panic");
        for (user, shown) in
            [(Some("bob"), ("bob", "fit")), (Some("alice"), ("", "")), (Some(""), ("", "")), (None, ("", ""))]
        {
            let restricted = usage.restricted_to(user);
            let all: Vec<_> = restricted.rows_between(Day(0), Day(9)).collect();
            assert_eq!((all.len(), &*all[0].1.user, &*all[0].1.kind), (1, shown.0, shown.1));
            assert_eq!(all[0].1.totals, totals, "the sums stay");
        }
        let again = usage.with_day(day, &DayUsageBreakdown::default());
        assert_eq!(again.rows_between(Day(0), Day(9)).count(), 0);
    }
}
