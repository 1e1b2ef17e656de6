//! A recipe combined with its blocks: the questions, their defaults, and when each is shown.

use std::collections::{BTreeMap, BTreeSet};

use super::context::ComposeCluster;
use super::question::{QuestionChoice, RecipeFileValue, RecipeQuestion, RecipeQuestionKind, TextAnswerFormat};
use super::recipe::{EmptyAnswersWarning, Recipe, SharedRecipeBlock};
use super::request::RequestField;
use super::requirements;
use super::template;
use crate::sites::JobOptionRule;

/// What people typed, by question key. A sweep's values are stored under separate keys: see [`sweep_key`].
pub type FormAnswers = BTreeMap<String, String>;

/// Names that scripts may use besides question keys: facts about the site and the request.
pub const BUILT_IN_KEYS: &[&str] = &[
    "tmpdir",
    "own_tmpdir",
    "internet",
    "proxy",
    "wheelhouse",
    "many_nodes",
    "is_array",
    "job_folder",
    "script_folder",
    "arm",
];

/// The answer key that holds the values of a swept question.
pub fn sweep_key(key: &str) -> String {
    format!("sweep.{key}")
}

/// Answer key: how the lists of a sweep are combined.
pub const SWEEP_HOW: &str = "sweep.how";
/// Answer key: how many points may run at the same time.
pub const SWEEP_AT_ONCE: &str = "sweep.at_once";
/// Answer key: the points to run, if not all of them.
pub const SWEEP_ONLY: &str = "sweep.only";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecipeQuestionForm {
    /// The recipe's own questions, whose section has no name, and then those of its blocks; in display order.
    pub sections: Vec<SharedRecipeBlock>,
    /// Questions whose answers are fixed.
    pub locked: BTreeSet<String>,
    /// Questions that are not shown.
    pub hidden: BTreeSet<String>,
    pub script: String,
    /// Whether the script is used alone, without the usual preamble.
    pub bare: bool,
    /// Whether each GPU gets its own task.
    pub task_per_gpu: bool,
}

impl RecipeQuestionForm {
    /// Builds the form. The recipe's own questions come first, because they are what it is about.
    pub fn new(recipe: &Recipe, blocks: &[SharedRecipeBlock]) -> Self {
        let own = SharedRecipeBlock {
            title: recipe.title.clone(),
            questions: recipe.questions.clone(),
            empty_warnings: recipe.empty_warnings.clone(),
            ..SharedRecipeBlock::default()
        };
        let mut sections = vec![own];
        sections
            .extend(recipe.blocks.iter().filter_map(|name| blocks.iter().find(|block| block.name == *name)).cloned());
        for question in sections.iter_mut().flat_map(|section| &mut section.questions) {
            apply_recipe(question, recipe);
        }
        drop_choices_about_other_recipes(&mut sections);
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

    pub fn question(&self, key: &str) -> Option<&RecipeQuestion> {
        self.questions().find(|question| question.key == key)
    }

    pub fn empty_warnings(&self) -> impl Iterator<Item = &EmptyAnswersWarning> {
        self.sections.iter().flat_map(|section| &section.empty_warnings)
    }

    /// The question that sets this field of the request.
    pub fn find_setting(&self, sets: RequestField) -> Option<&RecipeQuestion> {
        self.questions().find(|question| question.sets == Some(sets))
    }

    /// All script parts, each with the name of its block.
    pub fn script_sources(&self) -> impl Iterator<Item = (&str, &str)> {
        let of_blocks = self
            .sections
            .iter()
            .flat_map(|section| [(section.name.as_str(), section.script.as_str()), (&section.name, &section.after)]);
        of_blocks.chain([("", self.script.as_str())])
    }

    /// Whether a question can have a different answer at each point of a sweep. Not if it sets part of the request,
    /// which all tasks of an array share, nor if it decides which lines the script has.
    pub fn can_sweep(&self, question: &RecipeQuestion) -> bool {
        let kind = matches!(
            question.kind,
            RecipeQuestionKind::Text
                | RecipeQuestionKind::Number
                | RecipeQuestionKind::Choice
                | RecipeQuestionKind::Arguments
                | RecipeQuestionKind::Path
        );
        let is_fixed = self.locked.contains(&question.key) || self.hidden.contains(&question.key);
        if !kind || is_fixed || question.sets.is_some() {
            return false;
        }
        let mut is_named = false;
        for (_, source) in self.script_sources().filter(|(_, source)| source.contains(&question.key)) {
            let found = template::find_mentions(source);
            if found.deciding.contains(&question.key) {
                return false;
            }
            is_named |= found.keys.iter().any(|(key, _)| *key == question.key);
        }
        // A question that the script never uses would change nothing.
        is_named && !self.questions().any(|other| other.show_when.contains_key(&question.key))
    }

    /// Whether the form offers to vary a question. What is one thing for all tasks in practice isn't offered: files,
    /// folders and addresses, and what belongs to a run in several jobs, which is a job array itself.
    pub fn offers_sweep(&self, question: &RecipeQuestion) -> bool {
        let is_place = question.kind == RecipeQuestionKind::Path
            || matches!(question.shape, TextAnswerFormat::Url | TextAnswerFormat::Location);
        let is_of_array = !question.show_when.is_empty()
            && self.find_setting(RequestField::Array).is_some_and(|array| array.show_when == question.show_when);
        !is_place && !is_of_array && self.can_sweep(question)
    }

    /// The answers that a new form starts with.
    pub fn defaults(&self, cluster: &ComposeCluster) -> FormAnswers {
        let mut answers: FormAnswers = self
            .questions()
            .map(|question| {
                // A bare script sets its own requests, so the form adds no defaults for them.
                let given = question.default.0.clone();
                let first = if self.bare { given } else { default_answer(question, cluster) };
                (question.key.clone(), first)
            })
            .collect();
        self.fill_gpu_defaults(&mut answers, cluster);
        answers
    }

    /// Fills in cores and memory per GPU as the site advises, unless the recipe sets them.
    fn fill_gpu_defaults(&self, answers: &mut FormAnswers, cluster: &ComposeCluster) {
        let model = self.find_setting(RequestField::GpuModel).and_then(|question| answers.get(&question.key));
        let Some(gpu) = model.and_then(|model| cluster.gpu(model)).cloned() else { return };
        let count = self.find_setting(RequestField::Gpus).and_then(|question| answers.get(&question.key));
        let count: u32 = count.and_then(|count| count.parse().ok()).unwrap_or(0).max(1);
        let times = if self.task_per_gpu { 1 } else { count };
        let mut fill = |sets: RequestField, text: Option<String>| {
            let question = self.find_setting(sets).filter(|question| question.default.is_empty());
            if let (Some(question), Some(text)) = (question, text) {
                answers.insert(question.key.clone(), text);
            }
        };
        fill(RequestField::Cores, gpu.cores.map(|cores| cores.saturating_mul(times).to_string()));
        fill(RequestField::Memory, gpu.memory_gb.map(|gb| format!("{} GB", gb.saturating_mul(count))));
    }

    /// Whether a question is shown, given the other answers.
    pub fn is_asked(&self, question: &RecipeQuestion, answers: &FormAnswers, cluster: &ComposeCluster) -> bool {
        !self.hidden.contains(&question.key) && self.is_active(question, answers, cluster)
    }

    /// Whether the answer to a question has any effect.
    pub fn is_active(&self, question: &RecipeQuestion, answers: &FormAnswers, cluster: &ComposeCluster) -> bool {
        let mut checked = BTreeSet::new();
        self.is_active_with(question, answers, cluster, &mut checked)
    }

    /// `checked` holds questions checked already; checking each once is enough, because all of them must be active.
    fn is_active_with<'a>(
        &'a self,
        question: &'a RecipeQuestion,
        answers: &FormAnswers,
        cluster: &ComposeCluster,
        checked: &mut BTreeSet<&'a str>,
    ) -> bool {
        if !checked.insert(&question.key) {
            return true;
        }
        applies_at_site(question, cluster)
            && question.show_when.iter().all(|(key, values)| {
                is_answered_with(answers, key, values)
                    && self.question(key).is_none_or(|other| self.is_active_with(other, answers, cluster, checked))
            })
    }
}

/// Whether a question has one of these answers.
pub fn is_answered_with(answers: &FormAnswers, key: &str, values: &[RecipeFileValue]) -> bool {
    let answer = answers.get(key).map_or("", String::as_str);
    values.iter().any(|value| value.0 == answer || (value.0 == "false" && answer.is_empty()))
}

/// The choices that the site offers.
pub fn available_choices<'a>(
    question: &'a RecipeQuestion,
    cluster: &ComposeCluster,
) -> impl Iterator<Item = &'a QuestionChoice> {
    question.choices.iter().filter(|choice| choice.needs.is_none_or(|need| requirements::site_has(need, cluster)))
}

/// A block's choice may be about a question that only some recipes ask.
fn drop_choices_about_other_recipes(sections: &mut [SharedRecipeBlock]) {
    let asked: BTreeSet<String> =
        sections.iter().flat_map(|section| &section.questions).map(|question| question.key.clone()).collect();
    for question in sections.iter_mut().flat_map(|section| &mut section.questions) {
        question.choices.retain(|choice| choice.needs_question.as_ref().is_none_or(|key| asked.contains(key)));
    }
}

/// Applies the recipe's defaults, limits and help to a block's question.
fn apply_recipe(question: &mut RecipeQuestion, recipe: &Recipe) {
    if let Some(default) = recipe.defaults.get(&question.key) {
        question.default = default.clone();
    }
    if let Some(limit) = recipe.limits.get(&question.key) {
        for (own, new_limit) in [(&mut question.min, &limit.min), (&mut question.max, &limit.max)] {
            if !new_limit.is_empty() {
                *own = new_limit.clone();
            }
        }
    }
    if let Some(help) = recipe.help.get(&question.key) {
        question.help.clone_from(help);
    }
    // A bare script may set it itself.
    question.required &= !(recipe.bare && question.sets.is_some());
}

/// Whether a question makes sense at this site.
pub fn applies_at_site(question: &RecipeQuestion, cluster: &ComposeCluster) -> bool {
    let jobs = &cluster.site.jobs;
    match question.sets {
        Some(RequestField::Memory | RequestField::MemoryPerCore) => jobs.memory != JobOptionRule::Never,
        Some(RequestField::Gpus) => !cluster.gpus.is_empty(),
        Some(RequestField::GpuModel) => {
            jobs.gpu_model != JobOptionRule::Never && cluster.gpus.iter().any(|gpu| gpu.model.is_some())
        }
        // With one partition, there is nothing to choose.
        Some(RequestField::Partition) => {
            jobs.partition != JobOptionRule::Never && (!jobs.types.is_empty() || cluster.partitions.len() > 1)
        }
        Some(RequestField::Mail) => jobs.mail.0,
        _ => true,
    }
}

fn default_answer(question: &RecipeQuestion, cluster: &ComposeCluster) -> String {
    let given = question.default.0.as_str();
    match question.kind {
        RecipeQuestionKind::Account if !cluster.accounts.iter().any(|account| account.name == given) => {
            cluster.accounts.first().map(|account| account.name.clone()).unwrap_or_default()
        }
        RecipeQuestionKind::Gpu if cluster.gpu(given).is_none() => {
            let whole = cluster.gpus.iter().find(|gpu| !gpu.is_slice);
            let first = whole.or(cluster.gpus.first()).and_then(|gpu| gpu.model.clone());
            first.unwrap_or_default()
        }
        // Such a site takes no other jobs, whether the form asks or not.
        RecipeQuestionKind::Number
            if question.sets == Some(RequestField::Gpus) && cluster.site.jobs.gpu_only && given == "0" =>
        {
            "1".to_owned()
        }
        RecipeQuestionKind::Path => adapt_scratch_path(given, cluster),
        RecipeQuestionKind::Modules if given.is_empty() => {
            cluster.site.jobs.modules.get(&question.suggest).cloned().unwrap_or_default()
        }
        RecipeQuestionKind::Choice if !available_choices(question, cluster).any(|choice| choice.value == given) => {
            available_choices(question, cluster).next().map_or_else(String::new, |choice| choice.value.clone())
        }
        _ => given.to_owned(),
    }
}

/// Rewrites a path that starts with scratch for sites that use another variable.
fn adapt_scratch_path(path: &str, cluster: &ComposeCluster) -> String {
    match path.strip_prefix("$SCRATCH") {
        Some(rest) if !cluster.folders.contains_key("SCRATCH") => {
            let other = ["USERWORK", "PROJECT", "HOME"].into_iter().find(|name| cluster.folders.contains_key(*name));
            other.map_or_else(|| path.to_owned(), |name| format!("${name}{rest}"))
        }
        _ => path.to_owned(),
    }
}
