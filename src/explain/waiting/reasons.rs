//! Slurm's reasons for waiting that stand for themselves, each with its words. Limits have a grammar of their own and
//! stand in `limits.rs`.

mod stops;
mod waits;

use super::{Kind, Why};

/// Slurm's word; how serious; for the list; what happens; what to do, a line each.
pub type Entry = (&'static str, Kind, &'static str, &'static str, &'static str);

/// Words for a reason of the table.
pub fn fixed(reason: &str) -> Option<Why> {
    let maintenance = reason.to_ascii_lowercase().contains("maintenance");
    if maintenance && first_word(reason) == "ReqNodeNotAvail" {
        return Some(make(
            Kind::Site,
            "Waits for maintenance to end",
            "The centre has planned work on the machines, and the job would not be done before it begins. It starts \
             afterwards.",
            "A shorter time limit may let it run before the work begins.",
        ));
    }
    let empty = reason.is_empty() || reason.eq_ignore_ascii_case("none");
    let known = waits::WAITS.iter().chain(stops::STOPS).find(|(word, ..)| {
        *word == reason
            || *word == first_word(reason)
            || (word.contains(' ')
                && reason.to_ascii_lowercase().starts_with(&word.to_ascii_lowercase()))
            || (empty && *word == "None")
    });
    known.map(|(_, kind, headline, sentence, advice)| make(*kind, headline, sentence, advice))
}

/// What can be said of a word that is not known here.
pub fn unknown(reason: &str) -> Why {
    let sentence = format!(
        "Slurm gives a reason that this page does not know: {reason}. It may be ordinary waiting or need something from \
         you."
    );
    make(
        Kind::Site,
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
pub fn make(kind: Kind, headline: &str, sentence: &str, advice: &str) -> Why {
    Why {
        kind,
        headline: headline.to_owned(),
        sentence: sentence.to_owned(),
        advice: advice.lines().map(str::to_owned).collect(),
        slurm: String::new(),
        start: None,
    }
}
