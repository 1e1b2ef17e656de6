//! A recipe put together with its blocks: what is asked, what stands there at first, and what is shown when.

use std::collections::{BTreeMap, BTreeSet};

use super::context::ComposeContext;
use super::question::{QuestionChoice, QuestionKind, RecipeQuestion, RecipeValue};
use super::recipe::{Recipe, RecipeBlock};
use super::request::RequestField;
use super::requirements;
use super::{sweep, template};
use crate::sites::JobOptionRule;

/// What people typed, by the keys of questions. What a sweep is made of is in it under names of its own: see
/// [`sweep_key`].
pub type FormAnswers = BTreeMap<String, String>;

/// Names that scripts may use besides the keys of questions: facts of the site and of the request.
pub const BUILT_IN_KEYS: &[&str] = &[
    "tmpdir",
    "own_tmpdir",
    "internet",
    "proxy",
    "wheelhouse",
    "many_nodes",
    "is_array",
    "job_folder",
    "arm",
];

/// The answer that holds the values of a question which is swept.
pub fn sweep_key(key: &str) -> String {
    format!("sweep.{key}")
}

/// How the lists of a sweep are combined.
pub const SWEEP_HOW: &str = "sweep.how";
/// How many points may run at a time.
pub const SWEEP_AT_ONCE: &str = "sweep.at_once";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeForm {
    /// Its parts, in the order in which they are asked.
    pub sections: Vec<FormSection>,
    /// Keys whose answers are fixed.
    pub locked: BTreeSet<String>,
    /// Keys that are not asked.
    pub hidden: BTreeSet<String>,
    /// The recipe's own script.
    pub script: String,
    /// Whether the script stands alone.
    pub bare: bool,
    /// Whether each GPU has a task of its own.
    pub task_per_gpu: bool,
}

/// A part of a form.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FormSection {
    /// The block it comes from; empty: the recipe itself.
    pub name: String,
    pub title: String,
    /// What it is about.
    pub summary: String,
    /// Whether it is folded away at first.
    pub folded: bool,
    pub questions: Vec<RecipeQuestion>,
    /// What it adds to the script before the recipe's own.
    pub script: String,
    pub after: String,
}

impl RecipeForm {
    /// The form of a recipe. Its own questions come first, as they are what it is about.
    pub fn new(recipe: &Recipe, blocks: &[RecipeBlock]) -> Self {
        let own = FormSection {
            name: String::new(),
            title: recipe.title.clone(),
            summary: String::new(),
            folded: false,
            questions: recipe.questions.clone(),
            script: String::new(),
            after: String::new(),
        };
        let of_block = |name: &String| {
            let block = blocks.iter().find(|block| block.name == *name)?;
            Some(FormSection {
                name: block.name.clone(),
                title: block.title.clone(),
                summary: block.summary.clone(),
                folded: block.folded,
                questions: block.questions.clone(),
                script: block.script.clone(),
                after: block.after.clone(),
            })
        };
        let mut sections: Vec<FormSection> =
            std::iter::once(own).chain(recipe.blocks.iter().filter_map(of_block)).collect();
        for question in sections.iter_mut().flat_map(|section| &mut section.questions) {
            apply_recipe(question, recipe);
        }
        Self {
            sections,
            locked: recipe.locked.iter().cloned().collect(),
            hidden: recipe.hidden.iter().cloned().collect(),
            script: recipe.script.clone(),
            bare: recipe.bare,
            task_per_gpu: recipe.task_per_gpu,
        }
    }

    pub fn questions(&self) -> impl Iterator<Item = &RecipeQuestion> {
        self.sections.iter().flat_map(|section| &section.questions)
    }

    /// The question of a key.
    pub fn question(&self, key: &str) -> Option<&RecipeQuestion> {
        self.questions().find(|question| question.key == key)
    }

    /// The question that sets a part of the request.
    pub fn find_setting(&self, sets: RequestField) -> Option<&RecipeQuestion> {
        self.questions().find(|question| question.sets == Some(sets))
    }

    /// All pieces of script, with the name of their block.
    pub fn script_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_blocks = self.sections.iter().flat_map(|section| {
            [(section.name.as_str(), section.script.as_str()), (&section.name, &section.after)]
        });
        of_blocks.chain([("", self.script.as_str())])
    }

    /// Whether a question can have another answer at each point of a sweep: not if it is part of the request, which all
    /// tasks of an array share, nor if it decides what the script looks like.
    pub fn can_sweep(&self, question: &RecipeQuestion) -> bool {
        let kind = matches!(
            question.kind,
            QuestionKind::Text | QuestionKind::Number | QuestionKind::Choice | QuestionKind::Path
        );
        let is_fixed = self.locked.contains(&question.key) || self.hidden.contains(&question.key);
        if !kind || is_fixed || question.sets.is_some() {
            return false;
        }
        let mut is_named = false;
        for (_, source) in
            self.script_sources().filter(|(_, source)| source.contains(&question.key))
        {
            let found = template::find_mentions(source);
            if found.deciding.contains(&question.key) {
                return false;
            }
            is_named |= found.keys.iter().any(|(key, _)| *key == question.key);
        }
        // One that no line of the script holds would change nothing.
        is_named && !self.questions().any(|other| other.show_when.contains_key(&question.key))
    }

    /// What stands in the form at first.
    pub fn defaults(&self, place: &ComposeContext) -> FormAnswers {
        let mut answers: FormAnswers = self
            .questions()
            .map(|question| {
                // What a script that stands alone does not ask for is not asked for.
                let given = question.default.0.clone();
                let first = if self.bare { given } else { default_answer(question, place) };
                (question.key.clone(), first)
            })
            .collect();
        self.fill_gpu_defaults(&mut answers, place);
        answers
    }

    /// With a GPU come cores and memory: what the site advises, where the recipe does not say.
    fn fill_gpu_defaults(&self, answers: &mut FormAnswers, place: &ComposeContext) {
        let model = self
            .find_setting(RequestField::GpuModel)
            .and_then(|question| answers.get(&question.key));
        let Some(gpu) = model.and_then(|model| place.gpu(model)).cloned() else { return };
        let count =
            self.find_setting(RequestField::Gpus).and_then(|question| answers.get(&question.key));
        let count: u32 = count.and_then(|count| count.parse().ok()).unwrap_or(0).max(1);
        let times = if self.task_per_gpu { 1 } else { count };
        let mut fill = |sets: RequestField, text: Option<String>| {
            let question = self.find_setting(sets).filter(|question| question.default.is_empty());
            if let (Some(question), Some(text)) = (question, text) {
                answers.insert(question.key.clone(), text);
            }
        };
        fill(RequestField::Cores, gpu.cores.map(|cores| cores.saturating_mul(times).to_string()));
        fill(
            RequestField::Memory,
            gpu.memory_gb.map(|gb| format!("{} GB", gb.saturating_mul(count))),
        );
    }

    /// Whether a question is asked, given the other answers.
    pub fn is_asked(
        &self,
        question: &RecipeQuestion,
        answers: &FormAnswers,
        place: &ComposeContext,
    ) -> bool {
        !self.hidden.contains(&question.key) && self.is_active(question, answers, place)
    }

    /// Whether the answer to a question counts.
    pub fn is_active(
        &self,
        question: &RecipeQuestion,
        answers: &FormAnswers,
        place: &ComposeContext,
    ) -> bool {
        let mut seen = BTreeSet::new();
        self.is_active_with(question, answers, place, &mut seen)
    }

    /// `seen`: questions on the way that were looked at already; one look at each is enough, as all of them must count.
    fn is_active_with<'a>(
        &'a self,
        question: &'a RecipeQuestion,
        answers: &FormAnswers,
        place: &ComposeContext,
        seen: &mut BTreeSet<&'a str>,
    ) -> bool {
        if !seen.insert(&question.key) {
            return true;
        }
        applies_at_site(question, place)
            && question.show_when.iter().all(|(key, values)| {
                let answer = answers.get(key).map_or("", String::as_str);
                let told = |value: &RecipeValue| {
                    value.0 == answer || (value.0 == "false" && answer.is_empty())
                };
                values.iter().any(told)
                    && self
                        .question(key)
                        .is_none_or(|other| self.is_active_with(other, answers, place, seen))
            })
    }
}

/// What can be chosen at a site.
pub fn available_choices<'a>(
    question: &'a RecipeQuestion,
    place: &ComposeContext,
) -> impl Iterator<Item = &'a QuestionChoice> {
    question
        .choices
        .iter()
        .filter(|choice| choice.needs.is_none_or(|need| requirements::site_has(need, place)))
}

/// What a recipe says of a question.
fn apply_recipe(question: &mut RecipeQuestion, recipe: &Recipe) {
    if let Some(default) = recipe.defaults.get(&question.key) {
        question.default = default.clone();
    }
    if let Some(limit) = recipe.limits.get(&question.key) {
        for (own, said) in [(&mut question.min, &limit.min), (&mut question.max, &limit.max)] {
            if !said.is_empty() {
                *own = said.clone();
            }
        }
    }
    if let Some(help) = recipe.help.get(&question.key) {
        question.help.clone_from(help);
    }
    // A script that stands alone may say it itself.
    question.required &= !(recipe.bare && question.sets.is_some());
}

/// Whether a question means anything at a site.
fn applies_at_site(question: &RecipeQuestion, place: &ComposeContext) -> bool {
    let jobs = &place.site.jobs;
    match question.sets {
        Some(RequestField::Memory | RequestField::MemoryPerCore) => {
            jobs.memory != JobOptionRule::Never
        }
        Some(RequestField::Gpus) => !place.gpus.is_empty(),
        Some(RequestField::GpuModel) => {
            jobs.gpu_model != JobOptionRule::Never
                && place.gpus.iter().any(|gpu| gpu.model.is_some())
        }
        Some(RequestField::Partition) => {
            jobs.partition != JobOptionRule::Never && !jobs.types.is_empty()
        }
        Some(RequestField::Mail) => jobs.mail,
        _ => true,
    }
}

fn default_answer(question: &RecipeQuestion, place: &ComposeContext) -> String {
    let given = question.default.0.as_str();
    match question.kind {
        QuestionKind::Account if given.is_empty() => default_account(place),
        QuestionKind::Account if !place.accounts.iter().any(|account| account.name == given) => {
            default_account(place)
        }
        QuestionKind::Gpu if place.gpu(given).is_none() => {
            let whole = place.gpus.iter().find(|gpu| !gpu.is_slice);
            let first = whole.or(place.gpus.first()).and_then(|gpu| gpu.model.clone());
            first.unwrap_or_default()
        }
        QuestionKind::Path => adapt_scratch_path(given, place),
        QuestionKind::Modules if given.is_empty() => {
            place.site.jobs.modules.get(&question.suggest).cloned().unwrap_or_default()
        }
        QuestionKind::Choice
            if !available_choices(question, place).any(|choice| choice.value == given) =>
        {
            available_choices(question, place)
                .next()
                .map_or_else(String::new, |choice| choice.value.clone())
        }
        _ => given.to_owned(),
    }
}

/// Nobody should have to choose where there is no choice.
fn default_account(place: &ComposeContext) -> String {
    match place.accounts.as_slice() {
        [] => String::new(),
        [first, ..] => first.name.clone(),
    }
}

/// A path that begins with scratch, at sites which call that otherwise.
fn adapt_scratch_path(path: &str, place: &ComposeContext) -> String {
    match path.strip_prefix("$SCRATCH") {
        Some(rest) if !place.folders.contains_key("SCRATCH") => {
            let other = ["USERWORK", "PROJECT", "HOME"]
                .into_iter()
                .find(|name| place.folders.contains_key(*name));
            other.map_or_else(|| path.to_owned(), |name| format!("${name}{rest}"))
        }
        _ => path.to_owned(),
    }
}

/// The question that holds a sweep's own parameters, if the form has it.
pub fn sweep_question(form: &RecipeForm) -> Option<&RecipeQuestion> {
    form.question(sweep::PARAMETERS_KEY)
}
