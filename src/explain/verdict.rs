//! How a job ended: what happened, whether that is good, and what to request next time.

mod cancelled;
mod failed;
mod missing_file;
#[cfg(test)]
mod tests;

use super::amounts::{round_up_memory, round_up_minutes};
use crate::clock::UnixTime;
use crate::format;
use crate::logs::findings::{LogFinding, LogFindingKind};
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
    /// The folder that its program started in, if known.
    pub folder: Option<&'a str>,
}

impl<'a> EndedJobFacts<'a> {
    /// A job about which nothing else is known.
    pub const fn new(job: &'a SlurmJob) -> Self {
        Self {
            job,
            usage: None,
            cancelled_by: None,
            findings: &[],
            whole_node: false,
            partition_max_minutes: None,
            folder: None,
        }
    }

    /// How long it ran; none if it never started or that is unknown.
    fn elapsed_s(&self) -> Option<u64> {
        let measured = self.usage.map(|usage| usage.elapsed_s).filter(|elapsed| *elapsed > 0);
        measured.or_else(|| {
            let (_, end) = (self.job.start?, self.job.end?);
            Some(self.job.running_s(end)).filter(|elapsed| *elapsed > 0)
        })
    }

    /// Whether it certainly never ran.
    fn never_began(&self) -> bool {
        let unset = |moment: Option<UnixTime>| moment.is_none_or(|moment| moment.0 <= 0);
        self.elapsed_s().is_none()
            && (unset(self.job.start) || self.job.node_list.is_empty())
            && self.usage.is_none_or(|usage| usage.cpu_s.unwrap_or(0) == 0)
    }

    fn finding(&self, kind: LogFindingKind) -> Option<&'a LogFinding> {
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
    /// Whether the text quotes a line of the output.
    pub quotes_output: bool,
    /// Options to change when resubmitting.
    pub suggestions: Vec<SuggestedSbatchOption>,
    /// What to do, one sentence each.
    pub advice: Vec<String>,
}

impl JobVerdict {
    fn new(tone: VerdictTone, title: &str, text: impl Into<String>) -> Self {
        let (title, text) = (title.to_owned(), text.into());
        Self { tone, title, text, quotes_output: false, suggestions: Vec::new(), advice: Vec::new() }
    }

    fn with_advice(mut self, advice: impl Into<String>) -> Self {
        self.advice.push(advice.into());
        self
    }
}

pub fn verdict(ended: &EndedJobFacts<'_>) -> JobVerdict {
    match ended.job.state {
        JobState::Completed => completed(ended),
        JobState::OutOfMemory => out_of_memory(ended, "Out of memory"),
        JobState::Timeout => timeout(ended),
        JobState::Cancelled => cancelled::cancelled(ended),
        JobState::Failed => failed::failed(ended),
        JobState::NodeFail => JobVerdict::new(
            VerdictTone::Warning,
            "Node failed",
            "A node that the job ran on stopped working. Your program didn't cause this.",
        )
        .with_advice("Resubmit the job. Any files it saved are still there."),
        JobState::BootFail => JobVerdict::new(
            VerdictTone::Warning,
            "Node failed to boot",
            "The node allocated to the job didn't start. Your program didn't cause this.",
        )
        .with_advice("Resubmit the job. If it happens again, contact the centre's support."),
        JobState::Preempted => JobVerdict::new(
            VerdictTone::Warning,
            "Preempted",
            "Slurm stopped the job to make room for one with higher priority.",
        )
        .with_advice("Resubmit the job. A program that saves checkpoints can continue from the last one."),
        JobState::Deadline => JobVerdict::new(
            VerdictTone::Warning,
            "Missed deadline",
            match ended.job.submitted {
                Some(at) => format!(
                    "The job, submitted {}, couldn't finish before its deadline, so Slurm removed it from the queue.",
                    at.words()
                ),
                None => "The job couldn't finish before its deadline, so Slurm removed it from the queue.".to_owned(),
            },
        )
        .with_advice("Resubmit it with a later deadline or none, or request less time."),
        JobState::Revoked => JobVerdict::new(
            VerdictTone::Neutral,
            "Moved to another cluster",
            "Another cluster in this federation took over the job.",
        ),
        state => JobVerdict::new(
            VerdictTone::Neutral,
            "Not finished",
            format!("Slurm reports the state {}; the outcome isn't known yet.", state.slurm_name()),
        ),
    }
}

fn completed(ended: &EndedJobFacts<'_>) -> JobVerdict {
    let text = match ended.elapsed_s() {
        Some(elapsed) => format!("The job completed successfully after {}.", format::duration(elapsed)),
        None => "The job completed successfully.".to_owned(),
    };
    let done = JobVerdict::new(VerdictTone::Ok, "Completed", text);
    // A script succeeds if its last command does; an earlier one may have failed unnoticed.
    let telling = ended.findings.iter().find(|finding| finding.kind < LogFindingKind::NoSuchFile);
    match telling {
        Some(finding) => JobVerdict { tone: VerdictTone::Warning, ..done }.with_advice(format!(
            "However, its output shows an error: {}. Check that the results are complete. With 'set -e' at the top, the \
             script stops at the first error.",
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
            "It needed more than the {} of memory it requested (measured peak: {}) and was stopped.",
            format::memory(had),
            format::memory(used)
        ),
        (Some(had), Some(used)) => format!(
            "It needed more than the {} of memory it requested and was stopped. The last measurement was {}: Slurm measures \
             only periodically and missed the peak.",
            format::memory(had),
            format::memory(used)
        ),
        (Some(had), None) => {
            format!("It needed more than the {} of memory it requested and was stopped.", format::memory(had))
        }
        (None, _) => "It needed more memory than it requested and was stopped.".to_owned(),
    };
    let mut verdict = JobVerdict::new(VerdictTone::Danger, title, text);
    if ended.whole_node {
        return verdict
            .with_advice(
                "It already had all the memory of its nodes. Choose nodes with more memory, or use more nodes.",
            )
            .with_advice("Or have the program process less data at a time.");
    }
    if let Some(had) = had {
        let each = had.div_ceil(u64::from(ended.job.nodes.max(1)));
        let reached = used.unwrap_or(0).max(each);
        let next = round_up_memory(reached.saturating_mul(3).div_ceil(2));
        let per = if ended.job.nodes > 1 { " per node" } else { "" };
        verdict.suggestions.push(SuggestedSbatchOption {
            option: format!("--mem={}", format::memory_option(next)),
            why: if reached > each {
                format!("50% more than it used: about {}{per}.", format::memory(next))
            } else {
                format!("About 50% more than before: {}{per}.", format::memory(next))
            },
        });
    }
    verdict.with_advice("It may also help to have the program process less data at a time.")
}

fn timeout(ended: &EndedJobFacts<'_>) -> JobVerdict {
    let asked = ended.job.time_limit.minutes();
    let text = match asked {
        Some(asked) => {
            format!("It didn't finish within its time limit of {} and was stopped.", format::minutes(asked))
        }
        None => "It didn't finish within its time limit and was stopped.".to_owned(),
    };
    let mut verdict = JobVerdict::new(VerdictTone::Danger, "Timed out", text);
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
        verdict.advice.push("That's the longest time limit this partition allows.".to_owned());
    }
    verdict.with_advice(
        "If the program can save checkpoints, turn them on and continue from the last one in the next job. Then you lose \
         little when a job is stopped.",
    )
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    let first = chars.next().map(|c| c.to_lowercase().to_string()).unwrap_or_default();
    // Keep the capitals of "GPU" and "Slurm".
    if text.starts_with("Slurm") || text.starts_with("GPU") { text.to_owned() } else { first + chars.as_str() }
}
