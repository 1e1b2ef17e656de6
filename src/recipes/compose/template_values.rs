//! The value that each key has in a script template.

use std::collections::BTreeMap;

use super::{AnswersByKey, ComposedJob, checks};
use crate::recipes::context::ComposeCluster;
use crate::recipes::form::RecipeQuestionForm;
use crate::recipes::question::RecipeQuestionKind;
use crate::recipes::quoting::{ShellWord, quote_word as quoted};
use crate::recipes::template::TemplateValue;
use crate::recipes::value::AnswerValue;
use crate::sites::InternetAccess;

/// Shown in place of a missing answer, so that the script can still be previewed.
const MISSING_PLACEHOLDER: &str = "'…'";

/// The values of all questions, and facts about the site.
pub fn collect_template_values<'a>(
    form: &'a RecipeQuestionForm,
    values: &AnswersByKey<'a>,
    job: &ComposedJob,
    cluster: &ComposeCluster,
) -> BTreeMap<&'a str, TemplateValue> {
    let mut slots: BTreeMap<&str, TemplateValue> = BTreeMap::new();
    for question in form.questions() {
        let is_wrong = job.problems.iter().any(|problem| problem.key == question.key);
        let slot = match values.get(question.key.as_str()) {
            Some(value) => template_value(value, question.kind),
            None if is_wrong => TemplateValue::Shell(MISSING_PLACEHOLDER.to_owned()),
            None if question.kind == RecipeQuestionKind::Switch => TemplateValue::Bool(false),
            // An empty list still counts as a list: a script may use it without a condition.
            None if is_list(question.kind) => TemplateValue::Words(Vec::new()),
            None => TemplateValue::Empty,
        };
        slots.insert(&question.key, slot);
    }
    let jobs = &cluster.site.jobs;
    let request = &job.request;
    let folder = request.folder.as_deref().map_or_else(|| MISSING_PLACEHOLDER.to_owned(), quoted);
    let model = request.gpus.as_ref().and_then(|gpus| gpus.model.clone());
    let arm = jobs.gpus.iter().any(|gpu| {
        Some(&gpu.name) == model.as_ref() && gpu.processor.as_deref().is_some_and(|kind| kind.contains("arm"))
    });
    let internet = match jobs.internet {
        InternetAccess::Unknown => "unknown",
        InternetAccess::Yes => "yes",
        InternetAccess::No => "no",
        InternetAccess::Proxy => "proxy",
    };
    slots.insert("tmpdir", TemplateValue::Shell(tmpdir_expression(jobs.tmpdir.as_deref())));
    slots.insert("own_tmpdir", TemplateValue::Bool(jobs.tmpdir.is_none()));
    slots.insert("wheelhouse", TemplateValue::Bool(jobs.wheelhouse));
    slots.insert("internet", TemplateValue::Text(internet.to_owned()));
    slots.insert("proxy", jobs.proxy.clone().map_or(TemplateValue::Empty, TemplateValue::Text));
    slots.insert("many_nodes", TemplateValue::Bool(request.nodes_or_one() > 1));
    slots.insert("is_array", TemplateValue::Bool(request.array.is_some()));
    slots.insert("job_folder", TemplateValue::Shell(folder));
    let script_folder = checks::script_folder(values, cluster);
    slots.insert(
        "script_folder",
        script_folder.map_or(TemplateValue::Empty, |path| TemplateValue::Shell(quoted(&path))),
    );
    slots.insert("arm", TemplateValue::Bool(arm));
    slots
}

const fn is_list(kind: RecipeQuestionKind) -> bool {
    matches!(
        kind,
        RecipeQuestionKind::Arguments
            | RecipeQuestionKind::List
            | RecipeQuestionKind::Modules
            | RecipeQuestionKind::Paths
            | RecipeQuestionKind::Variables
    )
}

fn template_value(value: &AnswerValue, kind: RecipeQuestionKind) -> TemplateValue {
    match value {
        AnswerValue::Text(text) => TemplateValue::Text(text.clone()),
        AnswerValue::Number(number) => TemplateValue::Number(*number),
        AnswerValue::Switch(yes) => TemplateValue::Bool(*yes),
        AnswerValue::Minutes(minutes) => TemplateValue::Number((*minutes).into()),
        AnswerValue::Memory(mb) => TemplateValue::Number(i64::try_from(*mb).unwrap_or(i64::MAX)),
        AnswerValue::Words(words) if matches!(kind, RecipeQuestionKind::Path | RecipeQuestionKind::Text) => {
            words.first().map_or(TemplateValue::Empty, |word| TemplateValue::Shell(word.to_shell()))
        }
        AnswerValue::Words(words) => TemplateValue::Words(words.iter().map(ShellWord::to_shell).collect()),
        AnswerValue::Variables(all) => {
            TemplateValue::Words(all.iter().map(|(name, value)| format!("{name}={}", value.to_shell())).collect())
        }
        AnswerValue::Code(code) => TemplateValue::Shell(code.clone()),
        AnswerValue::Swept(name) if kind == RecipeQuestionKind::Arguments => {
            TemplateValue::Words(vec![format!("\"${{{name}[@]}}\"")])
        }
        AnswerValue::Swept(name) => TemplateValue::Shell(format!("\"${name}\"")),
    }
}

/// A value quoted as one bash word, for a sweep's list of values.
pub fn to_shell_word(value: &AnswerValue) -> String {
    match template_value(value, RecipeQuestionKind::Path) {
        TemplateValue::Text(text) => quoted(&text),
        TemplateValue::Number(number) => number.to_string(),
        TemplateValue::Bool(yes) => yes.to_string(),
        TemplateValue::Shell(text) => text,
        TemplateValue::Empty | TemplateValue::Words(_) => "''".to_owned(),
    }
}

/// The imported script, if the recipe is about submitting one.
pub fn pasted_script(form: &RecipeQuestionForm, values: &AnswersByKey<'_>) -> Option<String> {
    let question = form.questions().find(|question| question.kind == RecipeQuestionKind::Script)?;
    match values.get(question.key.as_str()) {
        Some(AnswerValue::Code(code)) => Some(code.clone()),
        _ => None,
    }
}

/// The job's own folder on fast disk.
fn tmpdir_expression(site: Option<&str>) -> String {
    let name = site
        .and_then(|text| text.strip_prefix('$'))
        .filter(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'));
    match (name, site) {
        (Some(name), _) => format!("\"${name}\""),
        (None, Some(path)) => quoted(path),
        (None, None) => "\"${TMPDIR:-/tmp}\"".to_owned(),
    }
}
