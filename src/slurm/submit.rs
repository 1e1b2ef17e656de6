//! `sbatch`: the arguments that submit a script, what its answer means, and how a job is found again by its token.
//!
//! A token is a random word that belongs to one submission. It travels in the job's comment, or at the end of its
//! name where comments are not stored. If it is unclear whether a submission arrived, the portal searches for the
//! token in the queue and in accounting.

use super::fields::{all_digits, delimiter_option, field_delimiter, for_each_record, parse_number};
use super::text::{is_name, is_user_or_account};
use crate::clock::UnixTime;
use crate::text::sanitize;

/// The program. It reads the script from standard input.
pub const PROGRAM: &str = "sbatch";
/// The prefix of a token in a comment.
pub const COMMENT_PREFIX: &str = "portolan:";

/// The `squeue` fields: the job ID, then those that may hold a token.
const QUEUE_FIELDS: [&str; 3] = ["JobArrayID", "Name", "Comment"];
/// The `sacct` fields. Accounting also knows the submit line, which holds the token even where a site's own plugin
/// has overwritten the comment.
const HISTORY_FIELDS: [&str; 4] = ["JobID", "JobName", "Comment", "SubmitLine"];

/// The most lines kept of a message.
const MAX_LINES: usize = 60;
const MAX_LINE_LEN: usize = 400;

/// Where the token travels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SubmitTokenField {
    Comment,
    /// At the end of the job's name.
    JobName,
}

impl SubmitTokenField {
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Comment => "comment",
            Self::JobName => "name",
        }
    }

    /// The stored value; falls back to the job name if it is unknown.
    pub fn from_stored(word: &str) -> Self {
        if word == "comment" { Self::Comment } else { Self::JobName }
    }
}

/// The arguments. They override the same options in the script.
pub fn args(carrier: SubmitTokenField, token: &str, job_name: &str) -> Vec<String> {
    let mark = match carrier {
        SubmitTokenField::Comment => format!("--comment={COMMENT_PREFIX}{token}"),
        SubmitTokenField::JobName => format!("--job-name={job_name}.{token}"),
    };
    vec!["--parsable".to_owned(), mark]
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SbatchAnswer {
    /// It is a job, with this ID.
    Accepted(u64),
    /// It certainly is not a job; the message.
    Refused(String),
    /// Refused for now; the same request may work later.
    RetryLater(String),
    /// An unusual message. It is probably not a job, and this is why.
    Unclear(String),
    /// The answer does not say whether it is a job.
    Unconfirmed(String),
}

/// Messages that leave open what the controller did with the request.
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
/// Messages of a controller that turns everyone away for a while.
const RETRY_LATER_WORDS: &[&str] =
    &["rate limit", "resource temporarily unavailable", "temporarily unable to accept job"];
/// Words that occur in every refusal.
const REFUSED_WORDS: &[&str] = &["error", "fail", "not submitted", "not permitted", "denied", "rejected", "invalid"];
/// Ended by a signal or by `timeout`.
const KILLED_EXIT_CODES: [i32; 4] = [124, 129, 137, 143];
/// The program does not exist or may not be run.
const NO_PROGRAM_EXIT_CODES: [i32; 2] = [126, 127];

/// Interprets the exit code, stdout and stderr.
pub fn parse_sbatch_answer(code: i32, printed: &str, complained: &str) -> SbatchAnswer {
    // Printed once the controller has accepted the job, whatever happened afterwards.
    if let Some(number) = find_job_number(printed) {
        return SbatchAnswer::Accepted(number);
    }
    let message = combine_output(printed, complained);
    let lower = message.to_lowercase();
    let has = |list: &[&str]| list.iter().any(|word| lower.contains(word));
    if has(UNCONFIRMED_WORDS) || KILLED_EXIT_CODES.contains(&code) {
        SbatchAnswer::Unconfirmed(message)
    } else if code != 0 && has(RETRY_LATER_WORDS) {
        SbatchAnswer::RetryLater(message)
    } else if NO_PROGRAM_EXIT_CODES.contains(&code) || (code != 0 && has(REFUSED_WORDS)) {
        SbatchAnswer::Refused(message)
    } else {
        SbatchAnswer::Unclear(message)
    }
}

/// `20012` or `20012;cluster` on its own line; sites print other lines around it.
fn find_job_number(printed: &str) -> Option<u64> {
    printed.lines().rev().find_map(|line| {
        let line = line.trim();
        let (digits, cluster) = line.split_once(';').unwrap_or((line, "x"));
        Some(parse_number(digits)).filter(|number| all_digits(digits) && is_name(cluster) && *number > 0)
    })
}

/// The message line by line, bounded and without colours.
pub fn combine_output(printed: &str, complained: &str) -> String {
    let lines = complained.lines().chain(printed.lines());
    let plain = lines.map(|line| sanitize(line, MAX_LINE_LEN));
    plain.filter(|line| !line.is_empty()).take(MAX_LINES).collect::<Vec<_>>().join("\n")
}

/// The `squeue` arguments for a token search. `nonce` is a random word, made for this one request. None if the nonce
/// or the name is invalid.
pub fn queue_args(nonce: &str, user: &str) -> Option<Vec<String>> {
    let mark = field_delimiter(nonce).filter(|_| is_user_or_account(user))?;
    let format = QUEUE_FIELDS.map(|field| format!("{field}:{mark}")).join(",");
    Some(["-h", "-a", "-t", "all", "-u", user, "-O", &format].map(str::to_owned).to_vec())
}

/// The `sacct` arguments for a token search, from a given time on.
pub fn history_args(nonce: &str, user: &str, since: UnixTime) -> Option<Vec<String>> {
    let delimiter = delimiter_option(nonce).filter(|_| is_user_or_account(user))?;
    let since = format!("--starttime=uts{}", since.0.max(0));
    let fields = HISTORY_FIELDS.join(",");
    let words = ["-n", "-p", "-X", &delimiter, "-u", user, &since, "-o", &fields];
    Some(words.map(str::to_owned).to_vec())
}

/// The ID of the job that carries a token, in `squeue` output.
pub fn find_in_queue(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    find_token::<{ QUEUE_FIELDS.len() }>(answer, nonce, token)
}

/// The ID of the job that carries a token, in `sacct` output.
pub fn find_in_history(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    find_token::<{ HISTORY_FIELDS.len() }>(answer, nonce, token)
}

/// The lowest ID among the records that hold the token in a field after the first.
fn find_token<const FIELDS: usize>(answer: &[u8], nonce: &str, token: &str) -> Option<u64> {
    let mut lowest: Option<u64> = None;
    for_each_record::<FIELDS>(answer, nonce, |fields| {
        // The ID of an array or of a component comes before the character that follows it (`12_[1-3]`, `12+1`).
        let id = parse_number(fields[0]);
        if id > 0 && !token.is_empty() && fields[1..].iter().any(|field| field.contains(token)) {
            lowest = Some(lowest.map_or(id, |lowest| lowest.min(id)));
        }
        true
    });
    lowest
}

#[cfg(test)]
mod tests;
