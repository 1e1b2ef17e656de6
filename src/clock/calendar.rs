//! Calendar days and months without a time zone; the caller knows which zone applies.

use std::fmt;

use jiff::civil::Date;
use serde::{Deserialize, Serialize};

use super::UnixTime;

/// A day, counted from 1 January 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Day(pub i64);

pub const SECONDS_PER_DAY: i64 = 86_400;

impl Day {
    /// The day of a time, in UTC.
    pub const fn from_time(at: UnixTime) -> Self {
        Self(at.0.div_euclid(SECONDS_PER_DAY))
    }

    /// Parses `2026-11-16`.
    pub fn parse(text: &str) -> Option<Self> {
        let date: Date = text.trim().parse().ok()?;
        Some(Self::from_date(date))
    }

    fn from_date(date: Date) -> Self {
        let zero = Date::constant(1970, 1, 1);
        Self(date.since(zero).map_or(0, |span| i64::from(span.get_days())))
    }

    fn date(self) -> Date {
        let zero = Date::constant(1970, 1, 1);
        let days = self.0.clamp(-700_000, 2_900_000);
        zero.checked_add(jiff::Span::new().days(days)).unwrap_or(zero)
    }

    /// This many days later, or earlier if negative.
    #[must_use]
    pub const fn plus(self, days: i64) -> Self {
        Self(self.0.saturating_add(days))
    }

    /// Midnight UTC at its start.
    pub const fn start(self) -> UnixTime {
        UnixTime(self.0.saturating_mul(SECONDS_PER_DAY))
    }

    pub fn month(self) -> Month {
        let date = self.date();
        Month { year: date.year(), month: date.month() }
    }

    #[must_use]
    pub const fn monday(self) -> Self {
        // 1 January 1970 was a Thursday.
        Self(self.0 - (self.0 + 3).rem_euclid(7))
    }

    /// For people: `16 Nov 2026`.
    pub fn words(self) -> String {
        self.date().strftime("%-d %b %Y").to_string()
    }

    /// Without the year: `16 Nov`.
    pub fn short(self) -> String {
        self.date().strftime("%-d %b").to_string()
    }
}

/// `2026-11-16`
impl fmt::Display for Day {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.date().fmt(f)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Month {
    year: i16,
    month: i8,
}

impl Month {
    /// Parses `2026-11`.
    pub fn parse(text: &str) -> Option<Self> {
        (text.len() == 7).then(|| Day::parse(&format!("{text}-01")))?.map(Day::month)
    }

    pub fn first(self) -> Day {
        Date::new(self.year, self.month, 1).map_or(Day(0), Day::from_date)
    }

    pub fn last(self) -> Day {
        self.next().first().plus(-1)
    }

    #[must_use]
    pub fn next(self) -> Self {
        self.first().plus(31).month()
    }

    #[must_use]
    pub fn previous(self) -> Self {
        self.first().plus(-1).month()
    }

    /// Month of the year, from 1.
    pub const fn number(self) -> i8 {
        self.month
    }

    pub const fn year(self) -> i16 {
        self.year
    }

    /// For people: `November 2026`.
    pub fn words(self) -> String {
        self.first().date().strftime("%B %Y").to_string()
    }
}

/// `2026-11`
impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_and_months() {
        let day = Day::parse("2026-11-16").unwrap();
        assert_eq!(day.0, 20_773);
        assert_eq!(Day::from_time(UnixTime(1_794_820_320)), day);
        assert_eq!((day.to_string(), day.words()), ("2026-11-16".into(), "16 Nov 2026".into()));
        assert_eq!(day.monday(), day, "a Monday");
        assert_eq!(day.plus(6).monday(), day);
        assert_eq!(Day(-1).to_string(), "1969-12-31");
        let month = day.month();
        assert_eq!((month.to_string(), month.words()), ("2026-11".into(), "November 2026".into()));
        assert_eq!((month.first().to_string(), month.last().to_string()), ("2026-11-01".into(), "2026-11-30".into()));
        assert_eq!(Month::parse("2024-02").unwrap().last().to_string(), "2024-02-29");
        assert_eq!(Month::parse("2026-12").unwrap().next().to_string(), "2027-01");
        assert_eq!(Month::parse("2026-01").unwrap().previous().to_string(), "2025-12");
        for none in ["", "2026-13", "2026-1", "x", "2026-11-16", "99999-01"] {
            assert_eq!(Month::parse(none), None, "{none}");
        }
        assert_eq!(Day(i64::MAX).plus(1), Day(i64::MAX));
        let _ = (Day(i64::MAX).words(), Day(i64::MIN).month().last());
    }
}
