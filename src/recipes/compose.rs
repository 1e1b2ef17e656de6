//! Turns answers into a script: reads every answer, builds the request, and adds the lines of the blocks and the
//! recipe. Problems are reported next to their question; the script is still shown as far as it goes.

mod checks;
mod request;
mod template_values;
#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::context::ComposeCluster;
use super::edits::MergedScript;
use super::form::{FormAnswers, RecipeQuestionForm, SWEEP_HOW, available_choices, sweep_key};
use super::question::{QuestionChoice, RecipeQuestion, RecipeQuestionKind};
use super::quoting::ShellWord;
use super::request::{JobRequest, RequestField, SbatchDirective};
use super::script_import;
use super::sweep::{self, Sweep, SweepAxis, SweepMode};
use super::template::{self, RenderedScriptLine, join_lines};
use super::value::{self, AnswerValue};

pub use self::checks::InputPath;

/// A job as composed from the form.
#[derive(Debug, Clone, Default)]
pub struct ComposedJob {
    pub lines: Vec<RenderedScriptLine>,
    pub request: JobRequest,
    /// What must be fixed before the job can be submitted.
    pub problems: Vec<ComposeProblem>,
    /// What is worth a second look. The job can be submitted anyway.
    pub warnings: Vec<ComposeProblem>,
    /// Files and folders that must exist when the job starts.
    pub input_paths: Vec<InputPath>,
    /// Folders to create before submission; absolute paths.
    pub folders: Vec<String>,
    /// Set if the job is a sweep.
    pub sweep: Option<Sweep>,
    /// The script with the person's own edits, if there are any.
    pub edited: Option<MergedScript>,
    /// Whether this is the person's own script, with options that no field holds.
    is_bare: bool,
}

/// The problem of a required question without an answer.
pub const MISSING_ANSWER: &str = "Required.";

/// Something to fix, tied to its question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ComposeProblem {
    /// The question's key; empty if it concerns no single question.
    pub key: String,
    /// What is wrong and how to fix it.
    pub sentence: String,
}

impl ComposedJob {
    /// The script as the form generates it.
    pub fn build_script(&self) -> String {
        join_lines(&self.lines)
    }

    /// The script that will be sent, hand edits included.
    pub fn final_script(&self) -> String {
        self.edited.as_ref().map_or_else(|| self.build_script(), MergedScript::script)
    }

    /// What that script requests, including options that were edited by hand.
    pub fn final_request(&self) -> Cow<'_, JobRequest> {
        let is_by_hand = match &self.edited {
            Some(edited) => !edited.changes.is_empty(),
            None => self.is_bare,
        };
        if is_by_hand {
            Cow::Owned(script_import::read_request(&self.final_script()))
        } else {
            Cow::Borrowed(&self.request)
        }
    }

    fn add_problem(&mut self, key: &str, sentence: impl Into<String>) {
        let sentence = sentence.into();
        self.problems.push(ComposeProblem { key: key.to_owned(), sentence });
    }
}

/// The answers that could be parsed, by key.
type AnswersByKey<'a> = BTreeMap<&'a str, AnswerValue>;

pub fn compose(form: &RecipeQuestionForm, answers: &FormAnswers, cluster: &ComposeCluster) -> ComposedJob {
    let mut job = ComposedJob { is_bare: form.bare, ..ComposedJob::default() };
    let defaults = form.defaults(cluster);
    let answers = apply_fixed_answers(form, answers, &defaults, &mut job);
    let sweep = read_sweep(form, &answers, cluster, &mut job);
    let names: Vec<String> = sweep.axes.iter().map(|axis| axis.name.clone()).collect();
    let mut values = AnswersByKey::new();
    for question in form.questions().filter(|question| form.is_active(question, &answers, cluster)) {
        refuse_not_offered(question, &answers, cluster, &mut job);
        if let Some(value) = read_answer(question, &answers, &sweep, &names, &mut job) {
            values.insert(&question.key, value);
        }
    }
    if !sweep.is_empty() {
        job.sweep = Some(sweep);
    }
    request::fill_request(&mut job, form, &values, &answers, cluster);
    job.warnings = checks::find_empty_answers(form, &answers, cluster);
    job.warnings.extend(checks::find_read_only_folder(&values, cluster));
    job.input_paths = checks::find_input_paths(form, &values, &job.request, cluster);
    let slots = template_values::collect_template_values(form, &values, &job, cluster);
    job.lines = script(form, &slots, &mut job, &values, cluster);
    job
}

/// Overwrites answers that the recipe has locked.
fn apply_fixed_answers(
    form: &RecipeQuestionForm,
    answers: &FormAnswers,
    defaults: &FormAnswers,
    job: &mut ComposedJob,
) -> FormAnswers {
    let mut fixed = answers.clone();
    for key in form.locked.iter().chain(&form.hidden) {
        let first = defaults.get(key).cloned().unwrap_or_default();
        let changed = answers.get(key).is_some_and(|answer| *answer != first);
        if changed && form.locked.contains(key) {
            job.add_problem(key, "The recipe sets this answer, so you can't change it here.");
        }
        fixed.insert(key.clone(), first);
    }
    fixed
}

/// Rejects choices that the site doesn't offer.
fn refuse_not_offered(
    question: &RecipeQuestion,
    answers: &FormAnswers,
    cluster: &ComposeCluster,
    job: &mut ComposedJob,
) {
    let answer = answers.get(&question.key).map_or("", String::as_str);
    let is = |choice: &&QuestionChoice| choice.value == answer;
    if question.choices.iter().any(|choice| is(&choice))
        && !available_choices(question, cluster).any(|choice| is(&choice))
    {
        job.add_problem(
            &question.key,
            format!("This isn't available on {}. Choose another option.", cluster.site.title),
        );
    }
}

fn read_answer(
    question: &RecipeQuestion,
    answers: &FormAnswers,
    sweep: &Sweep,
    names: &[String],
    job: &mut ComposedJob,
) -> Option<AnswerValue> {
    if sweep.axes.iter().any(|axis| axis.key.as_deref() == Some(&question.key)) {
        return Some(AnswerValue::Swept(question.key.clone()));
    }
    let text = answers.get(&question.key).map_or("", String::as_str);
    if question.kind == RecipeQuestionKind::Switch && text.is_empty() {
        return Some(AnswerValue::Switch(false));
    }
    if text.trim().is_empty() {
        if question.required {
            job.add_problem(&question.key, MISSING_ANSWER);
        }
        return None;
    }
    match value::parse_answer(question, text, names) {
        Ok(value) => Some(value),
        Err(problem) => {
            job.add_problem(&question.key, problem);
            None
        }
    }
}

fn read_sweep(
    form: &RecipeQuestionForm,
    answers: &FormAnswers,
    cluster: &ComposeCluster,
    job: &mut ComposedJob,
) -> Sweep {
    let mut sweep = Sweep {
        how: if answers.get(SWEEP_HOW).is_some_and(|how| how == "zip") { SweepMode::Zip } else { SweepMode::Grid },
        ..Sweep::default()
    };
    let own = form.question(sweep::PARAMETERS_KEY).filter(|question| form.is_active(question, answers, cluster));
    if let Some(text) = own.and_then(|question| answers.get(&question.key)) {
        match sweep::parse_parameters(text) {
            Ok(axes) => sweep.axes.extend(axes),
            Err(problem) => job.add_problem(sweep::PARAMETERS_KEY, problem),
        }
    }
    for question in form.questions() {
        let text = answers.get(&sweep_key(&question.key)).map_or("", |text| text.trim());
        let is_swept = !text.is_empty() && form.is_active(question, answers, cluster);
        if !is_swept {
            continue;
        }
        if !form.can_sweep(question) {
            job.add_problem(&question.key, "This can't vary in a sweep.");
            continue;
        }
        match read_axis(question, text) {
            Ok(axis) => sweep.axes.push(axis),
            Err(problem) => job.add_problem(&question.key, problem),
        }
    }
    if let Err(problem) = sweep.count_points() {
        let first = sweep.axes.first().and_then(|axis| axis.key.clone());
        job.add_problem(&first.unwrap_or_else(|| sweep::PARAMETERS_KEY.to_owned()), problem);
        sweep.axes.clear();
    }
    sweep
}

/// A swept question has one answer per point; each is parsed like a single answer.
fn read_axis(question: &RecipeQuestion, text: &str) -> Result<SweepAxis, String> {
    let has_several_words = question.kind == RecipeQuestionKind::Arguments;
    let values = if has_several_words { sweep::parse_argument_lines(text)? } else { sweep::parse_values(text)? };
    let mut words = Vec::with_capacity(values.len());
    for text in &values {
        let value = value::parse_answer(question, text, &[]).map_err(|problem| format!("“{text}”: {problem}"))?;
        words.push(match value {
            AnswerValue::Words(all) if has_several_words => {
                all.iter().map(ShellWord::to_shell).collect::<Vec<_>>().join(" ")
            }
            value => template_values::to_shell_word(&value),
        });
    }
    Ok(SweepAxis { name: question.key.clone(), values, words, has_several_words, key: Some(question.key.clone()) })
}

fn script(
    form: &RecipeQuestionForm,
    slots: &BTreeMap<&str, template::TemplateValue>,
    job: &mut ComposedJob,
    values: &AnswersByKey<'_>,
    cluster: &ComposeCluster,
) -> Vec<RenderedScriptLine> {
    let body = template_values::pasted_script(form, values);
    let (first, body) = match body.as_deref().map(|text| text.split_once('\n').unwrap_or((text, ""))) {
        Some((first, rest)) if first.starts_with("#!") => (first.to_owned(), Some(rest.to_owned())),
        _ => ("#!/bin/bash".to_owned(), body),
    };
    let mut lines = vec![RenderedScriptLine::plain(first)];
    let directives = job.request.directives(cluster.site.jobs.gpu_option);
    lines.extend(directives.iter().map(|directive| directive_line(directive, form)));
    if !form.bare {
        lines.extend(script_preamble(cluster, &job.request));
    }
    if let Some(sweep) = &job.sweep {
        lines.push(RenderedScriptLine::default());
        lines.extend(sweep.script_lines());
    }
    let before = form.sections.iter().map(|section| (section.name.clone(), section.script.clone()));
    let after = form.sections.iter().rev().map(|section| (section.name.clone(), section.after.clone()));
    let own = [(String::new(), form.script.clone())];
    for (name, source) in before.chain(own).chain(after) {
        if source.trim().is_empty() {
            continue;
        }
        match template::render(&source, slots) {
            Ok(part) if part.iter().any(|line| !line.text.trim().is_empty()) => {
                lines.push(RenderedScriptLine::default());
                lines.extend(part);
            }
            Ok(_) => {}
            Err(error) => {
                let of = if name.is_empty() { "recipe".to_owned() } else { format!("block “{name}”") };
                job.add_problem(
                    "",
                    format!("The script of the {of} has an error in line {}: {}", error.line, error.problem),
                );
            }
        }
    }
    if let Some(body) = body {
        let key = form
            .questions()
            .find(|question| question.kind == RecipeQuestionKind::Script)
            .map_or("", |question| &question.key);
        let body = script_import::strip_directives(&body);
        lines.extend(body.trim_end().lines().map(|line| RenderedScriptLine::from_question(line, key)));
    }
    lines
}

/// The lines that start every recipe's script.
fn script_preamble(cluster: &ComposeCluster, request: &JobRequest) -> Vec<RenderedScriptLine> {
    let mut lines = vec![
        RenderedScriptLine::default(),
        RenderedScriptLine::plain("# Stop at the first command that fails."),
        RenderedScriptLine::plain("set -eo pipefail"),
        RenderedScriptLine::plain(
            "# Start from a clean environment, and pass what this script sets on to its job steps.",
        ),
        RenderedScriptLine::plain("export SLURM_EXPORT_ENV=ALL"),
    ];
    if let Some(proxy) = &cluster.site.jobs.proxy {
        let proxy = super::quoting::quote_word(proxy);
        lines.push(RenderedScriptLine::plain("# Access the web through the centre's proxy."));
        lines.push(RenderedScriptLine::plain(format!("export http_proxy={proxy} https_proxy={proxy}")));
    }
    lines.extend(tmpdir_lines(cluster, request));
    lines
}

/// The job's folder on fast disk has the same name on every cluster, so recipes and people can rely on it.
fn tmpdir_lines(cluster: &ComposeCluster, request: &JobRequest) -> Vec<RenderedScriptLine> {
    let text = match cluster.site.jobs.tmpdir.as_deref() {
        Some("$SLURM_TMPDIR") => return Vec::new(),
        Some(other) => format!("{TMPDIR_ALIAS_COMMENT}export SLURM_TMPDIR=\"{other}\""),
        None if request.nodes_or_one() > 1 => MAKE_TMPDIR.replace("{on every node}", ON_EVERY_NODE),
        None => MAKE_TMPDIR.replace("{on every node}", ""),
    };
    text.lines().map(RenderedScriptLine::plain).collect()
}

const TMPDIR_ALIAS_COMMENT: &str = "# The job's temporary folder, under the name used at most centres.\n";

/// The folder must not exist yet: the job creates it or stops.
const MAKE_TMPDIR: &str = r#"# A temporary folder for this job, removed when it ends.
remove_folder() { :; }
if [ -z "$SLURM_TMPDIR" ]; then
  export SLURM_TMPDIR="${TMPDIR:-/tmp}/job-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"
  {on every node}mkdir -m 700 "$SLURM_TMPDIR"
  remove_folder() { {on every node}rm -rf -- "$SLURM_TMPDIR"; }
  trap remove_folder EXIT
fi"#;

const ON_EVERY_NODE: &str = "srun --ntasks=\"$SLURM_NNODES\" --ntasks-per-node=1 ";

fn directive_line(directive: &SbatchDirective, form: &RecipeQuestionForm) -> RenderedScriptLine {
    // One question may set several fields: the job type sets partition and QOS.
    let asked = |sets: RequestField| form.find_setting(sets).map(|question| question.key.clone());
    let mut keys: Vec<String> = Vec::new();
    match directive.sets {
        RequestField::Qos => {
            keys.extend(asked(RequestField::Qos).or_else(|| asked(RequestField::Partition)));
        }
        RequestField::Gpus => {
            keys.extend(asked(RequestField::Gpus));
            keys.extend(asked(RequestField::GpuModel));
        }
        RequestField::Output => {
            keys.extend(asked(RequestField::Output).or_else(|| asked(RequestField::Folder)));
        }
        sets => keys.extend(asked(sets)),
    }
    keys.retain(|key| !form.hidden.contains(key));
    RenderedScriptLine { text: directive.to_line(), keys }
}
