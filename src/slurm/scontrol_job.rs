//! `scontrol show job`: everything that Slurm remembers about one job.
//!
//! The output is one line of `Key=value`, and values contain spaces, `=` and line breaks as people like. One part is
//! reliable: a block of Slurm's own fields between the name and the command. It is identified by how it begins, by
//! the keys in it and by the command after it; lookalikes before or after it are ignored.

use super::fields::{clean_field, clean_value, parse_number, parse_time};
use super::job::{ExitStatus, JobId};
use super::units::TimeLimit;
use crate::clock::UnixTime;

/// The program. It needs `SLURM_TIME_FORMAT=%s` in its environment.
pub const PROGRAM: &str = "scontrol";

/// The most jobs kept: an array may have many tasks.
const MAX_JOBS: usize = 5000;
const MAX_TEXT_LEN: usize = 4096;
const MAX_LIST_LEN: usize = 2000;
/// Keys in every block of Slurm's own fields, in order.
const BLOCK_KEYS: [&str; 5] = [" JobState=", " SubmitTime=", " Partition=", " NumNodes=", " Features="];
/// Keys that may follow the output path.
const KEYS_AFTER_STDOUT: [&str; 14] = [
    " Power=",
    " Switches=",
    " CpusPerTres=",
    " MemPerTres=",
    " TresBind=",
    " TresFreq=",
    " TresPerJob=",
    " TresPerNode=",
    " TresPerSocket=",
    " TresPerTask=",
    " MailUser=",
    " MailType=",
    " NtasksPerTRES=",
    " Container=",
];

pub fn args(id: JobId) -> Vec<String> {
    ["-o", "show", "job"].map(str::to_owned).into_iter().chain([id.to_string()]).collect()
}

/// What only `scontrol` reports about a job, or reports in more detail. Text is bounded and free of control
/// characters; empty for none.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ScontrolJob {
    pub id: JobId,
    pub raw_id: u64,
    /// The script and its arguments.
    pub command: String,
    pub work_dir: String,
    /// The output path. Slurm fills in the patterns it knows; for a pending array it is not a real path.
    pub stdout: String,
    /// The error path: the same as the output path by default.
    pub stderr: String,
    /// The submit command line; only newer versions report it.
    pub submit_line: String,
    pub comment: String,
    /// Features its nodes must have.
    pub features: String,
    /// Whether it may be requeued.
    pub requeue: bool,
    /// How much its owner lowered its priority.
    pub nice: i64,
    /// When it started, or is expected to.
    pub start: Option<UnixTime>,
    /// The time by which it must finish.
    pub deadline: Option<UnixTime>,
    /// The shortest time limit it accepts.
    pub time_min: TimeLimit,
    /// The node that runs the batch script.
    pub batch_host: String,
    /// Requested TRES: `cpu=4,mem=2G,node=1`.
    pub requested: String,
    /// Allocated TRES; older versions report only one of the two.
    pub allocated: String,
    pub licenses: String,
    /// The exit status, once it has ended.
    pub exit: Option<ExitStatus>,
}

pub fn parse_jobs(answer: &str) -> Vec<ScontrolJob> {
    let mut found = Vec::new();
    let mut begin = 0;
    let starts: Vec<usize> = answer.match_indices("\nJobId=").map(|(at, _)| at + 1).take(MAX_JOBS * 4).collect();
    for end in starts.into_iter().chain([answer.len()]) {
        // An incomplete record had a line break in a name: the record continues.
        if let Some(details) = ScontrolJob::parse(&answer[begin..end]) {
            found.push(details);
            begin = end;
        }
        if found.len() == MAX_JOBS || end - begin > 200_000 {
            break;
        }
    }
    found
}

impl ScontrolJob {
    fn parse(record: &str) -> Option<Self> {
        let record = &record[record.find("JobId=")?..];
        let (head, _) = record.split_once(" JobName=")?;
        let (block, tail) = find_block(record)?;
        let before = |key: &str| find_value(head, key);
        let inside = |key: &str| find_value(block, key);
        let text_of = |key: &str| clean_value(inside(key), MAX_LIST_LEN);
        let when = |key: &str| parse_time(inside(key));
        let raw = Some(parse_number(before("JobId"))).filter(|raw| (1..1 << 53).contains(raw))?;
        let either = |one: &str, other: &str| {
            let found = text_of(one);
            if found.is_empty() { text_of(other) } else { found }
        };
        Some(Self {
            id: array_job_id(raw, before("ArrayJobId"), before("ArrayTaskId")),
            raw_id: raw,
            requeue: inside("Requeue") == "1",
            nice: inside("Nice").parse().unwrap_or(0),
            start: when("StartTime"),
            deadline: when("Deadline"),
            time_min: TimeLimit::parse(inside("TimeMin")),
            batch_host: text_of("BatchHost"),
            requested: either("ReqTRES", "TRES"),
            allocated: text_of("AllocTRES"),
            features: text_of("Features"),
            licenses: text_of("Licenses"),
            exit: ExitStatus::parse(inside("ExitCode")),
            ..parse_free_text(tail)?
        })
    }
}

fn array_job_id(raw: u64, array: &str, task: &str) -> JobId {
    let task = task.parse().ok();
    match (parse_number(array), task) {
        (0, _) => JobId::without_task(raw),
        (array, task) => JobId { number: array, task },
    }
}

/// Slurm's own fields, and what follows them from the command on. A name that imitates the start of the block is
/// skipped, because the block must extend to the first command after it; later fields are never searched.
fn find_block(record: &str) -> Option<(&str, &str)> {
    let mut begin = (0..).zip(record.match_indices(" UserId=")).take(1000).map(|(_, (at, _))| at);
    let mut from = begin.find(|at| is_block_start(&record[*at..]))?;
    let mut later: Vec<usize> = begin.filter(|at| is_block_start(&record[*at..])).collect();
    later.reverse();
    loop {
        let command = from + record[from..].find(" Command=")?;
        while later.last().is_some_and(|at| *at < command) {
            from = later.pop()?;
        }
        let block = &record[from..command];
        let mut rest = block;
        let whole = BLOCK_KEYS.iter().all(|key| rest.find(key).map(|at| rest = &rest[at + key.len()..]).is_some());
        if whole {
            return Some((block, &record[command..]));
        }
        from = later.pop()?;
    }
}

/// ` UserId=alice(31001) GroupId=alice(31005) MCS_label=N/A Priority=0 `
fn is_block_start(text: &str) -> bool {
    let mut words = text.split(' ').skip(1);
    let mut owner = |key: &str| {
        let value = words.next().and_then(|word| word.strip_prefix(key));
        value.is_some_and(|value| value.ends_with(')') && value.contains('('))
    };
    let named = owner("UserId=") && owner("GroupId=");
    named
        && words.next().is_some_and(|word| word.starts_with("MCS_label="))
        && words.next().is_some_and(|word| word.starts_with("Priority="))
}

/// The value of a key among words without spaces.
fn find_value<'a>(words: &'a str, key: &str) -> &'a str {
    let value = |word: &'a str| word.strip_prefix(key)?.strip_prefix('=');
    words.split([' ', '\n']).find_map(value).unwrap_or_default()
}

/// Parses the fields that people fill in, from the command on.
fn parse_free_text(tail: &str) -> Option<ScontrolJob> {
    // From the end: the last input, and the output after it.
    let (rest, input) = tail.rsplit_once(" StdIn=")?;
    let output = input.split_once(" StdOut=").map_or("", |(_, output)| output);
    let after = KEYS_AFTER_STDOUT.iter().filter_map(|key| output.find(key)).min();
    let stdout = output[..after.unwrap_or(output.len())].trim();
    let (command, rest) = rest.strip_prefix(" Command=")?.split_once(" WorkDir=")?;
    let (command, submit_line) = command.split_once(" SubmitLine=").unwrap_or((command, ""));
    let (rest, stderr) = split_stderr(rest)?;
    let notes = [" AdminComment=", " SystemComment=", " Comment="];
    let work_dir_end = notes.iter().filter_map(|key| rest.find(key)).min();
    let comment = rest.split_once(" Comment=").map_or("", |(_, comment)| comment);
    Some(ScontrolJob {
        command: clean_value(command, MAX_TEXT_LEN),
        submit_line: clean_value(submit_line, MAX_TEXT_LEN),
        work_dir: clean_value(&rest[..work_dir_end.unwrap_or(rest.len())], MAX_TEXT_LEN),
        comment: clean_field(comment, MAX_TEXT_LEN),
        stderr: clean_value(if stderr.is_empty() { stdout } else { stderr }, MAX_TEXT_LEN),
        stdout: clean_value(stdout, MAX_TEXT_LEN),
        ..ScontrolJob::default()
    })
}

/// Splits before the error path. Of several candidates, takes the one whose path lies in the folder before it;
/// otherwise the last.
fn split_stderr(text: &str) -> Option<(&str, &str)> {
    const KEY: &str = " StdErr=";
    let at = |at: usize| (&text[..at], text[at + KEY.len()..].trim());
    let fits = |(before, path): &(&str, &str)| {
        let folder = before.split(" Comment=").next().unwrap_or(before);
        !folder.is_empty() && path.starts_with(folder)
    };
    let mut places = text.match_indices(KEY).take(100).map(|(place, _)| at(place));
    places.find(fits).or_else(|| text.rfind(KEY).map(at))
}

#[cfg(test)]
mod tests;
