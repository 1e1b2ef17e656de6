//! What a job asks Slurm for, typed, and how that is written as `#SBATCH` lines.

use serde::{Deserialize, Serialize};

use super::sbatch_options::{SBATCH_OPTIONS, SbatchOptionSpec};
use crate::sites::GpuOption;

/// What a job asks for. What is `None` is not said, and the site decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobRequest {
    /// What the job is called.
    pub name: Option<String>,
    pub account: Option<String>,
    pub partition: Option<String>,
    /// The quality of service.
    pub qos: Option<String>,
    /// How long it may run.
    pub minutes: Option<u32>,
    /// On how many nodes.
    pub nodes: Option<u32>,
    /// How many tasks in all.
    pub tasks: Option<u32>,
    /// How many tasks on each node.
    pub tasks_per_node: Option<u32>,
    /// Cores of each task.
    pub cores: Option<u32>,
    pub memory: Option<MemoryRequest>,
    /// GPUs of each node.
    pub gpus: Option<GpuRequest>,
    /// The tasks of an array.
    pub array: Option<ArrayRequest>,
    /// What it waits for.
    pub dependency: Option<JobDependency>,
    /// The folder it starts in; absolute.
    pub folder: Option<String>,
    /// Where its output goes; absolute, with Slurm's patterns (`%j`).
    pub output: Option<String>,
    /// So many seconds before its end it gets a signal (`USR1`, to the script itself), so that it can save its results.
    pub warn_s: Option<u32>,
    /// Mail at its end and if it fails, where the site sends mail.
    pub mail: bool,
    /// Options that no field of a form stands for, from a script that someone brought along: `--nice` → `100`.
    pub other_options: Vec<(String, Option<String>)>,
}

/// How much memory, in mebibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryRequest {
    PerNode(u64),
    PerCore(u64),
    PerGpu(u64),
}

/// GPUs of each node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuRequest {
    pub model: Option<String>,
    /// How many on each node.
    pub count: u32,
}

/// An array of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayRequest {
    /// Their numbers: `0-11`.
    pub tasks: String,
    /// How many of them may run at a time.
    pub at_once: Option<u32>,
}

/// What a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDependency {
    pub job: u64,
    /// Whether it must have ended well.
    pub must_succeed: bool,
}

/// The part of a request that a question sets, a directive says, or a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestField {
    Name,
    Account,
    /// Partition and quality of service: the sort of job.
    Partition,
    /// The quality of service alone.
    Qos,
    /// How long it may run.
    Time,
    Nodes,
    Tasks,
    /// Tasks on each node.
    TasksPerNode,
    /// Cores of each task.
    Cores,
    /// Memory of each node.
    Memory,
    /// Memory for each core.
    MemoryPerCore,
    /// How many GPUs on each node.
    Gpus,
    GpuModel,
    /// The tasks of an array.
    Array,
    /// What it waits for.
    After,
    /// The folder it starts in.
    Folder,
    /// Where its output goes.
    Output,
    /// The signal before its end.
    Warn,
    Mail,
    Other,
}

/// One `#SBATCH` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SbatchDirective {
    /// `--time`.
    pub option: String,
    pub value: Option<String>,
    /// The part of the request that it says.
    pub sets: RequestField,
}

impl SbatchDirective {
    /// As it stands in a script.
    pub fn to_line(&self) -> String {
        format!("#SBATCH {}", self.format_with(quote_value))
    }

    /// As an argument of `sbatch`, unquoted.
    pub fn to_argument(&self) -> String {
        self.format_with(str::to_owned)
    }

    fn format_with(&self, write: fn(&str) -> String) -> String {
        match &self.value {
            // A short option takes its value as the next word.
            Some(value) if !self.option.starts_with("--") => {
                format!("{} {}", self.option, write(value))
            }
            Some(value) => format!("{}={}", self.option, write(value)),
            None => self.option.clone(),
        }
    }
}

/// A value as Slurm reads it in an `#SBATCH` line. Control characters cannot be said there: one of them would begin a
/// new line, so they are left out even if a caller forgot to refuse them.
fn quote_value(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,=+@%^".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    let mut text = String::from("\"");
    for c in value.chars().filter(|c| !c.is_control()) {
        if matches!(c, '"' | '\\') {
            text.push('\\');
        }
        text.push(c);
    }
    text.push('"');
    text
}

impl JobRequest {
    /// The request as directives, in the order in which people like to read them.
    pub fn directives(&self, gpu_option: GpuOption) -> Vec<SbatchDirective> {
        let say = |option: &SbatchOptionSpec| {
            let part = option.part.as_ref()?;
            let (option, value) = (option.name.to_owned(), (part.write)(self, gpu_option)?);
            Some(SbatchDirective { option, value: Some(value), sets: part.sets })
        };
        let other = |(option, value): &(String, Option<String>)| SbatchDirective {
            option: option.clone(),
            value: value.clone(),
            sets: RequestField::Other,
        };
        let others = self.other_options.iter().map(other);
        SBATCH_OPTIONS.iter().filter_map(say).chain(others).collect()
    }

    /// Nodes; one, if it does not say.
    pub fn nodes_or_one(&self) -> u32 {
        self.nodes.unwrap_or(1).max(1)
    }

    pub fn all_tasks(&self) -> u32 {
        let by_node = self.tasks_per_node.map(|tasks| tasks.saturating_mul(self.nodes_or_one()));
        self.tasks.or(by_node).unwrap_or_else(|| self.nodes_or_one()).max(1)
    }

    pub fn all_cores(&self) -> u32 {
        self.all_tasks().saturating_mul(self.cores.unwrap_or(1).max(1))
    }

    pub fn all_gpus(&self) -> u32 {
        self.gpus.as_ref().map_or(0, |gpus| gpus.count.saturating_mul(self.nodes_or_one()))
    }

    /// All its memory in mebibytes, if it says.
    pub fn all_memory_mb(&self) -> Option<u64> {
        Some(match self.memory? {
            MemoryRequest::PerNode(mb) => mb.saturating_mul(self.nodes_or_one().into()),
            MemoryRequest::PerCore(mb) => mb.saturating_mul(self.all_cores().into()),
            MemoryRequest::PerGpu(mb) => mb.saturating_mul(self.all_gpus().into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(request: &JobRequest, option: GpuOption) -> Vec<String> {
        request.directives(option).iter().map(SbatchDirective::to_line).collect()
    }

    #[test]
    fn a_request_is_written_in_order() {
        let request = JobRequest {
            name: Some("train".into()),
            account: Some("def-smith".into()),
            minutes: Some(180),
            nodes: Some(2),
            tasks_per_node: Some(4),
            cores: Some(6),
            memory: Some(MemoryRequest::PerNode(65_536)),
            gpus: Some(GpuRequest { model: Some("h100".into()), count: 4 }),
            array: Some(ArrayRequest { tasks: "0-11".into(), at_once: Some(3) }),
            dependency: Some(JobDependency { job: 77, must_succeed: true }),
            output: Some("/scratch/my files/%j.out".into()),
            ..JobRequest::default()
        };
        assert_eq!(
            lines(&request, GpuOption::Gpus),
            [
                "#SBATCH --job-name=train",
                "#SBATCH --account=def-smith",
                "#SBATCH --time=03:00:00",
                "#SBATCH --nodes=2",
                "#SBATCH --ntasks-per-node=4",
                "#SBATCH --cpus-per-task=6",
                "#SBATCH --mem=64G",
                "#SBATCH --gpus=h100:8",
                "#SBATCH --array=0-11%3",
                "#SBATCH --dependency=afterok:77",
                "#SBATCH --output=\"/scratch/my files/%j.out\"",
            ]
        );
        assert!(lines(&request, GpuOption::Gres).contains(&"#SBATCH --gres=gpu:h100:4".into()));
        assert_eq!((request.all_tasks(), request.all_cores(), request.all_gpus()), (8, 48, 8));
        assert_eq!(request.all_memory_mb(), Some(131_072));
    }

    #[test]
    fn no_value_begins_a_line_of_its_own() {
        let request = JobRequest {
            name: Some("a\n#SBATCH --account=other\r\u{0}\"b\\".into()),
            ..JobRequest::default()
        };
        assert_eq!(
            lines(&request, GpuOption::Gpus),
            ["#SBATCH --job-name=\"a#SBATCH --account=other\\\"b\\\\\""]
        );
    }
}
