//! Slurm's reasons for waiting that stand for themselves, each with its words. Limits have a grammar of their own and
//! stand in `limits.rs`.

mod blocking;
mod passing;

use super::{WaitExplanation, WaitKind};

/// Slurm's word; how serious; for the list; what happens; what to do, a line each.
pub type ReasonEntry = (&'static str, WaitKind, &'static str, &'static str, &'static str);

/// Words for a reason of the table.
pub fn explain_known(reason: &str) -> Option<WaitExplanation> {
    let maintenance = reason.to_ascii_lowercase().contains("maintenance");
    if maintenance && first_word(reason) == "ReqNodeNotAvail" {
        return Some(new_explanation(
            WaitKind::Site,
            "Waits for maintenance to end",
            "The centre has planned work on the machines, and the job would not be done before it begins. It starts \
             afterwards.",
            "A shorter time limit may let it run before the work begins.",
        ));
    }
    let empty = reason.is_empty() || reason.eq_ignore_ascii_case("none");
    let known =
        passing::PASSING_REASONS.iter().chain(blocking::BLOCKING_REASONS).find(|(word, ..)| {
            *word == reason
                || *word == first_word(reason)
                || (word.contains(' ')
                    && reason.to_ascii_lowercase().starts_with(&word.to_ascii_lowercase()))
                || (empty && *word == "None")
        });
    known.map(|(_, kind, headline, sentence, advice)| {
        new_explanation(*kind, headline, sentence, advice)
    })
}

/// What can be said of a word that is not known here.
pub fn explain_unknown(reason: &str) -> WaitExplanation {
    let sentence = format!(
        "Slurm gives a reason that this page does not know: {reason}. It may be ordinary waiting or need something from \
         you."
    );
    new_explanation(
        WaitKind::Site,
        "Waits: see the reason",
        &sentence,
        "If it does not start, show that reason to the centre's support.",
    )
}

/// The name at the start of a reason: `ReqNodeNotAvail` of `ReqNodeNotAvail, Reserved for maintenance`.
pub fn first_word(reason: &str) -> &str {
    reason.split([',', ' ', ':']).next().unwrap_or_default()
}

/// Puts words together; the advice has a line for each sentence.
pub fn new_explanation(
    kind: WaitKind,
    headline: &str,
    sentence: &str,
    advice: &str,
) -> WaitExplanation {
    WaitExplanation {
        kind,
        headline: headline.to_owned(),
        sentence: sentence.to_owned(),
        advice: advice.lines().map(str::to_owned).collect(),
        slurm: String::new(),
        start: None,
    }
}
