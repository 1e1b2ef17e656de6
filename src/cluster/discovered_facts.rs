//! What the portal learns about a cluster and a person's account on it, right after they have connected. Pure:
//! callers run [`DISCOVERY_SCRIPT`] and Slurm's commands (`crate::slurm` has their arguments), and pass in the
//! output. Everything is bounded, because it comes from a machine that is not ours.

mod discovery_script;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::{Deserialize, Serialize};

pub use self::discovery_script::DISCOVERY_SCRIPT;
pub use crate::slurm::associations::SubmitAccount;
pub use crate::slurm::partitions::Partition;
use crate::slurm::{associations, config::SlurmConfig, partition_access, partitions};
use crate::text;

const MAX_LIST_LEN: usize = 200;
/// How much is quoted of what a command printed instead of its answer.
const MAX_QUOTE_LEN: usize = 200;

/// A cluster as one person sees it. Stored as JSON: every field may be missing, so that old rows can still be read.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct DiscoveredFacts {
    /// The login node's own host name.
    pub host: Option<String>,
    /// The person's user name there.
    pub user: Option<String>,
    pub home: Option<String>,
    pub shell: Option<String>,
    /// The Alliance's name for the cluster (`CC_CLUSTER`).
    pub cc_cluster: Option<String>,
    /// The address from which the portal connects, as the cluster sees it.
    pub our_address: Option<IpAddr>,
    /// Variables to set for later commands: `PATH`, `LD_LIBRARY_PATH`, `SLURM_CONF`, `LANG`, where set.
    pub env: BTreeMap<String, String>,
    /// `24.11.5`.
    pub slurm_version: Option<String>,
    /// Slurm's name for the cluster.
    pub slurm_cluster: Option<String>,
    /// Host and port of Slurm's controller; with the cluster's name, they tell one Slurm cluster from another.
    pub slurm_controller: Option<String>,
    /// One more than the highest index of a job array.
    pub max_array_size: Option<u32>,
    /// Whether a group's past usage affects the priority of its jobs.
    pub uses_fair_share: bool,
    /// Hours after which past usage counts half; `None` if it never decays, or is unknown.
    pub half_life_hours: Option<u32>,
    /// Whether people see only their own jobs.
    pub hides_jobs: bool,
    /// Whether people may reorder their own pending jobs.
    pub user_top: bool,
    /// Whether the accounting stores job comments, so that a job can be found by its comment.
    pub keeps_comments: bool,
    /// Where the person can store files.
    pub folders: Vec<DiscoveredUserFolder>,
    /// The Slurm accounts that jobs can be charged to.
    pub accounts: Vec<SubmitAccount>,
    pub partitions: Vec<Partition>,
    /// The GPUs of all partitions.
    pub gpus: Vec<DiscoveredGpu>,
    /// The programs that were found, of those that were looked for.
    pub tools: Vec<String>,
    /// What could not be discovered and why, as sentences.
    pub missing: Vec<String>,
}

/// A folder of the person, or of a group they belong to.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveredUserFolder {
    pub label: FolderKind,
    /// Absolute.
    pub path: String,
    /// Whether the person may write to it.
    pub writable: bool,
    /// The group that owns the folder, if the centre says so.
    pub group: Option<String>,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FolderKind {
    /// Small, permanent, backed up in most places.
    Home,
    /// Large and fast, but old files are deleted.
    Scratch,
    /// Shared by a group.
    Project,
    /// Any other place to work in.
    #[default]
    #[serde(other)]
    Work,
}

impl FolderKind {
    pub const fn title(self) -> &'static str {
        match self {
            Self::Home => "Home",
            Self::Scratch => "Scratch",
            Self::Project => "Project",
            Self::Work => "Work",
        }
    }
}

/// One GPU model on the cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct DiscoveredGpu {
    /// The name to request; `None` if the site does not name models.
    pub model: Option<String>,
    /// The highest number on one node.
    pub per_node_most: u32,
    /// How many nodes have it: taken from the partition with the most, because partitions share nodes.
    pub nodes: u32,
}

/// The output of the commands: an answer, what a command printed instead, or nothing if it could not run.
#[derive(Debug, Clone, Copy, Default)]
pub struct DiscoveryAnswers<'a> {
    pub look_around: Option<&'a str>,
    pub config: Option<&'a str>,
    pub sinfo: Option<&'a str>,
    /// Who may use the partitions; nothing is missing without it.
    pub partition_access: Option<&'a str>,
    pub assoc: Option<&'a str>,
}

impl DiscoveredFacts {
    /// The paths of the folders that are the person's own, not a group's.
    pub fn own_folders(&self) -> Vec<String> {
        let own = self.folders.iter().filter(|folder| folder.label != FolderKind::Project);
        own.map(|folder| folder.path.clone()).filter(|path| path.starts_with('/')).collect()
    }

    /// Combines all answers. `suffixes` are what the centre appends to account names (`_cpu`, `_gpu`).
    pub fn from_answers(answers: DiscoveryAnswers<'_>, suffixes: &[String]) -> Self {
        let mut facts = Self::default();
        if !facts.read_discovery_output(answers.look_around.unwrap_or_default()) {
            facts.report_missing("Your home folder and the installed tools", "the shell", answers.look_around);
        }
        facts.read_config(answers.config);
        facts.read_partitions(answers.sinfo);
        facts.read_accounts(answers.assoc, suffixes);
        let access = answers.partition_access.unwrap_or_default();
        partition_access::apply_access(access, &mut facts.partitions, &facts.accounts);
        facts
    }

    /// The search path of the person's login shell.
    pub fn search_path(&self) -> Option<&str> {
        self.env.get("PATH").map(String::as_str)
    }

    pub fn has_tool(&self, tool: &str) -> bool {
        self.tools.iter().any(|known| known == tool)
    }

    pub fn folders_of_kind(&self, label: FolderKind) -> impl Iterator<Item = &DiscoveredUserFolder> {
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
        self.slurm_controller = config
            .controller_host
            .map(|host| format!("{host}:{}", config.controller_port.as_deref().unwrap_or_default()));
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
                self.missing
                    .push(format!("You have no Slurm account on {cluster}. Ask your PI or the centre for one."));
            }
        }
        self.accounts = associations::collect_accounts(&found, suffixes);
    }

    /// Records that `what` could not be read, and why: `said` is what came instead of an answer.
    fn report_missing(&mut self, what: &str, program: &str, said: Option<&str>) {
        let line = said.and_then(|said| said.lines().find(|line| !line.trim().is_empty()));
        let absent = !self.tools.is_empty() && program != "the shell" && !self.has_tool(program);
        let why = match (line, said) {
            _ if absent => format!("{program} isn't installed"),
            (Some(line), _) if line.contains("Command rejected by") => {
                format!("this host doesn't allow {program}")
            }
            (Some(line), _) if line.ends_with("command not found") => {
                format!("{program} wasn't found")
            }
            (Some(line), _) => format!("{program} said “{}”", text::sanitize(line, MAX_QUOTE_LEN)),
            (None, Some(_)) => format!("{program} printed nothing"),
            (None, None) => format!("{program} didn't respond"),
        };
        self.missing.push(format!("{what} couldn't be read: {why}."));
    }
}
