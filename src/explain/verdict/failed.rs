//! Failed jobs: the most telling error in the output comes first, then how the last program ended.

use super::cancelled::impossible_request;
use super::{EndedJobFacts, JobVerdict, VerdictTone, missing_file, out_of_memory, timeout};
use crate::explain::exit;
use crate::format;
use crate::logs::findings::{LogFinding, LogFindingKind};
use crate::text::sanitize;

/// How much of a log line is quoted.
const MAX_QUOTE: usize = 300;

/// A job whose last program reported an error, or that could not be started.
pub fn failed(ended: &EndedJobFacts<'_>) -> JobVerdict {
    if ended.never_began()
        && let Some(verdict) = impossible_request(ended)
    {
        return verdict;
    }
    // Slurm also reports this for crashes: a job that ran or left output did start.
    let crashed = ended.job.exit.is_some_and(|exit| exit.signal > 0 && exit.signal < 32);
    let ran = crashed || !ended.findings.is_empty() || ended.elapsed_s().is_some_and(|s| s > 5);
    if ended.job.reason == "JobLaunchFailure" && !ran {
        return JobVerdict::new(VerdictTone::Danger, "Couldn't start", "Slurm couldn't start the job on its node.")
            .with_advice("Check that its working folder and output folder exist and that you can write to them.")
            .with_advice("If they're fine, resubmit the job. If it happens again, contact the centre's support.");
    }
    match ended.findings.iter().min_by_key(|finding| finding.kind) {
        Some(finding) if finding.kind == LogFindingKind::OutOfMemory => {
            with_quote(out_of_memory(ended, "Probably out of memory"), finding)
        }
        Some(finding) if finding.kind == LogFindingKind::TimeLimit => timeout(ended),
        Some(finding) => verdict_from_finding(ended, finding),
        None => verdict_from_exit(ended),
    }
}

/// Explains the error in the output; the exit status comes second.
fn verdict_from_finding(ended: &EndedJobFacts<'_>, finding: &LogFinding) -> JobVerdict {
    let tone = match finding.kind {
        LogFindingKind::NodeFailure | LogFindingKind::Preempted => VerdictTone::Warning,
        _ => VerdictTone::Danger,
    };
    let title = match finding.kind {
        // A line that merely says "error" may not be the cause.
        LogFindingKind::Slurm | LogFindingKind::Error => "Failed with an error",
        _ => finding.title,
    };
    let ending = exit_sentence(ended);
    let verdict = with_quote(JobVerdict::new(tone, title, ending), finding);
    let relative = (finding.kind == LogFindingKind::NoSuchFile).then(|| missing_file::relative_path(&finding.last));
    match (relative.flatten(), ended.folder) {
        (Some(path), Some(folder)) => missing_file::add_advice(verdict, &path, folder),
        _ => verdict.with_advice(finding.advice.as_str()),
    }
}

/// Puts the log line first.
fn with_quote(mut verdict: JobVerdict, finding: &LogFinding) -> JobVerdict {
    let line = sanitize(&finding.last, MAX_QUOTE);
    let line = line.trim_end_matches('.');
    verdict.quotes_output = true;
    verdict.text = format!("Its output says: {line}. {}", verdict.text);
    verdict
}

/// Only the exit status is known.
fn verdict_from_exit(ended: &EndedJobFacts<'_>) -> JobVerdict {
    let words = ended.job.exit.and_then(exit::explain_exit);
    if words.as_ref().is_some_and(|words| words.signal == Some(9)) {
        let verdict = out_of_memory(ended, "Stopped, probably out of memory");
        return JobVerdict { text: format!("{} {}", exit_sentence(ended), verdict.text), ..verdict };
    }
    let title = match &words {
        Some(words) if words.signal.is_some() => "Stopped or crashed",
        _ => "Failed with an error",
    };
    JobVerdict::new(VerdictTone::Danger, title, exit_sentence(ended))
        .with_advice("Check the end of the output, where most programs report what went wrong.")
}

/// `After 12 min it ended with exit code 1: …`
fn exit_sentence(ended: &EndedJobFacts<'_>) -> String {
    let after = ended.elapsed_s().map(|elapsed| format!("After {} it", format::duration(elapsed)));
    let it = after.unwrap_or_else(|| "It".to_owned());
    match ended.job.exit.and_then(exit::explain_exit) {
        Some(words) => format!("{it} ended with {}: {}.", words.name, words.meaning),
        None => format!("{it} failed; Slurm has no exit code."),
    }
}
