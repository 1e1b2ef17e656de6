//! What a job may ask for at a site, and the rules that its forms must know.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{is_default, is_true};

/// The rules for jobs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own in the file")]
pub struct SiteJobRules {
    /// Whether every job must say which project pays.
    #[serde(skip_serializing_if = "is_default")]
    pub account_required: bool,
    /// What Slurm appends to a project's name when it is asked about shares: `_cpu`, `_gpu`. Never used to submit.
    #[serde(skip_serializing_if = "is_default")]
    pub account_suffixes: Vec<String>,
    /// The longest a job may run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_hours: Option<u32>,
    /// The shortest time a job may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_minutes: Option<u32>,
    /// Most jobs of one person, waiting and running; each task of an array counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// Most jobs of one person that run at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_running: Option<u32>,
    /// Most tasks of one array.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_array: Option<u32>,
    /// Whether a job says which partition it wants.
    #[serde(skip_serializing_if = "is_default")]
    pub partition: JobOptionRule,
    /// Whether a job that wants GPUs says which model.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_model: JobOptionRule,
    /// The option by which GPUs are asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_option: GpuOption,
    /// Whether every job must ask for a GPU.
    #[serde(skip_serializing_if = "is_default")]
    pub gpu_only: bool,
    /// Whether jobs always get whole nodes.
    #[serde(skip_serializing_if = "is_default")]
    pub whole_node: bool,
    /// Whether a job says how much memory it wants.
    #[serde(skip_serializing_if = "is_default")]
    pub memory: JobOptionRule,
    /// What to know about memory, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_note: Option<String>,
    /// Megabytes per core that a job gets if it does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub memory_default_mb: Option<u32>,
    /// From where jobs are submitted.
    #[serde(skip_serializing_if = "is_default")]
    pub submit_from: SubmitFolderRule,
    /// Whether the site's own `sbatch` writes over a job's comment, so that it cannot serve as a mark.
    #[serde(skip_serializing_if = "is_default")]
    pub comment_lost: bool,
    /// Whether mail from Slurm arrives.
    #[serde(skip_serializing_if = "is_true")]
    pub mail: bool,
    /// Whether programs in a job reach the internet.
    #[serde(skip_serializing_if = "is_default")]
    pub internet: InternetAccess,
    /// The proxy to set in a job, where one is needed and not set already.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub proxy: Option<String>,
    /// What to know about the internet in jobs, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub internet_note: Option<String>,
    /// The variable that holds a job's own folder on fast disk: `$SLURM_TMPDIR`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmpdir: Option<String>,
    /// What to know about that folder, as a sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tmpdir_note: Option<String>,
    /// Whether pip knows a collection of the site's own, so that packages are installed without the internet.
    #[serde(skip_serializing_if = "is_default")]
    pub wheelhouse: bool,
    /// Whether Python packages may be used in containers only, not installed with pip.
    #[serde(skip_serializing_if = "is_default")]
    pub containers_only: bool,
    /// Modules to begin with, by what they are for: `python` → `StdEnv/2023 python/3.11`.
    #[serde(skip_serializing_if = "is_default")]
    pub modules: BTreeMap<String, String>,
    /// How the names of projects begin, and what that means.
    #[serde(skip_serializing_if = "is_default")]
    pub accounts: Vec<AccountPrefix>,
    /// The models of GPU.
    #[serde(skip_serializing_if = "is_default")]
    pub gpus: Vec<SiteGpu>,
    /// Parts of a GPU that can be asked for by name.
    #[serde(skip_serializing_if = "is_default")]
    pub slices: Vec<SiteGpuSlice>,
    /// Named sorts of jobs, where a person chooses between them.
    #[serde(skip_serializing_if = "is_default")]
    pub types: Vec<SiteJobType>,
}

impl Default for SiteJobRules {
    fn default() -> Self {
        Self {
            account_required: false,
            account_suffixes: Vec::new(),
            max_hours: None,
            min_minutes: None,
            max_jobs: None,
            max_running: None,
            max_array: None,
            partition: JobOptionRule::Optional,
            gpu_model: JobOptionRule::Optional,
            gpu_option: GpuOption::GpusPerNode,
            gpu_only: false,
            whole_node: false,
            memory: JobOptionRule::Optional,
            memory_note: None,
            memory_default_mb: None,
            submit_from: SubmitFolderRule::Anywhere,
            comment_lost: false,
            mail: true,
            internet: InternetAccess::Unknown,
            proxy: None,
            internet_note: None,
            tmpdir: None,
            tmpdir_note: None,
            wheelhouse: false,
            containers_only: false,
            modules: BTreeMap::new(),
            accounts: Vec::new(),
            gpus: Vec::new(),
            slices: Vec::new(),
            types: Vec::new(),
        }
    }
}

/// Whether a job says something.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum JobOptionRule {
    #[default]
    Optional,
    /// It must, or it is refused.
    Required,
    Never,
}

/// The option of `sbatch` by which GPUs are asked for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum GpuOption {
    /// `--gpus-per-node=MODEL:N`
    #[default]
    GpusPerNode,
    /// `--gpus=MODEL:N`
    Gpus,
    /// `--gres=gpu:MODEL:N`
    Gres,
}

/// From where jobs are submitted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SubmitFolderRule {
    #[default]
    Anywhere,
    /// From a folder on scratch, with its output there.
    Scratch,
}

/// Whether programs in a job reach the internet.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum InternetAccess {
    #[default]
    Unknown,
    Yes,
    /// No: what a job needs is fetched before it starts.
    No,
    /// Only web addresses, through a proxy.
    Proxy,
}

/// How the names of some projects begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AccountPrefix {
    /// The beginning: `def-`.
    pub prefix: String,
    /// What such a project is, as a sentence.
    pub meaning: String,
}

/// A model of GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteGpu {
    /// As a job names it: `h100`.
    pub name: String,
    /// As people name it.
    pub label: String,
    /// How many of them a node has.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub per_node: Option<u16>,
    /// Gigabytes of memory on it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory_gb: Option<u16>,
    /// Most cores that a job should take with each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u16>,
    /// Most gigabytes of the node's memory that a job should take with each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_memory_gb: Option<u16>,
    /// The partition that has it, where jobs name partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The kind of processor beside it, where it is not the usual one: `arm64`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor: Option<String>,
}

/// A part of a GPU. NVIDIA calls it MIG.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteGpuSlice {
    /// As a job names it.
    pub name: String,
    /// As people name it.
    pub label: String,
    /// Cores to take with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cores: Option<u16>,
    /// Gigabytes of the node's memory to take with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node_memory_gb: Option<u16>,
}

/// A sort of job that a person chooses: a partition, a quality of service, or both.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteJobType {
    /// Its name at the site.
    pub name: String,
    /// What it is for, as a short sentence.
    pub label: String,
    /// The partition to name; none means the site's usual one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub partition: Option<String>,
    /// The quality of service to name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub qos: Option<String>,
    /// The longest such a job may run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_minutes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min_nodes: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_nodes: Option<u32>,
    /// Most such jobs of one person at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_jobs: Option<u32>,
    /// Whether it has GPUs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub gpus: bool,
    /// Whether it always gets whole nodes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub whole_node: bool,
    /// Whether it says how much memory it wants, where that differs from the rest of the site.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<JobOptionRule>,
}
