//! A recipe made of a form as someone has it: what it begins with, which answers are fixed, limits and help texts. What
//! comes of it is a complete file of its own.

use std::collections::BTreeMap;

use super::compose::Problem;
use super::form::Form;
use super::question::{Given, Kind, Question};
use super::recipe::{Block, Limit, Recipe};
use super::value;

/// What someone wants a recipe to be.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Wish {
    /// What it does, in a few words.
    pub title: String,
    /// What it is for.
    pub summary: String,
    /// What is said of questions, by their keys. The others stay as they are.
    pub says: BTreeMap<String, Said>,
}

/// What is said of a question.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Said {
    /// The answer that stands there at first.
    pub begins: String,
    /// Whether it is fixed.
    pub is_locked: bool,
    /// The least; empty: as it is.
    pub least: String,
    /// The most; empty: as it is.
    pub most: String,
    /// What the question means.
    pub help: String,
}

impl Said {
    /// A question as it is now, with an answer.
    pub fn of(question: &Question, form: &Form, answer: Option<&String>) -> Self {
        let begins = match (question.kind, answer) {
            // Browsers send nothing for a switch that is off.
            (Kind::Switch, answer) => (answer.is_some_and(|text| text == "true")).to_string(),
            (_, Some(answer)) => answer.clone(),
            (_, None) => question.default.0.clone(),
        };
        Self {
            begins,
            is_locked: form.locked.contains(&question.key),
            least: question.min.0.clone(),
            most: question.max.0.clone(),
            help: question.help.clone(),
        }
    }
}

/// Whether a question has a least and a most.
pub const fn has_limits(kind: Kind) -> bool {
    matches!(kind, Kind::Number | Kind::Duration | Kind::Memory)
}

/// The recipe that comes of it, or what must be mended, by the keys of questions.
pub fn keep(base: &Recipe, blocks: &[Block], wish: &Wish) -> Result<Recipe, Vec<Problem>> {
    let form = Form::of(base, blocks);
    let mut recipe = base.clone();
    let mut problems = Vec::new();
    wish.title.trim().clone_into(&mut recipe.title);
    wish.summary.trim().clone_into(&mut recipe.summary);
    recipe.name = name_of(&wish.title);
    recipe.locked.retain(|key| !wish.says.contains_key(key));
    for question in form.questions() {
        let Some(said) = wish.says.get(&question.key) else { continue };
        take(&mut recipe, question, said);
        if said.is_locked {
            recipe.locked.push(question.key.clone());
        }
        let sentence = wrong(&recipe, question, said);
        problems.extend(sentence.map(|sentence| Problem { key: question.key.clone(), sentence }));
    }
    if problems.is_empty() { Ok(recipe) } else { Err(problems) }
}

/// Writes down what differs from how the question is already.
fn take(recipe: &mut Recipe, question: &Question, said: &Said) {
    let key = &question.key;
    let was = question.default.0.as_str();
    let is_off = question.kind == Kind::Switch && was.is_empty() && said.begins == "false";
    if said.begins != was && !is_off {
        recipe.defaults.insert(key.clone(), Given(said.begins.clone()));
    }
    if has_limits(question.kind) {
        let mut limit = recipe.limits.get(key).cloned().unwrap_or_default();
        for (own, text, was) in [
            (&mut limit.min, said.least.trim(), &question.min.0),
            (&mut limit.max, said.most.trim(), &question.max.0),
        ] {
            if !text.is_empty() && text != was {
                *own = Given(text.to_owned());
            }
        }
        if limit != Limit::default() {
            recipe.limits.insert(key.clone(), limit);
        }
    }
    if said.help.trim() != question.help.trim() {
        recipe.help.insert(key.clone(), said.help.trim().to_owned());
    }
}

/// What is wrong with what was said, as far as it can be judged without a cluster.
fn wrong(recipe: &Recipe, question: &Question, said: &Said) -> Option<String> {
    let mut now = question.clone();
    if has_limits(question.kind) {
        (now.min, now.max) = (Given::default(), Given::default());
        for (what, text) in [("least", said.least.trim()), ("most", said.most.trim())] {
            let read =
                if text.is_empty() { Ok(()) } else { value::read(&now, text, &[]).map(drop) };
            if let Err(problem) = read {
                return Some(format!("The {what} that it may be: {problem}"));
            }
        }
        let limit = recipe.limits.get(&question.key).cloned().unwrap_or_default();
        let or = |said: Given, was: &Given| if said.is_empty() { was.clone() } else { said };
        (now.min, now.max) = (or(limit.min, &question.min), or(limit.max, &question.max));
        if !now.min.is_empty() && value::read(&now, &now.min.0.clone(), &[]).is_err() {
            return Some("The least is more than the most.".to_owned());
        }
    }
    let from_place = matches!(question.kind, Kind::Account | Kind::Gpu);
    if said.begins.trim().is_empty() {
        let is_stuck = said.is_locked && question.required && !from_place;
        return is_stuck
            .then(|| "This must have an answer, so it cannot be fixed without one.".to_owned());
    }
    let judged = has_limits(question.kind) || matches!(question.kind, Kind::Choice | Kind::Switch);
    if judged { value::read(&now, &said.begins, &[]).err() } else { None }
}

/// A name for addresses and files, made of a title.
pub fn name_of(title: &str) -> String {
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
    use super::super::book::Book;
    use super::*;

    fn wish(change: impl FnOnce(&mut Wish)) -> Result<Recipe, Vec<Problem>> {
        let book = Book::shipped();
        let base = book.recipe("python-script").unwrap();
        let form = Form::of(base, &book.blocks);
        let says = form.questions().map(|one| (one.key.clone(), Said::of(one, &form, None)));
        let mut wish =
            Wish { title: "My Größe!".into(), summary: "S".into(), says: says.collect() };
        change(&mut wish);
        let recipe = keep(base, &book.blocks, &wish)?;
        assert_eq!(Recipe::read(&recipe.write(), &book.blocks).unwrap(), recipe);
        Ok(recipe)
    }

    #[test]
    fn what_is_not_changed_is_not_written() {
        let book = Book::shipped();
        let base = book.recipe("python-script").unwrap();
        let recipe = wish(|_| ()).unwrap();
        assert_eq!((recipe.name.as_str(), recipe.title.as_str()), ("my-gr-e", "My Größe!"));
        assert_eq!((&recipe.defaults, &recipe.limits), (&base.defaults, &base.limits));
        assert_eq!((&recipe.help, &recipe.locked), (&base.help, &base.locked));
    }

    /// Kept without a change, every recipe that comes with the portal asks the same and reads the same.
    #[test]
    fn every_recipe_can_be_kept() {
        let book = Book::shipped();
        for base in &book.recipes {
            let form = Form::of(base, &book.blocks);
            let says = form.questions().map(|one| {
                let begins = one.default.0.clone();
                (one.key.clone(), Said::of(one, &form, Some(&begins)))
            });
            let title = base.title.clone();
            let wish = Wish { title, summary: base.summary.clone(), says: says.collect() };
            let kept = keep(base, &book.blocks, &wish).unwrap_or_else(|problems| {
                panic!("{}: {problems:?}", base.name);
            });
            let read = Recipe::read(&kept.write(), &book.blocks).unwrap();
            assert_eq!(read, kept, "{}", base.name);
            assert_eq!(Form::of(&read, &book.blocks), form, "{}", base.name);
        }
    }

    #[test]
    fn answers_locks_limits_and_help_are_written() {
        let recipe = wish(|wish| {
            let time = wish.says.get_mut("time").unwrap();
            (time.begins, time.most) = ("2:00:00".into(), "3:00:00".into());
            time.help = "<b>Short</b>".into();
            wish.says.get_mut("cores").unwrap().is_locked = true;
        })
        .unwrap();
        assert_eq!(recipe.defaults["time"].0, "2:00:00");
        assert_eq!(
            (recipe.limits["time"].max.0.as_str(), recipe.locked),
            ("3:00:00", vec!["cores".to_owned()])
        );
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
            let said = Said {
                begins: begins.into(),
                least: least.into(),
                most: most.into(),
                ..Said::default()
            };
            let problems = wish(|wish| *wish.says.get_mut(key).unwrap() = said).unwrap_err();
            assert_eq!(problems[0].key, key, "{problems:?}");
        }
        let problems = wish(|wish| wish.says.get_mut("script").unwrap().is_locked = true);
        assert_eq!(problems.unwrap_err()[0].key, "script");
    }

    #[test]
    fn names_of_titles() {
        for (title, name) in [
            ("Train it", "train-it"),
            ("  --  ", "recipe"),
            ("名前", "recipe"),
            ("A/B: c", "a-b-c"),
        ] {
            assert_eq!(name_of(title), name);
        }
        assert!(name_of(&"ab ".repeat(50)).len() <= 60);
    }
}
