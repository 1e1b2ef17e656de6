//! `sbatch`: the words that hand a script over, what its answer means, and how a job is found again by its token.
//!
//! A token is a random word that belongs to one submission. It travels in the job's comment, or at the end of its name
//! where comments are not kept. Whoever does not know whether a submission arrived looks for it in the queue and in the
//! accounting.

use memchr::memmem;

use super::fields::{mark, number};
use super::text::{is_name, plain};
use crate::clock::UnixTime;

/// The program. The script comes on its standard input.
pub const PROGRAM: &str = "sbatch";
/// What stands before a token in a comment.
pub const COMMENT_PREFIX: &str = "portolan:";

/// What is asked of the queue: the number, then whatever may hold a token.
const QUEUE_FIELDS: [&str; 3] = ["JobArrayID", "Name", "Comment"];
/// The same of the accounting. It also knows the words of the submission: they hold the token even where a site's own
/// program has written over the comment.
const HISTORY_FIELDS: [&str; 4] = ["JobID", "JobName", "Comment", "SubmitLine"];

/// Not more than this is kept of what was said.
const MOST_LINES: usize = 60;
const LONGEST_LINE: usize = 400;

/// Where the token travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// In the job's comment.
    Comment,
    /// At the end of the job's name.
    Name,
}

impl Carrier {
    /// As stored.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::Name => "name",
        }
    }

    /// As stored; a name carries it where that is unreadable.
    pub fn of(word: &str) -> Self {
        if word == "comment" { Self::Comment } else { Self::Name }
    }
}

/// The arguments. What stands here counts more than the same option in the script.
pub fn args(carrier: Carrier, token: &str, job_name: &str) -> Vec<String> {
    let mark = match carrier {
        Carrier::Comment => format!("--comment={COMMENT_PREFIX}{token}"),
        Carrier::Name => format!("--job-name={job_name}.{token}"),
    };
    vec!["--parsable".to_owned(), mark]
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// It is a job, with this number.
    Accepted(u64),
    /// It is none, for certain; what was said.
    Refused(String),
    /// It is none for the moment; the same may work later.
    NotNow(String),
    /// Something else than usual was said. It is probably no job, and then this is why.
    Unclear(String),
    /// Nobody can tell from this whether it is a job.
    Unsure(String),
}

/// Words after which nobody knows what the controller did with the request.
const UNSURE: &[&str] = &[
    "timed out",
    "zero bytes",
    "connection reset",
    "communication",
    "unexpected message",
    "unable to contact",
    "connect failure",
    "connection refused",
    "broken pipe",
    "protocol",
];
/// Words with which a controller sends everyone away for a while.
const NOT_NOW: &[&str] =
    &["rate limit", "resource temporarily unavailable", "temporarily unable to accept job"];
/// Words that every refusal has.
const REFUSED: &[&str] =
    &["error", "fail", "not submitted", "not permitted", "denied", "rejected", "invalid"];
/// Ended by a signal, or by `timeout`.
const ENDED: [i32; 4] = [124, 129, 137, 143];
/// The program is not there, or may not be started.
const NO_PROGRAM: [i32; 2] = [126, 127];

/// Reads the answer: exit code, what was printed, what was complained about.
pub fn read(code: i32, printed: &str, complained: &str) -> Answer {
    // Printed once the controller has said yes, whatever came afterwards.
    if let Some(number) = job_number(printed) {
        return Answer::Accepted(number);
    }
    let said = words(printed, complained);
    let lower = said.to_lowercase();
    let has = |list: &[&str]| list.iter().any(|word| lower.contains(word));
    if has(UNSURE) || ENDED.contains(&code) {
        Answer::Unsure(said)
    } else if code != 0 && has(NOT_NOW) {
        Answer::NotNow(said)
    } else if NO_PROGRAM.contains(&code) || (code != 0 && has(REFUSED)) {
        Answer::Refused(said)
    } else {
        Answer::Unclear(said)
    }
}

/// `20012` or `20012;cluster` on a line of its own; sites print other lines around it.
fn job_number(printed: &str) -> Option<u64> {
    printed.lines().rev().find_map(|line| {
        let line = line.trim();
        let (digits, cluster) = line.split_once(';').unwrap_or((line, "x"));
        let is_one = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        Some(number(digits)).filter(|number| is_one && is_name(cluster) && *number > 0)
    })
}

/// What was said, line by line, bounded and without colours.
pub fn words(printed: &str, complained: &str) -> String {
    let lines = complained.lines().chain(printed.lines());
    let plain = lines.map(|line| plain(&without_colours(line), LONGEST_LINE));
    plain.filter(|line| !line.is_empty()).take(MOST_LINES).collect::<Vec<_>>().join("\n")
}

/// Without the codes with which terminals are told to change colour.
fn without_colours(line: &str) -> String {
    let mut kept = String::with_capacity(line.len());
    let mut rest = line;
    while let Some((before, code)) = rest.split_once("\u{1b}[") {
        kept.push_str(before);
        rest = code.trim_start_matches(|c: char| c.is_ascii_digit() || ";:?".contains(c));
        rest = rest.strip_prefix(|c: char| c.is_ascii_alphabetic()).unwrap_or(rest);
    }
    kept + rest
}

/// The arguments of `squeue` that tell where tokens are. `nonce` is a random word, made for this one request. Nothing if
/// that or the name is none.
pub fn queue_args(nonce: &str, user: &str) -> Option<Vec<String>> {
    let mark = mark(nonce)?;
    let format = QUEUE_FIELDS.map(|field| format!("{field}:{mark}")).join(",");
    let user = good_user(user)?;
    Some(["-h", "-a", "-t", "all", "-u", user, "-O", &format].map(str::to_owned).to_vec())
}

/// The arguments of `sacct` for the same, from a moment on.
pub fn history_args(nonce: &str, user: &str, since: UnixTime) -> Option<Vec<String>> {
    let delimiter = format!("--delimiter={}", mark(nonce)?);
    let since = format!("--starttime=uts{}", since.0.max(0));
    let user = good_user(user)?;
    let fields = HISTORY_FIELDS.join(",");
    let words = ["-n", "-p", "-X", &delimiter, "-u", user, &since, "-o", &fields];
    Some(words.map(str::to_owned).to_vec())
}

fn good_user(user: &str) -> Option<&str> {
    (is_name(user) && !user.contains(':')).then_some(user)
}

/// The number of the job that carries a token, in an answer of `squeue`.
pub fn in_queue(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    find::<{ QUEUE_FIELDS.len() }>(answer, nonce, token)
}

/// The number of the job that carries a token, in an answer of `sacct`.
pub fn in_history(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    find::<{ HISTORY_FIELDS.len() }>(answer, nonce, token)
}

/// The lowest number among the records that hold the token in a field after the first. Each field ends in the mark, so
/// that whatever people write into names begins no record.
fn find<const FIELDS: usize>(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    let mark = mark(nonce).filter(|_| !token.is_empty())?;
    let answer = String::from_utf8_lossy(answer);
    let finder = memmem::Finder::new(mark.as_bytes());
    let mut rest = &*answer;
    let mut lowest: Option<u64> = None;
    loop {
        let mut fields = [""; FIELDS];
        for field in &mut fields {
            let Some(end) = finder.find(rest.as_bytes()) else { return lowest };
            *field = &rest[..end];
            rest = &rest[end + mark.len()..];
        }
        // Something else may have been printed before the first record: it ends with its line. The number of an array
        // or of a part stands before the sign that follows it (`12_[1-3]`, `12+1`).
        let id = number(fields[0].rsplit('\n').next().unwrap_or_default().trim_ascii());
        if id > 0 && fields[1..].iter().any(|field| field.contains(token)) {
            lowest = Some(lowest.map_or(id, |lowest| lowest.min(id)));
        }
    }
}

#[cfg(test)]
mod tests;
