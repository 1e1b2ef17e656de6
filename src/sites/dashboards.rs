//! What shape the job of a board has at a site, and what people should know about it.

use serde::{Deserialize, Serialize};

/// The shape of a board's job: small, wherever the site lets it be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteDashboardJob {
    pub cores: u32,
    /// Mebibytes of memory, where a job may say so.
    pub memory_mb: u32,
    /// The sort of job, by its name under `jobs.types`; none: the site's usual one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job_type: Option<String>,
    /// The GPU or part of one to take where every job must take one, by its name under `jobs`; none: the first there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu: Option<String>,
    /// What is special about boards here, as a sentence: that a whole node is charged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

impl Default for SiteDashboardJob {
    fn default() -> Self {
        Self { cores: 1, memory_mb: 4096, job_type: None, gpu: None, note: None }
    }
}
