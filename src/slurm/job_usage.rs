//! What a job really used, from the steps that Slurm's accounting kept of it.

/// What a job used. Memory and GPUs are measured now and then, not all the time: short peaks may be missing.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobUsage {
    /// How long it ran, in seconds.
    pub elapsed_s: u64,
    /// Processor time of all its steps, in seconds.
    pub cpu_s: Option<u64>,
    /// The most memory that one task held, in mebibytes.
    pub max_rss_mb: Option<u64>,
    /// How many tasks the step with that memory had: with more than one, all together held more.
    pub tasks: u32,
    /// How busy the GPUs were on average, in percent of one GPU; only where the site measures it.
    pub gpu_percent: Option<u32>,
    /// The most GPU memory held, in mebibytes; likewise.
    pub gpu_memory_mb: Option<u64>,
}
