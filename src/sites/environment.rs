//! What a site is like to live in: folders, how its shell is entered, what use costs, and our own manners.

use serde::{Deserialize, Serialize};

use super::is_default;

/// How much of the site's attention the portal takes.
///
/// The centres ask for restraint and name no figures, so these are our own: far below what a person at a terminal
/// would cause, and enough for pages that feel alive.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteLimits {
    /// Most commands in a minute for one person.
    pub calls_per_minute: u16,
    /// Least seconds between two looks at a person's queue.
    pub queue_every_s: u16,
    /// Minutes after which a connection that nobody uses is closed. Long where a new one costs a second proof.
    pub idle_minutes: u16,
    /// Most new connections in an hour, for the whole portal.
    pub connects_per_hour: u16,
    /// Most commands at a time over one connection.
    pub sessions: u8,
    /// Least seconds between two submissions of one person.
    pub submit_spacing_s: u16,
}

impl Default for SiteLimits {
    fn default() -> Self {
        Self {
            calls_per_minute: 20,
            queue_every_s: 30,
            idle_minutes: 45,
            connects_per_hour: 60,
            sessions: 6,
            submit_spacing_s: 1,
        }
    }
}

/// How commands find their programs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteShell {
    /// Whether Slurm and modules are found only by a login shell.
    #[serde(skip_serializing_if = "is_default")]
    pub login_shell: bool,
    /// What must be loaded before Slurm's programs are there.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prepare: Option<SiteShellSetup>,
}

/// A module to load first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteShellSetup {
    /// A file of the site to source before `module` is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    pub module: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteStorage {
    /// The program that tells how full the folders are.
    #[serde(skip_serializing_if = "is_default")]
    pub quota_tool: QuotaTool,
    /// The folders a person has.
    #[serde(skip_serializing_if = "is_default")]
    pub areas: Vec<StorageArea>,
}

impl SiteStorage {
    /// The first folder of a kind.
    pub fn area(&self, kind: StorageAreaKind) -> Option<&StorageArea> {
        self.areas.iter().find(|area| area.kind == kind)
    }
}

/// A program that tells how full the folders are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuotaTool {
    /// The site has none that is known.
    #[default]
    None,
    /// `diskusage_report`
    DiskusageReport,
    /// `dusage`
    Dusage,
    /// `lumi-workspaces`
    LumiWorkspaces,
}

impl QuotaTool {
    /// The command to run.
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::DiskusageReport => Some("diskusage_report"),
            Self::Dusage => Some("dusage --no-colors"),
            Self::LumiWorkspaces => Some("lumi-workspaces"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StorageArea {
    /// What it is called.
    pub label: String,
    pub kind: StorageAreaKind,
    /// Its path. May begin with a variable of the site (`$SCRATCH`) and hold `{project}`, the name of the project.
    pub path: String,
    /// What it is for, as a sentence.
    pub purpose: String,
    /// How much fits, for people: "20 TB, 1 million files".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// When files are deleted, as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub purge: Option<String>,
    /// Whether jobs can only read it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_only_in_jobs: bool,
}

/// What a folder is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageAreaKind {
    Home,
    /// Large, fast and emptied by and by.
    Scratch,
    /// Shared by a project, and kept.
    Project,
}

/// How use is counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteUsageUnits {
    /// The unit, for people: "billing hours".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What that is, in one or two sentences.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explanation: Option<String>,
    /// Whether what a group used lately lowers its turn in the queue.
    #[serde(skip_serializing_if = "is_default")]
    pub fair_share: bool,
    /// When a new quota begins.
    #[serde(skip_serializing_if = "is_default")]
    pub period: SiteAllocationPeriod,
    /// The program that tells what is left.
    #[serde(skip_serializing_if = "is_default")]
    pub cost_tool: CostTool,
    /// What counts how much.
    #[serde(skip_serializing_if = "is_default")]
    pub factors: Vec<BillingFactor>,
}

/// When a new quota begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteAllocationPeriod {
    /// No fixed day is known.
    #[default]
    None,
    AprilMarch,
    /// Each April and each October.
    HalfYears,
}

/// A program that tells what is left of a quota.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CostTool {
    /// The site has none that is known.
    #[default]
    None,
    /// `cost`
    Cost,
    /// `lumi-allocations`
    LumiAllocations,
}

impl CostTool {
    /// The command to run.
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Cost => Some("cost"),
            Self::LumiAllocations => Some("lumi-allocations"),
        }
    }
}

/// What one thing counts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BillingFactor {
    pub per: BillingBasis,
    /// Of which: the name of a GPU, of a part of one, of a sort of job, or `cpu` for all jobs without GPUs.
    pub name: String,
    /// Units for each, in one hour.
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BillingBasis {
    /// Each GPU or part of one.
    Gpu,
    /// Each gibibyte of memory.
    Gib,
    Node,
    Core,
}
