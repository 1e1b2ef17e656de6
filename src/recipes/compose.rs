//! From answers to a script: every answer is read, the request is put together, the blocks and the recipe add their
//! lines. What is missing or wrong is said at its question; the script is shown all the same, as far as it goes.

mod request;
mod slots;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use super::form::{Answers, Form, SWEEP_HOW, offered, sweep_key};
use super::place::Place;
use super::question::{Choice, Kind, Question};
use super::read_back;
use super::request::{Directive, Request, Sets};
use super::sweep::{self, Axis, How, Sweep};
use super::template::{self, Line};
use super::value::{self, Value};

/// A job as the form has it.
#[derive(Debug, Clone, Default)]
pub struct Composed {
    /// The script.
    pub lines: Vec<Line>,
    /// What it asks for.
    pub request: Request,
    /// What must be mended first.
    pub problems: Vec<Problem>,
    /// Folders to make before it is submitted; absolute.
    pub folders: Vec<String>,
    /// The points, if it is a sweep.
    pub sweep: Option<Sweep>,
}

/// Something that must be mended, at its question.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// The question; empty: none in particular.
    pub key: String,
    /// What is wrong and what to do.
    pub sentence: String,
}

impl Composed {
    /// The script as it will be sent.
    pub fn script(&self) -> String {
        let mut text = String::new();
        for line in &self.lines {
            text.push_str(&line.text);
            text.push('\n');
        }
        text
    }

    fn problem(&mut self, key: &str, sentence: impl Into<String>) {
        let sentence = sentence.into();
        self.problems.push(Problem { key: key.to_owned(), sentence });
    }
}

/// The answers that were understood, by key.
type Values<'a> = BTreeMap<&'a str, Value>;

/// Puts a job together.
pub fn compose(form: &Form, answers: &Answers, place: &Place) -> Composed {
    let mut job = Composed::default();
    let defaults = form.defaults(place);
    let answers = fixed(form, answers, &defaults, &mut job);
    let sweep = read_sweep(form, &answers, place, &mut job);
    let names: Vec<String> = sweep.axes.iter().map(|axis| axis.name.clone()).collect();
    let mut values = Values::new();
    for question in form.questions().filter(|one| form.counts(one, &answers, place)) {
        refuse_not_offered(question, &answers, place, &mut job);
        if let Some(value) = answer(question, &answers, &sweep, &names, &mut job) {
            values.insert(&question.key, value);
        }
    }
    if !sweep.is_empty() {
        job.sweep = Some(sweep);
    }
    request::fill(&mut job, form, &values, &answers, place);
    let slots = slots::of(form, &values, &job, place);
    job.lines = script(form, &slots, &mut job, &values, place);
    job
}

/// The answers with those put in that nobody may change.
fn fixed(form: &Form, answers: &Answers, defaults: &Answers, job: &mut Composed) -> Answers {
    let mut fixed = answers.clone();
    for key in form.locked.iter().chain(&form.hidden) {
        let first = defaults.get(key).cloned().unwrap_or_default();
        let changed = answers.get(key).is_some_and(|answer| *answer != first);
        if changed && form.locked.contains(key) {
            job.problem(key, "This recipe fixes the answer, so it cannot be changed here.");
        }
        fixed.insert(key.clone(), first);
    }
    fixed
}

/// What a site does not have cannot be chosen there.
fn refuse_not_offered(question: &Question, answers: &Answers, place: &Place, job: &mut Composed) {
    let answer = answers.get(&question.key).map_or("", String::as_str);
    let is = |choice: &&Choice| choice.value == answer;
    if question.choices.iter().any(|choice| is(&choice))
        && !offered(question, place).any(|one| is(&one))
    {
        job.problem(
            &question.key,
            format!("{} does not have this. Choose another.", place.site.title),
        );
    }
}

fn answer(
    question: &Question,
    answers: &Answers,
    sweep: &Sweep,
    names: &[String],
    job: &mut Composed,
) -> Option<Value> {
    if sweep.axes.iter().any(|axis| axis.key.as_deref() == Some(&question.key)) {
        return Some(Value::Swept(question.key.clone()));
    }
    let text = answers.get(&question.key).map_or("", String::as_str);
    if question.kind == Kind::Switch && text.is_empty() {
        return Some(Value::Switch(false));
    }
    if text.trim().is_empty() {
        if question.required {
            job.problem(&question.key, "This is needed.");
        }
        return None;
    }
    match value::read(question, text, names) {
        Ok(value) => Some(value),
        Err(problem) => {
            job.problem(&question.key, problem);
            None
        }
    }
}

fn read_sweep(form: &Form, answers: &Answers, place: &Place, job: &mut Composed) -> Sweep {
    let mut sweep = Sweep {
        how: if answers.get(SWEEP_HOW).is_some_and(|how| how == "zip") {
            How::Zip
        } else {
            How::Grid
        },
        ..Sweep::default()
    };
    let own = form.question(sweep::PARAMETERS).filter(|one| form.counts(one, answers, place));
    if let Some(text) = own.and_then(|question| answers.get(&question.key)) {
        match sweep::parameters(text) {
            Ok(axes) => sweep.axes.extend(axes),
            Err(problem) => job.problem(sweep::PARAMETERS, problem),
        }
    }
    for question in form.questions() {
        let text = answers.get(&sweep_key(&question.key)).map_or("", |text| text.trim());
        let is_swept = !text.is_empty() && form.counts(question, answers, place);
        if !is_swept {
            continue;
        }
        if !form.can_sweep(question) {
            job.problem(&question.key, "This must be the same at all points of a sweep.");
            continue;
        }
        match axis(question, text) {
            Ok(axis) => sweep.axes.push(axis),
            Err(problem) => job.problem(&question.key, problem),
        }
    }
    if let Err(problem) = sweep.check() {
        let first = sweep.axes.first().and_then(|axis| axis.key.clone());
        job.problem(&first.unwrap_or_else(|| sweep::PARAMETERS.to_owned()), problem);
        sweep.axes.clear();
    }
    sweep
}

/// A question with an answer for each point; each is read like the only one.
fn axis(question: &Question, text: &str) -> Result<Axis, String> {
    let values = sweep::values(text)?;
    let mut words = Vec::with_capacity(values.len());
    for one in &values {
        let value =
            value::read(question, one, &[]).map_err(|problem| format!("“{one}”: {problem}"))?;
        words.push(slots::word(&value));
    }
    Ok(Axis { name: question.key.clone(), values, words, key: Some(question.key.clone()) })
}

fn script(
    form: &Form,
    slots: &BTreeMap<&str, template::Slot>,
    job: &mut Composed,
    values: &Values<'_>,
    place: &Place,
) -> Vec<Line> {
    let body = slots::whole_script(form, values);
    let (first, body) = match body
        .as_deref()
        .map(|text| text.split_once('\n').unwrap_or((text, "")))
    {
        Some((first, rest)) if first.starts_with("#!") => (first.to_owned(), Some(rest.to_owned())),
        _ => ("#!/bin/bash".to_owned(), body),
    };
    let mut lines = vec![Line::plain(first)];
    let directives = job.request.directives(place.site.jobs.gpu_option);
    lines.extend(directives.iter().map(|directive| directive_line(directive, form)));
    if !form.bare {
        lines.extend(opening(place, &job.request));
    }
    if let Some(sweep) = &job.sweep {
        lines.push(Line::default());
        lines.extend(sweep.script());
    }
    let before = form.sections.iter().map(|section| (section.name.clone(), section.script.clone()));
    let after =
        form.sections.iter().rev().map(|section| (section.name.clone(), section.after.clone()));
    let own = [(String::new(), form.script.clone())];
    for (name, source) in before.chain(own).chain(after) {
        if source.trim().is_empty() {
            continue;
        }
        match template::render(&source, slots) {
            Ok(part) if part.iter().any(|line| !line.text.trim().is_empty()) => {
                lines.push(Line::default());
                lines.extend(part);
            }
            Ok(_) => {}
            Err(error) => {
                let of = if name.is_empty() {
                    "recipe".to_owned()
                } else {
                    format!("block “{name}”")
                };
                job.problem(
                    "",
                    format!(
                        "The script of the {of} has a mistake in line {}: {}",
                        error.line, error.problem
                    ),
                );
            }
        }
    }
    if let Some(body) = body {
        let key = form.questions().find(|one| one.kind == Kind::Script).map_or("", |one| &one.key);
        let body = read_back::without_directives(&body);
        lines.extend(body.trim_end().lines().map(|line| Line::of(line, key)));
    }
    lines
}

/// What every script of a recipe begins with.
fn opening(place: &Place, request: &Request) -> Vec<Line> {
    let mut lines = vec![
        Line::default(),
        Line::plain("# Stop at the first command that fails."),
        Line::plain("set -eo pipefail"),
        Line::plain(
            "# Nothing of the sign-in shell is passed on; what this script sets is, to its own steps.",
        ),
        Line::plain("export SLURM_EXPORT_ENV=ALL"),
    ];
    if let Some(proxy) = &place.site.jobs.proxy {
        let proxy = super::quoting::word(proxy);
        lines.push(Line::plain("# Web addresses are reached through the site's proxy."));
        lines.push(Line::plain(format!("export http_proxy={proxy} https_proxy={proxy}")));
    }
    lines.extend(own_folder(place, request));
    lines
}

/// The job's own folder on fast disk has the same name everywhere, so that recipes and people can rely on it.
fn own_folder(place: &Place, request: &Request) -> Vec<Line> {
    let text = match place.site.jobs.tmpdir.as_deref() {
        Some("$SLURM_TMPDIR") => return Vec::new(),
        Some(other) => format!("{OTHER_NAME}export SLURM_TMPDIR=\"{other}\""),
        None if request.nodes_or_one() > 1 => OWN_FOLDER.replace("{on every node}", ON_EVERY_NODE),
        None => OWN_FOLDER.replace("{on every node}", ""),
    };
    text.lines().map(Line::plain).collect()
}

const OTHER_NAME: &str =
    "# The folder for files that only this job needs, by the name that it has at most sites.\n";

/// The folder is nobody else's: it is made here, or the job stops.
const OWN_FOLDER: &str = r#"# A folder for files that only this job needs. It is removed at the end.
remove_folder() { :; }
if [ -z "$SLURM_TMPDIR" ]; then
  export SLURM_TMPDIR="${TMPDIR:-/tmp}/job-$SLURM_JOB_ID-${SLURM_RESTART_COUNT:-0}"
  {on every node}mkdir -m 700 "$SLURM_TMPDIR"
  remove_folder() { {on every node}rm -rf -- "$SLURM_TMPDIR"; }
  trap remove_folder EXIT
fi"#;

const ON_EVERY_NODE: &str = "srun --ntasks=\"$SLURM_NNODES\" --ntasks-per-node=1 ";

fn directive_line(directive: &Directive, form: &Form) -> Line {
    // One question may say several things: the sort of job is partition and quality of service.
    let asked = |sets: Sets| form.that_sets(sets).map(|question| question.key.clone());
    let mut keys: Vec<String> = Vec::new();
    match directive.sets {
        Sets::Qos => keys.extend(asked(Sets::Qos).or_else(|| asked(Sets::Partition))),
        Sets::Gpus => {
            keys.extend(asked(Sets::Gpus));
            keys.extend(asked(Sets::GpuModel));
        }
        Sets::Output => keys.extend(asked(Sets::Output).or_else(|| asked(Sets::Folder))),
        sets => keys.extend(asked(sets)),
    }
    keys.retain(|key| !form.hidden.contains(key));
    Line { text: directive.line(), keys }
}
