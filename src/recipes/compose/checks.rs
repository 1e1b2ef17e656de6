//! What is worth a look before a job is submitted: files that it reads, and answers that are better not left empty.
//! Nothing here keeps a job from being submitted.

use super::{AnswersByKey, ComposeProblem};
use crate::recipes::context::ComposeCluster;
use crate::recipes::form::{FormAnswers, RecipeQuestionForm, is_answered_with, sweep_key};
use crate::recipes::question::RequiredPathKind;
use crate::recipes::request::JobRequest;
use crate::recipes::value::AnswerValue;
use crate::sites::StorageAreaKind;

/// The questions of the block "code", which decides where relative paths start.
const CODE_KEY: &str = "code";
const CODE_FOLDER_KEY: &str = "code_folder";
/// The question for the file that a recipe runs.
const SCRIPT_KEY: &str = "script";

/// A file or folder that a job reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InputPath {
    /// The key of the question that names it.
    pub key: String,
    /// Absolute.
    pub path: String,
    /// What it must be.
    pub kind: RequiredPathKind,
}

/// How many paths are named; forms with longer lists of files are not checked to their end.
const MAX_INPUT_PATHS: usize = 20;

/// The paths that must exist when the job starts, as far as they are known before. At most [`MAX_INPUT_PATHS`].
pub fn find_input_paths(
    form: &RecipeQuestionForm,
    values: &AnswersByKey<'_>,
    request: &JobRequest,
    cluster: &ComposeCluster,
) -> Vec<InputPath> {
    let start = working_folder(values, request, cluster);
    let mut found: Vec<InputPath> = Vec::new();
    for question in form.questions().filter(|question| question.must_exist()) {
        let Some(AnswerValue::Words(words)) = values.get(question.key.as_str()) else { continue };
        // A path with a variable that only the job has can't be known yet.
        for path in words.iter().filter_map(|word| word.resolve(&cluster.folders)) {
            let path = match &start {
                _ if path.starts_with('/') => path,
                Some(start) => format!("{}/{path}", start.trim_end_matches('/')),
                None => continue,
            };
            let one = InputPath { key: question.key.clone(), path, kind: question.pick };
            if !found.contains(&one) {
                found.push(one);
            }
            if found.len() == MAX_INPUT_PATHS {
                return found;
            }
        }
    }
    found
}

/// The folder that the program starts in; none if only the job knows.
fn working_folder(values: &AnswersByKey<'_>, request: &JobRequest, cluster: &ComposeCluster) -> Option<String> {
    let code = match values.get(CODE_KEY) {
        Some(AnswerValue::Text(code)) => code.as_str(),
        _ => "",
    };
    match (code, values.get(CODE_FOLDER_KEY)) {
        ("script", _) => script_folder(values, cluster).or_else(|| request.folder.clone()),
        ("folder", Some(AnswerValue::Words(words))) => words.first()?.resolve(&cluster.folders),
        ("git" | "folder", _) => None,
        _ => request.folder.clone(),
    }
}

/// The folder of the file that the job runs. None for a relative path, which starts at the job's folder, and for a path
/// that only the job knows.
pub fn script_folder(values: &AnswersByKey<'_>, cluster: &ComposeCluster) -> Option<String> {
    let Some(AnswerValue::Words(words)) = values.get(SCRIPT_KEY) else { return None };
    let path = words.first()?.resolve(&cluster.folders)?;
    let (folder, _) = path.rsplit_once('/').filter(|_| path.starts_with('/'))?;
    Some(if folder.is_empty() { "/".to_owned() } else { folder.to_owned() })
}

/// Warns of a program that starts where jobs can't write.
pub fn find_read_only_folder(values: &AnswersByKey<'_>, cluster: &ComposeCluster) -> Option<ComposeProblem> {
    let Some(AnswerValue::Text(code)) = values.get(CODE_KEY) else { return None };
    let folder = script_folder(values, cluster).filter(|_| code == "script")?;
    let area = cluster.site.storage.areas.iter().filter(|area| area.read_only_in_jobs).find(|area| {
        let variable = match area.kind {
            StorageAreaKind::Home => "HOME",
            StorageAreaKind::Scratch => "SCRATCH",
            StorageAreaKind::Project => "PROJECT",
        };
        let rest = cluster.folders.get(variable).and_then(|start| folder.strip_prefix(start.as_str()));
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    })?;
    let sentence = format!(
        "Jobs on {} can read {} but not write to it. The script finds files beside it, but must save its own to $SCRATCH.",
        cluster.site.title,
        area.label.to_lowercase()
    );
    Some(ComposeProblem { key: SCRIPT_KEY.to_owned(), sentence })
}

/// The recipe's warnings about questions that are all left empty.
pub fn find_empty_answers(
    form: &RecipeQuestionForm,
    answers: &FormAnswers,
    cluster: &ComposeCluster,
) -> Vec<ComposeProblem> {
    let is_empty = |key: &str| answers.get(key).is_none_or(|text| text.trim().is_empty());
    let mut found = Vec::new();
    for warning in form.empty_warnings() {
        let applies = warning.show_when.iter().all(|(key, values)| is_answered_with(answers, key, values));
        let questions = warning.keys.iter().filter_map(|key| form.question(key));
        let asked: Vec<&str> = questions
            .filter(|question| form.is_asked(question, answers, cluster))
            .map(|question| question.key.as_str())
            .collect();
        let Some(first) = asked.first().filter(|_| applies) else { continue };
        if asked.iter().all(|key| is_empty(key) && is_empty(&sweep_key(key))) {
            found.push(ComposeProblem { key: (*first).to_owned(), sentence: warning.sentence.clone() });
        }
    }
    found
}
