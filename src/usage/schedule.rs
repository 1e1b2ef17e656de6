//! Decides which day is read next. Pure.

use super::account_usage::AccountUsage;
use crate::clock::{Day, SECONDS_PER_DAY, UnixTime};

/// A day that was read this long after its end is never read again: late ends and corrections have arrived by then.
pub const SETTLED_AFTER: i64 = 2 * SECONDS_PER_DAY;
/// Days that may still change are read again after this long, in seconds.
const REREAD_AFTER: i64 = 3 * 3600;
/// The same for today, while someone views the page.
const REREAD_TODAY_AFTER: i64 = 10 * 60;
/// The next day to read of an account, latest first; none if everything is fresh enough.
pub fn next_day(usage: &AccountUsage, depth: i64, today: Day, now: UnixTime, is_viewed: bool) -> Option<Day> {
    (0..depth).map(|back| today.plus(-back)).find(|day| is_due(usage, *day, today, now, is_viewed))
}

/// Whether a day of an account should be read.
pub fn is_due(usage: &AccountUsage, day: Day, today: Day, now: UnixTime, is_viewed: bool) -> bool {
    let Some(day_usage) = usage.days.get(&day) else { return true };
    if day_usage.is_final {
        return false;
    }
    let age = now.since(day_usage.read_at);
    let again = if day >= today && is_viewed { REREAD_TODAY_AFTER } else { REREAD_AFTER };
    age >= again
}

/// Progress of an account: days that were read, and days that are wanted.
pub fn progress(usage: &AccountUsage, depth: i64, today: Day) -> (i64, i64) {
    let from = today.plus(1 - depth);
    let read = usage.days.range(from..=today).count();
    (i64::try_from(read).unwrap_or(depth).min(depth), depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::usage::UsageDayReadRow;
    use crate::usage::daily_totals::DayUsageBreakdown;

    #[test]
    fn the_latest_first_and_nothing_twice() {
        let (today, now) = (Day(20_000), UnixTime(20_000 * 86_400 + 5000));
        let mut usage = AccountUsage::default();
        let mut order = Vec::new();
        while let Some(day) = next_day(&usage, 366, today, now, true) {
            order.push(day);
            let until = day.plus(1).start();
            let is_final = now.since(until) >= SETTLED_AFTER;
            let read = UsageDayReadRow { day, read_at: now, is_final, is_cut: false };
            usage = usage.with_day(read, &DayUsageBreakdown::default());
        }
        assert_eq!(order.len(), 366);
        assert_eq!((order[0], order[1]), (today, today.plus(-1)));
        assert_eq!(progress(&usage, 366, today), (366, 366));
        let later = now.plus(REREAD_TODAY_AFTER);
        assert_eq!(next_day(&usage, 366, today, later, true), Some(today));
        assert_eq!(next_day(&usage, 366, today, later, false), None);
        let much_later = now.plus(REREAD_AFTER);
        assert!(is_due(&usage, today.plus(-1), today, much_later, false));
        assert!(!is_due(&usage, today.plus(-4), today, much_later, true), "settled");
    }
}
