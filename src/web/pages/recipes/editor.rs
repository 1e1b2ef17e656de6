//! The form for creating or editing a recipe: its questions as a table, each with its default, whether that is fixed,
//! limits and help.

use crate::recipes::compose::ComposeProblem;
use crate::recipes::form::{FormAnswers, RecipeQuestionForm};
use crate::recipes::overrides::{QuestionOverride, RecipeOverrides, has_limits};
use crate::recipes::question::{RecipeQuestion, RecipeQuestionKind};
use crate::recipes::recipe::Recipe;
use crate::web::pages::compose::form_values::FormFields;

pub struct RecipeEditor {
    pub title: String,
    pub summary: String,
    pub parts: Vec<RecipeEditorSection>,
    /// What must be fixed: the field, and a sentence.
    pub problems: Vec<(String, String)>,
}

pub struct RecipeEditorSection {
    pub title: String,
    pub rows: Vec<RecipeEditorRow>,
}

pub struct RecipeEditorRow {
    pub key: String,
    pub label: String,
    /// The default answer.
    pub begins: String,
    /// How many lines a multi-line answer shows.
    pub lines: usize,
    /// What can be chosen: value, label.
    pub choices: Vec<(String, String)>,
    pub is_locked: bool,
    /// Whether it can have a minimum and a maximum.
    pub has_limits: bool,
    pub least: String,
    pub most: String,
    pub help: String,
    pub error: String,
}

impl RecipeEditor {
    /// Builds the form from a recipe's overrides.
    pub fn new(form: &RecipeQuestionForm, overrides: &RecipeOverrides, problems: &[ComposeProblem]) -> Self {
        let row = |question: &RecipeQuestion| {
            let given = overrides.questions.get(&question.key)?;
            let found = problems.iter().find(|problem| problem.key == question.key);
            Some(RecipeEditorRow {
                key: question.key.clone(),
                label: question.label.clone(),
                lines: if question.kind.is_multiline() { given.default_answer.lines().count().clamp(2, 10) } else { 0 },
                choices: list_choices(question),
                begins: given.default_answer.clone(),
                is_locked: given.is_locked,
                has_limits: has_limits(question.kind),
                least: given.min.clone(),
                most: given.max.clone(),
                help: given.help.clone(),
                error: found.map(|problem| problem.sentence.clone()).unwrap_or_default(),
            })
        };
        let part = |section: &crate::recipes::recipe::SharedRecipeBlock| RecipeEditorSection {
            title: if section.name.is_empty() { "Job".to_owned() } else { section.title.clone() },
            rows: section.questions.iter().filter_map(row).collect(),
        };
        let parts = form.sections.iter().map(part).filter(|part| !part.rows.is_empty());
        let summarize = |problem: &ComposeProblem| {
            let Some(question) = form.question(&problem.key) else {
                return (problem.key.clone(), problem.sentence.clone());
            };
            let sentence = format!("{}: {}", question.label, problem.sentence);
            (format!("d.{}", problem.key), sentence)
        };
        Self {
            title: overrides.title.clone(),
            summary: overrides.summary.clone(),
            parts: parts.collect(),
            problems: problems.iter().map(summarize).collect(),
        }
    }

    /// Whether a question has to be fixed.
    pub fn has_question_problems(&self) -> bool {
        self.parts.iter().flat_map(|part| &part.rows).any(|row| !row.error.is_empty())
    }

    /// The error of a field that isn't a question.
    pub fn error(&self, field: &str) -> &str {
        let found = self.problems.iter().find(|(name, _)| name == field);
        found.map_or("", |(_, sentence)| sentence)
    }
}

/// The overrides that a form with these answers amounts to.
pub fn overrides_from_form(
    recipe: &Recipe,
    form: &RecipeQuestionForm,
    answers: Option<&FormAnswers>,
) -> RecipeOverrides {
    let questions = form.questions().filter(|question| !form.hidden.contains(&question.key)).map(|question| {
        let given = |answers: &FormAnswers| answers.get(&question.key).cloned();
        // Without a submitted form, the answers are the defaults.
        let answer = answers.map_or_else(|| Some(question.default.0.clone()), given);
        (question.key.clone(), QuestionOverride::from_question(question, form, answer.as_ref()))
    });
    RecipeOverrides { title: recipe.title.clone(), summary: recipe.summary.clone(), questions: questions.collect() }
}

/// Splits what a browser sent into the overrides and all other fields.
pub fn parse_fields(fields: FormFields) -> (RecipeOverrides, Vec<(String, String)>) {
    let mut overrides = RecipeOverrides::default();
    let mut rest = Vec::new();
    for (name, value) in fields {
        let value = value.replace("\r\n", "\n");
        let mut set = |key: &str, put: fn(&mut QuestionOverride, String), value: String| {
            put(overrides.questions.entry(key.to_owned()).or_default(), value);
        };
        match name.split_once('.') {
            Some(("d", key)) => set(key, |question, value| question.default_answer = value, value),
            Some(("l", key)) => set(key, |question, _| question.is_locked = true, value),
            Some(("least", key)) => set(key, |question, value| question.min = value, value),
            Some(("most", key)) => set(key, |question, value| question.max = value, value),
            Some(("h", key)) => set(key, |question, value| question.help = value, value),
            _ => match name.as_str() {
                "title" => overrides.title = value,
                "summary" => overrides.summary = value,
                _ => rest.push((name, value)),
            },
        }
    }
    (overrides, rest)
}

/// The value of one of the other fields.
pub fn field_value<'a>(rest: &'a [(String, String)], name: &str) -> &'a str {
    rest.iter().find(|(field, _)| field == name).map_or("", |(_, value)| value)
}

fn list_choices(question: &RecipeQuestion) -> Vec<(String, String)> {
    let pair = |value: &str, label: &str| (value.to_owned(), label.to_owned());
    match question.kind {
        RecipeQuestionKind::Switch => vec![pair("true", "Yes"), pair("false", "No")],
        RecipeQuestionKind::Choice => {
            question.choices.iter().map(|choice| pair(&choice.value, &choice.label)).collect()
        }
        _ => Vec::new(),
    }
}
