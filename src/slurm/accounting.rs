//! `sacct`: jobs that are over as well, and what their steps used.
//!
//! Every field ends in a mark that nobody could know, so that neither a name nor a command line ends a field. Two things
//! that Slurm does: a job that was held from the beginning is not listed by time before it is released, only by its
//! number; and of a job that was put back into the queue only the last run is listed.

pub mod spent;
mod steps;

use memchr::memmem;

use super::fields::{job_id, mark, moment, number, resources, small, text, word};
use super::job::{ExitStatus, Job, JobId, JobState, Stage};
use super::text::is_name;
use super::units::TimeLimit;
use crate::clock::UnixTime;

pub use self::steps::{PastRun, past_args, read_past, read_steps, steps_args};

/// The program. It wants `SLURM_TIME_FORMAT=%s` and `SLURM_BITSTR_LEN=0` in its environment.
pub const PROGRAM: &str = "sacct";

const FIELDS: &str = "JobID,JobIDRaw,User,State,Reason,Account,Partition,QOS,Submit,Eligible,Start,End,Timelimit,NCPUS,\
                      NNodes,ReqTRES,AllocTRES,NodeList,Priority,ExitCode,WorkDir,JobName,SubmitLine";
const FIELD_COUNT: usize = 23;
/// No more jobs than this are kept of one answer.
pub const MOST_JOBS: usize = 60_000;
const LONGEST_TEXT: usize = 4096;
const LONGEST_NAME: usize = 1024;
const LONGEST_LIST: usize = 2000;
const LONGEST_WORD: usize = 200;

/// What the accounting alone knows of a job.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Extra {
    /// The words it was submitted with, without the quotes that were around them.
    pub submit_line: String,
    /// The number of the user who cancelled it, where somebody did.
    pub cancelled_by: Option<String>,
}

/// The arguments for the jobs of one person that were there between two moments, without their steps. `nonce` is a random
/// word of lower-case letters and digits, made for this one request. Nothing if that or the name is none.
pub fn args(
    nonce: &str,
    user: &str,
    since: UnixTime,
    until: Option<UnixTime>,
) -> Option<Vec<String>> {
    (is_name(user) && !user.contains(':')).then_some(())?;
    let delimiter = format!("--delimiter={}", mark(nonce)?);
    let since = format!("uts{}", since.0.max(0));
    let mut words: Vec<String> =
        ["-n", "-p", "-X", &delimiter, "-u", user, "-S", &since].map(str::to_owned).to_vec();
    if let Some(until) = until {
        words.extend(["-E".to_owned(), format!("uts{}", until.0.max(0))]);
    }
    words.extend(["-o", FIELDS].map(str::to_owned));
    Some(words)
}

/// The arguments for single jobs, whenever they were. An array is asked for as a whole.
pub fn args_of(nonce: &str, ids: &[JobId]) -> Option<Vec<String>> {
    let delimiter = format!("--delimiter={}", mark(nonce)?);
    let mut numbers: Vec<u64> = ids.iter().map(|id| id.number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    (!numbers.is_empty()).then(|| {
        ["-n", "-p", "-X", &delimiter, "-j", &numbers.join(","), "-o", FIELDS]
            .map(str::to_owned)
            .to_vec()
    })
}

/// Reads the answer.
pub fn read(answer: &[u8], nonce: &str) -> Vec<(Job, Extra)> {
    let mut found = Vec::new();
    records::<FIELD_COUNT>(answer, nonce, |fields| {
        found.extend(job(&fields));
        found.len() < MOST_JOBS
    });
    found
}

/// Calls with the fields of each record in turn, until told to stop.
fn records<const COUNT: usize>(
    answer: &[u8],
    nonce: &str,
    mut take: impl FnMut([&str; COUNT]) -> bool,
) {
    let Some(mark) = mark(nonce) else { return };
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
        // Something else may have been printed before the first record: it ends with its line.
        fields[0] = fields[0].rsplit('\n').next().unwrap_or_default().trim_ascii();
        if !take(fields) {
            return;
        }
    }
}

fn job(fields: &[&str; FIELD_COUNT]) -> Option<(Job, Extra)> {
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
    let raw = number(raw);
    let (id, tasks) = job_id(id, raw)?;
    let state = JobState::read(state_words);
    let limit = TimeLimit::read(limit);
    let held = resources(if allocated.is_empty() { requested } else { allocated });
    // Put back into the queue, it still has the times of the run before.
    let start = moment(start).filter(|_| state.stage() != Stage::Waiting);
    let end = match state.stage() {
        Stage::Waiting => None,
        Stage::Running => {
            start.zip(limit.minutes()).map(|(start, minutes)| start.plus(i64::from(minutes) * 60))
        }
        Stage::Ended => moment(end),
    };
    let job = Job {
        id,
        raw,
        tasks,
        user: word(user, LONGEST_WORD),
        name: text(name, LONGEST_NAME),
        state,
        reason: word(reason, LONGEST_LIST),
        account: word(account, LONGEST_WORD),
        partition: word(partition, LONGEST_LIST),
        qos: word(qos, LONGEST_WORD),
        submitted: moment(submitted),
        eligible: moment(eligible),
        start,
        end,
        limit,
        cpus: small(cpus),
        nodes: small(nodes),
        memory_mb: held.memory_mb,
        gpus: held.gpus,
        node_list: if node_list == "None assigned" {
            String::new()
        } else {
            word(node_list, LONGEST_LIST)
        },
        priority: number(priority),
        exit: if state.is_over() { ExitStatus::read(exit) } else { None },
        work_dir: text(work_dir, LONGEST_TEXT),
        ..Job::default()
    };
    let cancelled_by = state_words
        .strip_prefix("CANCELLED by ")
        .map(|user| word(user, LONGEST_WORD))
        .filter(|user| !user.is_empty() && user.bytes().all(|byte| byte.is_ascii_digit()));
    Some((job, Extra { submit_line: text(submit_line, LONGEST_TEXT), cancelled_by }))
}

#[cfg(test)]
mod tests;
