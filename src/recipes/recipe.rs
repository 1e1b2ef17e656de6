//! Recipe files: questions and a script, plus the blocks that recipes share. A broken file is rejected with a line
//! number and a sentence; the others stay available.

mod check;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::question::{RecipeFileValue, RecipeQuestion, is_default};
use super::quoting;

pub const MAX_RECIPE_FILE_LEN: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name in URLs.
    pub name: String,
    pub title: String,
    /// What it is for, in a sentence or two.
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// Its position in the list; small numbers come first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: u32,
    /// The heading that lists it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shelf: RecipeCategory,
    /// The blocks it uses, in the order in which their script parts run.
    #[serde(default, rename = "use", skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
    /// Whether its script is used alone, without the usual preamble.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bare: bool,
    /// Whether it starts one task per GPU; cores are then per task.
    #[serde(default, skip_serializing_if = "is_default")]
    pub task_per_gpu: bool,
    #[serde(default, skip_serializing_if = "is_default")]
    pub fits: RecipeRequirements,
    /// Questions whose answers are fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<String>,
    /// Questions that are not shown; they keep their defaults.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub script: String,
    /// Defaults for questions of blocks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, RecipeFileValue>,
    /// Limits for questions of blocks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, AnswerRange>,
    /// Help texts that replace those of the blocks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub help: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_warnings: Vec<EmptyAnswersWarning>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<RecipeQuestion>,
}

/// A warning for people who leave all of these questions empty. It doesn't keep them from submitting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EmptyAnswersWarning {
    /// The keys of the questions.
    pub keys: Vec<String>,
    pub sentence: String,
    /// Applies only if these other questions have one of these answers.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub show_when: BTreeMap<String, Vec<RecipeFileValue>>,
}

/// The heading under which a recipe is listed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecipeCategory {
    #[default]
    Run,
    /// Preparation: downloads, environments.
    Prepare,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerRange {
    #[serde(skip_serializing_if = "RecipeFileValue::is_empty")]
    pub min: RecipeFileValue,
    #[serde(skip_serializing_if = "RecipeFileValue::is_empty")]
    pub max: RecipeFileValue,
}

/// What a site needs for a recipe to be usable there.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own in the file")]
pub struct RecipeRequirements {
    /// Needs GPUs.
    #[serde(skip_serializing_if = "is_default")]
    pub gpus: bool,
    /// Needs internet access from jobs, directly or through a proxy.
    #[serde(skip_serializing_if = "is_default")]
    pub internet: bool,
    /// Needs pip installs to be allowed.
    #[serde(skip_serializing_if = "is_default")]
    pub pip: bool,
    /// Needs jobs with several nodes.
    #[serde(skip_serializing_if = "is_default")]
    pub nodes: bool,
}

/// Questions, and their part of the script, that recipes share. In a form, also the recipe's own questions.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedRecipeBlock {
    /// The name by which recipes refer to it.
    pub name: String,
    /// The heading above its questions.
    pub title: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Whether its questions start collapsed.
    #[serde(default, skip_serializing_if = "is_default")]
    pub folded: bool,
    /// Runs before the recipe's own script.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub script: String,
    /// Runs after the recipe's own script.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub empty_warnings: Vec<EmptyAnswersWarning>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<RecipeQuestion>,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RecipeError {
    /// Line number from 1; 0 if no single line is to blame.
    pub line: usize,
    pub problem: String,
}

impl SharedRecipeBlock {
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        parse_toml(text)
    }
}

impl Recipe {
    /// Parses a recipe file and checks it against the known blocks.
    pub fn parse(text: &str, blocks: &[SharedRecipeBlock]) -> Result<Self, RecipeError> {
        let recipe: Self = parse_toml(text)?;
        check::check_recipe(&recipe, blocks).map_err(|fault| fault.with_line(text))?;
        Ok(recipe)
    }

    pub fn to_toml(&self) -> String {
        toml::to_string_pretty(self).unwrap_or_default()
    }
}

fn parse_toml<T: serde::de::DeserializeOwned>(text: &str) -> Result<T, RecipeError> {
    if text.len() > MAX_RECIPE_FILE_LEN {
        let problem = format!("The file is longer than {} kB.", MAX_RECIPE_FILE_LEN / 1024);
        return Err(RecipeError { line: 0, problem });
    }
    // Editors on Windows add a byte order mark.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_trick = |c: char| !matches!(c, '\n' | '\r' | '\t') && !quoting::is_allowed_char(c);
    if let Some(at) = text.find(is_trick) {
        let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
        return Err(RecipeError { line, problem: "The file contains an invisible character.".into() });
    }
    toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..before]).count() + 1;
        RecipeError { line, problem: format!("{}.", error.message().trim_end_matches('.')) }
    })
}
