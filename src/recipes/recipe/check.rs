//! Whether a recipe can be used: every key is asked for once, conditions lead somewhere, values stand where they are
//! safe.

use std::collections::{BTreeMap, BTreeSet};

use super::super::form::{BUILT_IN, Form};
use super::super::question::{Given, Kind, Question};
use super::super::{template, value};
use super::{Block, Recipe, RecipeError};

/// Nobody answers more.
const MOST_QUESTIONS: usize = 200;

/// Something that is wrong, and a piece of text near it.
pub struct Fault {
    near: String,
    problem: String,
}

impl Fault {
    fn new(near: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { near: near.into(), problem: problem.into() }
    }

    /// With the line of the file.
    pub fn at(self, text: &str) -> RecipeError {
        let near = self.near.trim();
        let found = text.lines().position(|line| !near.is_empty() && line.contains(near));
        RecipeError { line: found.map_or(0, |line| line + 1), problem: self.problem }
    }
}

/// Names as they stand in addresses and scripts.
fn is_key(text: &str) -> bool {
    text.len() <= 40
        && text.starts_with(|c: char| c.is_ascii_lowercase())
        && text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
}

/// Checks a recipe.
pub fn recipe(recipe: &Recipe, blocks: &[Block]) -> Result<(), Fault> {
    let name_is_good = !recipe.name.is_empty()
        && recipe.name.len() <= 60
        && recipe.name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    if !name_is_good {
        let problem = "The name has small letters, digits and - only.";
        return Err(Fault::new(format!("\"{}\"", recipe.name), problem));
    }
    for name in &recipe.blocks {
        if !blocks.iter().any(|block| block.name == *name) {
            return Err(Fault::new(name, format!("There is no block “{name}”.")));
        }
    }
    let form = Form::of(recipe, blocks);
    if form.questions().count() > MOST_QUESTIONS {
        let problem = format!("It has more than {MOST_QUESTIONS} questions.");
        return Err(Fault::new("[[questions]]", problem));
    }
    let mut keys: BTreeMap<&str, &Question> = BTreeMap::new();
    for question in form.questions() {
        one(question)?;
        if keys.insert(&question.key, question).is_some() {
            let problem = format!("Two questions have the key “{}”.", question.key);
            return Err(Fault::new(format!("\"{}\"", question.key), problem));
        }
    }
    named(recipe, &keys)?;
    conditions(&keys)?;
    for (name, source) in form.sources() {
        script(name, source, &keys)?;
    }
    Ok(())
}

fn one(question: &Question) -> Result<(), Fault> {
    let near = format!("\"{}\"", question.key);
    let wrong = |problem: String| Err(Fault::new(near.clone(), problem));
    if !is_key(&question.key) || BUILT_IN.contains(&question.key.as_str()) {
        return wrong(format!("“{}” cannot be a key: small letters, digits and _.", question.key));
    }
    if question.label.trim().is_empty() {
        return wrong(format!("The question “{}” has no label.", question.key));
    }
    if question.kind == Kind::Choice && question.choices.is_empty() {
        return wrong(format!("The question “{}” offers no choices.", question.key));
    }
    for (what, given) in [("min", &question.min), ("max", &question.max)] {
        let free = Question { min: Given::default(), max: Given::default(), ..question.clone() };
        let counts = matches!(question.kind, Kind::Number | Kind::Duration | Kind::Memory);
        if !given.is_empty() && (!counts || value::read(&free, &given.0, &[]).is_err()) {
            return wrong(format!("“{}” cannot be the {what} of “{}”.", given.0, question.key));
        }
    }
    // Paths and the like may name variables that only some sites have, so only what can be judged here is.
    let judged = matches!(
        question.kind,
        Kind::Number | Kind::Choice | Kind::Switch | Kind::Duration | Kind::Memory
    );
    if judged
        && !question.default.is_empty()
        && let Err(problem) = value::read(question, &question.default.0, &[])
    {
        let key = &question.key;
        return wrong(format!(
            "“{}” cannot be the default of “{key}”: {problem}",
            question.default.0
        ));
    }
    Ok(())
}

/// What is said of questions must be said of ones that exist.
fn named(recipe: &Recipe, keys: &BTreeMap<&str, &Question>) -> Result<(), Fault> {
    let said = recipe
        .locked
        .iter()
        .chain(&recipe.hidden)
        .chain(recipe.defaults.keys())
        .chain(recipe.limits.keys())
        .chain(recipe.help.keys());
    for key in said {
        if !keys.contains_key(key.as_str()) {
            return Err(Fault::new(key, format!("No question has the key “{key}”.")));
        }
    }
    Ok(())
}

/// Conditions name questions, and never in a circle.
fn conditions(keys: &BTreeMap<&str, &Question>) -> Result<(), Fault> {
    let (mut way, mut done) = (BTreeSet::new(), BTreeSet::new());
    for question in keys.values() {
        for (other, values) in &question.show_when {
            let near = format!("\"{}\"", question.key);
            let Some(asked) = keys.get(other.as_str()) else {
                let problem = format!(
                    "“{}” is shown by the answer to “{other}”, which nobody asks.",
                    question.key
                );
                return Err(Fault::new(near, problem));
            };
            let strange = values.iter().find(|value| {
                matches!(asked.kind, Kind::Choice | Kind::Switch)
                    && value::read(asked, &value.0, &[]).is_err()
            });
            if let Some(strange) = strange {
                let problem = format!("“{other}” is never “{}”.", strange.0);
                return Err(Fault::new(near, problem));
            }
        }
        if circles(question, keys, &mut way, &mut done) {
            let problem = format!("The question “{}” depends on itself.", question.key);
            return Err(Fault::new(format!("\"{}\"", question.key), problem));
        }
    }
    Ok(())
}

/// Follows what a question depends on. `way`: where we are; `done`: questions that lead into no circle, which need not be
/// followed again.
fn circles<'a>(
    question: &'a Question,
    keys: &BTreeMap<&str, &'a Question>,
    way: &mut BTreeSet<&'a str>,
    done: &mut BTreeSet<&'a str>,
) -> bool {
    if done.contains(question.key.as_str()) {
        return false;
    }
    if !way.insert(&question.key) {
        return true;
    }
    let next = question.show_when.keys().filter_map(|key| keys.get(key.as_str()));
    let round = next.copied().any(|next| circles(next, keys, way, done));
    way.remove(question.key.as_str());
    done.insert(&question.key);
    round
}

fn script(name: &str, source: &str, keys: &BTreeMap<&str, &Question>) -> Result<(), Fault> {
    let of = if name.is_empty() { String::new() } else { format!("In the block “{name}”: ") };
    let line_of = |line: usize| source.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    template::check(source)
        .map_err(|error| Fault::new(line_of(error.line), format!("{of}{}", error.problem)))?;
    for (key, line) in template::mentions(source).keys {
        if !keys.contains_key(key.as_str()) && !BUILT_IN.contains(&key.as_str()) {
            let problem = format!("{of}The script names “{key}”, which no question asks for.");
            return Err(Fault::new(line_of(line), problem));
        }
    }
    Ok(())
}
