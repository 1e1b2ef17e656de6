//! `squeue`: jobs that are pending, running, or ended a moment ago.
//!
//! Each record is a line of fields that end in a tab, then the two that people choose themselves, each ending in an
//! unguessable delimiter: nothing in a name can begin a record or end a field.

use std::borrow::Cow;

use memchr::{memchr_iter, memmem};

use super::fields::{
    MAX_LIST_LEN, MAX_NAME_LEN, MAX_PATH_LEN, clean_field, clean_value, field_delimiter, parse_common,
    parse_cpu_seconds, parse_number, parse_tres, parse_u32,
};
use super::job::{ExitStatus, JobStage, JobState, SlurmJob};
use super::text::is_user_or_account;
use crate::clock::UnixTime;

/// The program. It needs `SLURM_TIME_FORMAT=%s` and `SLURM_BITSTR_LEN=0` in its environment.
pub const PROGRAM: &str = "squeue";

/// The fields that end in a tab, in our order; the folder and the name follow.
const FIELDS: [&str; 22] = [
    "JobArrayID",
    "JobID",
    "UserName",
    "StateCompact",
    "Reason",
    "Account",
    "Partition",
    "QOS",
    "SubmitTime",
    "EligibleTime",
    "StartTime",
    "EndTime",
    "TimeLimit",
    "NumCPUs",
    "NumNodes",
    "tres-alloc",
    "NodeList",
    "PriorityLong",
    "Dependency",
    "RestartCnt",
    "exit_code",
    "TimeUsed",
];

/// The most jobs kept from one output.
pub const MAX_JOBS: usize = 60_000;
/// Hardly any record is shorter, so this sizes the list of jobs before parsing.
const MIN_RECORD_LEN: usize = 200;
/// Up to this much less running time than time since the start is no sign that a job was suspended: clocks differ a
/// little, and an answer takes a moment.
const CLOCK_TOLERANCE_S: u64 = 30;
/// The most accounts in one request.
const MAX_ACCOUNTS: usize = 200;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SqueueFilter<'a> {
    /// The jobs of this remote user, including those that ended a moment ago.
    User(&'a str),
    /// Unfinished jobs of these accounts.
    Accounts(&'a [String]),
}

/// Its arguments. `nonce` is a random word of lower-case letters and digits, made for this one request; pass the same
/// one to [`parse_queue`]. None if the nonce or a name is invalid.
pub fn args(nonce: &str, whose: SqueueFilter<'_>) -> Option<Vec<String>> {
    let (states, which, names) = match whose {
        SqueueFilter::User(user) => ("all", "-u", is_user_or_account(user).then(|| user.to_owned())?),
        SqueueFilter::Accounts(names) => {
            let all_good =
                (1..=MAX_ACCOUNTS).contains(&names.len()) && names.iter().all(|name| is_user_or_account(name));
            let states = "PENDING,RUNNING,SUSPENDED,CONFIGURING,COMPLETING";
            (states, "-A", all_good.then(|| names.join(","))?)
        }
    };
    let format = format_option(nonce)?;
    Some(["-h", "-t", states, which, &names, "-O", &format].map(str::to_owned).to_vec())
}

/// `JobArrayID:⇥,JobID:⇥,…,WorkDir:_nonce,Name:_nonce`. Slurm prints what follows the colon after the field; as there
/// is no width before it, nothing is cut.
fn format_option(nonce: &str) -> Option<String> {
    let mark = field_delimiter(nonce)?;
    let fixed = FIELDS.map(|field| format!("{field}:\t,")).concat();
    Some(format!("{fixed}WorkDir:{mark},Name:{mark}"))
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct SqueueOutput {
    /// The jobs in the order of the output.
    pub jobs: Vec<SlurmJob>,
    /// Whether there was more than is kept, or the output broke off.
    pub is_cut: bool,
}

/// Parses the answer to a request made at `asked_at`.
pub fn parse_queue(answer: &[u8], nonce: &str, asked_at: UnixTime) -> SqueueOutput {
    let Some(mark) = field_delimiter(nonce) else { return SqueueOutput::default() };
    // It is nearly always UTF-8, and checking that is faster than repairing it. Repairs leave the delimiters in
    // place.
    let answer =
        str::from_utf8(answer).map_or_else(|_| Cow::Owned(String::from_utf8_lossy(answer).into_owned()), Cow::Borrowed);
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut jobs = Vec::with_capacity((answer.len() / MIN_RECORD_LEN).min(MAX_JOBS));
    let mut rest = &*answer;
    while let Some(folder_end) = finder.find(rest.as_bytes()) {
        let after_folder = &rest[folder_end + mark.len()..];
        let Some(name_end) = finder.find(after_folder.as_bytes()) else { break };
        if jobs.len() == MAX_JOBS {
            break;
        }
        if let Some(job) = parse_job(&rest[..folder_end], &after_folder[..name_end], asked_at) {
            jobs.push(job);
        }
        let next = &after_folder[name_end + mark.len()..];
        rest = next.strip_prefix('\n').unwrap_or(next);
    }
    SqueueOutput { jobs, is_cut: !rest.trim_ascii().is_empty() }
}

/// Parses one job from the fields that end in a tab, with the folder after them, and the name.
fn parse_job(record: &str, name: &str, asked_at: UnixTime) -> Option<SlurmJob> {
    let mut fields = [""; FIELDS.len()];
    let mut tabs = memchr_iter(b'\t', record.as_bytes());
    let mut begin = 0;
    for field in &mut fields {
        let end = tabs.next()?;
        *field = &record[begin..end];
        begin = end + 1;
    }
    let mut job = parse_common(fields.first_chunk()?)?;
    let [tres, node_list, priority, dependency, restarts, exit, time_used] = *fields.last_chunk()?;
    let resources = parse_tres(tres);
    if job.cpus == 0 {
        job.cpus = resources.cpus;
    }
    if job.nodes == 0 {
        job.nodes = resources.nodes;
    }
    (job.memory_mb, job.gpus) = (resources.memory_mb, resources.gpus);
    job.name = clean_field(name, MAX_NAME_LEN);
    job.node_list = clean_value(node_list, MAX_LIST_LEN);
    job.priority = parse_number(priority);
    job.dependency = clean_value(dependency, MAX_LIST_LEN);
    job.restarts = parse_u32(restarts);
    job.exit = if job.state.is_over() { ExitStatus::parse_squeue(exit) } else { None };
    job.suspended_s = suspended_seconds(&job, time_used, asked_at);
    job.work_dir = clean_field(&record[begin..], MAX_PATH_LEN);
    Some(job)
}

/// How long a job was suspended: the part of the time since its start in which Slurm doesn't count it as running.
fn suspended_seconds(job: &SlurmJob, time_used: &str, asked_at: UnixTime) -> u64 {
    let stage = job.state.stage();
    let until = if stage == JobStage::Ended { job.end } else { Some(asked_at) };
    let (Some(start), Some(until)) = (job.start, until) else { return 0 };
    if stage == JobStage::Pending {
        return 0;
    }
    let Some(used) = parse_cpu_seconds(time_used) else { return 0 };
    let gap = u64::try_from(until.since(start)).unwrap_or(0).saturating_sub(used);
    let is_exact = stage == JobStage::Ended || job.state == JobState::Suspended;
    if is_exact || gap > CLOCK_TOLERANCE_S { gap } else { 0 }
}

#[cfg(test)]
mod tests;
