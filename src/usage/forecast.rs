//! Where an allocation is heading: its usage, and a range for its end based on how much the weeks vary. Pure.

use crate::clock::Day;

/// How many weeks the forecast looks back.
pub(super) const LOOKBACK_WEEKS: i64 = 8;
/// With fewer whole weeks than this, there is no forecast.
const MIN_WEEKS: usize = 3;

/// Where an allocation is heading. All amounts are in hours.
#[derive(Debug, Clone, PartialEq)]
pub struct AllocationForecast {
    pub granted: f64,
    /// Used since the period began.
    pub used: f64,
    /// The fraction of the period that is over, from 0 to 1.
    pub elapsed: f64,
    /// The expected usage at the end of the period, if the coming weeks are like the quieter and like the busier of
    /// the last ones; none if too little is known, or if the period has ended.
    pub at_end: Option<(f64, f64)>,
    /// How many whole weeks the forecast is based on.
    pub weeks: usize,
    /// When it is used up, at the earliest and at the latest; none for a day after the period.
    pub runs_out: (Option<Day>, Option<Day>),
    /// Cumulative usage at the end of each day, from the first to the last known day.
    pub cumulative: Vec<(Day, f64)>,
}

impl AllocationForecast {
    /// What is left; negative if more was used than granted.
    pub fn remaining(&self) -> f64 {
        self.granted - self.used
    }

    /// The used fraction, from 0; more than 1 if more was used than granted.
    pub fn used_fraction(&self) -> f64 {
        if self.granted > 0.0 { self.used / self.granted } else { 0.0 }
    }
}

/// Forecasts an allocation. `hours` is the usage of each day, in order; missing days had no usage.
pub fn forecast_allocation(
    hours: &[(Day, f64)],
    granted: f64,
    begins: Day,
    ends: Day,
    today: Day,
) -> AllocationForecast {
    let inside = |day: &Day| *day >= begins && *day <= ends.min(today);
    let mut cumulative = Vec::new();
    let mut used = 0.0;
    for (day, amount) in hours.iter().filter(|(day, _)| inside(day)) {
        used += amount;
        cumulative.push((*day, used));
    }
    let length = (ends.0 - begins.0 + 1).max(1);
    let over = (today.0 - begins.0).clamp(0, length);
    let elapsed = to_f64(over) / to_f64(length);
    let left_days = (ends.0 - today.0).max(0);
    let weeks = weekly_usage(hours, today);
    let mut forecast = AllocationForecast {
        granted,
        used,
        elapsed,
        at_end: None,
        weeks: weeks.len(),
        runs_out: (None, None),
        cumulative,
    };
    if left_days == 0 || weeks.len() < MIN_WEEKS {
        return forecast;
    }
    // The quietest and the busiest fifth of the weeks are left out.
    let cut = weeks.len() / 5;
    let (quiet, busy) = (weeks[cut] / 7.0, weeks[weeks.len() - 1 - cut] / 7.0);
    forecast.at_end = Some((used + quiet * to_f64(left_days), used + busy * to_f64(left_days)));
    let out = |per_day: f64| {
        let left = granted - used;
        if left <= 0.0 || per_day <= 0.0 {
            return None;
        }
        let days = (left / per_day).ceil();
        (days <= to_f64(left_days)).then(|| today.plus(whole_days(days)))
    };
    forecast.runs_out = (out(busy), out(quiet));
    forecast
}

/// The usage of each of the last whole weeks up to yesterday, sorted. Weeks before the first usage do not count.
fn weekly_usage(hours: &[(Day, f64)], today: Day) -> Vec<f64> {
    let Some(first) = hours.iter().find(|(_, amount)| *amount > 0.0).map(|(day, _)| *day) else {
        return Vec::new();
    };
    let mut weeks: Vec<f64> = (0..LOOKBACK_WEEKS)
        .map(|back| (today.plus(-7 * (back + 1)), today.plus(-7 * back - 1)))
        .take_while(|(from, _)| *from >= first)
        .map(|(from, until)| hours.iter().filter(|(day, _)| (from..=until).contains(day)).map(|one| one.1).sum())
        .collect();
    weeks.sort_by(f64::total_cmp);
    weeks
}

#[expect(clippy::cast_precision_loss, reason = "days, or seconds of a drawing")]
pub(super) fn to_f64(number: i64) -> f64 {
    number as f64
}

#[expect(clippy::cast_possible_truncation, reason = "bounded before")]
pub(super) fn whole_days(days: f64) -> i64 {
    days.clamp(0.0, 100_000.0) as i64
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const TODAY: Day = Day(20_000);

    fn days(count: i64, hours: impl Fn(i64) -> f64) -> Vec<(Day, f64)> {
        (0..count).rev().map(|back| (TODAY.plus(-back), hours(back))).collect()
    }

    #[test]
    fn even_use_goes_on_evenly() {
        let found = forecast_allocation(&days(60, |_| 10.0), 1000.0, TODAY.plus(-49), TODAY.plus(50), TODAY);
        assert!((found.used - 500.0).abs() < 1e-9);
        assert!((found.elapsed - 0.49).abs() < 1e-9);
        let (low, high) = found.at_end.unwrap();
        assert!((low - 1000.0).abs() < 1e-6 && (high - 1000.0).abs() < 1e-6);
        assert_eq!(found.cumulative.len(), 50);
        let fast = forecast_allocation(&days(60, |_| 10.0), 700.0, TODAY.plus(-49), TODAY.plus(50), TODAY);
        assert_eq!(fast.runs_out, (Some(TODAY.plus(20)), Some(TODAY.plus(20))));
    }

    #[test]
    fn uneven_use_gives_a_range() {
        let uneven = days(60, |back| if back / 7 % 2 == 0 { 20.0 } else { 0.0 });
        let found = forecast_allocation(&uneven, 5000.0, TODAY.plus(-49), TODAY.plus(50), TODAY);
        let (low, high) = found.at_end.unwrap();
        assert!(low < high, "{low} {high}");
    }

    #[test]
    fn too_little_and_too_late() {
        let begins = TODAY.plus(-30);
        let young = forecast_allocation(&days(10, |_| 1.0), 100.0, begins, TODAY.plus(10), TODAY);
        assert_eq!((young.at_end, young.runs_out), (None, (None, None)));
        let over = forecast_allocation(&days(40, |_| 1.0), 20.0, begins, TODAY.plus(-1), TODAY);
        assert_eq!(over.at_end, None);
        assert!((over.elapsed - 1.0).abs() < 1e-9 && over.remaining() < 0.0 && over.used_fraction() > 1.0);
        let ahead = forecast_allocation(&days(40, |_| 1.0), 20.0, TODAY.plus(5), TODAY.plus(50), TODAY);
        assert!(ahead.used.abs() < 1e-9 && ahead.elapsed.abs() < 1e-9);
        assert!(forecast_allocation(&[], 0.0, TODAY, TODAY, TODAY).used_fraction().abs() < 1e-9);
    }

    proptest! {
        #[test]
        fn any_numbers_are_survived(
            hours in proptest::collection::vec((19_900_i64..20_010, 0.0_f64..1e9), 0..90),
            granted in 0.0_f64..1e12, begins in 19_800_i64..20_100, length in 0_i64..400,
        ) {
            let mut hours: Vec<(Day, f64)> = hours.into_iter().map(|(day, h)| (Day(day), h)).collect();
            hours.sort_by_key(|one| one.0);
            let found = forecast_allocation(&hours, granted, Day(begins), Day(begins + length), TODAY);
            prop_assert!(found.at_end.is_none_or(|(low, high)| low <= high + 1e-3 && low >= found.used - 1e-3));
            prop_assert!((0.0..=1.0).contains(&found.elapsed));
        }
    }
}
