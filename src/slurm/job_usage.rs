//! What a job actually used, from its steps in Slurm's accounting.

use serde::{Deserialize, Serialize};

/// A job's usage. Memory and GPUs are only sampled: short peaks may be missing. Stored as JSON, so every field may be
/// missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct JobUsage {
    /// How long it ran, in seconds.
    pub elapsed_s: u64,
    /// CPU time of all its steps, in seconds.
    pub cpu_s: Option<u64>,
    /// The most memory that one task held, in mebibytes.
    pub max_rss_mb: Option<u64>,
    /// The number of tasks in the step with that memory: if more than one, the total was higher.
    pub tasks: u32,
    /// Average GPU utilisation, in percent of one GPU; only where the site measures it.
    pub gpu_percent: Option<u32>,
    /// Peak GPU memory, in mebibytes; likewise.
    pub gpu_memory_mb: Option<u64>,
}
