//! A question of a form: what kind of answer it takes, within which limits, and when it is asked.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::request::RequestField;

/// A question, as recipe files have it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeQuestion {
    /// By this the script names the answer.
    pub key: String,
    /// What kind of answer.
    pub kind: QuestionKind,
    /// The question in a few words.
    pub label: String,
    /// What it means, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// Whether there must be an answer.
    #[serde(default, skip_serializing_if = "is_default")]
    pub required: bool,
    /// What stands there at first. Where it is empty, some kinds take what the cluster suggests.
    #[serde(default, skip_serializing_if = "RecipeValue::is_empty")]
    pub default: RecipeValue,
    /// For modules: what they are for, by the name under which sites say what to begin with.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub suggest: String,
    /// The least: a number, a time or an amount.
    #[serde(default, skip_serializing_if = "RecipeValue::is_empty")]
    pub min: RecipeValue,
    #[serde(default, skip_serializing_if = "RecipeValue::is_empty")]
    pub max: RecipeValue,
    /// What can be chosen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<QuestionChoice>,
    /// Asked only if other answers are among these.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub show_when: BTreeMap<String, Vec<RecipeValue>>,
    /// The part of the job's request that the answer sets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sets: Option<RequestField>,
    /// What a text must look like.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shape: TextFormat,
    /// Whether a path may be below the folder that the job works in.
    #[serde(default, skip_serializing_if = "is_default")]
    pub relative: bool,
    /// What a path leads to.
    #[serde(default, skip_serializing_if = "is_default")]
    pub pick: PathTarget,
    /// An example, shown grey while there is no answer.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub example: String,
    /// Asked only of those who want to see more.
    #[serde(default, skip_serializing_if = "is_default")]
    pub advanced: bool,
}

/// What kind of answer a question takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum QuestionKind {
    Text,
    Number,
    /// One of a few.
    Choice,
    Switch,
    Duration,
    Memory,
    /// A kind of GPU of the cluster.
    Gpu,
    Account,
    /// A sort of job of the cluster.
    JobType,
    /// A file or folder.
    Path,
    /// Files or folders, one a line.
    Paths,
    /// Commands: this is code, run as it stands.
    Command,
    /// Arguments of a program.
    Arguments,
    /// Environment variables, `NAME=value`, one a line.
    Variables,
    /// Words, one a line.
    List,
    Modules,
    Job,
    Script,
}

impl QuestionKind {
    /// Whether answers have several lines.
    pub const fn is_multiline(self) -> bool {
        matches!(self, Self::Paths | Self::Command | Self::Variables | Self::List | Self::Script)
    }

    /// Whether an answer is code.
    pub const fn is_code(self) -> bool {
        matches!(self, Self::Command | Self::Script)
    }
}

/// What a text must look like.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TextFormat {
    #[default]
    Any,
    /// Letters, digits and a few marks, without spaces.
    Name,
    /// A web address, or one of object storage.
    Url,
    /// A branch, tag or commit.
    GitRef,
}

/// What a path leads to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathTarget {
    #[default]
    Any,
    File,
    Folder,
}

impl PathTarget {
    /// As the picker takes it.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Any => "any",
            Self::File => "file",
            Self::Folder => "folder",
        }
    }
}

/// Something that can be chosen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QuestionChoice {
    /// As the script knows it.
    pub value: String,
    /// As people read it.
    pub label: String,
    /// What it means, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub help: String,
    /// Offered only where this is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub needs: Option<SiteFeature>,
}

/// What some sites have and others do not.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SiteFeature {
    /// Packages may be installed with pip.
    Pip,
    /// Programs in jobs reach the internet, if through a proxy.
    Internet,
    Gpus,
}

/// A value in a recipe file, as a person would type it into the form: text, a number, yes or no, or lines.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "RawRecipeValue", into = "String")]
pub struct RecipeValue(pub String);

impl RecipeValue {
    /// Whether nothing is given.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl From<RecipeValue> for String {
    fn from(given: RecipeValue) -> Self {
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

impl From<RawRecipeValue> for RecipeValue {
    fn from(written: RawRecipeValue) -> Self {
        Self(match written {
            RawRecipeValue::Text(text) => text,
            RawRecipeValue::Number(number) => number.to_string(),
            RawRecipeValue::Switch(switch) => switch.to_string(),
            RawRecipeValue::Lines(lines) => lines.join("\n"),
        })
    }
}

pub(super) fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}
