//! Names and outcomes of jobs, as notifications say them.

use crate::slurm::job::JobState;
use crate::text::strip_hidden;

/// Job names are cut to this many characters.
pub(super) const MAX_NAME_CHARS: usize = 60;

/// Cleans and shortens a name for display.
pub(super) fn display_name(text: &str) -> String {
    let short = strip_hidden(text, MAX_NAME_CHARS);
    match short.trim() {
        "" => "Unnamed job".to_owned(),
        name if text.chars().count() > MAX_NAME_CHARS => format!("{name}…"),
        name => name.to_owned(),
    }
}

/// The outcome, as it follows the job's name.
pub(super) const fn outcome_words(state: JobState) -> &'static str {
    match state {
        JobState::Completed => "completed",
        JobState::Failed => "failed",
        JobState::Cancelled => "was cancelled",
        JobState::Timeout => "timed out",
        JobState::OutOfMemory => "ran out of memory",
        JobState::NodeFail => "ended because its node failed",
        JobState::BootFail => "ended because its node failed to boot",
        JobState::Preempted => "was preempted by another job",
        JobState::Deadline => "missed its deadline",
        _ => "ended with an unknown outcome",
    }
}
