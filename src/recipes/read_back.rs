//! Scripts that people bring along, read back into the fields of a form where that is possible.

#[cfg(test)]
mod tests;
mod words;

use super::form::{Answers, Form};
use super::place::Place;
use super::request::{Request, Sets};
use crate::slurm::units::TimeLimit;

/// An option and its value: `--time` and `3:00:00`.
pub type SbatchOption = (String, Option<String>);

/// Options that are ours to say, or that would make sbatch do something else than submit.
const NOT_TAKEN: &[&str] = &[
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
fn is_ours(option: &str) -> bool {
    option.len() > 4 && NOT_TAKEN.iter().any(|known| known.starts_with(option))
}

/// All options of the `#SBATCH` lines of a script. Slurm reads them up to the first line that is no comment.
pub fn directives(script: &str) -> Vec<SbatchOption> {
    let mut found = Vec::new();
    for line in header(script).filter_map(|line| line.strip_prefix("#SBATCH")) {
        if line.starts_with([' ', '\t']) {
            found.extend(words::options(&words::split(line)));
        }
    }
    found.retain(|(option, _)| !is_ours(option));
    found
}

fn header(script: &str) -> impl Iterator<Item = &str> {
    script.lines().take_while(|line| line.starts_with('#') || line.trim().is_empty())
}

/// The script without the lines that Slurm reads.
pub fn without_directives(script: &str) -> String {
    let lines = header(script).count();
    let keep = |(place, line): &(usize, &str)| *place >= lines || !line.starts_with("#SBATCH");
    let kept: Vec<&str> = script.lines().enumerate().filter(keep).map(|(_, line)| line).collect();
    kept.join("\n")
}

/// One option as someone typed it: `--nice=100`.
pub fn option(text: &str) -> Option<SbatchOption> {
    let found = words::options(&words::split(text));
    match found.as_slice() {
        [one] if !is_ours(&one.0) => Some(one.clone()),
        _ => None,
    }
}

/// An option as someone would type it.
pub fn written((option, value): &SbatchOption) -> String {
    match value {
        Some(value) if value.contains(char::is_whitespace) => format!("{option}=\"{value}\""),
        Some(value) => format!("{option}={value}"),
        None => option.clone(),
    }
}

/// Which part of a request an option says.
fn sets(option: &str) -> Option<Sets> {
    Some(match option {
        "--job-name" => Sets::Name,
        "--account" => Sets::Account,
        "--partition" => Sets::Partition,
        "--qos" => Sets::Qos,
        "--time" => Sets::Time,
        "--nodes" => Sets::Nodes,
        "--ntasks" => Sets::Tasks,
        "--ntasks-per-node" => Sets::TasksPerNode,
        "--cpus-per-task" => Sets::Cores,
        "--mem" => Sets::Memory,
        "--mem-per-cpu" => Sets::MemoryPerCore,
        "--gpus" | "--gpus-per-node" | "--gres" => Sets::Gpus,
        "--chdir" => Sets::Folder,
        "--output" => Sets::Output,
        "--array" => Sets::Array,
        "--dependency" => Sets::After,
        "--mail-type" => Sets::Mail,
        "--signal" => Sets::Warn,
        _ => return None,
    })
}

/// Whether a request says already what an option would say.
pub fn is_said(request: &Request, option: &str) -> bool {
    match sets(option) {
        Some(Sets::Name) => request.name.is_some(),
        Some(Sets::Account) => request.account.is_some(),
        Some(Sets::Partition) => request.partition.is_some(),
        Some(Sets::Qos) => request.qos.is_some(),
        Some(Sets::Time) => request.minutes.is_some(),
        Some(Sets::Nodes) => request.nodes.is_some(),
        Some(Sets::Tasks) => request.tasks.is_some(),
        Some(Sets::TasksPerNode) => request.tasks_per_node.is_some(),
        Some(Sets::Cores) => request.cores.is_some(),
        Some(Sets::Memory | Sets::MemoryPerCore) => request.memory.is_some(),
        Some(Sets::Gpus) => request.gpus.is_some(),
        Some(Sets::Folder) => request.folder.is_some(),
        Some(Sets::Output) => request.output.is_some(),
        Some(Sets::Array) => request.array.is_some(),
        Some(Sets::After) => request.after.is_some(),
        Some(Sets::Mail) => request.mail,
        Some(Sets::Warn) => request.warn_s.is_some(),
        _ => request.others.iter().any(|(known, _)| known == option),
    }
}

/// Puts options into the fields of a form. What no field takes comes back.
pub fn take(
    form: &Form,
    answers: &mut Answers,
    options: &[SbatchOption],
    place: &Place,
) -> Vec<SbatchOption> {
    let nodes = options.iter().find(|(option, _)| option == "--nodes");
    let nodes: u32 = nodes.and_then(|(_, value)| value.as_deref()?.parse().ok()).unwrap_or(1);
    let mut rest = Vec::new();
    for (option, value) in options {
        let taken = value.as_deref().and_then(|value| read(option, value, nodes, place));
        let Some(taken) = taken else {
            rest.push((option.clone(), value.clone()));
            continue;
        };
        let fits = |(sets, _): &(Sets, String)| form.that_sets(*sets).is_some();
        if taken.is_empty() || !taken.iter().all(fits) {
            rest.push((option.clone(), value.clone()));
            continue;
        }
        for (sets, text) in taken {
            if let Some(question) = form.that_sets(sets) {
                answers.insert(question.key.clone(), text);
            }
        }
    }
    rest
}

/// What an option says, as people type it into the fields. Nothing: no field can hold it.
fn read(option: &str, value: &str, nodes: u32, place: &Place) -> Option<Vec<(Sets, String)>> {
    let sets = sets(option)?;
    let one = |text: String| Some(vec![(sets, text)]);
    match sets {
        Sets::Time => {
            let minutes = TimeLimit::parse(value).minutes()?;
            one(TimeLimit::Minutes(minutes).to_string())
        }
        Sets::Memory | Sets::MemoryPerCore => {
            // A number alone is megabytes to Slurm.
            let digits = value.bytes().all(|b| b.is_ascii_digit());
            one(if digits { format!("{value}M") } else { value.to_owned() })
        }
        Sets::Partition => {
            let kind = place
                .site
                .jobs
                .types
                .iter()
                .find(|kind| kind.partition.as_deref() == Some(value) && kind.qos.is_none());
            one(kind.map_or_else(|| value.to_owned(), |kind| kind.name.clone()))
        }
        Sets::Gpus => gpus(option, value, nodes),
        Sets::Nodes | Sets::Tasks | Sets::TasksPerNode | Sets::Cores => {
            value.parse::<u32>().ok().map(|number| vec![(sets, number.to_string())])
        }
        Sets::Name | Sets::Account | Sets::Qos | Sets::Folder => one(value.to_owned()),
        _ => None,
    }
}

fn gpus(option: &str, value: &str, nodes: u32) -> Option<Vec<(Sets, String)>> {
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
    let mut said = vec![(Sets::Gpus, count.to_string())];
    said.extend(model.map(|model| (Sets::GpuModel, model.to_owned())));
    Some(said)
}
