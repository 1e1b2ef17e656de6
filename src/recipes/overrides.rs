//! Turns a filled-in form into a new recipe: its defaults, locked answers, limits and help texts. The result is a
//! complete recipe file.

use std::collections::BTreeMap;

use super::compose::ComposeProblem;
use super::form::RecipeQuestionForm;
use super::question::{RecipeFileValue, RecipeQuestion, RecipeQuestionKind};
use super::recipe::{AnswerRange, Recipe, SharedRecipeBlock};
use super::value;

/// How someone wants to change a recipe.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RecipeOverrides {
    pub title: String,
    pub summary: String,
    /// Overrides by question key. Other questions stay as they are.
    pub questions: BTreeMap<String, QuestionOverride>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct QuestionOverride {
    /// The default answer.
    pub default_answer: String,
    pub is_locked: bool,
    /// The new minimum; empty keeps the current one.
    pub min: String,
    /// The new maximum; empty keeps the current one.
    pub max: String,
    pub help: String,
}

impl QuestionOverride {
    /// The question's current settings, with this answer as the default.
    pub fn from_question(question: &RecipeQuestion, form: &RecipeQuestionForm, answer: Option<&String>) -> Self {
        let begins = match (question.kind, answer) {
            // Browsers send nothing for an unchecked switch.
            (RecipeQuestionKind::Switch, answer) => (answer.is_some_and(|text| text == "true")).to_string(),
            (_, Some(answer)) => answer.clone(),
            (_, None) => question.default.0.clone(),
        };
        Self {
            default_answer: begins,
            is_locked: form.locked.contains(&question.key),
            min: question.min.0.clone(),
            max: question.max.0.clone(),
            help: question.help.clone(),
        }
    }
}

/// Whether questions of this kind have a minimum and a maximum.
pub const fn has_limits(kind: RecipeQuestionKind) -> bool {
    matches!(kind, RecipeQuestionKind::Number | RecipeQuestionKind::Duration | RecipeQuestionKind::Memory)
}

/// The resulting recipe, or the problems to fix, by question key.
pub fn build_recipe(
    base: &Recipe,
    blocks: &[SharedRecipeBlock],
    overrides: &RecipeOverrides,
) -> Result<Recipe, Vec<ComposeProblem>> {
    let form = RecipeQuestionForm::new(base, blocks);
    let mut recipe = base.clone();
    let mut problems = Vec::new();
    overrides.title.trim().clone_into(&mut recipe.title);
    overrides.summary.trim().clone_into(&mut recipe.summary);
    recipe.name = slug_from_title(&overrides.title);
    recipe.locked.retain(|key| !overrides.questions.contains_key(key));
    for question in form.questions() {
        let Some(change) = overrides.questions.get(&question.key) else { continue };
        apply_override(&mut recipe, question, change);
        if change.is_locked {
            recipe.locked.push(question.key.clone());
        }
        let sentence = find_problem(&recipe, question, change);
        problems.extend(sentence.map(|sentence| ComposeProblem { key: question.key.clone(), sentence }));
    }
    if problems.is_empty() { Ok(recipe) } else { Err(problems) }
}

/// Stores only what differs from the question's current settings.
fn apply_override(recipe: &mut Recipe, question: &RecipeQuestion, change: &QuestionOverride) {
    let key = &question.key;
    let was = question.default.0.as_str();
    let is_off = question.kind == RecipeQuestionKind::Switch && was.is_empty() && change.default_answer == "false";
    if change.default_answer != was && !is_off {
        recipe.defaults.insert(key.clone(), RecipeFileValue(change.default_answer.clone()));
    }
    if has_limits(question.kind) {
        let mut limit = recipe.limits.get(key).cloned().unwrap_or_default();
        for (own, text, was) in
            [(&mut limit.min, change.min.trim(), &question.min.0), (&mut limit.max, change.max.trim(), &question.max.0)]
        {
            if !text.is_empty() && text != was {
                *own = RecipeFileValue(text.to_owned());
            }
        }
        if limit != AnswerRange::default() {
            recipe.limits.insert(key.clone(), limit);
        }
    }
    if change.help.trim() != question.help.trim() {
        recipe.help.insert(key.clone(), change.help.trim().to_owned());
    }
}

/// What is wrong with an override, as far as that can be checked without a cluster.
fn find_problem(recipe: &Recipe, question: &RecipeQuestion, change: &QuestionOverride) -> Option<String> {
    let mut now = question.clone();
    if has_limits(question.kind) {
        (now.min, now.max) = (RecipeFileValue::default(), RecipeFileValue::default());
        for (what, text) in [("Minimum", change.min.trim()), ("Maximum", change.max.trim())] {
            let read = if text.is_empty() { Ok(()) } else { value::parse_answer(&now, text, &[]).map(drop) };
            if let Err(problem) = read {
                return Some(format!("{what}: {problem}"));
            }
        }
        let limit = recipe.limits.get(&question.key).cloned().unwrap_or_default();
        let or = |new: RecipeFileValue, was: &RecipeFileValue| if new.is_empty() { was.clone() } else { new };
        (now.min, now.max) = (or(limit.min, &question.min), or(limit.max, &question.max));
        if !now.min.is_empty() && value::parse_answer(&now, &now.min.0.clone(), &[]).is_err() {
            return Some("The minimum is greater than the maximum.".to_owned());
        }
    }
    let from_place = matches!(question.kind, RecipeQuestionKind::Account | RecipeQuestionKind::Gpu);
    if change.default_answer.trim().is_empty() {
        let is_stuck = change.is_locked && question.required && !from_place;
        return is_stuck.then(|| "A required answer can't be fixed and empty. Enter a default.".to_owned());
    }
    let judged =
        has_limits(question.kind) || matches!(question.kind, RecipeQuestionKind::Choice | RecipeQuestionKind::Switch);
    if judged { value::parse_answer(&now, &change.default_answer, &[]).err() } else { None }
}

/// A name for URLs and files, derived from a title.
pub fn slug_from_title(title: &str) -> String {
    let mut name = String::new();
    for c in title.chars().flat_map(char::to_lowercase) {
        if c.is_ascii_lowercase() || c.is_ascii_digit() {
            name.push(c);
        } else if !name.is_empty() && !name.ends_with('-') {
            name.push('-');
        }
        if name.len() >= 60 {
            break;
        }
    }
    let name = name.trim_end_matches('-');
    if name.is_empty() { "recipe".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::recipes::catalog::RecipeCatalog;

    fn overrides(change: impl FnOnce(&mut RecipeOverrides)) -> Result<Recipe, Vec<ComposeProblem>> {
        let catalog = RecipeCatalog::shipped();
        let base = catalog.find("python-script").unwrap();
        let form = RecipeQuestionForm::new(base, &catalog.blocks);
        let says = form.questions().map(|one| (one.key.clone(), QuestionOverride::from_question(one, &form, None)));
        let mut overrides =
            RecipeOverrides { title: "My Größe!".into(), summary: "S".into(), questions: says.collect() };
        change(&mut overrides);
        let recipe = build_recipe(base, &catalog.blocks, &overrides)?;
        assert_eq!(Recipe::parse(&recipe.to_toml(), &catalog.blocks).unwrap(), recipe);
        Ok(recipe)
    }

    #[test]
    fn what_is_not_changed_is_not_written() {
        let catalog = RecipeCatalog::shipped();
        let base = catalog.find("python-script").unwrap();
        let recipe = overrides(|_| ()).unwrap();
        assert_eq!((recipe.name.as_str(), recipe.title.as_str()), ("my-gr-e", "My Größe!"));
        assert_eq!((&recipe.defaults, &recipe.limits), (&base.defaults, &base.limits));
        assert_eq!((&recipe.help, &recipe.locked), (&base.help, &base.locked));
    }

    /// Saved without changes, every shipped recipe asks the same questions and writes the same script.
    #[test]
    fn every_recipe_can_be_kept() {
        let catalog = RecipeCatalog::shipped();
        for base in &catalog.recipes {
            let form = RecipeQuestionForm::new(base, &catalog.blocks);
            let says = form.questions().map(|one| {
                let begins = one.default.0.clone();
                (one.key.clone(), QuestionOverride::from_question(one, &form, Some(&begins)))
            });
            let title = base.title.clone();
            let overrides = RecipeOverrides { title, summary: base.summary.clone(), questions: says.collect() };
            let recipe = build_recipe(base, &catalog.blocks, &overrides).unwrap_or_else(|problems| {
                panic!("{}: {problems:?}", base.name);
            });
            let read = Recipe::parse(&recipe.to_toml(), &catalog.blocks).unwrap();
            assert_eq!(read, recipe, "{}", base.name);
            assert_eq!(RecipeQuestionForm::new(&read, &catalog.blocks), form, "{}", base.name);
        }
    }

    #[test]
    fn answers_locks_limits_and_help_are_written() {
        let recipe = overrides(|overrides| {
            let time = overrides.questions.get_mut("time").unwrap();
            (time.default_answer, time.max) = ("2:00:00".into(), "3:00:00".into());
            time.help = "<b>Short</b>".into();
            overrides.questions.get_mut("cores").unwrap().is_locked = true;
        })
        .unwrap();
        assert_eq!(recipe.defaults["time"].0, "2:00:00");
        assert_eq!((recipe.limits["time"].max.0.as_str(), recipe.locked), ("3:00:00", vec!["cores".to_owned()]));
        assert_eq!(recipe.help["time"], "<b>Short</b>");
    }

    #[test]
    fn what_cannot_be_is_said_at_its_question() {
        for (key, begins, least, most) in [
            ("cores", "x", "", ""),
            ("cores", "8", "", "4"),
            ("cores", "3", "4", "2"),
            ("time", "1:00:00", "soon", ""),
            ("memory", "2 GB", "4 GB", ""),
        ] {
            let change = QuestionOverride {
                default_answer: begins.into(),
                min: least.into(),
                max: most.into(),
                ..QuestionOverride::default()
            };
            let problems = overrides(|overrides| *overrides.questions.get_mut(key).unwrap() = change).unwrap_err();
            assert_eq!(problems[0].key, key, "{problems:?}");
        }
        let problems = overrides(|overrides| overrides.questions.get_mut("script").unwrap().is_locked = true);
        assert_eq!(problems.unwrap_err()[0].key, "script");
    }

    #[test]
    fn names_of_titles() {
        for (title, name) in [("Train it", "train-it"), ("  --  ", "recipe"), ("名前", "recipe"), ("A/B: c", "a-b-c")]
        {
            assert_eq!(slug_from_title(title), name);
        }
        assert!(slug_from_title(&"ab ".repeat(50)).len() <= 60);
    }
}
