//! Recipe files: questions and a script, with the blocks that recipes share. A file that is wrong is refused with the
//! line and a sentence; the others stay in use.

mod check;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::question::{RecipeQuestion, RecipeValue, is_default};
use super::quoting;

/// No recipe file is longer.
pub const MAX_RECIPE_FILE_LEN: usize = 256 * 1024;

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recipe {
    /// Its name in addresses.
    pub name: String,
    /// What it does, in a few words.
    pub title: String,
    /// What it is for, as a sentence or two.
    pub summary: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub icon: String,
    /// Where it stands among the others; small numbers come first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub order: u32,
    /// Under which heading it stands.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shelf: RecipeCategory,
    /// The blocks it is made of, in the order in which their parts of the script run.
    #[serde(default, rename = "use", skip_serializing_if = "Vec::is_empty")]
    pub blocks: Vec<String>,
    /// Whether its script stands alone, without the lines that other recipes begin with.
    #[serde(default, skip_serializing_if = "is_default")]
    pub bare: bool,
    /// Whether it starts one task for each GPU; cores are those of one task then.
    #[serde(default, skip_serializing_if = "is_default")]
    pub task_per_gpu: bool,
    /// Where it can be used.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fits: RecipeRequirements,
    /// Questions whose answer is fixed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub locked: Vec<String>,
    /// Questions that are not asked here; their answer is what they begin with.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hidden: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub script: String,
    /// What questions of blocks begin with here.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub defaults: BTreeMap<String, RecipeValue>,
    /// Limits of questions of blocks.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub limits: BTreeMap<String, AnswerLimits>,
    /// Help texts instead of those that the blocks have.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub help: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<RecipeQuestion>,
}

/// Under which heading a recipe stands.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RecipeCategory {
    #[default]
    Run,
    /// Get ready for it.
    Prepare,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnswerLimits {
    #[serde(skip_serializing_if = "RecipeValue::is_empty")]
    pub min: RecipeValue,
    #[serde(skip_serializing_if = "RecipeValue::is_empty")]
    pub max: RecipeValue,
}

/// Where a recipe can be used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
#[expect(clippy::struct_excessive_bools, reason = "each answers a question of its own in the file")]
pub struct RecipeRequirements {
    /// Only where there are GPUs.
    #[serde(skip_serializing_if = "is_default")]
    pub gpus: bool,
    /// Only where programs in jobs reach the internet, if through a proxy.
    #[serde(skip_serializing_if = "is_default")]
    pub internet: bool,
    /// Only where packages may be installed with pip.
    #[serde(skip_serializing_if = "is_default")]
    pub pip: bool,
    /// Only where several nodes can be asked for.
    #[serde(skip_serializing_if = "is_default")]
    pub nodes: bool,
}

/// A part that recipes share: questions, and what they add to the script.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecipeBlock {
    /// By this recipes name it.
    pub name: String,
    /// The heading of its questions.
    pub title: String,
    /// What it is about, as a sentence.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub summary: String,
    /// Whether its questions are folded away at first.
    #[serde(default, skip_serializing_if = "is_default")]
    pub folded: bool,
    /// What it does before the recipe's own script.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub script: String,
    /// What it does after it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub after: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub questions: Vec<RecipeQuestion>,
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct RecipeError {
    /// In which line, from 1; 0: no line in particular.
    pub line: usize,
    /// What, as a sentence.
    pub problem: String,
}

impl RecipeBlock {
    /// Reads a block's file.
    pub fn parse(text: &str) -> Result<Self, RecipeError> {
        parse_toml(text)
    }
}

impl Recipe {
    /// Reads a recipe's file and checks it against the blocks that there are.
    pub fn parse(text: &str, blocks: &[RecipeBlock]) -> Result<Self, RecipeError> {
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
    // Editors on Windows put it there.
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_trick = |c: char| !matches!(c, '\n' | '\r' | '\t') && !quoting::is_allowed_char(c);
    if let Some(at) = text.find(is_trick) {
        let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..at]).count() + 1;
        return Err(RecipeError {
            line,
            problem: "It holds a character that cannot be seen.".into(),
        });
    }
    toml::from_str(text).map_err(|error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = memchr::memchr_iter(b'\n', &text.as_bytes()[..before]).count() + 1;
        RecipeError { line, problem: format!("{}.", error.message().trim_end_matches('.')) }
    })
}
