//! Cancelled jobs, and jobs that never started because their request could not be met.

use super::{EndedJobFacts, JobVerdict, VerdictTone, timeout};
use crate::clock::UnixTime;
use crate::explain::waiting;
use crate::format;
use crate::logs::findings::LogFindingKind;
use crate::text::sanitize;

const MAX_NAME_CHARS: usize = 60;

/// A job that a person or Slurm itself cancelled.
pub fn cancelled(ended: &EndedJobFacts<'_>) -> JobVerdict {
    if ended.finding(LogFindingKind::TimeLimit).is_some() {
        return timeout(ended);
    }
    let when = match (ended.never_began(), ended.elapsed_s()) {
        (true, _) => " before it started".to_owned(),
        (false, Some(elapsed)) => format!(" after {}", format::duration(elapsed)),
        (false, None) => String::new(),
    };
    let by = ended.cancelled_by.map(|name| sanitize(name, MAX_NAME_CHARS)).filter(|name| !name.is_empty());
    let own = by.as_deref() == Some(ended.job.user.as_str());
    let never = impossible_request(ended).filter(|_| ended.never_began() && !own);
    match (by, never) {
        (_, Some(verdict)) => verdict,
        (Some(_), _) if own => {
            JobVerdict::new(VerdictTone::Neutral, "Cancelled by its owner", format!("Its owner cancelled it{when}."))
        }
        (Some(name), _) if name == "0" || name == "root" => JobVerdict::new(
            VerdictTone::Warning,
            "Cancelled by the centre",
            format!("The centre or Slurm itself cancelled it{when}."),
        )
        .with_advice("Check its output and your e-mail for a reason, or ask the centre's support."),
        (Some(name), _) => {
            let number = name.bytes().all(|byte| byte.is_ascii_digit());
            let who = if number { format!("user ID {name}") } else { name };
            JobVerdict::new(VerdictTone::Neutral, "Cancelled", format!("It was cancelled{when} by {who}."))
        }
        (None, _) => JobVerdict::new(VerdictTone::Neutral, "Cancelled", format!("It was cancelled{when}.")),
    }
}

/// It never ran because its request could not be met, according to Slurm's reason.
pub fn impossible_request(ended: &EndedJobFacts<'_>) -> Option<JobVerdict> {
    let why = waiting::explain_wait(&waiting::WaitingJob {
        partition_max_minutes: ended.partition_max_minutes,
        ..waiting::WaitingJob::new(ended.job, UnixTime(0))
    });
    (why.kind == waiting::WaitKind::Never).then(|| {
        let text = format!("{} Slurm's reason: {}.", why.sentence, why.slurm);
        JobVerdict { advice: why.advice, ..JobVerdict::new(VerdictTone::Danger, "Never started", text) }
    })
}
