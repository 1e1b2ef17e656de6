//! Scripts that people bring along, read back into the fields of a form where that is possible.

mod options;
#[cfg(test)]
mod tests;

use super::context::ComposeContext;
use super::form::{FormAnswers, RecipeForm};
use super::request::{JobRequest, RequestField};
use crate::slurm::units::TimeLimit;

/// An option and its value: `--time` and `3:00:00`.
pub type SbatchOption = (String, Option<String>);

/// Options that are ours to say, or that would make sbatch do something else than submit.
const RESERVED_OPTIONS: &[&str] = &[
    "--parsable",
    "--test-only",
    "--wait",
    "--wrap",
    "--comment",
    "--quiet",
    "--verbose",
    "--help",
    "--usage",
    "--version",
    "--export-file",
    "--uid",
    "--gid",
];

/// Whether an option is one of those, also where it is cut short, as Slurm lets people do.
fn is_reserved_option(option: &str) -> bool {
    option.len() > 4 && RESERVED_OPTIONS.iter().any(|known| known.starts_with(option))
}

/// All options of the `#SBATCH` lines of a script. Slurm reads them up to the first line that is no comment.
pub fn parse_directives(script: &str) -> Vec<SbatchOption> {
    let mut found = Vec::new();
    for line in header_lines(script).filter_map(|line| line.strip_prefix("#SBATCH")) {
        if line.starts_with([' ', '\t']) {
            found.extend(options::parse_options(&options::split_words(line)));
        }
    }
    found.retain(|(option, _)| !is_reserved_option(option));
    found
}

fn header_lines(script: &str) -> impl Iterator<Item = &str> {
    script.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty())
}

/// The script without the lines that Slurm reads.
pub fn strip_directives(script: &str) -> String {
    let lines = header_lines(script).count();
    let keep = |(place, line): &(usize, &str)| *place >= lines || !line.starts_with("#SBATCH");
    let kept: Vec<&str> = script.lines().enumerate().filter(keep).map(|(_, line)| line).collect();
    kept.join("\n")
}

/// One option as someone typed it: `--nice=100`.
pub fn parse_option(text: &str) -> Option<SbatchOption> {
    let found = options::parse_options(&options::split_words(text));
    match found.as_slice() {
        [one] if !is_reserved_option(&one.0) => Some(one.clone()),
        _ => None,
    }
}

/// An option as someone would type it.
pub fn format_option((option, value): &SbatchOption) -> String {
    match value {
        Some(value) if value.contains(char::is_whitespace) => format!("{option}=\"{value}\""),
        Some(value) => format!("{option}={value}"),
        None => option.clone(),
    }
}

/// Which part of a request an option says.
fn field_of_option(option: &str) -> Option<RequestField> {
    Some(match option {
        "--job-name" => RequestField::Name,
        "--account" => RequestField::Account,
        "--partition" => RequestField::Partition,
        "--qos" => RequestField::Qos,
        "--time" => RequestField::Time,
        "--nodes" => RequestField::Nodes,
        "--ntasks" => RequestField::Tasks,
        "--ntasks-per-node" => RequestField::TasksPerNode,
        "--cpus-per-task" => RequestField::Cores,
        "--mem" => RequestField::Memory,
        "--mem-per-cpu" => RequestField::MemoryPerCore,
        "--gpus" | "--gpus-per-node" | "--gres" => RequestField::Gpus,
        "--chdir" => RequestField::Folder,
        "--output" => RequestField::Output,
        "--array" => RequestField::Array,
        "--dependency" => RequestField::After,
        "--mail-type" => RequestField::Mail,
        "--signal" => RequestField::Warn,
        _ => return None,
    })
}

/// Whether a request says already what an option would say.
pub fn is_already_set(request: &JobRequest, option: &str) -> bool {
    match field_of_option(option) {
        Some(RequestField::Name) => request.name.is_some(),
        Some(RequestField::Account) => request.account.is_some(),
        Some(RequestField::Partition) => request.partition.is_some(),
        Some(RequestField::Qos) => request.qos.is_some(),
        Some(RequestField::Time) => request.minutes.is_some(),
        Some(RequestField::Nodes) => request.nodes.is_some(),
        Some(RequestField::Tasks) => request.tasks.is_some(),
        Some(RequestField::TasksPerNode) => request.tasks_per_node.is_some(),
        Some(RequestField::Cores) => request.cores.is_some(),
        Some(RequestField::Memory | RequestField::MemoryPerCore) => request.memory.is_some(),
        Some(RequestField::Gpus) => request.gpus.is_some(),
        Some(RequestField::Folder) => request.folder.is_some(),
        Some(RequestField::Output) => request.output.is_some(),
        Some(RequestField::Array) => request.array.is_some(),
        Some(RequestField::After) => request.dependency.is_some(),
        Some(RequestField::Mail) => request.mail,
        Some(RequestField::Warn) => request.warn_s.is_some(),
        _ => request.other_options.iter().any(|(known, _)| known == option),
    }
}

/// Puts options into the fields of a form. What no field takes comes back.
pub fn fill_answers(
    form: &RecipeForm,
    answers: &mut FormAnswers,
    options: &[SbatchOption],
    place: &ComposeContext,
) -> Vec<SbatchOption> {
    let nodes = options.iter().find(|(option, _)| option == "--nodes");
    let nodes: u32 = nodes.and_then(|(_, value)| value.as_deref()?.parse().ok()).unwrap_or(1);
    let mut rest = Vec::new();
    for (option, value) in options {
        let taken = value.as_deref().and_then(|value| read_option(option, value, nodes, place));
        let Some(taken) = taken else {
            rest.push((option.clone(), value.clone()));
            continue;
        };
        let fits = |(sets, _): &(RequestField, String)| form.find_setting(*sets).is_some();
        if taken.is_empty() || !taken.iter().all(fits) {
            rest.push((option.clone(), value.clone()));
            continue;
        }
        for (sets, text) in taken {
            if let Some(question) = form.find_setting(sets) {
                answers.insert(question.key.clone(), text);
            }
        }
    }
    rest
}

/// What an option says, as people type it into the fields. Nothing: no field can hold it.
fn read_option(
    option: &str,
    value: &str,
    nodes: u32,
    place: &ComposeContext,
) -> Option<Vec<(RequestField, String)>> {
    let sets = field_of_option(option)?;
    let one = |text: String| Some(vec![(sets, text)]);
    match sets {
        RequestField::Time => {
            let minutes = TimeLimit::parse(value).minutes()?;
            one(TimeLimit::Minutes(minutes).to_string())
        }
        RequestField::Memory | RequestField::MemoryPerCore => {
            // A number alone is megabytes to Slurm.
            let digits = value.bytes().all(|b| b.is_ascii_digit());
            one(if digits { format!("{value}M") } else { value.to_owned() })
        }
        RequestField::Partition => {
            let kind = place
                .site
                .jobs
                .types
                .iter()
                .find(|kind| kind.partition.as_deref() == Some(value) && kind.qos.is_none());
            one(kind.map_or_else(|| value.to_owned(), |kind| kind.name.clone()))
        }
        RequestField::Gpus => read_gpus(option, value, nodes),
        RequestField::Nodes
        | RequestField::Tasks
        | RequestField::TasksPerNode
        | RequestField::Cores => {
            value.parse::<u32>().ok().map(|number| vec![(sets, number.to_string())])
        }
        RequestField::Name | RequestField::Account | RequestField::Qos | RequestField::Folder => {
            one(value.to_owned())
        }
        _ => None,
    }
}

fn read_gpus(option: &str, value: &str, nodes: u32) -> Option<Vec<(RequestField, String)>> {
    let text = match option {
        "--gres" => value.strip_prefix("gpu")?.trim_start_matches(':'),
        _ => value,
    };
    let (model, count) = match text.rsplit_once(':') {
        Some((model, count)) => (Some(model), count),
        None if text.is_empty() => (None, "1"),
        None if text.bytes().all(|b| b.is_ascii_digit()) => (None, text),
        None => (Some(text), "1"),
    };
    let mut count: u32 = count.parse().ok()?;
    if option == "--gpus" && nodes > 1 {
        if !count.is_multiple_of(nodes) {
            return None;
        }
        count /= nodes;
    }
    let mut said = vec![(RequestField::Gpus, count.to_string())];
    said.extend(model.map(|model| (RequestField::GpuModel, model.to_owned())));
    Some(said)
}
