//! How gently the use of groups is read: a year of it is hundreds of commands, and none of them is urgent.

use std::time::Duration;

/// The pace of reading.
#[derive(Debug, Clone)]
pub struct UsagePace {
    /// Whether anything is read by itself.
    pub is_on: bool,
    /// How often it is checked what is due.
    pub tick: Duration,
    /// Between two days, for one person on one cluster. A year takes a little over half an hour.
    pub between: Duration,
    /// Until it is looked again, once all is known.
    pub idle: Duration,
    /// After the first failure; doubled after each further one, up to thirty-twofold.
    pub after_failure: Duration,
    /// How many days back is read: a year.
    pub days: i64,
}

impl Default for UsagePace {
    fn default() -> Self {
        Self {
            is_on: true,
            tick: Duration::from_secs(1),
            between: Duration::from_secs(5),
            idle: Duration::from_mins(1),
            after_failure: Duration::from_secs(30),
            days: 366,
        }
    }
}
