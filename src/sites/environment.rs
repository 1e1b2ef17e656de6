//! The environment of a site: folders, how its shell is set up, what usage costs, and the portal's own limits.

use serde::{Deserialize, Serialize};

use super::is_default;

/// How much load the portal may cause.
///
/// The centres ask for restraint and give no numbers, so these are our own: far below what a person at a terminal
/// would cause, and enough for responsive pages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteRateLimits {
    /// The most commands per minute for one person.
    pub calls_per_minute: u16,
    /// The shortest interval between two reads of a person's queue, in seconds.
    pub queue_every_s: u16,
    /// Minutes after which an unused connection is closed. Long where a new one requires a second factor.
    pub idle_minutes: u16,
    /// The most new connections per hour, for the whole portal.
    pub connects_per_hour: u16,
    /// The most parallel commands over one connection.
    pub sessions: u8,
    /// The shortest interval between two submissions of one person, in seconds.
    pub submit_spacing_s: u16,
}

impl Default for SiteRateLimits {
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
pub struct SiteCommandShell {
    /// Whether only a login shell finds Slurm and modules.
    #[serde(skip_serializing_if = "is_default")]
    pub login_shell: bool,
    /// What must be loaded before Slurm's programs are available.
    pub prepare: Option<SiteSlurmModule>,
}

/// A module to load first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteSlurmModule {
    /// A file of the site to source before `module` is available.
    pub source: Option<String>,
    pub module: String,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteStorage {
    /// The program that reports how full the folders are.
    #[serde(skip_serializing_if = "is_default")]
    pub quota_tool: QuotaTool,
    /// The folders a person has.
    #[serde(skip_serializing_if = "is_default")]
    pub areas: Vec<SiteStorageArea>,
}

impl SiteStorage {
    /// The first folder of a kind.
    pub fn area(&self, kind: StorageAreaKind) -> Option<&SiteStorageArea> {
        self.areas.iter().find(|area| area.kind == kind)
    }
}

/// A program that reports how full the folders are.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuotaTool {
    /// No such program is known at the site.
    #[default]
    None,
    /// `diskusage_report`
    DiskusageReport,
    /// `dusage`
    Dusage,
    /// `lumi-workspaces`
    LumiWorkspaces,
    /// `quota`, which most Linux systems have
    Quota,
    /// `lfs quota` of each folder, where disks are Lustre
    LfsQuota,
}

impl QuotaTool {
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::DiskusageReport => Some("diskusage_report"),
            Self::Dusage => Some("dusage --no-colors"),
            Self::LumiWorkspaces => Some("lumi-workspaces"),
            Self::Quota => Some("quota -w -p"),
            Self::LfsQuota => Some("lfs quota"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SiteStorageArea {
    pub label: String,
    pub kind: StorageAreaKind,
    /// May begin with a variable of the site (`$SCRATCH`) and contain `{project}`, the name of the project.
    pub path: String,
    /// What it is for, as a sentence.
    pub purpose: String,
    /// The capacity, for display: "20 TB, 1 million files".
    pub room: Option<String>,
    /// When files are deleted, as a sentence.
    pub purge: Option<String>,
    /// The days after which unused files are deleted, if the rule names one number.
    pub purge_days: Option<u16>,
    /// Whether it is read-only in jobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub read_only_in_jobs: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StorageAreaKind {
    Home,
    /// Large and fast; old files are deleted regularly.
    Scratch,
    /// Shared by a project, and permanent.
    Project,
}

/// How usage is counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiteUsageAccounting {
    /// The unit, for display: "billing hours".
    pub name: Option<String>,
    /// What the unit means, in one or two sentences.
    pub explanation: Option<String>,
    /// Whether a group's recent usage lowers the priority of its jobs.
    #[serde(skip_serializing_if = "is_default")]
    pub fair_share: bool,
    /// When a new allocation begins.
    #[serde(skip_serializing_if = "is_default")]
    pub period: SiteAllocationPeriod,
    /// The program that reports what is left.
    #[serde(skip_serializing_if = "is_default")]
    pub cost_tool: AllocationBalanceTool,
    #[serde(skip_serializing_if = "is_default")]
    pub factors: Vec<BillingFactor>,
}

/// When a new allocation begins.
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

/// A program that reports what is left of an allocation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum AllocationBalanceTool {
    /// No such program is known at the site.
    #[default]
    None,
    /// `cost`
    Cost,
    /// `lumi-allocations`
    LumiAllocations,
}

impl AllocationBalanceTool {
    pub const fn command(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Cost => Some("cost"),
            Self::LumiAllocations => Some("lumi-allocations"),
        }
    }
}

/// How much one resource is charged.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BillingFactor {
    pub per: BilledResource,
    /// The name of a GPU, a GPU slice or a job type, or `cpu` for all jobs without GPUs.
    pub name: String,
    /// Units charged for each, per hour.
    pub value: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BilledResource {
    /// Each GPU or GPU slice.
    Gpu,
    /// Each gibibyte of memory.
    Gib,
    Node,
    Core,
}
