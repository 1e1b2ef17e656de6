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
pub fn next_day(ledger: &AccountUsage, depth: i64, today: Day, now: UnixTime, is_looked_at: bool) -> Option<Day> {
    (0..depth).map(|back| today.plus(-back)).find(|day| is_due(ledger, *day, today, now, is_looked_at))
}

/// Whether a day of an account should be read.
pub fn is_due(ledger: &AccountUsage, day: Day, today: Day, now: UnixTime, is_looked_at: bool) -> bool {
    let Some(page) = ledger.days.get(&day) else { return true };
    if page.is_final {
        return false;
    }
    let age = now.since(page.read_at);
    let again = if day >= today && is_looked_at { REREAD_TODAY_AFTER } else { REREAD_AFTER };
    age >= again
}

/// Progress of an account: days that were read, and days that are wanted.
pub fn progress(ledger: &AccountUsage, depth: i64, today: Day) -> (i64, i64) {
    let from = today.plus(1 - depth);
    let read = ledger.days.range(from..=today).count();
    (i64::try_from(read).unwrap_or(depth).min(depth), depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::usage::UsageDayReadRow;
    use crate::usage::daily_totals::DayUsageTotals;

    #[test]
    fn the_latest_first_and_nothing_twice() {
        let (today, now) = (Day(20_000), UnixTime(20_000 * 86_400 + 5000));
        let mut ledger = AccountUsage::default();
        let mut order = Vec::new();
        while let Some(day) = next_day(&ledger, 366, today, now, true) {
            order.push(day);
            let until = day.plus(1).start();
            let is_final = now.since(until) >= SETTLED_AFTER;
            let read = UsageDayReadRow { day, read_at: now, is_final, is_cut: false };
            ledger = ledger.with_day(read, &DayUsageTotals::default());
        }
        assert_eq!(order.len(), 366);
        assert_eq!((order[0], order[1]), (today, today.plus(-1)));
        assert_eq!(progress(&ledger, 366, today), (366, 366));
        let later = now.plus(REREAD_TODAY_AFTER);
        assert_eq!(next_day(&ledger, 366, today, later, true), Some(today));
        assert_eq!(next_day(&ledger, 366, today, later, false), None);
        let much_later = now.plus(REREAD_AFTER);
        assert!(is_due(&ledger, today.plus(-1), today, much_later, false));
        assert!(!is_due(&ledger, today.plus(-4), today, much_later, true), "settled");
    }
}
