//! `sacct`: jobs that are over as well, and what their steps used.
//!
//! Every field ends in a mark that nobody could know, so that neither a name nor a command line ends a field. Two things
//! that Slurm does: a job that was held from the beginning is not listed by time before it is released, only by its
//! number; and of a job that was put back into the queue only the last run is listed.

use memchr::memmem;

use super::fields::{job_id, mark, moment, number, resources, small, text, word};
use super::job::{ExitStatus, Job, JobId, JobState, Stage};
use super::text::is_name;
use super::units::{TimeLimit, memory_mb};
use super::usage::Usage;
use crate::clock::UnixTime;

/// The program. It wants `SLURM_TIME_FORMAT=%s` and `SLURM_BITSTR_LEN=0` in its environment.
pub const PROGRAM: &str = "sacct";

const FIELDS: &str = "JobID,JobIDRaw,User,State,Reason,Account,Partition,QOS,Submit,Eligible,Start,End,Timelimit,NCPUS,\
                      NNodes,ReqTRES,AllocTRES,NodeList,Priority,ExitCode,WorkDir,JobName,SubmitLine";
const FIELD_COUNT: usize = 23;
const STEP_FIELDS: &str =
    "JobID,State,ElapsedRaw,TotalCPU,MaxRSS,NTasks,TRESUsageInAve,TRESUsageInMax";
const STEP_FIELD_COUNT: usize = 8;

/// No more jobs than this are kept of one answer.
pub const MOST_JOBS: usize = 60_000;
/// No more steps than this are looked at.
const MOST_STEPS: usize = 20_000;
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

/// The arguments for the steps of one job or task; for the number of an array, only its first task is read.
pub fn steps_args(nonce: &str, id: JobId) -> Option<Vec<String>> {
    let delimiter = format!("--delimiter={}", mark(nonce)?);
    let id = id.to_string();
    Some(["-n", "-p", &delimiter, "-j", &id, "-o", STEP_FIELDS].map(str::to_owned).to_vec())
}

/// Reads the answer: what the job used, as far as that was measured. Nothing if there is no such job.
pub fn read_steps(answer: &[u8], nonce: &str) -> Option<Usage> {
    let mut found: Option<Totals> = None;
    let mut left = MOST_STEPS;
    records::<STEP_FIELD_COUNT>(answer, nonce, |fields| {
        let (job, step) = fields[0].split_once('.').unwrap_or((fields[0], ""));
        if job.starts_with(|c: char| c.is_ascii_digit()) {
            let totals = found.get_or_insert_with(|| Totals::new(job));
            if totals.job == job {
                totals.add(step, fields);
            }
        }
        left -= 1;
        left > 0
    });
    found.map(Totals::usage)
}

#[derive(Default)]
struct Totals {
    job: String,
    usage: Usage,
    cpu_of_steps: Option<u64>,
    /// Memory and tasks of the step that only watches over the job: it counts if there is no other.
    watcher: Option<u64>,
    most_tasks: u32,
}

impl Totals {
    fn new(job: &str) -> Self {
        Self { job: job.to_owned(), ..Self::default() }
    }

    fn add(&mut self, step: &str, fields: [&str; STEP_FIELD_COUNT]) {
        let [_, _, elapsed, cpu, rss, tasks, average, most] = fields;
        let (cpu, rss, tasks) = (seconds(cpu), bytes_mb(rss), small(tasks));
        let usage = &mut self.usage;
        if step.is_empty() {
            usage.elapsed_s = number(elapsed);
            usage.cpu_s = cpu;
            return;
        }
        if let Some(cpu) = cpu {
            let sum = self.cpu_of_steps.unwrap_or(0);
            self.cpu_of_steps = Some(sum.saturating_add(cpu));
        }
        usage.gpu_percent = usage.gpu_percent.max(gpu_value(average, "gres/gpuutil").map(small));
        usage.gpu_memory_mb =
            usage.gpu_memory_mb.max(gpu_value(most, "gres/gpumem").and_then(bytes_mb));
        if step == "extern" {
            self.watcher = rss;
            return;
        }
        self.most_tasks = self.most_tasks.max(tasks);
        if rss > usage.max_rss_mb {
            (usage.max_rss_mb, usage.tasks) = (rss, tasks);
        }
    }

    fn usage(self) -> Usage {
        let mut usage = self.usage;
        usage.cpu_s = usage.cpu_s.or(self.cpu_of_steps);
        if usage.max_rss_mb.is_none() {
            (usage.max_rss_mb, usage.tasks) = (self.watcher, self.most_tasks);
        }
        usage.tasks = usage.tasks.max(1);
        usage
    }
}

/// The amount of one resource in `cpu=00:00:13,gres/gpumem=6G,gres/gpuutil=45`.
fn gpu_value<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.split(',').find_map(|piece| piece.strip_prefix(name)?.strip_prefix('='))
}

/// Mebibytes from `95980K` or from bytes without a unit.
fn bytes_mb(text: &str) -> Option<u64> {
    let bare = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if bare { Some(number(text).div_ceil(1 << 20)) } else { memory_mb(text) }
}

/// Whole seconds from `1-02:03:04`, `00:27.462` (minutes and seconds), `02:03:04`.
fn seconds(text: &str) -> Option<u64> {
    let whole = text.split('.').next().unwrap_or_default();
    let (days, clock) = whole.split_once('-').unwrap_or(("0", whole));
    let digits = |part: &str| {
        let good = (1..=9).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        good.then(|| number(part))
    };
    let mut sum = 0_u64;
    for part in clock.split(':').take(4) {
        sum = sum.checked_mul(60)?.checked_add(digits(part)?)?;
    }
    digits(days)?.checked_mul(86_400)?.checked_add(sum)
}

#[cfg(test)]
mod tests;
