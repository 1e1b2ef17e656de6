//! How a job ended: what happened, whether that is good, and what to request next time.

mod cancelled;
mod failed;
#[cfg(test)]
mod tests;

use super::amounts::{round_up_memory, round_up_minutes};
use crate::clock::UnixTime;
use crate::format;
use crate::logs::findings::{FindingKind, LogFinding};
use crate::slurm::job::{JobState, SlurmJob};
use crate::slurm::job_usage::JobUsage;
use crate::slurm::units::TimeLimit;

#[derive(Debug, Clone, Copy)]
pub struct EndedJobFacts<'a> {
    pub job: &'a SlurmJob,
    pub usage: Option<&'a JobUsage>,
    /// Who cancelled it, by name if known, to compare with the job's user; `0` and `root` mean the centre.
    pub cancelled_by: Option<&'a str>,
    /// Errors found in its output.
    pub findings: &'a [LogFinding],
    /// Whether it had whole nodes to itself, and so all their memory.
    pub whole_node: bool,
    /// The partition's time limit.
    pub partition_max_minutes: Option<u32>,
}

impl<'a> EndedJobFacts<'a> {
    /// A job about which nothing else is known.
    pub const fn new(job: &'a SlurmJob) -> Self {
        Self { job, usage: None, cancelled_by: None, findings: &[], whole_node: false, partition_max_minutes: None }
    }

    /// How long it ran; none if it never started or that is unknown.
    fn elapsed_s(&self) -> Option<u64> {
        let measured = self.usage.map(|usage| usage.elapsed_s).filter(|elapsed| *elapsed > 0);
        measured.or_else(|| {
            let (start, end) = (self.job.start?, self.job.end?);
            u64::try_from(end.since(start)).ok().filter(|elapsed| *elapsed > 0)
        })
    }

    /// Whether it certainly never ran.
    fn never_began(&self) -> bool {
        let unset = |moment: Option<UnixTime>| moment.is_none_or(|moment| moment.0 <= 0);
        self.elapsed_s().is_none()
            && (unset(self.job.start) || self.job.node_list.is_empty())
            && self.usage.is_none_or(|usage| usage.cpu_s.unwrap_or(0) == 0)
    }

    fn finding(&self, kind: FindingKind) -> Option<&'a LogFinding> {
        self.findings.iter().find(|finding| finding.kind == kind)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum VerdictTone {
    /// As it should be.
    Ok,
    /// Not as it should be, but nobody's mistake, or only in part.
    Warning,
    Danger,
    Neutral,
}

/// An option to change when resubmitting.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SuggestedSbatchOption {
    /// In `sbatch` syntax: `--mem=24G`.
    pub option: String,
    pub why: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobVerdict {
    pub tone: VerdictTone,
    pub title: String,
    pub text: String,
    /// Options to change when resubmitting.
    pub suggestions: Vec<SuggestedSbatchOption>,
    /// What to do, one sentence each.
    pub advice: Vec<String>,
}

impl JobVerdict {
    fn new(tone: VerdictTone, title: &str, text: impl Into<String>) -> Self {
        let (title, text) = (title.to_owned(), text.into());
        Self { tone, title, text, suggestions: Vec::new(), advice: Vec::new() }
    }

    fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }
}

pub fn verdict(ended: &EndedJobFacts<'_>) -> JobVerdict {
    match ended.job.state {
        JobState::Completed => completed(ended),
        JobState::OutOfMemory => out_of_memory(ended, "It ran out of memory"),
        JobState::Timeout => timeout(ended),
        JobState::Cancelled => cancelled::cancelled(ended),
        JobState::Failed => failed::failed(ended),
        JobState::NodeFail => JobVerdict::new(
            VerdictTone::Warning,
            "A machine failed",
            "A machine on which it ran stopped working. Your program is not to blame.",
        )
        .with_advice("Submit it again. What it had saved is where it wrote it."),
        JobState::BootFail => JobVerdict::new(
            VerdictTone::Warning,
            "Its machine did not come up",
            "The machine that it was given did not start. Your program is not to blame.",
        )
        .with_advice("Submit it again; tell the centre's support if it happens twice."),
        JobState::Preempted => JobVerdict::new(
            VerdictTone::Warning,
            "It had to make room",
            "Another job with a higher rank needed its place, so it was stopped.",
        )
        .with_advice("Submit it again. A program that saves its state now and then can go on from there."),
        JobState::Deadline => JobVerdict::new(
            VerdictTone::Warning,
            "It was too late",
            "It could not be done before the deadline that was set for it, so Slurm took it out of the queue.",
        )
        .with_advice("Submit it again with a later deadline or without one, or ask for less time."),
        JobState::Revoked => JobVerdict::new(
            VerdictTone::Neutral,
            "It runs on another cluster",
            "Another cluster that works together with this one took it over.",
        ),
        state => JobVerdict::new(
            VerdictTone::Neutral,
            "It is not over",
            format!("Slurm says {}; how it ends is not known yet.", state.slurm_name()),
        ),
    }
}

fn completed(ended: &EndedJobFacts<'_>) -> JobVerdict {
    let text = match ended.elapsed_s() {
        Some(elapsed) => format!("It ended well after {}.", format::duration(elapsed)),
        None => "It ended well.".to_owned(),
    };
    let done = JobVerdict::new(VerdictTone::Ok, "Done", text);
    // A script succeeds if its last command does; an earlier one may have failed unnoticed.
    let telling = ended.findings.iter().find(|finding| finding.kind < FindingKind::NoSuchFile);
    match telling {
        Some(finding) => JobVerdict { tone: VerdictTone::Warning, ..done }.with_advice(format!(
            "Its output tells of an error all the same: {}. Look whether the results are complete; 'set -e' at the \
             script's start makes it stop at the first error.",
            lower_first(finding.title)
        )),
        None => done,
    }
}

/// What it had and used, and roughly how much to request.
fn out_of_memory(ended: &EndedJobFacts<'_>, title: &str) -> JobVerdict {
    let had = ended.job.memory_mb.filter(|mb| *mb > 0);
    let used = ended.usage.and_then(|usage| usage.max_rss_mb).filter(|mb| *mb > 0);
    let text = match (had, used) {
        (Some(had), Some(used)) if used.saturating_mul(100) >= had.saturating_mul(85) => format!(
            "It used {} of the {} of memory that it had, needed more, and was stopped.",
            format::memory(used),
            format::memory(had)
        ),
        (Some(had), Some(used)) => format!(
            "It needed more than the {} of memory that it had and was stopped. {} were measured last: Slurm measures now \
             and then, and the peak was not caught.",
            format::memory(had),
            format::memory(used)
        ),
        (Some(had), None) => {
            format!("It needed more than the {} of memory that it had and was stopped.", format::memory(had))
        }
        (None, _) => "It needed more memory than it had and was stopped.".to_owned(),
    };
    let mut verdict = JobVerdict::new(VerdictTone::Danger, title, text);
    if ended.whole_node {
        return verdict
            .with_advice(
                "It had all memory of its machines already: choose machines with more, or spread it over more of them.",
            )
            .with_advice("Or let the program work on less data at a time.");
    }
    if let Some(had) = had {
        let each = had.div_ceil(u64::from(ended.job.nodes.max(1)));
        let reached = used.unwrap_or(0).max(each);
        let next = round_up_memory(reached.saturating_mul(3).div_ceil(2));
        let per = if ended.job.nodes > 1 { " for each machine" } else { "" };
        verdict.suggestions.push(SuggestedSbatchOption {
            option: format!("--mem={}", format::memory_option(next)),
            why: if reached > each {
                format!("Half as much again as it reached: about {}{per}.", format::memory(next))
            } else {
                format!("About half as much again as before: {}{per}.", format::memory(next))
            },
        });
    }
    verdict.with_advice("It may also help to let the program work on less data at a time.")
}

fn timeout(ended: &EndedJobFacts<'_>) -> JobVerdict {
    let asked = ended.job.time_limit.minutes();
    let text = match asked {
        Some(asked) => {
            format!("It was not done and was stopped at its limit of {}.", format::minutes(asked))
        }
        None => "It was not done and was stopped at its time limit.".to_owned(),
    };
    let mut verdict = JobVerdict::new(VerdictTone::Danger, "It ran out of time", text);
    let most = ended.partition_max_minutes.unwrap_or(u32::MAX);
    if let Some(asked) = asked.filter(|asked| *asked < most) {
        // Double the time limit of short jobs; add half to that of long ones.
        let next = if asked <= 720 { asked.saturating_mul(2) } else { asked.saturating_add(asked / 2) };
        let next = round_up_minutes(next).min(most);
        verdict.suggestions.push(SuggestedSbatchOption {
            option: format!("--time={}", TimeLimit::Minutes(next)),
            why: format!("{} instead of {}.", format::minutes(next), format::minutes(asked)),
        });
    } else if asked.is_some() {
        verdict.advice.push("This is the longest that jobs may run there.".to_owned());
    }
    verdict.with_advice(
        "If the program can save its state (checkpoints), let it do so and go on from there in a next job; then it does \
         not matter when it is stopped.",
    )
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    // Keep the capitals of "GPU" and "Slurm".
    if text.starts_with("Slurm") || text.starts_with("GPU") { text.to_owned() } else { first + chars.as_str() }
}
