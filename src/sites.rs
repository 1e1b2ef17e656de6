//! What a site is like: who runs a cluster, how to connect, what a job may request, what usage costs.
//!
//! The facts are data in `sites/*.toml`, part of the program; an administrator's own files are loaded by the same
//! function. `prompts` recognises what a server asks during sign-in, `automation` describes hosts for programs.
//! Pure: no files, no network, no clock. Anything unconfirmed about a site is listed in its file, under `uncertain`.

pub mod automation;
mod check;
pub mod cost;
mod dashboards;
mod environment;
mod identifiers;
mod job_rules;
mod login;
mod presets;
pub mod prompts;
pub mod quota;
pub mod storage_per_user;

pub use dashboards::SiteDashboardResources;
pub use environment::{
    AllocationBalanceTool, BilledResource, BillingFactor, QuotaTool, SiteAllocationPeriod, SiteCommandShell,
    SiteRateLimits, SiteSlurmModule, SiteStorage, SiteStorageArea, SiteUsageAccounting, StorageAreaKind,
};
pub use identifiers::{HostKeyFingerprint, SiteHost, SiteLink, SiteName};
pub use job_rules::{
    GpuSbatchOption, InternetAccess, JobOptionRule, SiteAccountPrefix, SiteGpu, SiteGpuSlice, SiteJobRules,
    SiteJobType, SubmitFolderRule,
};
pub use login::{
    AuthorizedKeysUse, SiteAutomationHosts, SiteForcedCommand, SiteJumpHost, SiteKeyRegistration, SiteLoginFactor,
    SiteLoginServer,
};
pub use presets::{RetiredSite, SiteLookupResult, find_site, presets, retired_sites};

use serde::{Deserialize, Serialize};

/// A cluster as its users know it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Short name, used in URLs and commands.
    pub name: SiteName,
    pub title: String,
    /// Whose conventions and tools it follows.
    #[serde(default, skip_serializing_if = "is_default")]
    pub family: SiteFamily,
    pub operator: Option<String>,
    /// The centre's own documentation.
    pub docs: Option<SiteLink>,
    /// What people should know before they start, one short sentence each.
    #[serde(default, skip_serializing_if = "is_default")]
    pub notes: Vec<String>,
    /// Whether people may open terminals in the browser.
    #[serde(default, skip_serializing_if = "is_default")]
    pub terminals: OnByDefault,
    /// How to connect.
    #[serde(default, skip_serializing_if = "is_default")]
    pub login: SiteLoginServer,
    /// How people register a key.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keys: SiteKeyRegistration,
    /// The automation host, where there is one.
    #[serde(alias = "robot")]
    pub automation: Option<SiteAutomationHosts>,
    /// How much load the portal may put on the site.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: SiteRateLimits,
    /// How commands find their programs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shell: SiteCommandShell,
    #[serde(default, skip_serializing_if = "is_default")]
    pub storage: SiteStorage,
    #[serde(default, skip_serializing_if = "is_default")]
    pub jobs: SiteJobRules,
    /// What dashboards' jobs request.
    #[serde(default, skip_serializing_if = "is_default")]
    #[serde(alias = "boards")]
    pub dashboards: SiteDashboardResources,
    /// How usage is counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub units: SiteUsageAccounting,
    /// Unconfirmed facts: shown to the administrator, and checked on the first connection.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncertain: Vec<UncertainSiteFact>,
}

/// Whose conventions and tools a site follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteFamily {
    /// The Digital Research Alliance of Canada.
    Alliance,
    /// Sigma2 and NRIS in Norway.
    Nris,
    Lumi,
    /// Not part of the Alliance, but with its names and tools: the demo cluster.
    AllianceLike,
    /// Any other Slurm cluster.
    #[default]
    Other,
}

impl SiteFamily {
    /// Whether it has the Alliance's tools and its names for folders and projects.
    pub const fn has_alliance_tools(self) -> bool {
        matches!(self, Self::Alliance | Self::AllianceLike)
    }
}

/// An unconfirmed fact in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UncertainSiteFact {
    /// The field in the file: `jobs.max_hours`.
    pub field: String,
    /// The reason, as a sentence.
    pub why: String,
}

impl UncertainSiteFact {
    /// The field in words.
    pub fn title(&self) -> String {
        let words = match self.field.as_str() {
            "automation.hosts" => "Automation host",
            "jobs.account_suffixes" => "Account names for CPU and GPU jobs",
            "jobs.gpu_model" => "GPU model required",
            "jobs.gpus" => "GPUs",
            "jobs.internet" => "Internet access in jobs",
            "jobs.max_hours" => "Maximum time limit",
            "jobs.max_jobs" => "Maximum jobs per person",
            "jobs.modules" => "Modules",
            "jobs.partition" => "Naming the partition",
            "jobs.slices" => "GPU slices",
            "jobs.submit_from" => "Submission folder",
            "jobs.types" => "Job types",
            "login.accepts" => "Ways to log in",
            "login.fingerprints" => "Published host keys",
            "login.host" => "Login host",
            "login.region" => "Allowed countries",
            "shell.login_shell" => "Login shell",
            "shell.prepare" => "Setup commands",
            "storage.areas" => "Folders",
            "units.cost_tool" => "Command for costs",
            "units.factors" => "Resource weights",
            "units.fair_share" => "Fair share",
            other => return in_words(other),
        };
        words.to_owned()
    }
}

/// A field of someone's own preset: `jobs.max_nodes` reads "Jobs: max nodes".
fn in_words(field: &str) -> String {
    let words = field.replace('.', ": ").replace('_', " ");
    let mut letters = words.chars();
    letters.next().map(|first| first.to_uppercase().chain(letters).collect()).unwrap_or_default()
}

/// Why a site's description was rejected, as a sentence for whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// Not valid TOML or JSON, an unknown key, or a value of the wrong type.
    #[error("The cluster configuration can't be read{place}: {problem}")]
    Malformed {
        /// The line or field, as far as known.
        place: String,
        problem: String,
    },
    #[error("`{field}` in the cluster configuration isn't valid: {advice}")]
    InvalidValue { field: String, advice: String },
}

impl Site {
    /// Parses and checks a site file.
    pub fn from_toml(text: &str) -> Result<Self, SiteError> {
        let site: Self = toml::from_str(text).map_err(|error| malformed(&error, text))?;
        site.check()?;
        Ok(site)
    }

    /// The site as a file that an administrator can read and edit.
    pub fn to_toml(&self) -> Result<String, SiteError> {
        toml::to_string_pretty(self).map_err(|error| unwritable(&error))
    }

    /// Parses and checks a site from the database.
    pub fn from_json(text: &str) -> Result<Self, SiteError> {
        // Goes through TOML values, because their errors name the field.
        let value: toml::Value = serde_json::from_str(text)
            .map_err(|error| SiteError::Malformed { place: String::new(), problem: error.to_string() })?;
        let site = Self::deserialize(value).map_err(|error| malformed(&error, ""))?;
        site.check()?;
        Ok(site)
    }

    /// The site as stored in the database.
    pub fn to_json(&self) -> Result<String, SiteError> {
        // Goes through a TOML value, which leaves out what is not set.
        let value = toml::Value::try_from(self).map_err(|error| unwritable(&error))?;
        serde_json::to_string(&value).map_err(|error| unwritable(&error))
    }

    /// Checks what the types don't: sizes, lengths, and fields that must fit together.
    pub fn check(&self) -> Result<(), SiteError> {
        check::check_site(self)
    }

    /// A cluster of which only the name is known.
    pub fn with_defaults(name: SiteName, title: &str) -> Self {
        Self {
            name,
            title: title.to_owned(),
            family: SiteFamily::default(),
            operator: None,
            docs: None,
            notes: Vec::new(),
            terminals: OnByDefault::default(),
            login: SiteLoginServer::default(),
            keys: SiteKeyRegistration::default(),
            automation: None,
            limits: SiteRateLimits::default(),
            shell: SiteCommandShell::default(),
            storage: SiteStorage::default(),
            jobs: SiteJobRules::default(),
            dashboards: SiteDashboardResources::default(),
            units: SiteUsageAccounting::default(),
            uncertain: Vec::new(),
        }
    }

    /// Whether one registration of a key counts for both: they belong to one centre, where people have one user name.
    /// Centres have one page for keys, so its host tells them apart; a site without such a page goes by who runs it.
    pub fn is_same_centre(&self, other: &Self) -> bool {
        match (&self.keys.page, &other.keys.page) {
            (Some(own), Some(others)) => own.host().eq_ignore_ascii_case(others.host()),
            (None, None) => self.operator.is_some() && self.operator == other.operator,
            _ => false,
        }
    }

    /// Who runs it, as a sentence; empty if unknown.
    pub fn operator_sentence(&self) -> String {
        self.operator.as_ref().map(|who| format!("Run by {who}.")).unwrap_or_default()
    }

    /// What the site calls the user name.
    pub fn user_name_label(&self) -> &str {
        self.keys.user_name.as_deref().unwrap_or("User name")
    }

    /// The host to connect to, or how to fix a file that names none.
    pub fn host(&self) -> Result<&SiteHost, SiteError> {
        self.login.host.as_ref().ok_or_else(|| SiteError::InvalidValue {
            field: "login.host".to_owned(),
            advice: "enter the login host, such as login.example.org.".to_owned(),
        })
    }
}

/// A parser error, as a place and a sentence.
fn malformed(error: &toml::de::Error, text: &str) -> SiteError {
    let mut place = String::new();
    if let Some(before) = error.span().and_then(|span| text.get(..span.start)) {
        place = format!(" at line {}", before.matches('\n').count() + 1);
    }
    // Without its input, the error prints its message and then the path of keys.
    let mut bare = error.clone();
    bare.set_input(None);
    let printed = bare.to_string();
    if let Some((_, keys)) = printed.rsplit_once("\nin `") {
        let comma = if place.is_empty() { "" } else { "," };
        place = format!("{place}{comma} in `{}", keys.trim_end());
    }
    let problem = error.message().trim_end_matches('.');
    SiteError::Malformed { place, problem: format!("{problem}.") }
}

fn unwritable(error: &impl std::fmt::Display) -> SiteError {
    SiteError::Malformed { place: String::new(), problem: format!("it can't be written ({error}).") }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

/// A switch in the file that is on unless the file turns it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct OnByDefault(pub bool);

impl Default for OnByDefault {
    fn default() -> Self {
        Self(true)
    }
}

#[cfg(test)]
mod tests;
