//! Jobs that were cancelled, and those that never began because what they asked for could not be.

use super::{Ended, Tone, Verdict, timeout};
use crate::clock::UnixTime;
use crate::explain::sizes::duration;
use crate::explain::waiting;
use crate::logs::findings::Kind;
use crate::slurm::text::sanitize;

/// Names of people are cut to this.
const LONGEST_NAME: usize = 60;

/// A job that someone, or Slurm itself, took away.
pub fn cancelled(ended: &Ended<'_>) -> Verdict {
    if ended.finding(Kind::TimeLimit).is_some() {
        return timeout(ended);
    }
    let when = match (ended.never_began(), ended.elapsed_s()) {
        (true, _) => " before it began".to_owned(),
        (false, Some(elapsed)) => format!(" after {}", duration(elapsed)),
        (false, None) => String::new(),
    };
    let by =
        ended.cancelled_by.map(|name| sanitize(name, LONGEST_NAME)).filter(|name| !name.is_empty());
    let own = by.as_deref() == Some(ended.job.user.as_str());
    let never = never_could(ended).filter(|_| ended.never_began() && !own);
    match (by, never) {
        (_, Some(verdict)) => verdict,
        (Some(_), _) if own => Verdict::new(
            Tone::Neutral,
            "Cancelled by its owner",
            format!("It was cancelled{when} by its owner."),
        ),
        (Some(name), _) if name == "0" || name == "root" => Verdict::new(
            Tone::Warning,
            "Cancelled by the centre",
            format!("The centre, or Slurm itself, cancelled it{when}."),
        )
        .advise("Look into its output and your mail for a reason, then ask the centre's support."),
        (Some(name), _) => {
            let number = name.bytes().all(|byte| byte.is_ascii_digit());
            let who = if number { format!("user number {name}") } else { name };
            Verdict::new(Tone::Neutral, "Cancelled", format!("It was cancelled{when} by {who}."))
        }
        (None, _) => Verdict::new(Tone::Neutral, "Cancelled", format!("It was cancelled{when}.")),
    }
}

/// It never ran because what it asked for could not be: Slurm's reason says so.
pub fn never_could(ended: &Ended<'_>) -> Option<Verdict> {
    let why = waiting::why(&waiting::Waiting {
        partition_max_minutes: ended.partition_max_minutes,
        ..waiting::Waiting::of(ended.job, UnixTime(0))
    });
    (why.kind == waiting::Kind::Never).then(|| Verdict {
        tone: Tone::Danger,
        title: "It never began".to_owned(),
        text: format!("{} Slurm's reason: {}.", why.sentence, why.slurm),
        mended: Vec::new(),
        advice: why.advice,
    })
}
