//! What the portal learns about a cluster and a person's place on it, right after they have connected. Pure: others
//! run [`LOOK_AROUND`] and Slurm's commands (`crate::slurm` has their words), and hand over what came back.
//! Everything is bounded, because it comes from a machine that is not ours.

mod discovery_script;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use self::discovery_script::DISCOVERY_SCRIPT;
pub use crate::slurm::associations::SlurmAccount;
pub use crate::slurm::partitions::Partition;
use crate::slurm::{associations, config::SlurmConfig, partitions};
use crate::text;

/// No list is longer than this.
const MAX_LIST_LEN: usize = 200;
/// No more than this is quoted of what a command said instead of its answer.
const MAX_QUOTE_LEN: usize = 200;

/// A cluster as one person finds it. Kept as JSON: every field may be missing, so that old rows still read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct DiscoveredFacts {
    /// The login node's name for itself.
    pub host: Option<String>,
    /// The person's name there.
    pub user: Option<String>,
    pub home: Option<String>,
    pub shell: Option<String>,
    /// What the Alliance calls the cluster (`CC_CLUSTER`).
    pub cc_cluster: Option<String>,
    /// The address from which the cluster sees this portal come.
    pub our_address: Option<IpAddr>,
    /// Variables to pass on to later commands: `PATH`, `LD_LIBRARY_PATH`, `SLURM_CONF`, `LANG`, where set.
    pub env: BTreeMap<String, String>,
    /// `24.11.5`.
    pub slurm_version: Option<String>,
    /// What Slurm calls the cluster.
    pub slurm_cluster: Option<String>,
    /// One more than the highest index an array of jobs may have.
    pub max_array_size: Option<u32>,
    /// Whether what a group used before counts in its jobs' priority.
    pub uses_fair_share: bool,
    /// Hours after which what was used counts half in that; none where it never fades, or is not told.
    pub half_life_hours: Option<u32>,
    /// Whether people see only their own jobs here.
    pub hides_jobs: bool,
    /// Whether people may reorder their own waiting jobs.
    pub user_top: bool,
    /// Whether the accounting keeps the comments of jobs, so that a job can be found by one.
    pub keeps_comments: bool,
    /// Where files may be kept.
    pub folders: Vec<DiscoveredFolder>,
    /// What jobs may be charged to.
    pub accounts: Vec<SlurmAccount>,
    pub partitions: Vec<Partition>,
    /// The GPUs of all partitions.
    pub gpus: Vec<DiscoveredGpu>,
    /// Programs that are there, of those that were looked for.
    pub tools: Vec<String>,
    /// Sentences on what could not be learnt, and why.
    pub missing: Vec<String>,
}

/// A folder of the person's, or of a group they belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveredFolder {
    /// What it is for.
    pub label: FolderKind,
    /// Where it is; absolute.
    pub path: String,
    /// Whether the person may write into it.
    pub writable: bool,
    /// The group whose folder it is, where the centre says so.
    pub group: Option<String>,
}

/// What a folder is for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderKind {
    /// Small, kept, backed up in most places.
    Home,
    /// Large and fast, but cleared of old files.
    Scratch,
    /// Shared by a group.
    Project,
    /// Any other place to work in.
    #[default]
    #[serde(other)]
    Work,
}

impl FolderKind {
    /// As people call it.
    pub const fn title(self) -> &'static str {
        match self {
            Self::Home => "Home",
            Self::Scratch => "Scratch",
            Self::Project => "Project",
            Self::Work => "Work",
        }
    }
}

/// One kind of GPU on the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveredGpu {
    /// The name to ask for; none where the site names no models.
    pub model: Option<String>,
    /// The most that one node has.
    pub per_node_most: u32,
    /// How many nodes have it: those of the partition with most of them, since partitions share nodes.
    pub nodes: u32,
}

impl DiscoveredFacts {
    /// Puts together what came back: each command's answer, or what it said instead, or nothing where it could not be
    /// run. `suffixes` are the ends that the centre adds to accounts (`_cpu`, `_gpu`).
    pub fn from_answers(
        look_around: Option<&str>,
        config: Option<&str>,
        sinfo: Option<&str>,
        assoc: Option<&str>,
        suffixes: &[String],
    ) -> Self {
        let mut learnt = Self::default();
        if !learnt.read_discovery_output(look_around.unwrap_or_default()) {
            learnt.report_missing(
                "The home folder and the tools that are there",
                "the shell",
                look_around,
            );
        }
        learnt.read_config(config);
        learnt.read_partitions(sinfo);
        learnt.read_accounts(assoc, suffixes);
        learnt
    }

    /// The search path of the person's login shell.
    pub fn search_path(&self) -> Option<&str> {
        self.env.get("PATH").map(String::as_str)
    }

    /// Whether a program was found.
    pub fn has_tool(&self, tool: &str) -> bool {
        self.tools.iter().any(|known| known == tool)
    }

    /// The folders of one kind.
    pub fn folders_of_kind(&self, label: FolderKind) -> impl Iterator<Item = &DiscoveredFolder> {
        self.folders.iter().filter(move |folder| folder.label == label)
    }

    fn read_config(&mut self, answer: Option<&str>) {
        let config = SlurmConfig::parse(answer.unwrap_or_default());
        if config.version.is_none() && config.cluster_name.is_none() {
            self.report_missing("Slurm's version and settings", "scontrol", answer);
        }
        self.uses_fair_share = config.uses_fair_share();
        self.half_life_hours = config.half_life_hours;
        (self.hides_jobs, self.user_top) = (config.hides_jobs, config.user_top);
        self.keeps_comments = config.keeps_comments;
        self.slurm_version = config.version;
        self.slurm_cluster = config.cluster_name;
        self.max_array_size = config.max_array_size;
    }

    fn read_partitions(&mut self, answer: Option<&str>) {
        self.partitions = partitions::parse_partitions(answer.unwrap_or_default());
        if self.partitions.is_empty() {
            self.report_missing("The list of partitions", "sinfo", answer);
        }
        let mut gpus: BTreeMap<Option<&str>, DiscoveredGpu> = BTreeMap::new();
        for found in self.partitions.iter().flat_map(|partition| &partition.gpus) {
            let gpu = gpus.entry(found.model.as_deref()).or_default();
            gpu.model.clone_from(&found.model);
            gpu.per_node_most = gpu.per_node_most.max(found.per_node_most);
            gpu.nodes = gpu.nodes.max(found.nodes);
        }
        self.gpus = gpus.into_values().take(MAX_LIST_LEN).collect();
    }

    fn read_accounts(&mut self, answer: Option<&str>, suffixes: &[String]) {
        let mut found = associations::parse_associations(answer.unwrap_or_default());
        if found.is_empty() {
            self.report_missing("The list of accounts", "sacctmgr", answer);
        } else if let Some(cluster) = &self.slurm_cluster {
            // Clusters of one centre may share their accounting.
            found.retain(|one| one.cluster.eq_ignore_ascii_case(cluster));
            if found.is_empty() {
                self.missing.push(format!("There is no account of yours on {cluster}."));
            }
        }
        self.accounts = associations::collect_accounts(&found, suffixes);
    }

    /// Notes that `what` could not be read, and why: `said` is what came instead of an answer.
    fn report_missing(&mut self, what: &str, program: &str, said: Option<&str>) {
        let line = said.and_then(|said| said.lines().find(|line| !line.trim().is_empty()));
        let absent = !self.tools.is_empty() && program != "the shell" && !self.has_tool(program);
        let why = match (line, said) {
            _ if absent => format!("{program} is not there"),
            (Some(line), _) if line.contains("Command rejected by") => {
                format!("this node does not allow {program}")
            }
            (Some(line), _) if line.ends_with("command not found") => {
                format!("{program} is not there")
            }
            (Some(line), _) => format!("{program} said “{}”", text::sanitize(line, MAX_QUOTE_LEN)),
            (None, Some(_)) => format!("{program} answered with nothing"),
            (None, None) => format!("{program} gave no answer"),
        };
        self.missing.push(format!("{what} could not be read: {why}."));
    }
}
