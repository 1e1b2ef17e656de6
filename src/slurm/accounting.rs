//! `sacct`: jobs including ended ones, and what their steps used.
//!
//! Every field ends in an unguessable delimiter, so that neither a name nor a command line can end a field. Two
//! quirks of Slurm: a job that was held from the start is not listed by time until it is released, only by its ID;
//! and only the last run of a requeued job is listed.

pub mod account_runs;
mod steps;

use memchr::memmem;

use super::fields::{
    clean_field, clean_value, field_delimiter, parse_job_id, parse_number, parse_time, parse_tres, parse_u32,
};
use super::job::{ExitStatus, JobId, JobStage, JobState, SlurmJob};
use super::text::is_name;
use super::units::TimeLimit;
use crate::clock::UnixTime;

pub use self::steps::{PastJobRun, parse_past_runs, parse_steps, past_runs_args, steps_args};

/// The program. It needs `SLURM_TIME_FORMAT=%s` and `SLURM_BITSTR_LEN=0` in its environment.
pub const PROGRAM: &str = "sacct";

const FIELDS: &str = "JobID,JobIDRaw,User,State,Reason,Account,Partition,QOS,Submit,Eligible,Start,End,Timelimit,NCPUS,\
                      NNodes,ReqTRES,AllocTRES,NodeList,Priority,ExitCode,WorkDir,JobName,SubmitLine";
const FIELD_COUNT: usize = 23;
/// The most jobs kept from one output.
pub const MAX_JOBS: usize = 60_000;
const MAX_TEXT_LEN: usize = 4096;
const MAX_NAME_LEN: usize = 1024;
const MAX_LIST_LEN: usize = 2000;
const MAX_WORD_LEN: usize = 200;

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
    (is_name(user) && !user.contains(':')).then_some(())?;
    let delimiter = format!("--delimiter={}", field_delimiter(nonce)?);
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
    let delimiter = format!("--delimiter={}", field_delimiter(nonce)?);
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

/// Calls a function with the fields of each record, until it returns false.
fn for_each_record<const COUNT: usize>(answer: &[u8], nonce: &str, mut take: impl FnMut([&str; COUNT]) -> bool) {
    let Some(mark) = field_delimiter(nonce) else { return };
    let answer = String::from_utf8_lossy(answer);
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut rest = &*answer;
    loop {
        let mut fields = [""; COUNT];
        for field in &mut fields {
            let Some(end) = finder.find(rest.as_bytes()) else { return };
            *field = &rest[..end];
            rest = &rest[end + mark.len()..];
        }
        rest = rest.strip_prefix('\n').unwrap_or(rest);
        // Other output may precede the first record: it ends with its line.
        fields[0] = fields[0].rsplit('\n').next().unwrap_or_default().trim_ascii();
        if !take(fields) {
            return;
        }
    }
}

fn parse_job(fields: &[&str; FIELD_COUNT]) -> Option<(SlurmJob, AccountingExtra)> {
    let [
        id,
        raw,
        user,
        state_words,
        reason,
        account,
        partition,
        qos,
        submitted,
        eligible,
        start,
        end,
        limit,
        cpus,
        nodes,
        requested,
        allocated,
        node_list,
        priority,
        exit,
        work_dir,
        name,
        submit_line,
    ] = *fields;
    let raw = parse_number(raw);
    let (id, tasks) = parse_job_id(id, raw)?;
    let state = JobState::parse(state_words);
    let limit = TimeLimit::parse(limit);
    let held = parse_tres(if allocated.is_empty() { requested } else { allocated });
    // A requeued job still has the times of its previous run.
    let start = parse_time(start).filter(|_| state.stage() != JobStage::Pending);
    let end = match state.stage() {
        JobStage::Pending => None,
        JobStage::Running => start.zip(limit.minutes()).map(|(start, minutes)| start.plus(i64::from(minutes) * 60)),
        JobStage::Ended => parse_time(end),
    };
    let job = SlurmJob {
        id,
        raw_id: raw,
        tasks,
        user: clean_value(user, MAX_WORD_LEN),
        name: clean_field(name, MAX_NAME_LEN),
        state,
        reason: clean_value(reason, MAX_LIST_LEN),
        account: clean_value(account, MAX_WORD_LEN),
        partition: clean_value(partition, MAX_LIST_LEN),
        qos: clean_value(qos, MAX_WORD_LEN),
        submitted: parse_time(submitted),
        eligible: parse_time(eligible),
        start,
        end,
        time_limit: limit,
        cpus: parse_u32(cpus),
        nodes: parse_u32(nodes),
        memory_mb: held.memory_mb,
        gpus: held.gpus,
        node_list: if node_list == "None assigned" { String::new() } else { clean_value(node_list, MAX_LIST_LEN) },
        priority: parse_number(priority),
        exit: if state.is_over() { ExitStatus::parse(exit) } else { None },
        work_dir: clean_field(work_dir, MAX_TEXT_LEN),
        ..SlurmJob::default()
    };
    let cancelled_by = state_words
        .strip_prefix("CANCELLED by ")
        .map(|user| clean_value(user, MAX_WORD_LEN))
        .filter(|user| !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit()));
    Some((job, AccountingExtra { submit_line: clean_field(submit_line, MAX_TEXT_LEN), cancelled_by }))
}

#[cfg(test)]
mod tests;
