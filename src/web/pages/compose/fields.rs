//! The questions of a form, as the page shows them.

use std::collections::BTreeMap;

use crate::explain::GlossaryTerm;
use crate::format;
use crate::recipes::compose::ComposeProblem;
use crate::recipes::context::{ComposeCluster, Partition, SubmitAccount};
use crate::recipes::form::{FormAnswers, RecipeQuestionForm, available_choices, sweep_key};
use crate::recipes::question::{RecipeQuestion, RecipeQuestionKind};
use crate::recipes::request::RequestField;
use crate::sites::{JobOptionRule, SiteJobType};

pub struct ComposeSection {
    pub title: String,
    pub summary: String,
    /// Whether it starts collapsed.
    pub is_folded: bool,
    /// Its anchor on the page.
    pub id: String,
    /// Questions that most people answer.
    pub fields: Vec<ComposeField>,
    /// Questions that only some people answer.
    pub advanced: Vec<ComposeField>,
}

impl ComposeSection {
    /// Whether none of its questions apply, given the current answers.
    pub fn is_empty(&self) -> bool {
        !self.fields.iter().chain(&self.advanced).any(|field| field.is_asked)
    }
}

/// The input that a question uses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum FieldControl {
    Text,
    Number,
    /// A job number, with recent jobs to choose from.
    Job,
    /// A path, with a button to browse.
    Path,
    TextArea,
    Code,
    Select,
    Checkbox,
}

#[expect(clippy::struct_excessive_bools, reason = "facts that the template asks for one by one")]
pub struct ComposeField {
    pub key: String,
    pub control: FieldControl,
    pub label: String,
    /// What Slurm calls it, where that needs explaining.
    pub term: Option<GlossaryTerm>,
    pub help: String,
    /// The current answer.
    pub value: String,
    pub error: String,
    /// What is worth a second look; it doesn't keep anyone from submitting.
    pub warning: String,
    pub required: bool,
    /// Whether the question applies, given the other answers.
    pub is_asked: bool,
    /// Whether the recipe fixes the answer.
    pub is_locked: bool,
    pub options: Vec<FieldOption>,
    pub example: String,
    /// What a path may lead to: file, folder or any.
    pub pick: &'static str,
    /// Whether several values can be tried in a sweep.
    pub can_sweep: bool,
    /// The values of the sweep.
    pub sweep: String,
    /// Whether those are lines, because values contain spaces and commas.
    pub sweeps_lines: bool,
    /// How many lines the field shows at first.
    pub rows: usize,
}

impl ComposeField {
    /// Whether it may be left empty, and is. A field that has a value needs no "optional" label.
    pub fn is_optional(&self) -> bool {
        !self.required && self.value.is_empty() && self.control != FieldControl::Select
    }
}

pub struct FieldOption {
    /// As the form sends it.
    pub value: String,
    /// As people read it.
    pub label: String,
    pub is_chosen: bool,
}

pub fn build_sections(
    form: &RecipeQuestionForm,
    answers: &FormAnswers,
    cluster: &ComposeCluster,
    problems: &[ComposeProblem],
    warnings: &[ComposeProblem],
) -> Vec<ComposeSection> {
    let notes = FieldNotes { errors: first_by_key(problems), warnings: first_by_key(warnings) };
    let mut parts = Vec::new();
    for section in &form.sections {
        let shown = section.questions.iter().filter(|question| !form.hidden.contains(&question.key));
        let (advanced, fields): (Vec<&RecipeQuestion>, Vec<&RecipeQuestion>) =
            shown.partition(|question| question.advanced);
        let show = |list: Vec<&RecipeQuestion>| -> Vec<ComposeField> {
            list.into_iter().map(|question| build_field(question, form, answers, cluster, &notes)).collect()
        };
        let part = ComposeSection {
            title: section.title.clone(),
            summary: section.summary.clone(),
            is_folded: section.folded && !has_answers(&section.questions, answers),
            id: if section.name.is_empty() { "main".to_owned() } else { section.name.clone() },
            fields: show(fields),
            advanced: show(advanced),
        };
        if !part.fields.is_empty() || !part.advanced.is_empty() {
            parts.push(part);
        }
    }
    parts
}

/// What is said at the fields, by question.
struct FieldNotes<'a> {
    errors: BTreeMap<&'a str, &'a str>,
    warnings: BTreeMap<&'a str, &'a str>,
}

/// The first sentence for each question.
fn first_by_key(problems: &[ComposeProblem]) -> BTreeMap<&str, &str> {
    let mut sentences: BTreeMap<&str, &str> = BTreeMap::new();
    for problem in problems {
        sentences.entry(&problem.key).or_insert(&problem.sentence);
    }
    sentences
}

/// Whether any answer differs from its default.
fn has_answers(questions: &[RecipeQuestion], answers: &FormAnswers) -> bool {
    questions.iter().any(|question| answers.get(&question.key).is_some_and(|text| *text != question.default.0))
}

fn build_field(
    question: &RecipeQuestion,
    form: &RecipeQuestionForm,
    answers: &FormAnswers,
    cluster: &ComposeCluster,
    notes: &FieldNotes<'_>,
) -> ComposeField {
    let value = answers.get(&question.key).cloned().unwrap_or_default();
    let control = control_for(question.kind);
    let sweep = answers.get(&sweep_key(&question.key)).cloned().unwrap_or_default();
    let note = |sentences: &BTreeMap<&str, &str>| {
        sentences.get(question.key.as_str()).map(|text| (*text).to_owned()).unwrap_or_default()
    };
    ComposeField {
        control,
        label: question.label.clone(),
        term: question_term(question),
        help: help_text(question),
        error: note(&notes.errors),
        warning: note(&notes.warnings),
        required: question.required,
        is_asked: form.is_asked(question, answers, cluster),
        is_locked: form.locked.contains(&question.key),
        options: list_options(question, &value, cluster),
        example: question.example.clone(),
        pick: question.pick.as_str(),
        can_sweep: form.offers_sweep(question) || (!sweep.is_empty() && form.can_sweep(question)),
        sweep,
        sweeps_lines: question.kind == RecipeQuestionKind::Arguments,
        rows: match control {
            FieldControl::Code if question.kind == RecipeQuestionKind::Script => 16,
            FieldControl::Code => value.lines().count().clamp(4, 20),
            _ => value.lines().count().clamp(3, 12),
        },
        key: question.key.clone(),
        value,
    }
}

/// The term behind a question. Each part of the request has one question, so each term occurs once in a form.
fn question_term(question: &RecipeQuestion) -> Option<GlossaryTerm> {
    match question.sets {
        Some(RequestField::Account) => Some(GlossaryTerm::Account),
        Some(RequestField::Partition) => Some(GlossaryTerm::Partition),
        Some(RequestField::Qos) => Some(GlossaryTerm::Qos),
        Some(RequestField::Time) => Some(GlossaryTerm::TimeLimit),
        Some(RequestField::Nodes) => Some(GlossaryTerm::Node),
        Some(RequestField::Tasks) => Some(GlossaryTerm::Task),
        Some(RequestField::Cores) => Some(GlossaryTerm::Core),
        Some(RequestField::Memory) => Some(GlossaryTerm::Memory),
        Some(RequestField::Gpus) => Some(GlossaryTerm::Gpu),
        Some(RequestField::After) => Some(GlossaryTerm::Dependency),
        None if question.kind == RecipeQuestionKind::Modules => Some(GlossaryTerm::Module),
        _ => None,
    }
}

/// The help text, with the limits of times and amounts.
fn help_text(question: &RecipeQuestion) -> String {
    let mut sentences = vec![question.help.clone()];
    if matches!(question.kind, RecipeQuestionKind::Duration | RecipeQuestionKind::Memory) {
        for (what, limit) in [("At least", &question.min.0), ("At most", &question.max.0)] {
            if !limit.is_empty() {
                sentences.push(format!("{what} {limit}."));
            }
        }
    }
    sentences.retain(|part| !part.is_empty());
    sentences.join(" ")
}

const fn control_for(kind: RecipeQuestionKind) -> FieldControl {
    match kind {
        RecipeQuestionKind::Text
        | RecipeQuestionKind::Duration
        | RecipeQuestionKind::Memory
        | RecipeQuestionKind::Arguments
        | RecipeQuestionKind::Modules => FieldControl::Text,
        RecipeQuestionKind::Number => FieldControl::Number,
        RecipeQuestionKind::Job => FieldControl::Job,
        RecipeQuestionKind::Path => FieldControl::Path,
        RecipeQuestionKind::Paths | RecipeQuestionKind::Variables | RecipeQuestionKind::List => FieldControl::TextArea,
        RecipeQuestionKind::Command | RecipeQuestionKind::Script => FieldControl::Code,
        RecipeQuestionKind::Choice
        | RecipeQuestionKind::Gpu
        | RecipeQuestionKind::Account
        | RecipeQuestionKind::JobType => FieldControl::Select,
        RecipeQuestionKind::Switch => FieldControl::Checkbox,
    }
}

fn list_options(question: &RecipeQuestion, value: &str, cluster: &ComposeCluster) -> Vec<FieldOption> {
    let mut all: Vec<(String, String)> = match question.kind {
        RecipeQuestionKind::Choice => {
            available_choices(question, cluster).map(|choice| (choice.value.clone(), choice.label.clone())).collect()
        }
        RecipeQuestionKind::Account => {
            cluster.accounts.iter().map(|account| (account.name.clone(), account_label(account, cluster))).collect()
        }
        RecipeQuestionKind::Gpu => {
            let mut all: Vec<(String, String)> =
                cluster.gpus.iter().filter_map(|gpu| Some((gpu.model.clone()?, gpu_label(gpu)))).collect();
            if cluster.site.jobs.gpu_model == JobOptionRule::Optional {
                all.push((String::new(), "Any (first available)".to_owned()));
            }
            all
        }
        RecipeQuestionKind::JobType => {
            std::iter::once((String::new(), "Automatic".to_owned())).chain(list_job_types(cluster)).collect()
        }
        _ => return Vec::new(),
    };
    if matches!(question.kind, RecipeQuestionKind::Account) && !question.required {
        all.push((String::new(), "No account: let Slurm use your default".to_owned()));
    }
    // Keep the value of an imported script, even if the cluster doesn't offer it.
    if !all.iter().any(|(offered, _)| offered == value) {
        all.push((value.to_owned(), value.to_owned()));
    }
    all.into_iter().map(|(offered, label)| FieldOption { is_chosen: offered == value, value: offered, label }).collect()
}

/// The job types that the site names, or else the partitions that the cluster showed.
fn list_job_types(cluster: &ComposeCluster) -> Vec<(String, String)> {
    let types = &cluster.site.jobs.types;
    if !types.is_empty() {
        let label = |kind: &SiteJobType| format!("{}: {}", kind.name, as_option_text(&kind.label));
        return types.iter().map(|kind| (kind.name.clone(), label(kind))).collect();
    }
    let open = cluster.partitions.iter().filter(|partition| !partition.is_restricted);
    open.map(|partition| (partition.name.clone(), partition_label(partition, cluster))).collect()
}

/// A partition with what it offers: `gpu: t4 and v100 GPUs, up to 1 day`.
fn partition_label(partition: &Partition, cluster: &ComposeCluster) -> String {
    let models: Vec<&str> = partition.gpus.iter().filter_map(|gpu| gpu.model.as_deref()).take(4).collect();
    let mut facts = Vec::new();
    if !partition.gpus.is_empty() {
        facts.push(format!("{} GPUs", models.join(" and ")).trim_start().to_owned());
    }
    facts.extend(partition.time_limit.minutes().map(|most| format!("up to {}", format::minutes(most))));
    facts.extend(partition.is_default.then(|| "default partition".to_owned()));
    facts.extend((!partition.is_up).then(|| "not starting jobs now".to_owned()));
    facts.extend(partition.is_preemptible.then(|| "jobs can be interrupted".to_owned()));
    let is_closed = |account: &SubmitAccount| partition.closed_to.contains(&account.name);
    if !cluster.accounts.is_empty() && cluster.accounts.iter().all(is_closed) {
        facts.push("may not accept your accounts".to_owned());
    }
    if facts.is_empty() { partition.name.clone() } else { format!("{}: {}", partition.name, facts.join(", ")) }
}

/// An account with its description.
fn account_label(account: &SubmitAccount, cluster: &ComposeCluster) -> String {
    let prefix = cluster.site.jobs.accounts.iter().find(|rule| account.name.starts_with(&rule.prefix));
    let only = match (account.for_cpu, account.for_gpu) {
        (true, false) => "only for jobs without GPUs",
        (false, true) => "only for jobs with GPUs",
        _ => "",
    };
    match prefix {
        Some(prefix) => {
            let first = as_option_text(prefix.meaning.split_inclusive('.').next().unwrap_or_default());
            let join = if only.is_empty() { "" } else { ", " };
            format!("{}: {first}{join}{only}", account.name)
        }
        None if only.is_empty() => account.name.clone(),
        None => format!("{}: {only}", account.name),
    }
}

/// A sentence as the text of an option: `Short tests.` becomes `short tests`, and `GPU jobs.` becomes `GPU jobs`.
fn as_option_text(sentence: &str) -> String {
    let text = sentence.trim().trim_end_matches('.');
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some(first), Some(second)) if second.is_lowercase() || (second == ' ' && first == 'A') => {
            format!("{}{}", first.to_lowercase(), &text[first.len_utf8()..])
        }
        _ => text.to_owned(),
    }
}

fn gpu_label(gpu: &crate::recipes::context::AvailableGpu) -> String {
    match gpu.per_node {
        0 | 1 => gpu.label.clone(),
        most => format!("{}, up to {most} per node", gpu.label),
    }
}
