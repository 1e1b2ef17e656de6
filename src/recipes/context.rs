//! What a form knows of the cluster that it composes for, as one person finds it.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::sites::Site;
pub use crate::slurm::associations::SlurmAccount;
pub use crate::slurm::partitions::Partition;

/// A cluster, as far as jobs for it are concerned.
#[derive(Debug, Clone)]
pub struct ComposeContext {
    /// What the site is like.
    pub site: Arc<Site>,
    /// The person's name there.
    pub user: String,
    /// What jobs may be charged to.
    pub accounts: Vec<SlurmAccount>,
    pub partitions: Vec<Partition>,
    /// The GPUs, and the parts of GPUs, that can be asked for.
    pub gpus: Vec<AvailableGpu>,
    /// Variables that paths may begin with, and where they lead: `SCRATCH` → `/scratch/alice`. Only those that are
    /// known for this person.
    pub folders: BTreeMap<String, String>,
    /// Most tasks of an array, if that is known.
    pub max_array: Option<u32>,
    /// Whether the accounting keeps the comments of jobs.
    pub keeps_comments: bool,
}

/// A kind of GPU, or of a part of one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AvailableGpu {
    /// As a job names it; none where the site names no models.
    pub model: Option<String>,
    /// As people name it.
    pub label: String,
    /// The most that one node has; 0 if that is not known.
    pub per_node: u32,
    /// Whether it is a part of a GPU.
    pub is_slice: bool,
    /// Cores to take with each.
    pub cores: Option<u32>,
    /// Gigabytes of the node's memory to take with each.
    pub memory_gb: Option<u32>,
    /// The partition that has it, where jobs name partitions.
    pub partition: Option<String>,
}

impl ComposeContext {
    /// The partition of a name.
    pub fn partition(&self, name: &str) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.name == name)
    }

    /// The partition that jobs come to which name none.
    pub fn default_partition(&self) -> Option<&Partition> {
        self.partitions.iter().find(|partition| partition.is_default)
    }

    /// A kind of GPU by the name that jobs use.
    pub fn gpu(&self, model: &str) -> Option<&AvailableGpu> {
        self.gpus.iter().find(|gpu| gpu.model.as_deref() == Some(model))
    }

    /// Where a job's large files and its output go: scratch, or else another folder that is known.
    pub fn scratch(&self) -> Option<&str> {
        ["SCRATCH", "USERWORK", "PROJECT", "HOME"]
            .iter()
            .find_map(|name| self.folders.get(*name).map(String::as_str))
    }
}
