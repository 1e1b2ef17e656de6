//! What stands in a script for each key.

use std::collections::BTreeMap;

use super::super::form::Form;
use super::super::place::Place;
use super::super::question::Kind;
use super::super::quoting::{Words, word as quoted};
use super::super::template::Slot;
use super::super::value::Value;
use super::{Composed, Values};
use crate::sites::InternetAccess;

/// Stands where an answer is still missing, so that the script can be shown.
const MISSING: &str = "'…'";

/// The slots of all questions and of what the site is like.
pub fn of<'a>(
    form: &'a Form,
    values: &Values<'a>,
    job: &Composed,
    place: &Place,
) -> BTreeMap<&'a str, Slot> {
    let mut slots: BTreeMap<&str, Slot> = BTreeMap::new();
    for question in form.questions() {
        let is_wrong = job.problems.iter().any(|problem| problem.key == question.key);
        let slot = match values.get(question.key.as_str()) {
            Some(value) => slot(value, question.kind),
            None if is_wrong => Slot::Shell(MISSING.to_owned()),
            None if question.kind == Kind::Switch => Slot::Yes(false),
            // No words are words as well: a script may name them without a condition.
            None if is_list(question.kind) => Slot::Words(Vec::new()),
            None => Slot::Empty,
        };
        slots.insert(&question.key, slot);
    }
    let jobs = &place.site.jobs;
    let request = &job.request;
    let folder = request.folder.as_deref().map_or_else(|| MISSING.to_owned(), quoted);
    let model = request.gpus.as_ref().and_then(|gpus| gpus.model.clone());
    let arm = jobs.gpus.iter().any(|gpu| {
        Some(&gpu.name) == model.as_ref()
            && gpu.processor.as_deref().is_some_and(|kind| kind.contains("arm"))
    });
    let internet = match jobs.internet {
        InternetAccess::Unknown => "unknown",
        InternetAccess::Yes => "yes",
        InternetAccess::No => "no",
        InternetAccess::Proxy => "proxy",
    };
    slots.insert("tmpdir", Slot::Shell(tmpdir(jobs.tmpdir.as_deref())));
    slots.insert("own_tmpdir", Slot::Yes(jobs.tmpdir.is_none()));
    slots.insert("wheelhouse", Slot::Yes(jobs.wheelhouse));
    slots.insert("internet", Slot::Text(internet.to_owned()));
    slots.insert("proxy", jobs.proxy.clone().map_or(Slot::Empty, Slot::Text));
    slots.insert("many_nodes", Slot::Yes(request.nodes_or_one() > 1));
    slots.insert("is_array", Slot::Yes(request.array.is_some()));
    slots.insert("job_folder", Slot::Shell(folder));
    slots.insert("arm", Slot::Yes(arm));
    slots
}

const fn is_list(kind: Kind) -> bool {
    matches!(kind, Kind::Arguments | Kind::List | Kind::Modules | Kind::Paths | Kind::Variables)
}

fn slot(value: &Value, kind: Kind) -> Slot {
    match value {
        Value::Text(text) => Slot::Text(text.clone()),
        Value::Number(number) => Slot::Number(*number),
        Value::Switch(yes) => Slot::Yes(*yes),
        Value::Minutes(minutes) => Slot::Number((*minutes).into()),
        Value::Memory(mb) => Slot::Number(i64::try_from(*mb).unwrap_or(i64::MAX)),
        Value::Words(words) if kind == Kind::Path => {
            words.first().map_or(Slot::Empty, |word| Slot::Shell(word.shell()))
        }
        Value::Words(words) => Slot::Words(words.iter().map(Words::shell).collect()),
        Value::Variables(all) => Slot::Words(
            all.iter().map(|(name, value)| format!("{name}={}", value.shell())).collect(),
        ),
        Value::Code(code) => Slot::Shell(code.clone()),
        Value::Swept(name) => Slot::Shell(format!("\"${name}\"")),
    }
}

/// A value as one word of bash, for the list of a sweep.
pub fn word(value: &Value) -> String {
    match slot(value, Kind::Path) {
        Slot::Text(text) => quoted(&text),
        Slot::Number(number) => number.to_string(),
        Slot::Yes(yes) => yes.to_string(),
        Slot::Shell(text) => text,
        Slot::Empty | Slot::Words(_) => "''".to_owned(),
    }
}

/// The whole script that someone brought along, where the recipe is about that.
pub fn whole_script(form: &Form, values: &Values<'_>) -> Option<String> {
    let question = form.questions().find(|question| question.kind == Kind::Script)?;
    match values.get(question.key.as_str()) {
        Some(Value::Code(code)) => Some(code.clone()),
        _ => None,
    }
}

/// The job's own folder on fast disk.
fn tmpdir(site: Option<&str>) -> String {
    let name = site.and_then(|text| text.strip_prefix('$')).filter(|name| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    });
    match (name, site) {
        (Some(name), _) => format!("\"${name}\""),
        (None, Some(path)) => quoted(path),
        (None, None) => "\"${TMPDIR:-/tmp}\"".to_owned(),
    }
}
