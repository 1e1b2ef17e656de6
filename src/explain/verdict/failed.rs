//! Jobs that failed: the output's most telling error first, then how the last program ended.

use super::cancelled::never_could;
use super::{Ended, Tone, Verdict, out_of_memory, timeout};
use crate::explain::exit;
use crate::explain::sizes::duration;
use crate::logs::findings::{Finding, Kind};
use crate::slurm::text::sanitize;

/// No more of a line from the log is quoted.
const LONGEST_QUOTE: usize = 300;

/// A job whose last program reported an error, or that could not be started.
pub fn failed(ended: &Ended<'_>) -> Verdict {
    if ended.never_began()
        && let Some(verdict) = never_could(ended)
    {
        return verdict;
    }
    // Slurm says this of crashes as well: one that ran or left a word of its own was started.
    let crashed = ended.job.exit.is_some_and(|exit| exit.signal > 0 && exit.signal < 32);
    let ran = crashed || !ended.findings.is_empty() || ended.elapsed_s().is_some_and(|s| s > 5);
    if ended.job.reason == "JobLaunchFailure" && !ran {
        return Verdict::new(
            Tone::Danger,
            "It could not be started",
            "Slurm could not start it on its machine.",
        )
        .advise("Look whether its folder and the folder of its output exist and may be written.")
        .advise("If they do, submit it again; tell the centre's support if it happens twice.");
    }
    match ended.findings.iter().min_by_key(|finding| finding.kind) {
        Some(finding) if finding.kind == Kind::OutOfMemory => {
            quote(out_of_memory(ended, "It probably ran out of memory"), finding)
        }
        Some(finding) if finding.kind == Kind::TimeLimit => timeout(ended),
        Some(finding) => of_finding(ended, finding),
        None => of_exit(ended),
    }
}

/// What the output tells; how the program ended comes after it.
fn of_finding(ended: &Ended<'_>, finding: &Finding) -> Verdict {
    let tone = match finding.kind {
        Kind::NodeFailure | Kind::Preempted => Tone::Warning,
        _ => Tone::Danger,
    };
    let title = match finding.kind {
        // What only calls itself an error may not be why it failed.
        Kind::Slurm | Kind::Error => "It ended with an error",
        _ => finding.title,
    };
    let ending = sentence(ended);
    let verdict = quote(Verdict::new(tone, title, ending), finding);
    verdict.advise(finding.advice.as_str())
}

/// Puts the line of the log first.
fn quote(mut verdict: Verdict, finding: &Finding) -> Verdict {
    let line = sanitize(&finding.last, LONGEST_QUOTE);
    let line = line.trim_end_matches('.');
    verdict.text = format!("Its output says: {line}. {}", verdict.text);
    verdict
}

/// Only the end is known.
fn of_exit(ended: &Ended<'_>) -> Verdict {
    let words = ended.job.exit.and_then(exit::words);
    if words.as_ref().is_some_and(|words| words.signal == Some(9)) {
        let verdict = out_of_memory(ended, "It was stopped, probably for lack of memory");
        return Verdict { text: format!("{} {}", sentence(ended), verdict.text), ..verdict };
    }
    let title = match &words {
        Some(words) if words.signal.is_some() => "It was stopped or crashed",
        _ => "It ended with an error",
    };
    Verdict::new(Tone::Danger, title, sentence(ended))
        .advise("Read the end of its output: programs mostly say there what went wrong.")
}

/// `After 12 min it ended with exit code 1: …`
fn sentence(ended: &Ended<'_>) -> String {
    let after = ended.elapsed_s().map(|elapsed| format!("After {} it", duration(elapsed)));
    let it = after.unwrap_or_else(|| "It".to_owned());
    match ended.job.exit.and_then(exit::words) {
        Some(words) => format!("{it} ended with {}: {}.", words.name, words.meaning),
        None => format!("{it} failed; Slurm kept no exit code."),
    }
}
