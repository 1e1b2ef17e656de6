//! What a job asks Slurm for, typed, and how that is written as `#SBATCH` lines.

use serde::{Deserialize, Serialize};

use crate::sites::GpuOption;
use crate::slurm::units::TimeLimit;

/// What a job asks for. What is `None` is not said, and the site decides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Request {
    /// What the job is called.
    pub name: Option<String>,
    /// Which project pays.
    pub account: Option<String>,
    /// Where it waits.
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
    /// Memory.
    pub memory: Option<Memory>,
    /// GPUs of each node.
    pub gpus: Option<Gpus>,
    /// The tasks of an array.
    pub array: Option<Array>,
    /// What it waits for.
    pub after: Option<After>,
    /// The folder it starts in; absolute.
    pub folder: Option<String>,
    /// Where its output goes; absolute, with Slurm's patterns (`%j`).
    pub output: Option<String>,
    /// So many seconds before its end it gets a signal (`USR1`, to the script itself), so that it can save its results.
    pub warn_s: Option<u32>,
    /// Mail at its end and if it fails, where the site sends mail.
    pub mail: bool,
    /// Options that no field of a form stands for, from a script that someone brought along: `--nice` → `100`.
    pub others: Vec<(String, Option<String>)>,
}

/// How much memory, in mebibytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// On each node.
    PerNode(u64),
    /// For each core.
    PerCore(u64),
    /// For each GPU.
    PerGpu(u64),
}

/// GPUs of each node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Gpus {
    /// Which; none: any.
    pub model: Option<String>,
    /// How many on each node.
    pub count: u32,
}

/// An array of tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// Their numbers: `0-11`.
    pub tasks: String,
    /// How many of them may run at a time.
    pub at_once: Option<u32>,
}

/// What a job waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct After {
    /// The job.
    pub job: u64,
    /// Whether it must have ended well.
    pub ended_well: bool,
}

/// The part of a request that a question sets, a directive says, or a refusal is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sets {
    /// The job's name.
    Name,
    /// Which project pays.
    Account,
    /// Partition and quality of service: the sort of job.
    Partition,
    /// The quality of service alone.
    Qos,
    /// How long it may run.
    Time,
    /// Nodes.
    Nodes,
    /// Tasks in all.
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
    /// Which GPUs.
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
    /// Mail.
    Mail,
    /// Anything else.
    Other,
}

/// One `#SBATCH` line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Directive {
    /// `--time`.
    pub option: String,
    /// Its value.
    pub value: Option<String>,
    /// The part of the request that it says.
    pub sets: Sets,
}

impl Directive {
    fn new(option: &str, value: impl Into<String>, sets: Sets) -> Self {
        Self { option: option.to_owned(), value: Some(value.into()), sets }
    }

    /// As it stands in a script.
    pub fn line(&self) -> String {
        format!("#SBATCH {}", self.argument(quoted))
    }

    /// As an argument of `sbatch`, unquoted.
    pub fn word(&self) -> String {
        self.argument(str::to_owned)
    }

    fn argument(&self, write: fn(&str) -> String) -> String {
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
fn quoted(value: &str) -> String {
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

impl Request {
    /// The request as directives, in the order in which people like to read them.
    pub fn directives(&self, gpu_option: GpuOption) -> Vec<Directive> {
        let mut all = Vec::new();
        let mut say = |option: &str, value: Option<String>, sets: Sets| {
            if let Some(value) = value {
                all.push(Directive::new(option, value, sets));
            }
        };
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        say("--job-name", self.name.clone(), Sets::Name);
        say("--account", self.account.clone(), Sets::Account);
        say("--partition", self.partition.clone(), Sets::Partition);
        say("--qos", self.qos.clone(), Sets::Qos);
        let time = self.minutes.map(|minutes| TimeLimit::Minutes(minutes).to_string());
        say("--time", time, Sets::Time);
        say("--nodes", number(self.nodes), Sets::Nodes);
        say("--ntasks", number(self.tasks), Sets::Tasks);
        say("--ntasks-per-node", number(self.tasks_per_node), Sets::TasksPerNode);
        say("--cpus-per-task", number(self.cores), Sets::Cores);
        match self.memory {
            Some(Memory::PerNode(mb)) => say("--mem", Some(amount(mb)), Sets::Memory),
            Some(Memory::PerCore(mb)) => {
                say("--mem-per-cpu", Some(amount(mb)), Sets::MemoryPerCore);
            }
            Some(Memory::PerGpu(mb)) => say("--mem-per-gpu", Some(amount(mb)), Sets::Memory),
            None => {}
        }
        if let Some(gpus) = &self.gpus {
            let (option, value) = gpus.written(gpu_option, self.nodes.unwrap_or(1));
            say(option, Some(value), Sets::Gpus);
        }
        say("--array", self.array.as_ref().map(Array::written), Sets::Array);
        say("--dependency", self.after.map(After::written), Sets::After);
        say("--chdir", self.folder.clone(), Sets::Folder);
        say("--output", self.output.clone(), Sets::Output);
        say("--signal", self.warn_s.map(|s| format!("B:USR1@{s}")), Sets::Warn);
        say("--mail-type", self.mail.then(|| "END,FAIL".to_owned()), Sets::Mail);
        let other = |(option, value): &(String, Option<String>)| Directive {
            option: option.clone(),
            value: value.clone(),
            sets: Sets::Other,
        };
        all.extend(self.others.iter().map(other));
        all
    }

    /// Nodes; one, if it does not say.
    pub fn nodes_or_one(&self) -> u32 {
        self.nodes.unwrap_or(1).max(1)
    }

    /// All its tasks.
    pub fn all_tasks(&self) -> u32 {
        let by_node = self.tasks_per_node.map(|tasks| tasks.saturating_mul(self.nodes_or_one()));
        self.tasks.or(by_node).unwrap_or_else(|| self.nodes_or_one()).max(1)
    }

    /// All its cores.
    pub fn all_cores(&self) -> u32 {
        self.all_tasks().saturating_mul(self.cores.unwrap_or(1).max(1))
    }

    /// All its GPUs.
    pub fn all_gpus(&self) -> u32 {
        self.gpus.as_ref().map_or(0, |gpus| gpus.count.saturating_mul(self.nodes_or_one()))
    }

    /// All its memory in mebibytes, if it says.
    pub fn all_memory_mb(&self) -> Option<u64> {
        Some(match self.memory? {
            Memory::PerNode(mb) => mb.saturating_mul(self.nodes_or_one().into()),
            Memory::PerCore(mb) => mb.saturating_mul(self.all_cores().into()),
            Memory::PerGpu(mb) => mb.saturating_mul(self.all_gpus().into()),
        })
    }
}

/// Mebibytes as Slurm takes them: whole gibibytes where they are.
pub fn amount(mb: u64) -> String {
    if mb >= 1024 && mb.is_multiple_of(1024) { format!("{}G", mb / 1024) } else { format!("{mb}M") }
}

impl Gpus {
    /// `nodes`: one of the options counts the GPUs of all nodes together.
    fn written(&self, option: GpuOption, nodes: u32) -> (&'static str, String) {
        let with_model = |count: u32| match &self.model {
            Some(model) => format!("{model}:{count}"),
            None => count.to_string(),
        };
        match option {
            GpuOption::GpusPerNode => ("--gpus-per-node", with_model(self.count)),
            GpuOption::Gpus => ("--gpus", with_model(self.count.saturating_mul(nodes.max(1)))),
            GpuOption::Gres => ("--gres", format!("gpu:{}", with_model(self.count))),
        }
    }
}

impl Array {
    fn written(&self) -> String {
        match self.at_once {
            Some(most) => format!("{}%{most}", self.tasks),
            None => self.tasks.clone(),
        }
    }
}

impl After {
    fn written(self) -> String {
        format!("{}:{}", if self.ended_well { "afterok" } else { "afterany" }, self.job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(request: &Request, option: GpuOption) -> Vec<String> {
        request.directives(option).iter().map(Directive::line).collect()
    }

    #[test]
    fn a_request_is_written_in_order() {
        let request = Request {
            name: Some("train".into()),
            account: Some("def-smith".into()),
            minutes: Some(180),
            nodes: Some(2),
            tasks_per_node: Some(4),
            cores: Some(6),
            memory: Some(Memory::PerNode(65_536)),
            gpus: Some(Gpus { model: Some("h100".into()), count: 4 }),
            array: Some(Array { tasks: "0-11".into(), at_once: Some(3) }),
            after: Some(After { job: 77, ended_well: true }),
            output: Some("/scratch/my files/%j.out".into()),
            ..Request::default()
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
        let request = Request {
            name: Some("a\n#SBATCH --account=other\r\u{0}\"b\\".into()),
            ..Request::default()
        };
        assert_eq!(
            lines(&request, GpuOption::Gpus),
            ["#SBATCH --job-name=\"a#SBATCH --account=other\\\"b\\\\\""]
        );
    }
}
