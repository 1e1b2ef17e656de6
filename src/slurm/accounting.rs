//! `sacct`: jobs including ended ones, and what their steps used.
//!
//! Every field ends in an unguessable delimiter, so that neither a name nor a command line can end a field. Two
//! quirks of Slurm: a job that was held from the start is not listed by time until it is released, only by its ID;
//! and only the last run of a requeued job is listed.

pub mod account_runs;
mod steps;
pub mod visibility;

use super::fields::{
    COMMON_FIELD_COUNT, MAX_LIST_LEN, MAX_NAME_LEN, MAX_PATH_LEN, MAX_WORD_LEN, all_digits, clean_field, clean_value,
    delimiter_option, for_each_record, parse_common, parse_number, parse_tres,
};
use super::job::{ExitStatus, JobId, JobStage, SlurmJob};
use super::text::is_user_or_account;
use crate::clock::UnixTime;

pub use self::steps::{PastJobRun, parse_past_runs, parse_steps, past_runs_args, steps_args};

/// The program. It needs `SLURM_TIME_FORMAT=%s` and `SLURM_BITSTR_LEN=0` in its environment.
pub const PROGRAM: &str = "sacct";

const FIELDS: &str = "JobID,JobIDRaw,User,State,Reason,Account,Partition,QOS,Submit,Eligible,Start,End,Timelimit,NCPUS,\
                      NNodes,ReqTRES,AllocTRES,NodeList,Priority,ExitCode,WorkDir,JobName,SubmitLine";
const FIELD_COUNT: usize = COMMON_FIELD_COUNT + 8;
const STATE_FIELD: usize = 3;
/// The most jobs kept from one output.
pub const MAX_JOBS: usize = 60_000;

/// What only accounting knows about a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AccountingExtra {
    /// The submit command line, without its original quotes.
    pub submit_line: String,
    /// The user ID of whoever cancelled it, if anyone did.
    pub cancelled_by: Option<String>,
}

/// The arguments for one person's jobs in a period, without steps. `nonce` is a random word of lower-case letters and
/// digits, made for this one request. None if the nonce or the name is invalid.
pub fn args_for_user(nonce: &str, user: &str, since: UnixTime, until: Option<UnixTime>) -> Option<Vec<String>> {
    let delimiter = delimiter_option(nonce).filter(|_| is_user_or_account(user))?;
    let since = format!("uts{}", since.0.max(0));
    let mut words: Vec<String> = ["-n", "-p", "-X", &delimiter, "-u", user, "-S", &since].map(str::to_owned).to_vec();
    if let Some(until) = until {
        words.extend(["-E".to_owned(), format!("uts{}", until.0.max(0))]);
    }
    words.extend(["-o", FIELDS].map(str::to_owned));
    Some(words)
}

/// The arguments for single jobs, at any time. An array is requested as a whole.
pub fn args_for_jobs(nonce: &str, ids: &[JobId]) -> Option<Vec<String>> {
    let delimiter = delimiter_option(nonce)?;
    let mut numbers: Vec<u64> = ids.iter().map(|id| id.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    (!numbers.is_empty())
        .then(|| ["-n", "-p", "-X", &delimiter, "-j", &numbers.join(","), "-o", FIELDS].map(str::to_owned).to_vec())
}

pub fn parse_accounting(answer: &[u8], nonce: &str) -> Vec<(SlurmJob, AccountingExtra)> {
    let mut found = Vec::new();
    for_each_record::<FIELD_COUNT>(answer, nonce, |fields| {
        found.extend(parse_job(&fields));
        found.len() < MAX_JOBS
    });
    found
}

fn parse_job(fields: &[&str; FIELD_COUNT]) -> Option<(SlurmJob, AccountingExtra)> {
    let mut job = parse_common(fields.first_chunk()?)?;
    let [requested, allocated, node_list, priority, exit, work_dir, name, submit_line] = *fields.last_chunk()?;
    let resources = parse_tres(if allocated.is_empty() { requested } else { allocated });
    // A requeued job still has the times of its previous run.
    job.start = job.start.filter(|_| job.state.stage() != JobStage::Pending);
    if job.state.stage() == JobStage::Running {
        let limit = job.time_limit.minutes();
        job.end = job.start.zip(limit).map(|(start, minutes)| start.plus(i64::from(minutes) * 60));
    }
    job.name = clean_field(name, MAX_NAME_LEN);
    (job.memory_mb, job.gpus) = (resources.memory_mb, resources.gpus);
    if node_list != "None assigned" {
        job.node_list = clean_value(node_list, MAX_LIST_LEN);
    }
    job.priority = parse_number(priority);
    job.exit = if job.state.is_over() { ExitStatus::parse(exit) } else { None };
    job.work_dir = clean_field(work_dir, MAX_PATH_LEN);
    let cancelled_by = fields[STATE_FIELD]
        .strip_prefix("CANCELLED by ")
        .map(|user| clean_value(user, MAX_WORD_LEN))
        .filter(|user| all_digits(user));
    Some((job, AccountingExtra { submit_line: clean_field(submit_line, MAX_PATH_LEN), cancelled_by }))
}

#[cfg(test)]
mod tests;
