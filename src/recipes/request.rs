//! What a job requests from Slurm, typed, and how that is written as `#SBATCH` lines.

use serde::{Deserialize, Serialize};

use super::sbatch_options::{SBATCH_OPTIONS, SbatchOptionSpec};
use crate::sites::GpuSbatchOption;

/// What a job requests. A `None` field is left out, and the site decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct JobRequest {
    pub name: Option<String>,
    pub account: Option<String>,
    pub partition: Option<String>,
    pub qos: Option<String>,
    /// The time limit.
    pub minutes: Option<u32>,
    pub nodes: Option<u32>,
    /// Tasks in total.
    pub tasks: Option<u32>,
    pub tasks_per_node: Option<u32>,
    /// Cores per task.
    pub cores: Option<u32>,
    pub memory: Option<MemoryRequest>,
    /// GPUs per node.
    pub gpus: Option<GpuRequest>,
    pub array: Option<ArrayRequest>,
    /// The job that must end first.
    pub dependency: Option<JobDependency>,
    /// The working folder; absolute.
    pub folder: Option<String>,
    /// Where output goes; absolute, with Slurm's patterns (`%j`).
    pub output: Option<String>,
    /// The script gets `USR1` this many seconds before the time limit, so that it can save its results.
    pub warn_s: Option<u32>,
    /// Mail when the job ends or fails, where the site sends mail.
    pub mail: bool,
    /// Options without a form field, from an imported script: `--nice` → `100`.
    pub other_options: Vec<(String, Option<String>)>,
}

/// Memory in mebibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MemoryRequest {
    PerNode(u64),
    PerCore(u64),
    PerGpu(u64),
}

/// GPUs per node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuRequest {
    pub model: Option<String>,
    /// Number per node.
    pub count: u32,
}

/// A job array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArrayRequest {
    /// Task indices: `0-11`.
    pub tasks: String,
    /// How many may run at the same time.
    pub at_once: Option<u32>,
}

/// The job that must end before this one starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobDependency {
    pub job: u64,
    /// Whether that job must have succeeded.
    pub must_succeed: bool,
}

/// The field of a request that a question sets, a directive states, or a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RequestField {
    Name,
    Account,
    /// Partition and QOS: the job type.
    Partition,
    /// Only the QOS.
    Qos,
    /// The time limit.
    Time,
    Nodes,
    Tasks,
    TasksPerNode,
    /// Cores per task.
    Cores,
    /// Memory per node.
    Memory,
    /// Memory per core.
    MemoryPerCore,
    /// GPUs per node.
    Gpus,
    GpuModel,
    /// The array tasks.
    Array,
    /// The dependency on another job.
    After,
    /// The working folder.
    Folder,
    /// Where output goes.
    Output,
    /// The signal before the time limit.
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
    /// The request field that it states.
    pub sets: RequestField,
}

impl SbatchDirective {
    /// As written in a script.
    pub fn to_line(&self) -> String {
        format!("#SBATCH {}", self.format_with(quote_value))
    }

    /// As an argument of `sbatch`, unquoted.
    pub fn to_argument(&self) -> String {
        self.format_with(str::to_owned)
    }

    fn format_with(&self, write: fn(&str) -> String) -> String {
        match &self.value {
            // A short option takes its value as a separate word.
            Some(value) if !self.option.starts_with("--") => {
                format!("{} {}", self.option, write(value))
            }
            Some(value) => format!("{}={}", self.option, write(value)),
            None => self.option.clone(),
        }
    }
}

/// A value as Slurm parses it in an `#SBATCH` line. Control characters can't be expressed there and one could start a
/// new line, so they are dropped even if a caller forgot to reject them.
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
    /// The request as directives, in a readable order.
    pub fn directives(&self, gpu_option: GpuSbatchOption) -> Vec<SbatchDirective> {
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

    /// The number of nodes, or 1 if unset.
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

    /// Total memory in mebibytes, if requested.
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

    fn lines(request: &JobRequest, option: GpuSbatchOption) -> Vec<String> {
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
            lines(&request, GpuSbatchOption::Gpus),
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
        assert!(lines(&request, GpuSbatchOption::Gres).contains(&"#SBATCH --gres=gpu:h100:4".into()));
        assert_eq!((request.all_tasks(), request.all_cores(), request.all_gpus()), (8, 48, 8));
        assert_eq!(request.all_memory_mb(), Some(131_072));
    }

    #[test]
    fn no_value_begins_a_line_of_its_own() {
        let request =
            JobRequest { name: Some("a\n#SBATCH --account=other\r\u{0}\"b\\".into()), ..JobRequest::default() };
        assert_eq!(
            lines(&request, GpuSbatchOption::Gpus),
            ["#SBATCH --job-name=\"a#SBATCH --account=other\\\"b\\\\\""]
        );
    }
}
