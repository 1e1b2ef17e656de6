//! Imports people's own scripts: parses them into the fields of a form where possible.

mod options;
mod submit_line;
#[cfg(test)]
mod tests;

use super::context::ComposeCluster;
use super::form::{FormAnswers, RecipeQuestionForm, applies_at_site};
use super::question::RecipeQuestionKind;
use super::request::{GpuRequest, JobRequest, MemoryRequest, RequestField};
use super::sbatch_options::{SBATCH_OPTIONS, SbatchOptionSpec, find_option, find_part};

pub use self::submit_line::{SubmitLineOptions, parse_submit_line};

/// An option and its value: `--time` and `3:00:00`.
pub type SbatchOption = (String, Option<String>);

/// Whether scripts may not set this option, including abbreviations, which Slurm accepts.
fn is_reserved_option(option: &str) -> bool {
    let is_cut_from = |known: &SbatchOptionSpec| known.is_reserved && known.name.starts_with(option);
    match find_option(option) {
        Some(known) => known.is_reserved,
        None => option.len() > 4 && SBATCH_OPTIONS.iter().any(is_cut_from),
    }
}

/// All options from a script's `#SBATCH` lines. Slurm reads them up to the first line that isn't a comment.
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

/// The script without its `#SBATCH` lines.
pub fn strip_directives(script: &str) -> String {
    let lines = header_lines(script).count();
    let keep = |(index, line): &(usize, &str)| *index >= lines || !line.starts_with("#SBATCH");
    let remaining: Vec<&str> = script.lines().enumerate().filter(keep).map(|(_, line)| line).collect();
    remaining.join("\n")
}

/// One option as someone typed it: `--nice=100`.
pub fn parse_option(text: &str) -> Option<SbatchOption> {
    let found = options::parse_options(&options::split_words(text));
    match found.as_slice() {
        [option] if !is_reserved_option(&option.0) => Some(option.clone()),
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

/// What a script requests, as far as its options can be parsed.
pub fn read_request(script: &str) -> JobRequest {
    let mut request = JobRequest::default();
    let mut options = parse_directives(script);
    // Nodes first, because one of the options counts GPUs across all nodes.
    options.sort_by_key(|(option, _)| option != "--nodes");
    for (option, value) in options {
        let part = find_part(&option).zip(value.as_deref());
        if part.and_then(|(part, value)| (part.read)(&mut request, value)).is_none() {
            request.other_options.push((option, value));
        }
    }
    request
}

/// Adds options that take precedence, as those on the command line do over those in the script.
pub fn override_options(options: &mut Vec<SbatchOption>, stronger: &[SbatchOption]) {
    let field = |option: &SbatchOption| match find_part(&option.0)?.sets {
        // A job has memory per node, or per core.
        RequestField::MemoryPerCore => Some(RequestField::Memory),
        // Other resources than GPUs stay beside them.
        RequestField::Gpus if !is_about_gpus(option) => None,
        sets => Some(sets),
    };
    for new in stronger {
        options.retain(|known| known.0 != new.0 && (field(known).is_none() || field(known) != field(new)));
        options.push(new.clone());
    }
}

fn is_about_gpus((option, value): &SbatchOption) -> bool {
    option != "--gres" || value.as_deref().is_some_and(|value| value.starts_with("gpu"))
}

/// Whether the request already sets what this option would set.
pub fn is_already_set(request: &JobRequest, option: &str) -> bool {
    match find_part(option) {
        Some(part) => (part.is_set)(request),
        None => request.other_options.iter().any(|(known, _)| known == option),
    }
}

/// Fills options into the fields of a form. Returns those that no field takes.
pub fn fill_answers(
    form: &RecipeQuestionForm,
    answers: &mut FormAnswers,
    options: &[SbatchOption],
    cluster: &ComposeCluster,
) -> Vec<SbatchOption> {
    let nodes = options.iter().find(|(option, _)| option == "--nodes");
    let nodes: u32 = nodes.and_then(|(_, value)| value.as_deref()?.parse().ok()).unwrap_or(1);
    let mut rest = Vec::new();
    for (option, value) in options {
        let taken = value.as_deref().and_then(|value| read_option(option, value, nodes, cluster));
        let Some(taken) = taken else {
            rest.push((option.clone(), value.clone()));
            continue;
        };
        // A number of tasks isn't a list of tasks.
        let fits = |(sets, _): &(RequestField, String)| {
            let question = form.find_setting(*sets);
            question.is_some_and(|question| {
                // An answer to a question that isn't asked here would be lost.
                applies_at_site(question, cluster)
                    && !form.hidden.contains(&question.key)
                    && (*sets != RequestField::Array || question.kind == RecipeQuestionKind::Text)
            })
        };
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

/// An option's value as people type it into fields. `None` if no field can hold it.
fn read_option(option: &str, value: &str, nodes: u32, cluster: &ComposeCluster) -> Option<Vec<(RequestField, String)>> {
    let part = find_part(option)?;
    let mut request = JobRequest { nodes: Some(nodes), ..JobRequest::default() };
    (part.read)(&mut request, value)?;
    let text = match part.sets {
        RequestField::Gpus => {
            let GpuRequest { model, count } = request.gpus?;
            let model = model.map(|model| (RequestField::GpuModel, model));
            return Some([(part.sets, count.to_string())].into_iter().chain(model).collect());
        }
        RequestField::Partition => {
            let kind = cluster
                .site
                .jobs
                .types
                .iter()
                .find(|kind| kind.partition.as_deref() == Some(value) && kind.qos.is_none());
            kind.map_or_else(|| value.to_owned(), |kind| kind.name.clone())
        }
        // No question asks for memory per GPU.
        RequestField::Memory if matches!(request.memory, Some(MemoryRequest::PerGpu(_))) => {
            return None;
        }
        // Slurm reads a bare number as megabytes.
        RequestField::Memory | RequestField::MemoryPerCore if value.bytes().all(|b| b.is_ascii_digit()) => {
            format!("{value}M")
        }
        RequestField::Memory
        | RequestField::MemoryPerCore
        | RequestField::Name
        | RequestField::Account
        | RequestField::Qos
        | RequestField::Array
        | RequestField::Folder => value.to_owned(),
        RequestField::Time
        | RequestField::Nodes
        | RequestField::Tasks
        | RequestField::TasksPerNode
        | RequestField::Cores => (part.write)(&request, cluster.site.jobs.gpu_option)?,
        _ => return None,
    };
    Some(vec![(part.sets, text)])
}
