//! How long the steps of a submission may take, and how long one waits before one believes that it did not arrive.

use std::time::Duration;

/// The pace of submissions.
#[derive(Debug, Clone)]
pub struct SubmitPace {
    /// How long a cluster that has the script waits for the word to go.
    pub go_within: Duration,
    /// How long `sbatch` may take.
    pub deadline: Duration,
    /// How long the queue and the accounting may each take to answer whether it is there.
    pub look_within: Duration,
    /// The pause before the second look for a submission that may have arrived; each next one is twice as long …
    pub look_again: Duration,
    /// … but not longer than this.
    pub longest_pause: Duration,
    /// Least time between the two looks that find nothing before it counts as not arrived: a controller that was busy
    /// may work through an old request a little later.
    pub apart: Duration,
    /// The pause between tries as long as nothing can be sent.
    pub retry: Duration,
    /// Seconds after which something that could not be sent is no longer tried by itself.
    pub patience_s: i64,
}

impl Default for SubmitPace {
    fn default() -> Self {
        Self {
            go_within: Duration::from_secs(15),
            deadline: Duration::from_mins(1),
            look_within: Duration::from_secs(20),
            look_again: Duration::from_secs(2),
            longest_pause: Duration::from_mins(1),
            apart: Duration::from_secs(30),
            retry: Duration::from_secs(5),
            patience_s: 600,
        }
    }
}

impl SubmitPace {
    /// After this long, whatever was told to go has ended on the cluster.
    pub fn dead_after(&self) -> Duration {
        // Both are rounded to whole seconds there.
        self.go_within + self.deadline + Duration::from_secs(2)
    }

    /// The pause after so many looks.
    pub fn pause(&self, looks: u32) -> Duration {
        (self.look_again * 2_u32.saturating_pow(looks.min(10))).min(self.longest_pause)
    }
}
