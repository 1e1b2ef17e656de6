//! What a job may request at a site, and the rules that forms must know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{OnByDefault, is_default};

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own in the file")]
pub struct SiteJobRules {
    /// Whether every job must name an account.
    #[serde(skip_serializing_if = "is_default")]
    pub account_required: bool,
    /// What Slurm appends to an account's name in fair-share queries: `_cpu`, `_gpu`. Never used to submit.
    #[serde(skip_serializing_if = "is_default")]
    pub account_suffixes: Vec<String>,
    /// The longest time limit of a job.
    pub max_hours: Option<u32>,
    /// The shortest time limit of a job.
    pub min_minutes: Option<u32>,
    /// The most jobs of one person, pending and running; each array task counts.
    pub max_jobs: Option<u32>,
    /// The most jobs of one person that run at the same time.
    pub max_running: Option<u32>,
    /// The most tasks of one job array.
    pub max_array: Option<u32>,
    /// Whether a job names a partition.
    #[serde(skip_serializing_if = "is_default")]
    pub partition: JobOptionRule,
    /// Whether a job that requests GPUs names the model.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_model: JobOptionRule,
    /// The option that requests GPUs.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_option: GpuSbatchOption,
    /// Whether every job must request a GPU.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_only: bool,
    #[serde(skip_serializing_if = "is_default")]
    pub whole_node: bool,
    /// Whether a job requests memory.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: JobOptionRule,
    /// What to know about memory, as a sentence.
    pub memory_note: Option<String>,
    /// Megabytes per core that a job gets by default.
    pub memory_default_mb: Option<u32>,
    #[serde(skip_serializing_if = "is_default")]
    pub submit_from: SubmitFolderRule,
    /// Whether the site's own `sbatch` overwrites a job's comment, so that it cannot identify the job.
    #[serde(skip_serializing_if = "is_default")]
    pub comment_lost: bool,
    /// Whether e-mail from Slurm arrives.
    #[serde(skip_serializing_if = "is_default")]
    pub mail: OnByDefault,
    /// Whether programs in a job can reach the internet.
    #[serde(skip_serializing_if = "is_default")]
    pub internet: InternetAccess,
    /// The proxy to set in a job, if one is needed and not already set.
    pub proxy: Option<String>,
    /// What to know about the internet in jobs, as a sentence.
    pub internet_note: Option<String>,
    /// The variable that holds a job's own folder on a fast disk: `$SLURM_TMPDIR`.
    pub tmpdir: Option<String>,
    /// What to know about that folder, as a sentence.
    pub tmpdir_note: Option<String>,
    /// Whether pip uses the site's own package collection, so that packages are installed without the internet.
    #[serde(skip_serializing_if = "is_default")]
    pub wheelhouse: bool,
    /// Whether Python packages may only be used in containers, not installed with pip.
    #[serde(skip_serializing_if = "is_default")]
    pub containers_only: bool,
    /// Modules to start with, by purpose: `python` → `StdEnv/2023 python/3.11`.
    #[serde(skip_serializing_if = "is_default")]
    pub modules: BTreeMap<String, String>,
    /// Prefixes of account names, and what they mean.
    #[serde(skip_serializing_if = "is_default")]
    pub accounts: Vec<SiteAccountPrefix>,
    #[serde(skip_serializing_if = "is_default")]
    pub gpus: Vec<SiteGpu>,
    /// GPU slices that can be requested by name.
    #[serde(skip_serializing_if = "is_default")]
    pub slices: Vec<SiteGpuSlice>,
    /// Named job types, if the site offers a choice.
    #[serde(skip_serializing_if = "is_default")]
    pub types: Vec<SiteJobType>,
}

/// Whether a job sets an option.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobOptionRule {
    #[default]
    Optional,
    /// Jobs without it are refused.
    Required,
    Never,
}

/// The `sbatch` option that requests GPUs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuSbatchOption {
    /// `--gpus-per-node=MODEL:N`
    #[default]
    GpusPerNode,
    /// `--gpus=MODEL:N`
    Gpus,
    /// `--gres=gpu:MODEL:N`
    Gres,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubmitFolderRule {
    #[default]
    Anywhere,
    /// From a folder on scratch, with its output there.
    Scratch,
}

/// Whether programs in a job can reach the internet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InternetAccess {
    #[default]
    Unknown,
    Yes,
    /// What a job needs is downloaded before it starts.
    No,
    /// Only web addresses, through a proxy.
    Proxy,
}

/// A prefix of account names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteAccountPrefix {
    /// The prefix: `def-`.
    pub prefix: String,
    /// What kind of account it marks, as a sentence.
    pub meaning: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteGpu {
    /// The name that a job requests: `h100`.
    pub name: String,
    /// The name for display.
    pub label: String,
    /// How many of them a node has.
    pub per_node: Option<u16>,
    /// Gigabytes of memory on the GPU.
    pub memory_gb: Option<u16>,
    /// The most cores that a job should request per GPU.
    pub cores: Option<u16>,
    /// The most gigabytes of the node's memory that a job should request per GPU.
    pub node_memory_gb: Option<u16>,
    /// The partition that has it, where jobs name partitions.
    pub partition: Option<String>,
    /// The processor architecture of its nodes, if it is not the usual one: `arm64`.
    pub processor: Option<String>,
}

/// A slice of a GPU. NVIDIA calls it MIG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteGpuSlice {
    /// The name that a job requests.
    pub name: String,
    /// The name for display.
    pub label: String,
    /// Cores to request with it.
    pub cores: Option<u16>,
    /// Gigabytes of the node's memory to request with it.
    pub node_memory_gb: Option<u16>,
}

/// A job type that a person chooses: a partition, a QOS, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteJobType {
    /// Its name at the site.
    pub name: String,
    /// What it is for, as a short sentence.
    pub label: String,
    /// The partition to name; `None` means the site's default.
    pub partition: Option<String>,
    /// The QOS to name.
    pub qos: Option<String>,
    /// The longest time limit of such a job.
    pub max_minutes: Option<u32>,
    pub min_nodes: Option<u32>,
    pub max_nodes: Option<u32>,
    /// The most such jobs of one person at the same time.
    pub max_jobs: Option<u32>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus: bool,
    /// Whether its jobs always get whole nodes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub whole_node: bool,
    /// Whether its jobs request memory, if that differs from the rest of the site.
    pub memory: Option<JobOptionRule>,
}
