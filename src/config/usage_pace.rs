//! How gently the use of groups is read: a year of it is hundreds of commands, and none of them is urgent.

use std::time::Duration;

/// The pace of reading.
#[derive(Debug, Clone)]
pub struct UsagePace {
    /// Whether anything is read by itself.
    pub is_on: bool,
    /// How often it is checked what is due.
    pub tick: Duration,
    /// At the least between two days, for one person on one cluster.
    pub between: Duration,
    /// One of so many of the calls that a site allows in a minute may be for this; 0: all of them. With 20 calls a minute
    /// and every second of them, a year takes a little over half an hour.
    pub one_call_of: u32,
    /// Until it is looked again, once all is known.
    pub idle: Duration,
    /// After the first failure; doubled after each further one, up to thirty-twofold.
    pub after_failure: Duration,
    /// How many days back is read: a year.
    pub days: i64,
}

impl UsagePace {
    /// The pause between two days at a site that allows so many calls in a minute.
    pub fn pause(&self, calls_per_minute: u16) -> Duration {
        let share = Duration::from_mins(1) * self.one_call_of / u32::from(calls_per_minute.max(1));
        share.max(self.between)
    }
}

impl Default for UsagePace {
    fn default() -> Self {
        Self {
            is_on: true,
            tick: Duration::from_secs(1),
            between: Duration::from_secs(1),
            one_call_of: 2,
            idle: Duration::from_mins(1),
            after_failure: Duration::from_secs(30),
            days: 366,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn half_of_a_sites_calls_at_the_most() {
        let pace = UsagePace::default();
        assert_eq!(pace.pause(20), Duration::from_secs(6));
        assert_eq!(pace.pause(600), Duration::from_secs(1));
        assert_eq!(pace.pause(0), Duration::from_mins(2));
    }
}
