//! What is known about a submission that may have arrived, and when it certainly did not.

use std::time::{Duration, Instant};

use crate::config::SubmissionTimeouts;

/// A submission that may have arrived, as tracked by this process.
#[derive(Debug, Clone)]
pub struct UnconfirmedSubmission {
    /// From this time on, any `sbatch` that was started has ended.
    expired_at: Instant,
    /// The first search after that time which found nothing.
    first_absent_at: Option<Instant>,
    looks: u32,
    /// When to search next.
    pub due_at: Instant,
}

impl UnconfirmedSubmission {
    /// Starts now. After the longest time that a command may take, nothing sent earlier can still be running.
    pub fn new(pace: &SubmissionTimeouts, now: Instant) -> Self {
        Self { expired_at: now + pace.surely_ended_after(), first_absent_at: None, looks: 0, due_at: now }
    }

    /// A search got no answer.
    pub fn note_unanswered(&mut self, pace: &SubmissionTimeouts, now: Instant) {
        self.due_at = now + pace.lookup_pause(self.looks);
        self.looks = self.looks.saturating_add(1);
    }

    /// A search that began at `asked` found nothing. Returns whether the submission certainly did not arrive: that
    /// takes two such searches, far enough apart, both after anything could still be on its way.
    pub fn note_absent(&mut self, pace: &SubmissionTimeouts, asked: Instant, now: Instant) -> bool {
        self.note_unanswered(pace, now);
        if asked < self.expired_at {
            self.due_at = self.due_at.min(self.expired_at.max(now));
            return false;
        }
        let first = *self.first_absent_at.get_or_insert(asked);
        let certain_at = first + pace.min_lookup_gap.max(Duration::from_millis(1));
        self.due_at = certain_at.max(now);
        asked >= certain_at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_answers_after_nothing_can_run_any_more() {
        let pace = SubmissionTimeouts::default();
        let begun = Instant::now();
        let at = |seconds: u64| begun + Duration::from_secs(seconds);
        let mut doubt = UnconfirmedSubmission::new(&pace, begun);
        assert_eq!(doubt.due_at, begun, "looked for at once");
        let dead = pace.surely_ended_after().as_secs();
        for asked in [0, 5, 20, 60, dead - 1] {
            assert!(!doubt.note_absent(&pace, at(asked), at(asked)), "sbatch may still run");
            assert!(doubt.due_at <= at(dead).max(at(asked)));
        }
        assert!(!doubt.note_absent(&pace, at(dead), at(dead + 1)), "the first that counts");
        assert_eq!(doubt.due_at, at(dead + 30));
        assert!(!doubt.note_absent(&pace, at(dead + 5), at(dead + 6)), "too close");
        doubt.note_unanswered(&pace, at(dead + 20));
        assert!(doubt.note_absent(&pace, at(dead + 30), at(dead + 31)));
    }

    #[test]
    fn looks_without_an_answer_become_rarer() {
        let pace = SubmissionTimeouts::default();
        let now = Instant::now();
        let mut doubt = UnconfirmedSubmission::new(&pace, now);
        let mut pauses = Vec::new();
        for _ in 0..40 {
            doubt.note_unanswered(&pace, now);
            pauses.push(doubt.due_at - now);
        }
        assert_eq!(pauses[0], pace.first_lookup_pause);
        assert!(pauses.is_sorted() && pauses[39] == pace.max_lookup_pause);
    }
}
