//! The period of a report: a month, or any days up to a year.

use crate::clock::{Day, Month};
use crate::usage::figures::ChartStep;

/// The longest period: a year, even one with a 29 February.
pub const MAX_REPORT_DAYS: i64 = 366;
/// Longer periods are drawn by week.
const MAX_DAILY_BARS: i64 = 62;

/// A report's first and last day, both included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReportPeriod {
    pub from: Day,
    pub until: Day,
    month: Option<Month>,
}

impl ReportPeriod {
    pub fn month(month: Month) -> Self {
        Self { from: month.first(), until: month.last(), month: Some(month) }
    }

    /// None if the days are in the wrong order or too many.
    pub fn days(from: Day, until: Day) -> Option<Self> {
        let days = until.0.checked_sub(from.0)? + 1;
        (1..=MAX_REPORT_DAYS).contains(&days).then_some(Self { from, until, month: None })
    }

    pub fn words(self) -> String {
        let days = || format!("{} to {}", self.from.words(), self.until.words());
        self.month.map_or_else(days, Month::words)
    }

    /// Such as `2026-11`; empty if it is no month.
    pub fn month_code(self) -> String {
        self.month.map(|month| month.to_string()).unwrap_or_default()
    }

    /// `month` or `period`.
    pub const fn noun(self) -> &'static str {
        if self.month.is_some() { "month" } else { "period" }
    }

    /// What one bar of its chart covers.
    pub fn step(self) -> ChartStep {
        if self.until.0 - self.from.0 < MAX_DAILY_BARS { ChartStep::Day } else { ChartStep::Week }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_year_is_the_longest_period() {
        let day = |text: &str| Day::parse(text).unwrap();
        let year = ReportPeriod::days(day("2024-01-01"), day("2024-12-31")).unwrap();
        assert_eq!((year.words().as_str(), year.step()), ("1 Jan 2024 to 31 Dec 2024", ChartStep::Week));
        assert_eq!(ReportPeriod::days(day("2024-01-01"), day("2025-01-01")), None);
        assert_eq!(ReportPeriod::days(day("2024-01-02"), day("2024-01-01")), None);
        assert_eq!(ReportPeriod::days(Day(i64::MIN), Day(i64::MAX)), None, "no overflow");
        let month = ReportPeriod::month(Month::parse("2026-11").unwrap());
        assert_eq!((month.month_code().as_str(), month.step()), ("2026-11", ChartStep::Day));
        assert_eq!((month.noun(), year.noun()), ("month", "period"));
    }
}
