//! A job, whatever program told of it: its number, what it does, what it asked for.

use std::fmt;
use std::str::FromStr;

use super::array_tasks::ArrayTaskSet;
use super::gres::GpuCount;
use super::units::TimeLimit;
use crate::clock::UnixTime;

/// The number of a job, or of one task of an array: `123`, `123_4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The job's number; for a task, that of the array.
    pub number: u64,
    /// Which task of the array.
    pub task: Option<u32>,
}

impl JobId {
    /// A job that is no task.
    pub const fn without_task(number: u64) -> Self {
        Self { number, task: None }
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.task {
            Some(task) => write!(f, "{}_{task}", self.number),
            None => write!(f, "{}", self.number),
        }
    }
}

/// Not the number of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not the number of a job")]
pub struct JobIdError;

impl FromStr for JobId {
    type Err = JobIdError;

    /// Reads `123` and `123_4`, digits only.
    fn from_str(text: &str) -> Result<Self, JobIdError> {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let (number, task) = match text.split_once('_') {
            Some((number, task)) => (number, Some(task)),
            None => (text, None),
        };
        if !digits(number) || !task.is_none_or(digits) {
            return Err(JobIdError);
        }
        let number = number.parse().ok().filter(|number| *number < 1 << 53).ok_or(JobIdError)?;
        let task = task.map(|task| task.parse().map_err(|_| JobIdError)).transpose()?;
        Ok(Self { number, task })
    }
}

/// What a job does, as Slurm calls it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum JobState {
    /// Waits in the queue.
    Pending,
    /// Its nodes are being made ready.
    Configuring,
    Running,
    /// Has stopped for a while, by an operator or a job with higher rank.
    Suspended,
    /// Has ended; its nodes are being cleaned, or files are carried away.
    Completing,
    Completed,
    /// Ended with an error.
    Failed,
    Cancelled,
    /// Reached its time limit.
    Timeout,
    /// Used more memory than it had.
    OutOfMemory,
    /// A node failed under it.
    NodeFail,
    /// Its node did not come up.
    BootFail,
    /// Had to make room for another job.
    Preempted,
    /// Could not be done before its deadline.
    Deadline,
    /// Taken over by another cluster.
    Revoked,
    /// A word that is not known here.
    #[default]
    Unknown,
}

/// Where in its life a job is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStage {
    Pending,
    /// Begun and not over.
    Running,
    Ended,
}

/// Slurm's words, the long and the short one; several may mean the same to people.
const STATE_NAMES: &[(&str, &str, JobState)] = &[
    ("PENDING", "PD", JobState::Pending),
    ("REQUEUED", "RQ", JobState::Pending),
    ("REQUEUE_HOLD", "RH", JobState::Pending),
    ("REQUEUE_FED", "RF", JobState::Pending),
    ("SPECIAL_EXIT", "SE", JobState::Pending),
    ("RESV_DEL_HOLD", "RD", JobState::Pending),
    ("CONFIGURING", "CF", JobState::Configuring),
    ("POWER_UP_NODE", "PO", JobState::Configuring),
    ("RUNNING", "R", JobState::Running),
    ("RESIZING", "RS", JobState::Running),
    ("SIGNALING", "SI", JobState::Running),
    ("UPDATE_DB", "UD", JobState::Running),
    ("SUSPENDED", "S", JobState::Suspended),
    ("STOPPED", "ST", JobState::Suspended),
    ("COMPLETING", "CG", JobState::Completing),
    ("STAGE_OUT", "SO", JobState::Completing),
    ("COMPLETED", "CD", JobState::Completed),
    ("FAILED", "F", JobState::Failed),
    ("LAUNCH_FAILED", "LF", JobState::Failed),
    ("RECONFIG_FAIL", "RC", JobState::Failed),
    ("CANCELLED", "CA", JobState::Cancelled),
    ("TIMEOUT", "TO", JobState::Timeout),
    ("OUT_OF_MEMORY", "OOM", JobState::OutOfMemory),
    ("NODE_FAIL", "NF", JobState::NodeFail),
    ("BOOT_FAIL", "BF", JobState::BootFail),
    ("PREEMPTED", "PR", JobState::Preempted),
    ("DEADLINE", "DL", JobState::Deadline),
    ("REVOKED", "RV", JobState::Revoked),
];

impl JobState {
    /// Reads `RUNNING`, `R`, `CANCELLED by 31001`, `CANCELLED+`.
    pub fn parse(text: &str) -> Self {
        let word = text.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
        let known = STATE_NAMES.iter().find(|(long, short, _)| *long == word || *short == word);
        known.map_or(Self::Unknown, |(_, _, state)| *state)
    }

    /// Slurm's own word for it.
    pub fn slurm_name(self) -> &'static str {
        let known = STATE_NAMES.iter().find(|(_, _, state)| *state == self);
        known.map_or("UNKNOWN", |(long, _, _)| long)
    }

    /// Where in its life it is. Slurm's own answer for unknown words is that the job is still there.
    pub const fn stage(self) -> JobStage {
        match self {
            Self::Pending => JobStage::Pending,
            Self::Configuring
            | Self::Running
            | Self::Suspended
            | Self::Completing
            | Self::Unknown => JobStage::Running,
            _ => JobStage::Ended,
        }
    }

    /// Whether it is over.
    pub fn is_over(self) -> bool {
        self.stage() == JobStage::Ended
    }

    /// Whether it is over and did not end as it should.
    pub fn is_failure(self) -> bool {
        self.is_over() && !matches!(self, Self::Completed | Self::Cancelled | Self::Revoked)
    }
}

/// How a program ended: its code, or the signal that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitStatus {
    pub code: u32,
    /// The signal; 0 for none.
    pub signal: u32,
}

impl ExitStatus {
    /// Reads `3:0`, as `sacct` and `scontrol` write it.
    pub fn parse(text: &str) -> Option<Self> {
        let (code, signal) = text.trim().split_once(':')?;
        Some(Self { code: code.parse().ok()?, signal: signal.parse().ok()? })
    }

    /// From the number that `squeue` gives, made as wait(2) makes it.
    pub const fn from_wait_status(status: u32) -> Self {
        Self { code: (status >> 8) & 0xff, signal: status & 0x7f }
    }
}

/// A job as the queue or the accounting tells it. Text is bounded and free of control characters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SlurmJob {
    pub id: JobId,
    /// Slurm's own number of this very job: tasks have one of their own once they begin.
    pub raw_id: u64,
    /// The tasks of an array that still wait together; `id` then names the array.
    pub tasks: Option<ArrayTaskSet>,
    /// Whose it is, on the cluster.
    pub user: String,
    pub name: String,
    pub state: JobState,
    /// Why it waits, or why it ended, in Slurm's word; empty for none.
    pub reason: String,
    pub account: String,
    pub partition: String,
    /// As what kind of service.
    pub qos: String,
    /// When it was submitted; a requeued job counts from then.
    pub submitted: Option<UnixTime>,
    /// From when it might have run.
    pub eligible: Option<UnixTime>,
    /// When it began; for one that waits, when Slurm expects it to.
    pub start: Option<UnixTime>,
    /// When it ended; for one that runs, when it must.
    pub end: Option<UnixTime>,
    /// How long it may run.
    pub time_limit: TimeLimit,
    pub cpus: u32,
    pub nodes: u32,
    /// Memory in all, in mebibytes.
    pub memory_mb: Option<u64>,
    /// GPUs in all, by model.
    pub gpus: Vec<GpuCount>,
    /// Where it runs or ran: `c[1-4]`.
    pub node_list: String,
    /// Its rank in the queue.
    pub priority: u64,
    /// What it waits for: `afterok:123(unfulfilled)`.
    pub dependency: String,
    /// How often it was put back into the queue.
    pub restarts: u32,
    pub exit: Option<ExitStatus>,
    /// The folder it runs in.
    pub work_dir: String,
}

impl Default for JobId {
    fn default() -> Self {
        Self::without_task(0)
    }
}

impl SlurmJob {
    pub fn gpu_count(&self) -> u32 {
        self.gpus.iter().fold(0, |sum, gpus| sum.saturating_add(gpus.count))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers() {
        for good in ["1", "123", "123_0", "123_4294967295"] {
            assert_eq!(good.parse::<JobId>().unwrap().to_string(), good);
        }
        for bad in ["", "_", "1_", "_1", "-1", "+1", "1_[2-3]", "1.batch", "1 ", "9007199254740992"]
        {
            assert_eq!(bad.parse::<JobId>(), Err(JobIdError), "{bad}");
        }
    }

    #[test]
    fn states() {
        assert_eq!(JobState::parse("CANCELLED by 31001"), JobState::Cancelled);
        assert_eq!(JobState::parse("CANCELLED+"), JobState::Cancelled);
        assert_eq!(JobState::parse("OOM"), JobState::OutOfMemory);
        assert_eq!(JobState::parse("NEWER_WORD"), JobState::Unknown);
        for (long, short, state) in STATE_NAMES {
            assert_eq!((JobState::parse(long), JobState::parse(short)), (*state, *state));
        }
        assert_eq!(JobState::Timeout.slurm_name(), "TIMEOUT");
        assert!(JobState::Timeout.is_failure());
        assert!(!JobState::Completing.is_over());
    }

    #[test]
    fn ends() {
        assert_eq!(ExitStatus::parse("3:0"), Some(ExitStatus { code: 3, signal: 0 }));
        assert_eq!(ExitStatus::parse("0:125").unwrap().signal, 125);
        assert_eq!(ExitStatus::from_wait_status(768), ExitStatus { code: 3, signal: 0 });
        assert_eq!(ExitStatus::from_wait_status(9).signal, 9);
    }
}
