//! A question in a form: what kind of answer it takes, its limits, and when it is shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::request::RequestField;

/// A question, as defined in a recipe file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of its own in the file")]
pub struct RecipeQuestion {
    /// The name by which scripts refer to the answer.
    pub key: String,
    pub kind: RecipeQuestionKind,
    /// The question in a few words.
    pub label: String,
    /// An explanation in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    /// The default answer. If it is empty, some kinds use what the cluster suggests.
    #[serde(default, skip_serializing_if = "RecipeFileValue::is_empty")]
    pub default: RecipeFileValue,
    /// For modules: their purpose, the name under which sites list the modules to start with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggest: String,
    /// The minimum: a number, a duration or an amount of memory.
    #[serde(default, skip_serializing_if = "RecipeFileValue::is_empty")]
    pub min: RecipeFileValue,
    #[serde(default, skip_serializing_if = "RecipeFileValue::is_empty")]
    pub max: RecipeFileValue,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<QuestionChoice>,
    /// Shown only if these other questions have one of these answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub show_when: BTreeMap<String, Vec<RecipeFileValue>>,
    /// The field of the job request that the answer sets.
    pub sets: Option<RequestField>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub shape: TextAnswerFormat,
    /// Whether the path may be relative to the job's working folder.
    #[serde(default, skip_serializing_if = "is_default")]
    pub relative: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub pick: RequiredPathKind,
    /// Whether the path must exist before the job starts. Files that are picked always must.
    #[serde(default, skip_serializing_if = "is_default")]
    pub exists: bool,
    /// Placeholder text for an empty field.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    /// Shown only under advanced options.
    #[serde(default, skip_serializing_if = "is_default")]
    pub advanced: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecipeQuestionKind {
    Text,
    Number,
    /// One of a few options.
    Choice,
    Switch,
    Duration,
    Memory,
    /// A GPU model of the cluster.
    Gpu,
    Account,
    /// A job type of the cluster.
    JobType,
    /// A file or folder.
    Path,
    /// Files or folders, one per line.
    Paths,
    /// Shell commands: run as they are.
    Command,
    /// Command-line arguments.
    Arguments,
    /// Environment variables, `NAME=value`, one per line.
    Variables,
    /// Words, one per line.
    List,
    Modules,
    Job,
    Script,
}

impl RecipeQuestion {
    /// Whether its answer names files or folders that the job reads, and doesn't create.
    pub fn must_exist(&self) -> bool {
        match self.kind {
            RecipeQuestionKind::Path => self.exists || self.pick == RequiredPathKind::File,
            RecipeQuestionKind::Paths => self.exists,
            _ => false,
        }
    }
}

impl RecipeQuestionKind {
    pub const fn is_multiline(self) -> bool {
        matches!(self, Self::Paths | Self::Command | Self::Variables | Self::List | Self::Script)
    }

    /// Whether answers are shell code.
    pub const fn is_code(self) -> bool {
        matches!(self, Self::Command | Self::Script)
    }
}

/// The format that a text answer must have.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextAnswerFormat {
    #[default]
    Any,
    /// Letters, digits and a few punctuation marks, without spaces.
    Name,
    /// A web or object storage URL.
    Url,
    /// A branch, tag or commit.
    GitRef,
    /// An address or a path, in which the same variables are expanded as in paths. Also for lists.
    Location,
}

/// What a path must point to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequiredPathKind {
    #[default]
    Any,
    File,
    Folder,
}

impl RequiredPathKind {
    /// As the file picker expects it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::File => "file",
            Self::Folder => "folder",
        }
    }
}

/// One option of a choice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionChoice {
    /// The value that the script sees.
    pub value: String,
    /// The text that people see.
    pub label: String,
    /// An explanation in one sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// Offered only at sites that have this feature.
    pub needs: Option<SiteCapability>,
    /// Offered only in recipes that ask the question with this key.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs_question: Option<String>,
}

/// A feature that only some sites have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteCapability {
    /// Packages can be installed with pip.
    Pip,
    /// Programs in jobs can reach the internet, directly or through a proxy.
    Internet,
    Gpus,
}

/// A value in a recipe file, as a person would type it into the form: text, a number, yes or no, or lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RawRecipeValue", into = "String")]
pub struct RecipeFileValue(pub String);

impl RecipeFileValue {
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<RecipeFileValue> for String {
    fn from(given: RecipeFileValue) -> Self {
        given.0
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawRecipeValue {
    Text(String),
    Number(i64),
    Switch(bool),
    Lines(Vec<String>),
}

impl From<RawRecipeValue> for RecipeFileValue {
    fn from(written: RawRecipeValue) -> Self {
        Self(match written {
            RawRecipeValue::Text(text) => text,
            RawRecipeValue::Number(number) => number.to_string(),
            RawRecipeValue::Switch(switch) => switch.to_string(),
            RawRecipeValue::Lines(lines) => lines.join("\n"),
        })
    }
}

/// Keys appear in URLs and scripts, where lower-case names are no variables of bash or Slurm.
pub(super) fn is_valid_key(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
