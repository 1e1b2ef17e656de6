//! How long the steps of a submission may take, and how long to wait before concluding that it did not arrive.

use std::time::Duration;

#[derive(Debug, Clone)]
pub struct SubmissionTimeouts {
    /// How long a cluster that has the script waits for the go-ahead.
    pub go_timeout: Duration,
    /// How long `sbatch` may take.
    pub sbatch_timeout: Duration,
    /// How long the queue and the accounting may each take to say whether the job is there.
    pub lookup_timeout: Duration,
    /// The pause before the second lookup of an unconfirmed submission; doubled for each further one …
    pub first_lookup_pause: Duration,
    /// … up to this.
    pub max_lookup_pause: Duration,
    /// Minimum time between the two empty lookups after which it counts as not arrived: a busy controller may process
    /// an old request a little later.
    pub min_lookup_gap: Duration,
    /// The pause between tries while nothing can be sent.
    pub retry_pause: Duration,
    /// Seconds after which a submission that can't be sent is no longer retried.
    pub give_up_after_secs: i64,
}

impl Default for SubmissionTimeouts {
    fn default() -> Self {
        Self {
            go_timeout: Duration::from_secs(15),
            sbatch_timeout: Duration::from_mins(1),
            lookup_timeout: Duration::from_secs(20),
            first_lookup_pause: Duration::from_secs(2),
            max_lookup_pause: Duration::from_mins(1),
            min_lookup_gap: Duration::from_secs(30),
            retry_pause: Duration::from_secs(5),
            give_up_after_secs: 600,
        }
    }
}

impl SubmissionTimeouts {
    /// By then, anything that got the go-ahead has ended on the cluster.
    pub fn surely_ended_after(&self) -> Duration {
        // The cluster rounds both to whole seconds.
        self.go_timeout + self.sbatch_timeout + Duration::from_secs(2)
    }

    /// The pause after this many lookups.
    pub fn lookup_pause(&self, looks: u32) -> Duration {
        (self.first_lookup_pause * 2_u32.saturating_pow(looks.min(10))).min(self.max_lookup_pause)
    }
}
