//! Explains Slurm's refusals of job actions.

/// Slurm's answer to an action on a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ActionRefusal {
    /// What it means, and what to do.
    pub sentence: &'static str,
    pub slurm: String,
    /// Whether the action may have happened anyway.
    pub is_unsure: bool,
}

/// Slurm's messages, in lower case, and their meanings. The first match wins.
const MEANINGS: &[(&str, &str)] = &[
    ("already completing or completed", "It had just ended, so there was nothing left to do."),
    ("invalid job id", "The cluster no longer knows this job: it has ended, or it never was there."),
    (
        "permission denied",
        "The cluster does not let you do this. The job belongs to someone else, or this site keeps it to its operators.",
    ),
    (
        "no longer pending",
        "It has started already. Only a job that waits can be held or moved; a running one can be cancelled.",
    ),
    ("already finished", "It has ended already, so there was nothing left to do."),
    ("invalid user id", "The job belongs to someone else, and the cluster does not let you change it."),
    ("not pending nor running", "It has ended already, so there was nothing left to do."),
    ("pending execution", "It has not started yet, so it cannot be put back into the queue."),
    ("operation not permitted", "The cluster does not let you do this to this job."),
    (
        "requeue is disabled",
        "This job may not be put back: it was submitted so that it is not run twice, or the site forbids it. Cancel it and submit it again.",
    ),
    ("disabled", "This site has switched this off. Its support can say why."),
    (
        "unable to contact slurm controller",
        "Slurm's controller did not answer, so nothing was changed. Try again in a few minutes.",
    ),
    ("rate limit", "The cluster is busy and asked to wait. Try again in a moment."),
];

/// Messages that leave open whether the action happened.
const UNSURE_WORDS: &[&str] = &["timed out", "zero bytes", "connection reset", "communication", "unexpected message"];

/// Whether a message, in lower case, leaves open whether the action happened.
pub(super) fn is_unsure(lower: &str) -> bool {
    UNSURE_WORDS.iter().any(|word| lower.contains(word))
}

pub fn explain_refusal(message: &str) -> ActionRefusal {
    let lower = message.to_lowercase();
    let is_unsure = is_unsure(&lower);
    let sentence = if is_unsure {
        "The cluster gave no proper answer. It may have been done all the same: look at the job's state in a moment before you try again."
    } else {
        let known = MEANINGS.iter().find(|(words, _)| lower.contains(words));
        known.map_or("The cluster refused this. Its own words are below.", |(_, sentence)| sentence)
    };
    ActionRefusal { sentence, slurm: message.to_owned(), is_unsure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_slurm() {
        let cases = [
            ("scancel: error: Kill job error on job id 5: Invalid job id specified", "no longer knows"),
            ("scancel: error: Kill job error on job id 5: Job/step already completing or completed", "just ended"),
            ("scancel: error: Kill job error on job id 5: Access/permission denied", "someone else"),
            ("slurm_suspend error: Job is no longer pending execution", "started already"),
            ("Job is pending execution for job 5", "not started yet"),
            ("something new", "own words"),
        ];
        for (message, meaning) in cases {
            let refusal = explain_refusal(message);
            assert!(refusal.sentence.contains(meaning), "{message}: {}", refusal.sentence);
            assert!(!refusal.is_unsure);
        }
        let late = explain_refusal("scancel: error: Socket timed out on send/recv operation");
        assert!(late.is_unsure);
    }
}
