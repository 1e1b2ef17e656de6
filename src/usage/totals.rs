//! What is added up: hours, jobs, waste. Everything here can be summed over days, people and job types.
//! `docs/FIGURES.md` defines each figure.

use super::breakdown::UsageBreakdown;
use super::wait_histogram::WaitHistogram;
use crate::domain::codes;
use crate::slurm::job::JobState;

/// The sums over a set of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UsageTotals {
    /// Core seconds allocated within the period.
    pub core_s: u64,
    /// The site's own unit, in thousandths of a unit per second; 0 where the site has none.
    pub site_ms: u64,
    /// GPU seconds of any model.
    pub gpu_s: u64,
    /// The same by model, sorted by name; the name is empty where the site does not report models.
    pub gpus: Vec<(String, u64)>,
    /// Jobs that ended within the period. Everything below is about these jobs, over their whole run.
    pub jobs: u64,
    pub done: u64,
    /// The program ended with an error.
    pub failed: u64,
    /// A node failed or didn't boot.
    pub node_failed: u64,
    /// Preempted; also node failures, on days that an older version read and the cluster has deleted since.
    pub interrupted: u64,
    /// Reached the time limit.
    pub timed_out: u64,
    pub missed_deadline: u64,
    /// Ran out of memory.
    pub memory_out: u64,
    pub cancelled: u64,
    /// Core seconds allocated to jobs whose usage was measured.
    pub held_core_s: u64,
    /// CPU seconds that they used.
    pub used_core_s: u64,
    /// Mebibytes of memory times seconds, allocated to jobs whose usage was measured.
    pub held_mb_s: u64,
    /// Their peak memory times their run time.
    pub used_mb_s: u64,
    /// GPU seconds allocated to jobs whose usage was measured.
    pub held_gpu_s: u64,
    /// Seconds for which these GPUs were busy.
    pub used_gpu_s: u64,
    /// Core seconds of jobs that did not succeed.
    pub lost_core_s: u64,
    /// GPU seconds of these jobs.
    pub lost_gpu_s: u64,
    /// Over-requested core seconds: what asking for fewer cores would have saved.
    pub spare_core_s: u64,
    /// Over-requested memory, in mebibytes times seconds.
    pub spare_mb_s: u64,
    /// Over-requested GPU seconds.
    pub spare_gpu_s: u64,
    /// Hours and jobs by partition, as far as known.
    pub partitions: UsageBreakdown,
    /// The same by QOS.
    pub qos: UsageBreakdown,
    /// Their waiting times.
    pub waits: WaitHistogram,
}

impl UsageTotals {
    pub fn add(&mut self, other: &Self) {
        self.core_s += other.core_s;
        self.site_ms += other.site_ms;
        self.gpu_s += other.gpu_s;
        for (model, seconds) in &other.gpus {
            self.add_gpus(model, *seconds);
        }
        self.jobs += other.jobs;
        self.done += other.done;
        self.failed += other.failed;
        self.node_failed += other.node_failed;
        self.interrupted += other.interrupted;
        self.missed_deadline += other.missed_deadline;
        self.timed_out += other.timed_out;
        self.memory_out += other.memory_out;
        self.cancelled += other.cancelled;
        self.held_core_s += other.held_core_s;
        self.used_core_s += other.used_core_s;
        self.held_mb_s += other.held_mb_s;
        self.used_mb_s += other.used_mb_s;
        self.held_gpu_s += other.held_gpu_s;
        self.used_gpu_s += other.used_gpu_s;
        self.lost_core_s += other.lost_core_s;
        self.lost_gpu_s += other.lost_gpu_s;
        self.spare_core_s += other.spare_core_s;
        self.spare_mb_s += other.spare_mb_s;
        self.spare_gpu_s += other.spare_gpu_s;
        self.partitions.add_all(&other.partitions);
        self.qos.add_all(&other.qos);
        self.waits.add(&other.waits);
    }

    /// Adds GPU seconds of a model.
    pub fn add_gpus(&mut self, model: &str, seconds: u64) {
        match self.gpus.binary_search_by(|(known, _)| known.as_str().cmp(model)) {
            Ok(index) => self.gpus[index].1 += seconds,
            Err(index) => self.gpus.insert(index, (model.to_owned(), seconds)),
        }
    }

    /// The successful fraction, from 0 to 1, of jobs that ended on their own. Cancelled jobs do not count, because
    /// somebody wanted that.
    pub fn success_rate(&self) -> Option<f64> {
        fraction(self.done, self.jobs.saturating_sub(self.cancelled))
    }

    /// Core efficiency: used against allocated, from 0 to 1.
    pub fn core_use(&self) -> Option<f64> {
        fraction(self.used_core_s, self.held_core_s)
    }

    /// Memory efficiency: used against allocated, from 0 to 1.
    pub fn memory_use(&self) -> Option<f64> {
        fraction(self.used_mb_s, self.held_mb_s)
    }

    /// How busy the GPUs were, from 0 to 1; none where the site does not measure it.
    pub fn gpu_use(&self) -> Option<f64> {
        fraction(self.used_gpu_s, self.held_gpu_s)
    }

    /// Whether there is no usage at all.
    pub const fn is_empty(&self) -> bool {
        self.core_s == 0 && self.gpu_s == 0 && self.jobs == 0
    }
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn fraction(some: u64, all: u64) -> Option<f64> {
    (all > 0).then(|| (some as f64 / all as f64).min(1.0))
}

#[expect(clippy::cast_precision_loss, reason = "a figure for people")]
pub fn hours(seconds: u64) -> f64 {
    seconds as f64 / 3600.0
}

/// How a job ended, as far as the figures care.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UsageJobOutcome {
    Running,
    Done,
    /// With an error of its own.
    Failed,
    TimedOut,
    OutOfMemory,
    Cancelled,
    /// Another job preempted it. In rows of older versions also [`Self::NodeFailed`].
    Interrupted,
    /// A node failed or didn't boot.
    NodeFailed,
    MissedDeadline,
}

// In the order of their numbers in the database.
codes!(UsageJobOutcome {
    Running = "running",
    Done = "done",
    Failed = "failed",
    TimedOut = "out-of-time",
    OutOfMemory = "out-of-memory",
    Cancelled = "cancelled",
    Interrupted = "interrupted",
    NodeFailed = "node-failed",
    MissedDeadline = "missed-deadline",
});

impl UsageJobOutcome {
    pub const fn from_state(state: JobState) -> Self {
        match state {
            JobState::Completed => Self::Done,
            JobState::Timeout => Self::TimedOut,
            JobState::Deadline => Self::MissedDeadline,
            JobState::OutOfMemory => Self::OutOfMemory,
            JobState::Cancelled | JobState::Revoked => Self::Cancelled,
            JobState::NodeFail | JobState::BootFail => Self::NodeFailed,
            JobState::Preempted => Self::Interrupted,
            JobState::Failed => Self::Failed,
            _ => Self::Running,
        }
    }

    /// Its number in the database.
    pub fn number(self) -> i64 {
        Self::ALL.iter().position(|one| *one == self).and_then(|at| i64::try_from(at).ok()).unwrap_or(0)
    }

    pub fn from_number(number: i64) -> Self {
        usize::try_from(number).ok().and_then(|at| Self::ALL.get(at).copied()).unwrap_or(Self::Running)
    }

    pub const fn title(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Done => "Completed",
            Self::Failed => "Failed",
            Self::TimedOut => "Timed out",
            Self::OutOfMemory => "Out of memory",
            Self::Cancelled => "Cancelled",
            Self::Interrupted => "Interrupted by the cluster",
            Self::NodeFailed => "Node failed",
            Self::MissedDeadline => "Missed deadline",
        }
    }

    /// Whether its hours count as wasted.
    pub const fn is_lost(self) -> bool {
        !matches!(self, Self::Running | Self::Done | Self::Cancelled)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_add_up_by_model() {
        let mut all = UsageTotals { core_s: 5, ..UsageTotals::default() };
        let mut other = UsageTotals { core_s: 7, jobs: 2, done: 1, cancelled: 1, ..UsageTotals::default() };
        other.add_gpus("v100", 10);
        other.add_gpus("a100", 1);
        all.add(&other);
        all.add(&other);
        assert_eq!((all.core_s, all.jobs), (19, 4));
        assert_eq!(all.gpus, [("a100".to_owned(), 2), ("v100".to_owned(), 20)]);
        assert_eq!(all.success_rate(), Some(1.0), "cancelled ones do not count");
        assert_eq!(UsageTotals::default().success_rate(), None);
    }

    #[test]
    fn outcomes_keep_their_numbers_and_words() {
        for one in UsageJobOutcome::ALL {
            assert_eq!(UsageJobOutcome::from_number(one.number()), one);
            assert_eq!(UsageJobOutcome::parse(one.as_str()), Some(one));
        }
        assert_eq!(UsageJobOutcome::from_number(99), UsageJobOutcome::Running);
        assert_eq!(UsageJobOutcome::Interrupted.number(), 6, "databases of older versions have these numbers");
        let outcome = UsageJobOutcome::from_state;
        assert_eq!(outcome(JobState::NodeFail).title(), "Node failed", "not a failure of the program");
        assert_eq!(outcome(JobState::BootFail), outcome(JobState::NodeFail));
        assert_eq!(outcome(JobState::Deadline).title(), "Missed deadline", "not a timeout");
        assert_eq!(UsageJobOutcome::from_state(JobState::Running), UsageJobOutcome::Running);
        assert!(UsageJobOutcome::from_state(JobState::NodeFail).is_lost() && !UsageJobOutcome::Cancelled.is_lost());
    }
}
