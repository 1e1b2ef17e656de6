//! Decides which day is read next. Pure.

use super::account_usage::AccountUsage;
use crate::clock::{Day, SECONDS_PER_DAY, UnixTime};

/// A day that was read this long after its end is never read again: late ends and corrections have arrived by then.
pub const SETTLED_AFTER: i64 = 2 * SECONDS_PER_DAY;
/// Days that may still change are read again after this long, in seconds.
const REREAD_AFTER: i64 = 3 * 3600;
/// The same for today, while someone views the page.
const REREAD_TODAY_AFTER: i64 = 10 * 60;
/// So many days beyond the usual history are read if someone chooses them.
pub const EXTRA_DAYS: i64 = 34;

/// A day to read. The greatest one comes first: a day that someone has chosen to see, then the latest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct DueUsageDay {
    pub is_chosen: bool,
    pub day: Day,
}

/// What decides which day of an account is read next.
#[derive(Debug, Clone, Copy)]
pub struct ReadingOrder<'a> {
    /// How many days to read, today included.
    pub depth: i64,
    pub today: Day,
    pub now: UnixTime,
    /// Whether someone views the page.
    pub is_viewed: bool,
    /// The periods that people have chosen on the page, first and last day.
    pub chosen: &'a [(Day, Day)],
}

/// The next day to read of an account; none if everything is fresh enough.
pub fn next_day(usage: &AccountUsage, order: ReadingOrder<'_>) -> Option<DueUsageDay> {
    let ReadingOrder { depth, today, now, is_viewed, chosen } = order;
    let earliest = today.plus(1 - depth - EXTRA_DAYS);
    let is_due = |day: &Day| is_due(usage, *day, today, now, is_viewed);
    let in_period = |(first, last): &(Day, Day)| {
        let (first, last) = ((*first).max(earliest), (*last).min(today));
        (first.0..=last.0).rev().map(Day).find(is_due)
    };
    if let Some(day) = chosen.iter().find_map(in_period) {
        return Some(DueUsageDay { is_chosen: true, day });
    }
    let day = (0..depth).map(|back| today.plus(-back)).find(is_due)?;
    Some(DueUsageDay { is_chosen: false, day })
}

/// Days of which it is normal that they aren't settled.
const RECENT_DAYS: i64 = 7;

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

/// Progress of an account: days that were read, and days that are wanted. Older days that have to be read again don't
/// count: their figures may still change.
pub fn progress(usage: &AccountUsage, depth: i64, today: Day) -> (i64, i64) {
    let (from, recent) = (today.plus(1 - depth), today.plus(-RECENT_DAYS));
    let days = usage.days.range(from..=today);
    let read = days.filter(|(day, day_usage)| day_usage.is_final || **day >= recent).count();
    (i64::try_from(read).unwrap_or(depth).min(depth), depth)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::usage::UsageDayReadRow;
    use crate::usage::daily_totals::DayUsageBreakdown;

    const TODAY: Day = Day(20_000);
    const NOW: UnixTime = UnixTime(20_000 * 86_400 + 5000);

    fn order(now: UnixTime, is_viewed: bool, chosen: &[(Day, Day)]) -> ReadingOrder<'_> {
        ReadingOrder { depth: 366, today: TODAY, now, is_viewed, chosen }
    }

    fn read(usage: &AccountUsage, day: Day) -> AccountUsage {
        let is_final = NOW.since(day.plus(1).start()) >= SETTLED_AFTER;
        let read = UsageDayReadRow { day, read_at: NOW, is_final, is_cut: false };
        usage.with_day(read, &DayUsageBreakdown::default())
    }

    fn next(usage: &AccountUsage, now: UnixTime, is_viewed: bool) -> Option<Day> {
        next_day(usage, order(now, is_viewed, &[])).map(|due| due.day)
    }

    #[test]
    fn the_latest_first_and_nothing_twice() {
        let mut usage = AccountUsage::default();
        let mut order = Vec::new();
        while let Some(day) = next(&usage, NOW, true) {
            order.push(day);
            usage = read(&usage, day);
        }
        assert_eq!(order.len(), 366);
        assert_eq!((order[0], order[1]), (TODAY, TODAY.plus(-1)));
        assert_eq!(progress(&usage, 366, TODAY), (366, 366));
        let later = NOW.plus(REREAD_TODAY_AFTER);
        assert_eq!(next(&usage, later, true), Some(TODAY));
        assert_eq!(next(&usage, later, false), None);
        let much_later = NOW.plus(REREAD_AFTER);
        assert!(is_due(&usage, TODAY.plus(-1), TODAY, much_later, false));
        assert!(!is_due(&usage, TODAY.plus(-4), TODAY, much_later, true), "settled");
    }

    #[test]
    fn days_that_someone_chose_come_first() {
        let back = |days: i64| TODAY.plus(-days);
        let mut usage = read(&AccountUsage::default(), TODAY);
        let chosen = [(back(200), back(199)), (back(100), back(100)), (back(9000), back(399))];
        let mut days = Vec::new();
        for _ in 0..5 {
            let due = next_day(&usage, order(NOW, true, &chosen)).unwrap();
            days.push(due);
            usage = read(&usage, due.day);
        }
        let chosen_day = |days: i64| DueUsageDay { is_chosen: true, day: back(days) };
        let usual = DueUsageDay { is_chosen: false, day: back(1) };
        // Nothing is read further back than 366 days and a month.
        assert_eq!(days, [chosen_day(199), chosen_day(200), chosen_day(100), chosen_day(399), usual]);
        assert!(chosen_day(200) > usual, "across accounts as well");
    }
}
