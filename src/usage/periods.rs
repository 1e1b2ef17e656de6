//! The allocation periods of sites: defaults for a form. Pure.

use crate::clock::{Day, Month};
use crate::sites::SiteAllocationPeriod;

/// The period that contains a day. Where a site has no fixed period, the calendar year.
pub fn allocation_period(period: SiteAllocationPeriod, today: Day) -> (Day, Day) {
    let begins: &[i8] = match period {
        SiteAllocationPeriod::None => &[1],
        SiteAllocationPeriod::AprilMarch => &[4],
        SiteAllocationPeriod::HalfYears => &[4, 10],
    };
    let is_first = |month: &Month| begins.contains(&month.number());
    let months = |from: Month, next: fn(Month) -> Month| {
        // A year has every month.
        std::iter::successors(Some(from), move |month| Some(next(*month))).take(12)
    };
    let this = today.month();
    let first = months(this, Month::previous).find(is_first).unwrap_or(this);
    let after = months(first.next(), Month::next).find(is_first).unwrap_or(first);
    (first.first(), after.first().plus(-1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn periods_of_sites() {
        let day = |text: &str| Day::parse(text).unwrap();
        for (period, today, from, until) in [
            (SiteAllocationPeriod::AprilMarch, "2026-11-16", "2026-04-01", "2027-03-31"),
            (SiteAllocationPeriod::AprilMarch, "2026-03-31", "2025-04-01", "2026-03-31"),
            (SiteAllocationPeriod::AprilMarch, "2026-04-01", "2026-04-01", "2027-03-31"),
            (SiteAllocationPeriod::HalfYears, "2026-11-16", "2026-10-01", "2027-03-31"),
            (SiteAllocationPeriod::HalfYears, "2026-05-01", "2026-04-01", "2026-09-30"),
            (SiteAllocationPeriod::None, "2026-11-16", "2026-01-01", "2026-12-31"),
        ] {
            assert_eq!(allocation_period(period, day(today)), (day(from), day(until)), "{today}");
        }
    }
}
