//! How gently group usage is read: a year of it takes hundreds of commands, and none of them is urgent.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct UsageReadPace {
    /// Whether usage is read automatically.
    pub is_on: bool,
    /// How often to check what is due.
    pub tick: Duration,
    /// Minimum pause between two days, per person and cluster.
    pub min_pause: Duration,
    /// Only one in this many of the calls that a site allows per minute is used for this; 0 uses all of them. With 20
    /// calls a minute and every second one used, a year takes a little over half an hour.
    pub call_divisor: u32,
    /// The pause before the next check once everything has been read.
    pub idle: Duration,
    /// After the first failure; doubled after each further one, up to 32-fold.
    pub after_failure: Duration,
    /// How many days of history to read: a year.
    pub history_days: i64,
}

impl UsageReadPace {
    /// The pause between two days at a site that allows this many calls per minute.
    pub fn pause_for_rate(&self, calls_per_minute: u16) -> Duration {
        let share = Duration::from_mins(1) * self.call_divisor / u32::from(calls_per_minute.max(1));
        share.max(self.min_pause)
    }
}

impl Default for UsageReadPace {
    fn default() -> Self {
        Self {
            is_on: true,
            tick: Duration::from_secs(1),
            min_pause: Duration::from_secs(1),
            call_divisor: 2,
            idle: Duration::from_mins(1),
            after_failure: Duration::from_secs(30),
            history_days: 366,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_sites_calls_at_the_most() {
        let pace = UsageReadPace::default();
        assert_eq!(pace.pause_for_rate(20), Duration::from_secs(6));
        assert_eq!(pace.pause_for_rate(600), Duration::from_secs(1));
        assert_eq!(pace.pause_for_rate(0), Duration::from_mins(2));
    }
}
