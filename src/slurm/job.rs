//! A job, whichever command reported it: its ID, its state, its request.

use std::fmt;
use std::str::FromStr;

use super::array_tasks::ArrayTaskSet;
use super::gres::GpuCount;
use super::units::TimeLimit;
use crate::clock::UnixTime;

/// The ID of a job or of one array task: `123`, `123_4`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    /// The job ID; for a task, that of the array.
    pub number: u64,
    /// The array task index.
    pub task: Option<u32>,
}

impl JobId {
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

#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("not a job ID")]
pub struct JobIdError;

impl FromStr for JobId {
    type Err = JobIdError;

    /// Parses `123` and `123_4`, digits only.
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

/// A job's state, as Slurm defines it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum JobState {
    Pending,
    /// Its nodes are being prepared.
    Configuring,
    Running,
    /// Paused by an operator or for a job with a higher priority.
    Suspended,
    /// Has ended; its nodes are being cleaned up, or files are being copied.
    Completing,
    Completed,
    Failed,
    Cancelled,
    Timeout,
    OutOfMemory,
    NodeFail,
    BootFail,
    /// Stopped to make room for another job.
    Preempted,
    /// Could not finish before its deadline.
    Deadline,
    /// Taken over by another cluster.
    Revoked,
    /// A state that is not known here.
    #[default]
    Unknown,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum JobStage {
    Pending,
    /// Started and not ended.
    Running,
    Ended,
}

/// Slurm's names, long and short; several may mean the same to people.
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
    /// Parses `RUNNING`, `R`, `CANCELLED by 31001`, `CANCELLED+`.
    pub fn parse(text: &str) -> Self {
        let word = text.split_whitespace().next().unwrap_or_default().trim_end_matches('+');
        let known = STATE_NAMES.iter().find(|(long, short, _)| *long == word || *short == word);
        known.map_or(Self::Unknown, |(_, _, state)| *state)
    }

    pub fn slurm_name(self) -> &'static str {
        let known = STATE_NAMES.iter().find(|(_, _, state)| *state == self);
        known.map_or("UNKNOWN", |(long, _, _)| long)
    }

    /// Like Slurm, treats a job in an unknown state as still there.
    pub const fn stage(self) -> JobStage {
        match self {
            Self::Pending => JobStage::Pending,
            Self::Configuring | Self::Running | Self::Suspended | Self::Completing | Self::Unknown => JobStage::Running,
            _ => JobStage::Ended,
        }
    }

    pub fn is_over(self) -> bool {
        self.stage() == JobStage::Ended
    }

    /// Whether it ended without success.
    pub fn is_failure(self) -> bool {
        self.is_over() && !matches!(self, Self::Completed | Self::Cancelled | Self::Revoked)
    }
}

/// How a program ended: its exit code, or the signal that ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExitStatus {
    pub code: u32,
    /// The signal; 0 for none.
    pub signal: u32,
}

impl ExitStatus {
    /// Parses `3:0`, as `sacct` and `scontrol` write it.
    pub fn parse(text: &str) -> Option<Self> {
        let (code, signal) = text.trim().split_once(':')?;
        Some(Self { code: code.parse().ok()?, signal: signal.parse().ok()? })
    }

    /// Parses what `squeue` prints: `3:0` in newer versions of Slurm, the wait(2) status (768) in older ones.
    pub fn parse_squeue(text: &str) -> Option<Self> {
        Self::parse(text).or_else(|| {
            let status: u32 = text.trim().parse().ok()?;
            Some(Self { code: (status >> 8) & 0xff, signal: status & 0x7f })
        })
    }
}

/// A job as the queue or accounting reports it. Text is bounded and free of control characters.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct SlurmJob {
    pub id: JobId,
    /// Slurm's raw job ID: array tasks get their own once they start.
    pub raw_id: u64,
    /// The array tasks that are still pending together; `id` then names the array.
    pub tasks: Option<ArrayTaskSet>,
    /// The owner's user name on the cluster.
    pub user: String,
    pub name: String,
    pub state: JobState,
    /// Slurm's reason why it is pending or why it ended; empty for none.
    pub reason: String,
    pub account: String,
    pub partition: String,
    pub qos: String,
    /// When it was submitted, or last requeued.
    pub submitted: Option<UnixTime>,
    /// When it became eligible to run.
    pub eligible: Option<UnixTime>,
    /// When it started; for a pending job, when Slurm expects it to.
    pub start: Option<UnixTime>,
    /// When it ended; for a running job, when its time limit ends.
    pub end: Option<UnixTime>,
    pub time_limit: TimeLimit,
    pub cpus: u32,
    pub nodes: u32,
    /// Total memory, in mebibytes.
    pub memory_mb: Option<u64>,
    /// Total GPUs, by model.
    pub gpus: Vec<GpuCount>,
    /// The nodes it runs or ran on: `c[1-4]`.
    pub node_list: String,
    pub priority: u64,
    /// What it depends on: `afterok:123(unfulfilled)`.
    pub dependency: String,
    /// How often it was requeued.
    pub restarts: u32,
    /// Seconds since its start in which it was suspended, as of when it was read.
    pub suspended_s: u64,
    pub exit: Option<ExitStatus>,
    pub work_dir: String,
}

impl Default for JobId {
    fn default() -> Self {
        Self::without_task(0)
    }
}

impl SlurmJob {
    /// For how many seconds it has run until then, or until its end. Time in which it was suspended doesn't count.
    pub fn running_s(&self, until: UnixTime) -> u64 {
        let since = self.start.and_then(|start| u64::try_from(until.since(start)).ok()).unwrap_or(0);
        since.saturating_sub(self.suspended_s)
    }

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
        for bad in ["", "_", "1_", "_1", "-1", "+1", "1_[2-3]", "1.batch", "1 ", "9007199254740992"] {
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
        for (text, code, signal) in
            [("768", 3, 0), ("9", 0, 9), ("0", 0, 0), ("1:0", 1, 0), ("9:0", 9, 0), ("0:11", 0, 11), (" 0:0 ", 0, 0)]
        {
            assert_eq!(ExitStatus::parse_squeue(text), Some(ExitStatus { code, signal }), "{text}");
        }
        for text in ["", "N/A", "-1", "1:", ":1", "1:x", "1:2:3"] {
            assert_eq!(ExitStatus::parse_squeue(text), None, "{text}");
        }
    }
}
