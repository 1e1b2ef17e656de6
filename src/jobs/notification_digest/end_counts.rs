//! How many jobs ended, and how.

use crate::format;
use crate::slurm::job::JobState;

/// How many jobs ended, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobEndCounts {
    pub all: u64,
    pub done: u64,
    pub failed: u64,
    pub cancelled: u64,
}

impl JobEndCounts {
    pub fn add(&mut self, state: JobState) {
        self.all += 1;
        match state {
            JobState::Completed => self.done += 1,
            JobState::Cancelled => self.cancelled += 1,
            state if state.is_failure() => self.failed += 1,
            _ => {}
        }
    }

    pub fn add_all(&mut self, others: Self) {
        self.all += others.all;
        self.done += others.done;
        self.failed += others.failed;
        self.cancelled += others.cancelled;
    }

    /// After the number of jobs: `completed` if all ended the same way, else `ended: 11 completed, 1 failed`.
    pub fn after_count(self) -> String {
        match self.all {
            all if all == self.done => "completed".to_owned(),
            all if all == self.failed => "failed".to_owned(),
            all if all == self.cancelled => "cancelled".to_owned(),
            _ => format!("ended: {}", self.summary()),
        }
    }

    /// `11 completed, 1 failed`
    pub fn summary(self) -> String {
        let unknown = self.all - self.done - self.failed - self.cancelled;
        let parts =
            [(self.done, "completed"), (self.failed, "failed"), (self.cancelled, "cancelled"), (unknown, "unknown")];
        let part = |(count, word): (u64, &str)| (count > 0).then(|| format!("{} {word}", format::number(count)));
        parts.into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
    }
}
