//! How often queues are looked at: politely, whatever a site's description says.

use std::time::Duration;

/// The pace of looking at queues.
#[derive(Debug, Clone)]
pub struct Pace {
    /// Whether queues are looked at by themselves.
    pub is_on: bool,
    /// No queue is looked at more often than this by itself.
    pub fastest: Duration,
    /// No site makes it slower than this.
    pub slowest: Duration,
    /// While nobody looks and jobs are under way.
    pub away: Duration,
    /// While nobody looks and no job is under way.
    pub asleep: Duration,
    /// After something was done that changes the queue.
    pub after_action: Duration,
    /// How often it is checked what is due.
    pub tick: Duration,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            is_on: true,
            fastest: Duration::from_secs(15),
            slowest: Duration::from_hours(1),
            away: Duration::from_mins(2),
            asleep: Duration::from_mins(5),
            after_action: Duration::from_secs(2),
            tick: Duration::from_millis(500),
        }
    }
}

impl Pace {
    /// The interval while someone looks, where a site wants this one.
    pub fn every(&self, wanted: Duration) -> Duration {
        wanted.min(self.slowest).max(self.fastest)
    }

    /// The pause until the next look.
    pub fn pause(&self, every: Duration, is_looked_at: bool, has_open: bool) -> Duration {
        match (is_looked_at, has_open) {
            (true, _) => every,
            (false, true) => every.max(self.away),
            (false, false) => every.max(self.asleep),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looking_means_less_than_one_look_a_minute() {
        let pace = Pace::default();
        let every = pace.every(Duration::from_secs(2));
        assert_eq!(every, Duration::from_secs(15));
        assert_eq!(pace.pause(every, true, false), every);
        for has_open in [true, false] {
            assert!(pace.pause(every, false, has_open) >= Duration::from_mins(1));
        }
    }
}
