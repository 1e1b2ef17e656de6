//! How often queues are read: politely, whatever a site's description says.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct QueuePace {
    /// Whether queues are read automatically.
    pub is_on: bool,
    /// Lower bound for automatic reads.
    pub min_interval: Duration,
    /// Upper bound for what a site can ask for.
    pub max_interval: Duration,
    /// Interval while nobody watches and jobs are active.
    pub unwatched_active: Duration,
    /// Interval while nobody watches and no job is active.
    pub unwatched_idle: Duration,
    /// Delay after an action that changes the queue.
    pub after_action: Duration,
    /// Pause between two manual refreshes of fair share, storage and quota, which cost the cluster more than the queue.
    pub resources_again: Duration,
    /// How often to check which queues are due.
    pub tick: Duration,
}

impl Default for QueuePace {
    fn default() -> Self {
        Self {
            is_on: true,
            min_interval: Duration::from_secs(15),
            max_interval: Duration::from_hours(1),
            unwatched_active: Duration::from_mins(2),
            unwatched_idle: Duration::from_mins(5),
            after_action: Duration::from_secs(2),
            resources_again: Duration::from_mins(1),
            tick: Duration::from_millis(500),
        }
    }
}

impl QueuePace {
    /// The interval while someone watches, for a site that asks for `wanted`.
    pub fn clamp_interval(&self, wanted: Duration) -> Duration {
        wanted.min(self.max_interval).max(self.min_interval)
    }

    /// The pause until the next read.
    pub fn next_pause(&self, every: Duration, is_looked_at: bool, has_open: bool) -> Duration {
        match (is_looked_at, has_open) {
            (true, _) => every,
            (false, true) => every.max(self.unwatched_active),
            (false, false) => every.max(self.unwatched_idle),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_looking_means_less_than_one_look_a_minute() {
        let pace = QueuePace::default();
        let every = pace.clamp_interval(Duration::from_secs(2));
        assert_eq!(every, Duration::from_secs(15));
        assert_eq!(pace.next_pause(every, true, false), every);
        for has_open in [true, false] {
            assert!(pace.next_pause(every, false, has_open) >= Duration::from_mins(1));
        }
    }
}
