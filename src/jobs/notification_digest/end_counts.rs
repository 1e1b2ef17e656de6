//! How many jobs ended, and how.

use crate::format;
use crate::slurm::job::JobState;

/// How many jobs ended, by outcome.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobEndCounts {
    pub all: u64,
    pub done: u64,
    /// Not because of a node.
    pub failed: u64,
    /// A node failed or didn't boot: not a failure of the program.
    pub node_failed: u64,
    pub cancelled: u64,
}

impl JobEndCounts {
    pub fn add(&mut self, state: JobState) {
        self.all += 1;
        match state {
            JobState::Completed => self.done += 1,
            JobState::Cancelled => self.cancelled += 1,
            JobState::NodeFail | JobState::BootFail => self.node_failed += 1,
            state if state.is_failure() => self.failed += 1,
            _ => {}
        }
    }

    pub fn add_all(&mut self, others: Self) {
        self.all += others.all;
        self.done += others.done;
        self.failed += others.failed;
        self.node_failed += others.node_failed;
        self.cancelled += others.cancelled;
    }

    /// Whether any job did not succeed, for whatever reason.
    pub const fn has_failures(self) -> bool {
        self.failed + self.node_failed > 0
    }

    /// After the number of jobs: `completed` if all ended the same way, else `ended: 11 completed, 1 failed`.
    pub fn after_count(self) -> String {
        match self.all {
            all if all == self.done => "completed".to_owned(),
            all if all == self.failed => "failed".to_owned(),
            all if all == self.node_failed => "ended because a node failed".to_owned(),
            all if all == self.cancelled => "cancelled".to_owned(),
            _ => format!("ended: {}", self.summary()),
        }
    }

    /// `11 completed, 1 failed`
    pub fn summary(self) -> String {
        let unknown = self.all - self.done - self.failed - self.node_failed - self.cancelled;
        let parts = [
            (self.done, "completed"),
            (self.failed, "failed"),
            (self.node_failed, if self.node_failed == 1 { "lost to a node failure" } else { "lost to node failures" }),
            (self.cancelled, "cancelled"),
            (unknown, "unknown"),
        ];
        let part = |(count, word): (u64, &str)| (count > 0).then(|| format!("{} {word}", format::number(count)));
        parts.into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(states: &[JobState]) -> JobEndCounts {
        let mut counts = JobEndCounts::default();
        for state in states {
            counts.add(*state);
        }
        counts
    }

    #[test]
    fn node_failures_are_counted_apart() {
        let all = counts(&[JobState::Completed, JobState::Failed, JobState::NodeFail, JobState::BootFail]);
        assert_eq!(all.after_count(), "ended: 1 completed, 1 failed, 2 lost to node failures");
        let nodes = counts(&[JobState::NodeFail; 2]);
        assert_eq!(nodes.after_count(), "ended because a node failed");
        assert!(nodes.has_failures() && !counts(&[JobState::Completed, JobState::Cancelled]).has_failures());
    }
}
