//! The period of the same length just before the one that is shown, for comparison.

use super::{FiguresSelection, is_selected};
use crate::clock::Day;
use crate::format;
use crate::usage::group_usage::GroupUsage;
use crate::usage::totals::{UsageTotals, hours};

/// Smaller changes are not worth a figure.
const UNCHANGED: f64 = 0.0005;

#[derive(Debug, Clone, PartialEq, Default)]
pub struct PeriodBefore {
    pub from: Day,
    pub until: Day,
    pub totals: UsageTotals,
    /// Days that were not read, over all accounts.
    pub missing: usize,
}

impl PeriodBefore {
    /// Adds up the days before a query.
    pub fn compute(view: &GroupUsage, choice: &FiguresSelection) -> Self {
        let days = (choice.until.0 - choice.from.0 + 1).max(0);
        let (from, until) = (choice.from.plus(-days), choice.from.plus(-1));
        let mut before = Self { from, until, ..Self::default() };
        for account in view.accounts.iter().filter(|account| is_selected(account, choice)) {
            for (_, day_usage) in account.usage.iter().flat_map(|usage| usage.days_between(from, until)) {
                before.totals.add(&day_usage.total);
            }
            before.missing += account.unread_days(from, until);
        }
        before
    }

    /// How the shown period compares with it, in one line. `missing` is the number of its days that were not read.
    pub fn comparison(&self, now: &UsageTotals, missing: u64) -> String {
        let days = format::count(u64::try_from(self.until.0 - self.from.0 + 1).unwrap_or(0), "day");
        let period = format!("the {days} before ({} to {})", self.from.words(), self.until.words());
        if missing > 0 || self.missing > 0 {
            let which = if missing > 0 { "the chosen period isn't" } else { "those days aren't" };
            return format!("No comparison with {period}: {which} fully loaded yet.");
        }
        let before = &self.totals;
        let mut parts = vec![("core hours", hours(now.core_s), hours(before.core_s))];
        if now.gpu_s > 0 || before.gpu_s > 0 {
            parts.push(("GPU hours", hours(now.gpu_s), hours(before.gpu_s)));
        }
        let number = |jobs: u64| f64::from(u32::try_from(jobs).unwrap_or(u32::MAX));
        parts.push(("jobs ended", number(now.jobs), number(before.jobs)));
        let part = |(what, now, before): (&str, f64, f64)| format!("{what} {}", change(now, before));
        format!("Compared with {period}: {}.", parts.into_iter().map(part).collect::<Vec<_>>().join(", "))
    }
}

/// For example `+12% (from 1,234)`.
fn change(now: f64, before: f64) -> String {
    let from = format::amount(before);
    if before <= 0.0 {
        return if now > 0.0 { format!("{} (from 0)", format::amount(now)) } else { "0 in both".to_owned() };
    }
    let part = (now - before) / before;
    if part.abs() < UNCHANGED {
        return format!("unchanged ({from})");
    }
    let sign = if part > 0.0 { "+" } else { "−" };
    format!("{sign}{} (from {from})", format::percent(part.abs()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sums(core_hours: u64, gpu_hours: u64, jobs: u64) -> UsageTotals {
        UsageTotals { core_s: core_hours * 3600, gpu_s: gpu_hours * 3600, jobs, ..UsageTotals::default() }
    }

    #[test]
    fn a_period_is_compared_with_the_one_before() {
        let before = PeriodBefore { from: Day(20_740), until: Day(20_769), totals: sums(100, 0, 10), missing: 0 };
        let said = before.comparison(&sums(112, 0, 10), 0);
        assert_eq!(
            said,
            "Compared with the 30 days before (14 Oct 2026 to 12 Nov 2026): core hours +12% (from 100), jobs ended unchanged (10)."
        );
        let said = before.comparison(&sums(50, 7, 0), 0);
        assert!(
            said.ends_with("core hours −50% (from 100), GPU hours 7 (from 0), jobs ended −100% (from 10)."),
            "{said}"
        );
        assert!(before.comparison(&sums(1, 0, 0), 2).starts_with("No comparison with the 30 days before"));
        let unread = PeriodBefore { missing: 1, ..before };
        assert!(unread.comparison(&sums(1, 0, 0), 0).ends_with("those days aren't fully loaded yet."));
    }
}
