//! Slurm's pending reasons that stand alone, with their explanations. Limits are composed from parts: see
//! `limits.rs`.

mod blocking;
mod passing;

use super::{WaitExplanation, WaitKind};

/// Slurm's reason; how serious; headline; what happens; what to do, one line each.
pub type ReasonEntry = (&'static str, WaitKind, &'static str, &'static str, &'static str);

/// Explains a reason from the tables.
pub fn explain_known(reason: &str) -> Option<WaitExplanation> {
    let maintenance = reason.to_ascii_lowercase().contains("maintenance");
    if maintenance && first_word(reason) == "ReqNodeNotAvail" {
        return Some(new_explanation(
            WaitKind::Site,
            "Waiting for maintenance",
            "Maintenance is planned, and the job might not finish before it begins. It starts \
             afterwards.",
            "With a shorter time limit, it may run before the maintenance.",
        ));
    }
    let empty = reason.is_empty() || reason.eq_ignore_ascii_case("none");
    let known = passing::PASSING_REASONS.iter().chain(blocking::BLOCKING_REASONS).find(|(word, ..)| {
        *word == reason
            || *word == first_word(reason)
            || (word.contains(' ') && reason.to_ascii_lowercase().starts_with(&word.to_ascii_lowercase()))
            || (empty && *word == "None")
    });
    known.map(|(_, kind, headline, sentence, advice)| new_explanation(*kind, headline, sentence, advice))
}

/// Explains a reason that is not in the tables.
pub fn explain_unknown(reason: &str) -> WaitExplanation {
    let sentence = format!(
        "Slurm gives a reason that the portal can't explain: {reason}. It may be an ordinary wait, or you may need to \
         act."
    );
    new_explanation(
        WaitKind::Site,
        "Other reason",
        &sentence,
        "If it doesn't start, send this reason to the centre's support.",
    )
}

/// The first word of a reason: `ReqNodeNotAvail` of `ReqNodeNotAvail, Reserved for maintenance`.
pub fn first_word(reason: &str) -> &str {
    reason.split([',', ' ', ':']).next().unwrap_or_default()
}

/// Builds an explanation; `advice` has one sentence per line.
pub fn new_explanation(kind: WaitKind, headline: &str, sentence: &str, advice: &str) -> WaitExplanation {
    WaitExplanation {
        kind,
        headline: headline.to_owned(),
        sentence: sentence.to_owned(),
        advice: advice.lines().map(str::to_owned).collect(),
        slurm: String::new(),
        start: None,
    }
}
