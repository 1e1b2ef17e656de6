//! `sbatch`: the words that hand a script over, what its answer means, and how a job is found again by its token.
//!
//! A token is a random word that belongs to one submission. It travels in the job's comment, or at the end of its name
//! where comments are not kept. Whoever does not know whether a submission arrived looks for it in the queue and in the
//! accounting.

use memchr::memmem;

use super::fields::{field_delimiter, parse_number};
use super::text::is_name;
use crate::clock::UnixTime;
use crate::text::sanitize;

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
const MAX_LINES: usize = 60;
const MAX_LINE_LEN: usize = 400;

/// Where the token travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TokenCarrier {
    /// In the job's comment.
    Comment,
    /// At the end of the job's name.
    JobName,
}

impl TokenCarrier {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::JobName => "name",
        }
    }

    /// As stored; a name carries it where that is unreadable.
    pub fn from_stored(word: &str) -> Self {
        if word == "comment" { Self::Comment } else { Self::JobName }
    }
}

/// The arguments. What stands here counts more than the same option in the script.
pub fn args(carrier: TokenCarrier, token: &str, job_name: &str) -> Vec<String> {
    let mark = match carrier {
        TokenCarrier::Comment => format!("--comment={COMMENT_PREFIX}{token}"),
        TokenCarrier::JobName => format!("--job-name={job_name}.{token}"),
    };
    vec!["--parsable".to_owned(), mark]
}

/// What an answer means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SbatchAnswer {
    /// It is a job, with this number.
    Accepted(u64),
    /// It is none, for certain; what was said.
    Refused(String),
    /// It is none for the moment; the same may work later.
    RetryLater(String),
    /// Something else than usual was said. It is probably no job, and then this is why.
    Unclear(String),
    /// Nobody can tell from this whether it is a job.
    Unconfirmed(String),
}

/// Words after which nobody knows what the controller did with the request.
const UNCONFIRMED_WORDS: &[&str] = &[
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
const RETRY_LATER_WORDS: &[&str] =
    &["rate limit", "resource temporarily unavailable", "temporarily unable to accept job"];
/// Words that every refusal has.
const REFUSED_WORDS: &[&str] =
    &["error", "fail", "not submitted", "not permitted", "denied", "rejected", "invalid"];
/// Ended by a signal, or by `timeout`.
const KILLED_EXIT_CODES: [i32; 4] = [124, 129, 137, 143];
/// The program is not there, or may not be started.
const NO_PROGRAM_EXIT_CODES: [i32; 2] = [126, 127];

/// Reads the answer: exit code, what was printed, what was complained about.
pub fn parse_sbatch_answer(code: i32, printed: &str, complained: &str) -> SbatchAnswer {
    // Printed once the controller has said yes, whatever came afterwards.
    if let Some(number) = find_job_number(printed) {
        return SbatchAnswer::Accepted(number);
    }
    let said = combine_output(printed, complained);
    let lower = said.to_lowercase();
    let has = |list: &[&str]| list.iter().any(|word| lower.contains(word));
    if has(UNCONFIRMED_WORDS) || KILLED_EXIT_CODES.contains(&code) {
        SbatchAnswer::Unconfirmed(said)
    } else if code != 0 && has(RETRY_LATER_WORDS) {
        SbatchAnswer::RetryLater(said)
    } else if NO_PROGRAM_EXIT_CODES.contains(&code) || (code != 0 && has(REFUSED_WORDS)) {
        SbatchAnswer::Refused(said)
    } else {
        SbatchAnswer::Unclear(said)
    }
}

/// `20012` or `20012;cluster` on a line of its own; sites print other lines around it.
fn find_job_number(printed: &str) -> Option<u64> {
    printed.lines().rev().find_map(|line| {
        let line = line.trim();
        let (digits, cluster) = line.split_once(';').unwrap_or((line, "x"));
        let is_one = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        Some(parse_number(digits)).filter(|number| is_one && is_name(cluster) && *number > 0)
    })
}

/// What was said, line by line, bounded and without colours.
pub fn combine_output(printed: &str, complained: &str) -> String {
    let lines = complained.lines().chain(printed.lines());
    let plain = lines.map(|line| sanitize(line, MAX_LINE_LEN));
    plain.filter(|line| !line.is_empty()).take(MAX_LINES).collect::<Vec<_>>().join("\n")
}

/// The arguments of `squeue` that tell where tokens are. `nonce` is a random word, made for this one request. Nothing if
/// that or the name is none.
pub fn queue_args(nonce: &str, user: &str) -> Option<Vec<String>> {
    let mark = field_delimiter(nonce)?;
    let format = QUEUE_FIELDS.map(|field| format!("{field}:{mark}")).join(",");
    let user = checked_user(user)?;
    Some(["-h", "-a", "-t", "all", "-u", user, "-O", &format].map(str::to_owned).to_vec())
}

/// The arguments of `sacct` for the same, from a moment on.
pub fn history_args(nonce: &str, user: &str, since: UnixTime) -> Option<Vec<String>> {
    let delimiter = format!("--delimiter={}", field_delimiter(nonce)?);
    let since = format!("--starttime=uts{}", since.0.max(0));
    let user = checked_user(user)?;
    let fields = HISTORY_FIELDS.join(",");
    let words = ["-n", "-p", "-X", &delimiter, "-u", user, &since, "-o", &fields];
    Some(words.map(str::to_owned).to_vec())
}

fn checked_user(user: &str) -> Option<&str> {
    (is_name(user) && !user.contains(':')).then_some(user)
}

/// The number of the job that carries a token, in an answer of `squeue`.
pub fn find_in_queue(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    find_token::<{ QUEUE_FIELDS.len() }>(answer, nonce, token)
}

/// The number of the job that carries a token, in an answer of `sacct`.
pub fn find_in_history(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    find_token::<{ HISTORY_FIELDS.len() }>(answer, nonce, token)
}

/// The lowest number among the records that hold the token in a field after the first. Each field ends in the mark, so
/// that whatever people write into names begins no record.
fn find_token<const FIELDS: usize>(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    let mark = field_delimiter(nonce).filter(|_| !token.is_empty())?;
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
        let id = parse_number(fields[0].rsplit('\n').next().unwrap_or_default().trim_ascii());
        if id > 0 && fields[1..].iter().any(|field| field.contains(token)) {
            lowest = Some(lowest.map_or(id, |lowest| lowest.min(id)));
        }
    }
}

#[cfg(test)]
mod tests;
