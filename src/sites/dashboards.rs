//! The resources of dashboard jobs at a site, and what people should know about them.

use serde::{Deserialize, Serialize};

/// The resources of a dashboard job: as small as the site allows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteDashboardResources {
    pub cores: u32,
    /// Mebibytes of memory, where a job may request memory.
    pub memory_mb: u32,
    /// The job type, by its name under `jobs.types`; `None`: the site's usual one.
    pub job_type: Option<String>,
    /// The GPU or GPU slice to request where every job must have one, by its name under `jobs`; `None`: the first
    /// there.
    pub gpu: Option<String>,
    /// What is special about dashboards here, as a sentence: for example that a whole node is charged.
    pub note: Option<String>,
}

impl Default for SiteDashboardResources {
    fn default() -> Self {
        Self { cores: 1, memory_mb: 4096, job_type: None, gpu: None, note: None }
    }
}
