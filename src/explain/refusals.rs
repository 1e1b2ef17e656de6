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
    ("already completing or completed", "The job had just ended."),
    ("invalid job id", "The cluster has no such job: it has ended, or it never existed."),
    (
        "permission denied",
        "The cluster doesn't allow you to do this. The job belongs to someone else, or only the centre's operators can do it.",
    ),
    (
        "no longer pending",
        "The job has already started. You can only hold or move pending jobs, but you can cancel a running one.",
    ),
    ("already finished", "The job has already ended."),
    ("invalid user id", "The job belongs to someone else, so you can't change it."),
    ("not pending nor running", "The job has already ended."),
    ("pending execution", "The job hasn't started yet, so it can't be requeued."),
    ("operation not permitted", "The cluster doesn't allow this for this job."),
    (
        "requeue is disabled",
        "This job can't be requeued: it was submitted with --no-requeue, or the centre doesn't allow it. Cancel it and resubmit it.",
    ),
    ("disabled", "The centre has disabled this. Ask its support for the reason."),
    (
        "unable to contact slurm controller",
        "Slurm's controller didn't respond, so nothing was changed. Try again in a few minutes.",
    ),
    ("rate limit", "The cluster is busy. Try again in a moment."),
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
        "The cluster's reply was unclear. The action may still have gone through, so check the job's state before you try again."
    } else {
        let known = MEANINGS.iter().find(|(words, _)| lower.contains(words));
        known.map_or("The cluster rejected this. Its message is below.", |(_, sentence)| sentence)
    };
    ActionRefusal { sentence, slurm: message.to_owned(), is_unsure }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn refusals_of_slurm() {
        let cases = [
            ("scancel: error: Kill job error on job id 5: Invalid job id specified", "has no such job"),
            ("scancel: error: Kill job error on job id 5: Job/step already completing or completed", "just ended"),
            ("scancel: error: Kill job error on job id 5: Access/permission denied", "someone else"),
            ("slurm_suspend error: Job is no longer pending execution", "already started"),
            ("Job is pending execution for job 5", "hasn't started yet"),
            ("something new", "Its message is below"),
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
