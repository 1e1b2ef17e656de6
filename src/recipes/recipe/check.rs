//! Checks that a recipe is usable: keys are unique, conditions refer to existing questions, and values appear only
//! where quoting is safe.

use std::collections::{BTreeMap, BTreeSet};

use super::{Recipe, RecipeError, SharedRecipeBlock};
use crate::recipes::form::{BUILT_IN_KEYS, RecipeQuestionForm};
use crate::recipes::question::{RecipeFileValue, RecipeQuestion, RecipeQuestionKind, is_valid_key};
use crate::recipes::{template, value};

const MAX_QUESTIONS: usize = 200;

/// A problem, and a piece of text near it.
pub struct RecipeCheckError {
    near: String,
    problem: String,
}

impl RecipeCheckError {
    fn new(near: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { near: near.into(), problem: problem.into() }
    }

    /// Adds the line number in the file.
    pub fn with_line(self, text: &str) -> RecipeError {
        let near = self.near.trim();
        let found = text.lines().position(|line| !near.is_empty() && line.contains(near));
        RecipeError { line: found.map_or(0, |line| line + 1), problem: self.problem }
    }
}

pub fn check_recipe(recipe: &Recipe, blocks: &[SharedRecipeBlock]) -> Result<(), RecipeCheckError> {
    let name_is_good = !recipe.name.is_empty()
        && recipe.name.len() <= 60
        && recipe.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !name_is_good {
        let problem = "The name may contain only lowercase letters, digits and -.";
        return Err(RecipeCheckError::new(format!("\"{}\"", recipe.name), problem));
    }
    for name in &recipe.blocks {
        if !blocks.iter().any(|block| block.name == *name) {
            return Err(RecipeCheckError::new(name, format!("There is no block “{name}”.")));
        }
    }
    let form = RecipeQuestionForm::new(recipe, blocks);
    if form.questions().count() > MAX_QUESTIONS {
        let problem = format!("The recipe has more than {MAX_QUESTIONS} questions.");
        return Err(RecipeCheckError::new("[[questions]]", problem));
    }
    let mut keys: BTreeMap<&str, &RecipeQuestion> = BTreeMap::new();
    for question in form.questions() {
        check_question(question)?;
        if keys.insert(&question.key, question).is_some() {
            let problem = format!("Two questions have the key “{}”.", question.key);
            return Err(RecipeCheckError::new(format!("\"{}\"", question.key), problem));
        }
    }
    check_mentioned_keys(recipe, &form, &keys)?;
    check_conditions(&keys)?;
    for (name, source) in form.script_sources() {
        check_script(name, source, &keys)?;
    }
    Ok(())
}

fn check_question(question: &RecipeQuestion) -> Result<(), RecipeCheckError> {
    let near = format!("\"{}\"", question.key);
    let wrong = |problem: String| Err(RecipeCheckError::new(near.clone(), problem));
    if !is_valid_key(&question.key) || BUILT_IN_KEYS.contains(&question.key.as_str()) {
        return wrong(format!("“{}” isn't a valid key. Use lowercase letters, digits and _.", question.key));
    }
    if question.label.trim().is_empty() {
        return wrong(format!("The question “{}” has no label.", question.key));
    }
    if question.kind == RecipeQuestionKind::Choice && question.choices.is_empty() {
        return wrong(format!("The question “{}” has no choices.", question.key));
    }
    for (what, given) in [("min", &question.min), ("max", &question.max)] {
        let free =
            RecipeQuestion { min: RecipeFileValue::default(), max: RecipeFileValue::default(), ..question.clone() };
        let counts = matches!(
            question.kind,
            RecipeQuestionKind::Number | RecipeQuestionKind::Duration | RecipeQuestionKind::Memory
        );
        if !given.is_empty() && (!counts || value::parse_answer(&free, &given.0, &[]).is_err()) {
            return wrong(format!("“{}” isn't a valid {what} for “{}”.", given.0, question.key));
        }
    }
    // Paths and the like may use variables that only some sites have, so check only what can be checked here.
    let judged = matches!(
        question.kind,
        RecipeQuestionKind::Number
            | RecipeQuestionKind::Choice
            | RecipeQuestionKind::Switch
            | RecipeQuestionKind::Duration
            | RecipeQuestionKind::Memory
    );
    if judged
        && !question.default.is_empty()
        && let Err(problem) = value::parse_answer(question, &question.default.0, &[])
    {
        let key = &question.key;
        return wrong(format!("“{}” isn't a valid default for “{key}”: {problem}", question.default.0));
    }
    Ok(())
}

/// Defaults, limits, help and warnings must refer to existing questions.
fn check_mentioned_keys(
    recipe: &Recipe,
    form: &RecipeQuestionForm,
    keys: &BTreeMap<&str, &RecipeQuestion>,
) -> Result<(), RecipeCheckError> {
    let warned = form.empty_warnings().flat_map(|warning| warning.keys.iter().chain(warning.show_when.keys()));
    let mentioned = recipe
        .locked
        .iter()
        .chain(&recipe.hidden)
        .chain(recipe.defaults.keys())
        .chain(recipe.limits.keys())
        .chain(recipe.help.keys())
        .chain(warned);
    for key in mentioned {
        if !keys.contains_key(key.as_str()) {
            return Err(RecipeCheckError::new(key, format!("No question has the key “{key}”.")));
        }
    }
    Ok(())
}

/// Conditions refer to existing questions, and never in a cycle.
fn check_conditions(keys: &BTreeMap<&str, &RecipeQuestion>) -> Result<(), RecipeCheckError> {
    let (mut path, mut done) = (BTreeSet::new(), BTreeSet::new());
    for question in keys.values() {
        for (other, values) in &question.show_when {
            let near = format!("\"{}\"", question.key);
            let Some(asked) = keys.get(other.as_str()) else {
                let problem =
                    format!("“{}” depends on the answer to “{other}”, but no such question exists.", question.key);
                return Err(RecipeCheckError::new(near, problem));
            };
            let impossible = values.iter().find(|value| {
                matches!(asked.kind, RecipeQuestionKind::Choice | RecipeQuestionKind::Switch)
                    && value::parse_answer(asked, &value.0, &[]).is_err()
            });
            if let Some(impossible) = impossible {
                let problem = format!("“{other}” can never be “{}”.", impossible.0);
                return Err(RecipeCheckError::new(near, problem));
            }
        }
        if has_cycle(question, keys, &mut path, &mut done) {
            let problem = format!("The question “{}” depends on itself.", question.key);
            return Err(RecipeCheckError::new(format!("\"{}\"", question.key), problem));
        }
    }
    Ok(())
}

/// Follows what a question depends on. `path` is the way so far; `done` holds questions known to be free of cycles,
/// which need not be followed again.
fn has_cycle<'a>(
    question: &'a RecipeQuestion,
    keys: &BTreeMap<&str, &'a RecipeQuestion>,
    path: &mut BTreeSet<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> bool {
    if done.contains(question.key.as_str()) {
        return false;
    }
    if !path.insert(&question.key) {
        return true;
    }
    let next = question.show_when.keys().filter_map(|key| keys.get(key.as_str()));
    let is_cycle = next.copied().any(|next| has_cycle(next, keys, path, done));
    path.remove(question.key.as_str());
    done.insert(&question.key);
    is_cycle
}

fn check_script(name: &str, source: &str, keys: &BTreeMap<&str, &RecipeQuestion>) -> Result<(), RecipeCheckError> {
    let of = if name.is_empty() { String::new() } else { format!("In the block “{name}”: ") };
    let line_of = |line: usize| source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    template::check(source)
        .map_err(|error| RecipeCheckError::new(line_of(error.line), format!("{of}{}", error.problem)))?;
    for (key, line) in template::find_mentions(source).keys {
        if !keys.contains_key(key.as_str()) && !BUILT_IN_KEYS.contains(&key.as_str()) {
            let problem = format!("{of}The script uses “{key}”, but no question has that key.");
            return Err(RecipeCheckError::new(line_of(line), problem));
        }
    }
    Ok(())
}
