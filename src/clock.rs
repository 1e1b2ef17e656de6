//! Where "now" comes from. Everything that needs the time takes a [`Clock`], so that tests can move it.

mod calendar;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

pub use self::calendar::{Day, Month, SECONDS_PER_DAY};

/// A time in whole seconds since 1970, as stored in the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct UnixTime(pub i64);

impl UnixTime {
    /// Adds seconds, which may be negative.
    #[must_use]
    pub const fn plus(self, seconds: i64) -> Self {
        Self(self.0.saturating_add(seconds))
    }

    /// Seconds from `earlier` to this time.
    pub const fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// For the `datetime` attribute: `2026-11-16T09:12:00Z`.
    pub fn iso(self) -> String {
        jiff::Timestamp::from_second(self.0).map_or_else(|_| String::new(), |t| t.to_string())
    }

    /// The day in UTC: `2026-11-16`.
    pub fn utc_date(self) -> String {
        self.iso().chars().take(10).collect()
    }

    /// For people, where no script can make it relative: `16 Nov 2026, 09:12 UTC`.
    pub fn words(self) -> String {
        jiff::Timestamp::from_second(self.0)
            .map_or_else(|_| "unknown".into(), |t| t.strftime("%-d %b %Y, %H:%M UTC").to_string())
    }
}

impl fmt::Display for UnixTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words())
    }
}

/// Tells the time: the machine's, or one that a test sets.
#[derive(Clone)]
pub struct Clock(Arc<ClockSource>);

enum ClockSource {
    System,
    Manual(AtomicI64),
}

impl Clock {
    pub fn system() -> Self {
        Self(Arc::new(ClockSource::System))
    }

    /// A clock that stands still at `start` until [`Clock::advance`] moves it.
    pub fn manual(start: UnixTime) -> Self {
        Self(Arc::new(ClockSource::Manual(AtomicI64::new(start.0))))
    }

    #[expect(clippy::disallowed_methods, reason = "the one place that may ask the machine")]
    pub fn now(&self) -> UnixTime {
        match &*self.0 {
            ClockSource::System => UnixTime(jiff::Timestamp::now().as_second()),
            ClockSource::Manual(seconds) => UnixTime(seconds.load(Ordering::SeqCst)),
        }
    }

    /// Moves a manual clock; no effect on the machine's clock.
    pub fn advance(&self, seconds: i64) {
        if let ClockSource::Manual(now) = &*self.0 {
            now.fetch_add(seconds, Ordering::SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manual_clock_moves_only_when_told() {
        let clock = Clock::manual(UnixTime(1_000));
        clock.advance(-10);
        assert_eq!(clock.now(), UnixTime(990));
        assert_eq!(clock.now().since(UnixTime(1_000)), -10);
    }

    #[test]
    fn moments_read_well() {
        let moment = UnixTime(1_794_820_320);
        assert_eq!(moment.iso(), "2026-11-16T09:12:00Z");
        assert_eq!(moment.words(), "16 Nov 2026, 09:12 UTC");
        assert_eq!(UnixTime(i64::MAX).words(), "unknown");
    }
}
