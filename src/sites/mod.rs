//! What a site is like: who runs a cluster, how one gets in, what a job may ask for, what use costs.
//!
//! The facts are data in `sites/*.toml`, part of the program; an administrator's own files are read by the same
//! function. `prompts` reads what a server asks during sign-in, `robot` knows the ways in for programs.
//! Pure: no files, no network, no clock. What is not certain about a site is said in its file, under `uncertain`.

mod boards;
mod check;
pub mod clean;
pub mod cost;
mod jobs;
mod login;
pub mod per_user;
mod place;
mod presets;
pub mod prompts;
pub mod quota;
pub mod robot;
mod words;

pub use boards::Boards;
pub use jobs::{AccountPrefix, Gpu, GpuOption, Internet, JobType, Jobs, Say, Slice, SubmitFrom};
pub use login::{Jump, KeyFile, Keys, Login, Proof, Robot, Wrapper};
pub use place::{
    Area, AreaKind, CostTool, Factor, Limits, Per, Period, Prepare, QuotaTool, Shell, Storage,
    Units,
};
pub use presets::{Lookup, Retired, lookup, presets, retired};
pub use words::{Fingerprint, Host, Link, Name};

use serde::{Deserialize, Serialize};

/// A cluster as its users meet it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Site {
    /// Short name, used in addresses and commands.
    pub name: Name,
    /// As people call it.
    pub title: String,
    /// Whose habits and tools it has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub family: Family,
    /// Who runs it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub operator: Option<String>,
    /// The centre's own description.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub docs: Option<Link>,
    /// What people should know before they start, one short sentence each.
    #[serde(default, skip_serializing_if = "is_default")]
    pub notes: Vec<String>,
    /// How one gets in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub login: Login,
    /// How a key is made known.
    #[serde(default, skip_serializing_if = "is_default")]
    pub keys: Keys,
    /// The way in for programs, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub robot: Option<Robot>,
    /// How much of the site's attention the portal takes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// How commands find their programs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shell: Shell,
    /// Where files live.
    #[serde(default, skip_serializing_if = "is_default")]
    pub storage: Storage,
    /// The rules for jobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub jobs: Jobs,
    /// The shape of boards' jobs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub boards: Boards,
    /// How use is counted.
    #[serde(default, skip_serializing_if = "is_default")]
    pub units: Units,
    /// What is not certain: shown to the administrator, and looked at when the first connection is made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub uncertain: Vec<Uncertain>,
}

/// Whose habits and tools a site has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Family {
    /// The Digital Research Alliance of Canada.
    Alliance,
    /// Sigma2 and NRIS in Norway.
    Nris,
    /// LUMI in Finland.
    Lumi,
    /// Not the Alliance's, but with its names and tools: the demo cluster.
    AllianceLike,
    /// A Slurm cluster like any other.
    #[default]
    Other,
}

impl Family {
    /// Whether it has the Alliance's tools and the Alliance's names of folders and projects.
    pub const fn has_alliance_tools(self) -> bool {
        matches!(self, Self::Alliance | Self::AllianceLike)
    }
}

/// Something in the file that is not certain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Uncertain {
    /// Which part of the file: `jobs.max_hours`.
    pub field: String,
    /// Why, as a sentence.
    pub why: String,
}

/// Why a site's description was not accepted, as a sentence for whoever wrote it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SiteError {
    /// It cannot be read: not TOML or JSON, an unknown key, a value of the wrong kind.
    #[error("The description of the site cannot be read{place}: {problem}")]
    Shape {
        /// Where, as far as that is known: the line, the field.
        place: String,
        /// What is wrong there.
        problem: String,
    },
    /// A value is not possible.
    #[error("In the description of the site, `{field}` cannot stay as it is: {advice}")]
    Value {
        /// Which one.
        field: String,
        /// What to do.
        advice: String,
    },
}

impl Site {
    /// Reads a site's file and checks it.
    pub fn from_toml(text: &str) -> Result<Self, SiteError> {
        let site: Self = toml::from_str(text).map_err(|error| shape(&error, text))?;
        site.check()?;
        Ok(site)
    }

    /// The site as a file that an administrator can read and change.
    pub fn to_toml(&self) -> Result<String, SiteError> {
        toml::to_string_pretty(self).map_err(|error| unwritable(&error))
    }

    /// Reads a site as the database keeps it, and checks it.
    pub fn from_json(text: &str) -> Result<Self, SiteError> {
        // By way of TOML's values, because their errors name the field.
        let value: toml::Value = serde_json::from_str(text).map_err(|error| SiteError::Shape {
            place: String::new(),
            problem: error.to_string(),
        })?;
        let site = Self::deserialize(value).map_err(|error| shape(&error, ""))?;
        site.check()?;
        Ok(site)
    }

    /// The site as the database keeps it.
    pub fn to_json(&self) -> Result<String, SiteError> {
        serde_json::to_string(self).map_err(|error| unwritable(&error))
    }

    /// Checks everything that its types do not: sizes, lengths, and what must fit together.
    pub fn check(&self) -> Result<(), SiteError> {
        check::site(self)
    }

    /// A cluster of which nothing is known but its name.
    pub fn plain(name: Name, title: &str) -> Self {
        Self {
            name,
            title: title.to_owned(),
            family: Family::default(),
            operator: None,
            docs: None,
            notes: Vec::new(),
            login: Login::default(),
            keys: Keys::default(),
            robot: None,
            limits: Limits::default(),
            shell: Shell::default(),
            storage: Storage::default(),
            jobs: Jobs::default(),
            boards: Boards::default(),
            units: Units::default(),
            uncertain: Vec::new(),
        }
    }

    /// Who runs it, as a sentence; empty if that is not known.
    pub fn operator_words(&self) -> String {
        self.operator.as_ref().map(|who| format!("Run by {who}.")).unwrap_or_default()
    }

    /// What the user name is called there.
    pub fn user_name_words(&self) -> &str {
        self.keys.user_name.as_deref().unwrap_or("User name")
    }

    /// The host to connect to, or what to do about a file that does not say.
    pub fn host(&self) -> Result<&Host, SiteError> {
        self.login.host.as_ref().ok_or_else(|| SiteError::Value {
            field: "login.host".to_owned(),
            advice: "Give the host that people sign in to, such as login.example.org.".to_owned(),
        })
    }
}

/// An error of the reader, as a place and a sentence.
fn shape(error: &toml::de::Error, text: &str) -> SiteError {
    let mut place = String::new();
    if let Some(before) = error.span().and_then(|span| text.get(..span.start)) {
        place = format!(" at line {}", before.matches('\n').count() + 1);
    }
    // Without the text beside it, the error prints its message and then the path of keys.
    let mut bare = error.clone();
    bare.set_input(None);
    let printed = bare.to_string();
    if let Some((_, keys)) = printed.rsplit_once("\nin `") {
        let comma = if place.is_empty() { "" } else { "," };
        place = format!("{place}{comma} in `{}", keys.trim_end());
    }
    let problem = error.message().trim_end_matches('.');
    SiteError::Shape { place, problem: format!("{problem}.") }
}

fn unwritable(error: &impl std::fmt::Display) -> SiteError {
    SiteError::Shape { place: String::new(), problem: format!("it cannot be written ({error}).") }
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde hands over a reference")]
const fn is_true(value: &bool) -> bool {
    *value
}

#[cfg(test)]
mod tests;
