//! The options of `sbatch`: their names, and how each field of a request is written as an option and parsed back.
//! Both writing and importing scripts use this one table.

use super::request::{ArrayRequest, GpuRequest, JobDependency, JobRequest, MemoryRequest, RequestField};
use crate::sites::GpuSbatchOption;
use crate::slurm::units::{TimeLimit, parse_memory_mb};

pub struct SbatchOptionSpec {
    /// `--time`.
    pub name: &'static str,
    /// `t`.
    pub short: Option<char>,
    /// Whether the next word is its value; a long option may have one after an equals sign in any case.
    pub takes_value: bool,
    /// Set only by the portal, or it would make sbatch do something other than submit.
    pub is_reserved: bool,
    /// The request field that it states; none for options without a field.
    pub part: Option<SbatchFieldMapping>,
}

/// How an option maps to a field of the request.
pub struct SbatchFieldMapping {
    pub sets: RequestField,
    /// Whether the request sets this field, with whichever option.
    pub is_set: fn(&JobRequest) -> bool,
    /// The option's value; none if the request doesn't need this option.
    pub write: fn(&JobRequest, GpuSbatchOption) -> Option<String>,
    /// Stores a value in the request, whose nodes are already set; none if the field can't hold the value.
    pub read: fn(&mut JobRequest, &str) -> Option<()>,
}

/// Finds an option by its long name.
pub fn find_option(name: &str) -> Option<&'static SbatchOptionSpec> {
    SBATCH_OPTIONS.iter().find(|option| option.name == name)
}

/// The request field that an option states.
pub fn find_part(name: &str) -> Option<&'static SbatchFieldMapping> {
    find_option(name)?.part.as_ref()
}

/// An option for a request field; `$field` is the field, `None` where it is unset.
macro_rules! part {
    ($name:literal, $short:expr, $sets:ident, $field:ident, $write:expr, $read:expr) => {
        SbatchOptionSpec {
            name: $name,
            short: $short,
            takes_value: true,
            is_reserved: false,
            part: Some(SbatchFieldMapping {
                sets: RequestField::$sets,
                is_set: |request| request.$field.is_some(),
                write: $write,
                read: |request, text| {
                    let read: fn(&str, &JobRequest) -> Option<_> = $read;
                    request.$field = Some(read(text, request)?);
                    Some(())
                },
            }),
        }
    };
}

macro_rules! text {
    ($name:literal, $short:expr, $sets:ident, $field:ident) => {
        part!($name, $short, $sets, $field, |request, _| request.$field.clone(), |text, _| Some(text.to_owned()))
    };
}

macro_rules! number {
    ($name:literal, $short:expr, $sets:ident, $field:ident) => {
        part!($name, $short, $sets, $field, |request, _| request.$field.map(|number| number.to_string()), |text, _| {
            text.parse().ok()
        })
    };
}

macro_rules! memory {
    ($name:literal, $sets:ident, $per:ident) => {
        part!(
            $name,
            None,
            $sets,
            memory,
            |request, _| match request.memory {
                Some(MemoryRequest::$per(mb)) => Some(crate::format::memory_option(mb)),
                _ => None,
            },
            |text, _| parse_memory_mb(text).map(MemoryRequest::$per)
        )
    };
}

/// An option with a value but without a request field.
const fn valued(name: &'static str, short: Option<char>) -> SbatchOptionSpec {
    SbatchOptionSpec { name, short, takes_value: true, is_reserved: false, part: None }
}

/// An option without a value, or with one only after an equals sign.
const fn flag(name: &'static str, short: Option<char>) -> SbatchOptionSpec {
    SbatchOptionSpec { takes_value: false, ..valued(name, short) }
}

const fn reserved(option: SbatchOptionSpec) -> SbatchOptionSpec {
    SbatchOptionSpec { is_reserved: true, ..option }
}

/// Options with a request field come first, in a readable order for scripts. Options that aren't listed take a
/// value.
pub static SBATCH_OPTIONS: &[SbatchOptionSpec] = &[
    text!("--job-name", Some('J'), Name, name),
    text!("--account", Some('A'), Account, account),
    text!("--partition", Some('p'), Partition, partition),
    text!("--qos", Some('q'), Qos, qos),
    part!(
        "--time",
        Some('t'),
        Time,
        minutes,
        |request, _| request.minutes.map(|minutes| TimeLimit::Minutes(minutes).to_string()),
        |text, _| TimeLimit::parse(text).minutes()
    ),
    number!("--nodes", Some('N'), Nodes, nodes),
    number!("--ntasks", Some('n'), Tasks, tasks),
    number!("--ntasks-per-node", None, TasksPerNode, tasks_per_node),
    number!("--cpus-per-task", Some('c'), Cores, cores),
    memory!("--mem", Memory, PerNode),
    memory!("--mem-per-cpu", MemoryPerCore, PerCore),
    memory!("--mem-per-gpu", Memory, PerGpu),
    part!(
        "--gpus-per-node",
        None,
        Gpus,
        gpus,
        |request, option| write_gpus(request, option, GpuSbatchOption::GpusPerNode),
        |text, _| parse_gpus(text)
    ),
    // Counts GPUs across all nodes.
    part!(
        "--gpus",
        Some('G'),
        Gpus,
        gpus,
        |request, option| write_gpus(request, option, GpuSbatchOption::Gpus),
        |text, request| {
            let (gpus, nodes) = (parse_gpus(text)?, request.nodes_or_one());
            let is_even = gpus.count.is_multiple_of(nodes);
            is_even.then(|| GpuRequest { count: gpus.count / nodes, ..gpus })
        }
    ),
    part!(
        "--gres",
        None,
        Gpus,
        gpus,
        |request, option| { write_gpus(request, option, GpuSbatchOption::Gres).map(|text| format!("gpu:{text}")) },
        |text, _| parse_gpus(text.strip_prefix("gpu")?.trim_start_matches(':'))
    ),
    part!("--array", Some('a'), Array, array, |request, _| write_array(request), |text, _| {
        let (tasks, most) = text.split_once('%').unwrap_or((text, ""));
        Some(ArrayRequest { tasks: tasks.to_owned(), at_once: most.parse().ok() })
    }),
    part!(
        "--dependency",
        Some('d'),
        After,
        dependency,
        |request, _| {
            let JobDependency { job, must_succeed } = request.dependency?;
            Some(format!("{}:{job}", if must_succeed { "afterok" } else { "afterany" }))
        },
        |text, _| {
            let (how, job) = text.split_once(':')?;
            let must_succeed = ["afterany", "afterok"].iter().position(|known| *known == how)? == 1;
            Some(JobDependency { job: job.parse().ok()?, must_succeed })
        }
    ),
    text!("--chdir", Some('D'), Folder, folder),
    text!("--output", Some('o'), Output, output),
    part!(
        "--signal",
        None,
        Warn,
        warn_s,
        |request, _| request.warn_s.map(|seconds| format!("B:USR1@{seconds}")),
        |text, _| text.strip_prefix("B:USR1@")?.parse().ok()
    ),
    SbatchOptionSpec {
        part: Some(SbatchFieldMapping {
            sets: RequestField::Mail,
            is_set: |request| request.mail,
            write: |request, _| request.mail.then(|| MAIL_TYPES.to_owned()),
            read: |request, text| {
                request.mail |= text == MAIL_TYPES;
                (text == MAIL_TYPES).then_some(())
            },
        }),
        ..valued("--mail-type", None)
    },
    valued("--begin", Some('b')),
    valued("--constraint", Some('C')),
    valued("--error", Some('e')),
    valued("--nodefile", Some('F')),
    valued("--input", Some('i')),
    valued("--licenses", Some('L')),
    valued("--clusters", Some('M')),
    valued("--core-spec", Some('S')),
    valued("--nodelist", Some('w')),
    valued("--exclude", Some('x')),
    valued("--extra-node-info", Some('B')),
    valued("--distribution", Some('m')),
    valued("--acctg-freq", None),
    valued("--batch", None),
    valued("--bb", None),
    valued("--bbf", None),
    valued("--cluster-constraint", None),
    valued("--container", None),
    valued("--container-id", None),
    valued("--cores-per-socket", None),
    valued("--cpu-freq", None),
    valued("--cpus-per-gpu", None),
    valued("--deadline", None),
    valued("--delay-boot", None),
    valued("--export", None),
    valued("--extra", None),
    valued("--gpu-bind", None),
    valued("--gpu-freq", None),
    valued("--gpus-per-socket", None),
    valued("--gpus-per-task", None),
    valued("--gres-flags", None),
    valued("--hint", None),
    valued("--kill-on-invalid-dep", None),
    valued("--mail-user", None),
    valued("--mcs-label", None),
    valued("--mem-bind", None),
    valued("--mincpus", None),
    valued("--network", None),
    valued("--ntasks-per-core", None),
    valued("--ntasks-per-gpu", None),
    valued("--ntasks-per-socket", None),
    valued("--open-mode", None),
    valued("--power", None),
    valued("--prefer", None),
    valued("--priority", None),
    valued("--profile", None),
    valued("--reservation", None),
    valued("--segment", None),
    valued("--sockets-per-node", None),
    valued("--switches", None),
    valued("--thread-spec", None),
    valued("--threads-per-core", None),
    valued("--time-min", None),
    valued("--tmp", None),
    valued("--tres-bind", None),
    valued("--tres-per-task", None),
    valued("--wait-all-nodes", None),
    valued("--wckey", None),
    flag("--hold", Some('H')),
    flag("--no-kill", Some('k')),
    flag("--overcommit", Some('O')),
    flag("--oversubscribe", Some('s')),
    flag("--exclusive", None),
    flag("--requeue", None),
    flag("--no-requeue", None),
    flag("--contiguous", None),
    flag("--spread-job", None),
    flag("--use-min-nodes", None),
    flag("--reboot", None),
    flag("--ignore-pbs", None),
    flag("--nice", None),
    flag("--propagate", None),
    flag("--get-user-env", None),
    flag("--oom-kill-step", None),
    flag("--stepmgr", None),
    flag("--disable-stdout-job-summary", None),
    reserved(flag("--parsable", None)),
    reserved(flag("--test-only", None)),
    reserved(flag("--wait", Some('W'))),
    reserved(flag("--quiet", Some('Q'))),
    reserved(flag("--verbose", Some('v'))),
    reserved(flag("--help", Some('h'))),
    reserved(flag("--usage", None)),
    reserved(flag("--version", Some('V'))),
    reserved(valued("--wrap", None)),
    reserved(valued("--comment", None)),
    reserved(valued("--export-file", None)),
    reserved(valued("--uid", None)),
    reserved(valued("--gid", None)),
];

/// Mail when a job ends or fails.
const MAIL_TYPES: &str = "END,FAIL";

/// The value of a GPU option, if it is the one that the site wants.
fn write_gpus(request: &JobRequest, wanted: GpuSbatchOption, this: GpuSbatchOption) -> Option<String> {
    let gpus = request.gpus.as_ref().filter(|_| wanted == this)?;
    let nodes = if this == GpuSbatchOption::Gpus { request.nodes_or_one() } else { 1 };
    let count = gpus.count.saturating_mul(nodes);
    Some(match &gpus.model {
        Some(model) => format!("{model}:{count}"),
        None => count.to_string(),
    })
}

/// `h100:4`, `4`, `h100`, or empty for one of any model.
fn parse_gpus(text: &str) -> Option<GpuRequest> {
    let (model, count) = match text.rsplit_once(':') {
        Some((model, count)) => (Some(model), count),
        None if text.is_empty() => (None, "1"),
        None if text.bytes().all(|b| b.is_ascii_digit()) => (None, text),
        None => (Some(text), "1"),
    };
    Some(GpuRequest { model: model.map(str::to_owned), count: count.parse().ok()? })
}

fn write_array(request: &JobRequest) -> Option<String> {
    let ArrayRequest { tasks, at_once } = request.array.as_ref()?;
    Some(at_once.map_or_else(|| tasks.clone(), |most| format!("{tasks}%{most}")))
}
