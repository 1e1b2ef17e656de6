//! What a form knows about the cluster that it composes a job for, from one person's view.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sites::Site;
pub use crate::slurm::associations::SubmitAccount;
pub use crate::slurm::partitions::Partition;

/// A cluster, as far as composing jobs is concerned.
#[derive(Debug, Clone)]
pub struct ComposeCluster {
    pub site: Arc<Site>,
    /// The person's user name on the cluster.
    pub user: String,
    /// The accounts that the person may charge jobs to.
    pub accounts: Vec<SubmitAccount>,
    pub partitions: Vec<Partition>,
    /// The GPUs and GPU slices that jobs can request.
    pub gpus: Vec<AvailableGpu>,
    /// Variables that paths may start with, and what they expand to: `SCRATCH` → `/scratch/alice`. Only those known
    /// for this person.
    pub folders: BTreeMap<String, String>,
    /// The largest job array that the cluster allows, if known.
    pub max_array: Option<u32>,
    /// Whether Slurm's accounting stores job comments.
    pub keeps_comments: bool,
}

/// A GPU model, or a slice of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AvailableGpu {
    /// The name that jobs use; none if the site names no models.
    pub model: Option<String>,
    /// The name shown to people.
    pub label: String,
    /// The most that one node has; 0 if unknown.
    pub per_node: u32,
    /// Whether it's a slice of a GPU.
    pub is_slice: bool,
    /// Cores to request with each GPU.
    pub cores: Option<u32>,
    /// Gigabytes of node memory to request with each GPU.
    pub memory_gb: Option<u32>,
    /// The partition that has it, at sites where jobs name a partition.
    pub partition: Option<String>,
}

impl ComposeCluster {
    pub fn partition(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.name == name)
    }

    /// Where jobs go that name no partition.
    pub fn default_partition(&self) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.is_default)
    }

    /// Finds a GPU by the name that jobs use.
    pub fn gpu(&self, model: &str) -> Option<&AvailableGpu> {
        self.gpus.iter().find(|gpu| gpu.model.as_deref() == Some(model))
    }

    /// Where large files and output go: scratch, or another known folder if there is none.
    pub fn scratch(&self) -> Option<&str> {
        ["SCRATCH", "USERWORK", "PROJECT", "HOME"].iter().find_map(|name| self.folders.get(*name).map(String::as_str))
    }
}
