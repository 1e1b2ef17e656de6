//! How long the steps of a submission may take, and how long one waits before one believes that it did not arrive.

use std::time::Duration;

/// The pace of submissions.
#[derive(Debug, Clone)]
pub struct SubmitPace {
    /// How long a cluster that has the script waits for the word to go.
    pub go_timeout: Duration,
    /// How long `sbatch` may take.
    pub sbatch_timeout: Duration,
    /// How long the queue and the accounting may each take to answer whether it is there.
    pub lookup_timeout: Duration,
    /// The pause before the second look for a submission that may have arrived; each next one is twice as long …
    pub first_lookup_pause: Duration,
    /// … but not longer than this.
    pub max_lookup_pause: Duration,
    /// Least time between the two looks that find nothing before it counts as not arrived: a controller that was busy
    /// may work through an old request a little later.
    pub min_lookup_gap: Duration,
    /// The pause between tries as long as nothing can be sent.
    pub retry_pause: Duration,
    /// Seconds after which something that could not be sent is no longer tried by itself.
    pub give_up_after_secs: i64,
}

impl Default for SubmitPace {
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

impl SubmitPace {
    /// After this long, whatever was told to go has ended on the cluster.
    pub fn surely_ended_after(&self) -> Duration {
        // Both are rounded to whole seconds there.
        self.go_timeout + self.sbatch_timeout + Duration::from_secs(2)
    }

    /// The pause after so many looks.
    pub fn lookup_pause(&self, looks: u32) -> Duration {
        (self.first_lookup_pause * 2_u32.saturating_pow(looks.min(10))).min(self.max_lookup_pause)
    }
}
