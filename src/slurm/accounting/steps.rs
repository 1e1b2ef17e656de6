//! What job steps used: of one job, or of several past runs together with what they requested.

use crate::slurm::fields::{
    all_digits, delimiter_option, for_each_record, parse_cpu_seconds, parse_job_id, parse_number, parse_tres, parse_u32,
};
use crate::slurm::gres::GpuCount;
use crate::slurm::job::{JobId, JobState};
use crate::slurm::job_usage::JobUsage;
use crate::slurm::units::{TimeLimit, parse_memory_mb};

const STEP_FIELDS: &str = "JobID,State,ElapsedRaw,TotalCPU,MaxRSS,NTasks,TRESUsageInAve,TRESUsageInMax";
pub(super) const STEP_FIELD_COUNT: usize = 8;
/// Fields that only a job's row has, after those of steps.
const REQUEST_FIELDS: &str = "Timelimit,NCPUS,NNodes,ReqTRES";
const PAST_FIELD_COUNT: usize = STEP_FIELD_COUNT + 4;

/// The most steps read.
const MAX_STEPS: usize = 20_000;
/// The most past runs kept; each array task is one.
const MAX_RUNS: usize = 200;

/// A run with what it requested and what it used.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PastJobRun {
    /// The job ID; for a task, that of the array.
    pub number: u64,
    pub state: JobState,
    /// The requested time limit.
    pub minutes: Option<u32>,
    /// The requested memory, on all its nodes together.
    pub memory_mb: Option<u64>,
    /// Its cores, on all its nodes together.
    pub cores: u32,
    pub nodes: u32,
    /// The requested GPUs.
    pub gpus: Vec<GpuCount>,
    pub usage: JobUsage,
}

/// The arguments for the steps of one job or task; for an array's ID, only its first task is read.
pub fn steps_args(nonce: &str, id: JobId) -> Option<Vec<String>> {
    let delimiter = delimiter_option(nonce)?;
    let id = id.to_string();
    Some(["-n", "-p", &delimiter, "-j", &id, "-o", STEP_FIELDS].map(str::to_owned).to_vec())
}

/// Parses what the job used, as far as it was measured. None if there is no such job.
pub fn parse_steps(answer: &[u8], nonce: &str) -> Option<JobUsage> {
    let mut found: Option<StepTotals> = None;
    let mut left = MAX_STEPS;
    for_each_record::<STEP_FIELD_COUNT>(answer, nonce, |fields| {
        let (job, step) = fields[0].split_once('.').unwrap_or((fields[0], ""));
        if job.starts_with(|c: char| c.is_ascii_digit()) {
            let totals = found.get_or_insert_with(|| StepTotals::new(job));
            if totals.job == job {
                totals.add(step, &fields);
            }
        }
        left -= 1;
        left > 0
    });
    found.map(StepTotals::into_usage)
}

/// The sum of one job's steps.
#[derive(Default)]
pub(super) struct StepTotals {
    job: String,
    usage: JobUsage,
    cpu_of_steps: Option<u64>,
    /// Memory and tasks of the `extern` step, which only watches over the job: it counts if there is no other.
    extern_step_rss_mb: Option<u64>,
    most_tasks: u32,
}

impl StepTotals {
    pub(super) fn new(job: &str) -> Self {
        Self { job: job.to_owned(), ..Self::default() }
    }

    pub(super) fn is_for_job(&self, job: &str) -> bool {
        self.job == job
    }

    pub(super) fn add(&mut self, step: &str, fields: &[&str; STEP_FIELD_COUNT]) {
        let [_, _, elapsed, cpu, rss, tasks, average, most] = *fields;
        let (cpu, rss, tasks) = (parse_cpu_seconds(cpu), parse_bytes_mb(rss), parse_u32(tasks));
        let usage = &mut self.usage;
        if step.is_empty() {
            usage.elapsed_s = parse_number(elapsed);
            usage.cpu_s = cpu;
            return;
        }
        if let Some(cpu) = cpu {
            let sum = self.cpu_of_steps.unwrap_or(0);
            self.cpu_of_steps = Some(sum.saturating_add(cpu));
        }
        usage.gpu_percent = usage.gpu_percent.max(find_tres_value(average, "gres/gpuutil").map(parse_u32));
        usage.gpu_memory_mb = usage.gpu_memory_mb.max(find_tres_value(most, "gres/gpumem").and_then(parse_bytes_mb));
        if step == "extern" {
            self.extern_step_rss_mb = rss;
            return;
        }
        self.most_tasks = self.most_tasks.max(tasks);
        if rss > usage.max_rss_mb {
            (usage.max_rss_mb, usage.tasks) = (rss, tasks);
        }
    }

    pub(super) fn into_usage(self) -> JobUsage {
        let mut usage = self.usage;
        usage.cpu_s = usage.cpu_s.or(self.cpu_of_steps);
        if usage.max_rss_mb.is_none() {
            (usage.max_rss_mb, usage.tasks) = (self.extern_step_rss_mb, self.most_tasks);
        }
        usage.tasks = usage.tasks.max(1);
        usage
    }
}

/// The amount of one resource in `cpu=00:00:13,gres/gpumem=6G,gres/gpuutil=45`.
fn find_tres_value<'a>(list: &'a str, name: &str) -> Option<&'a str> {
    list.split(',').find_map(|piece| piece.strip_prefix(name)?.strip_prefix('='))
}

/// Mebibytes from `95980K`, or from bytes without a unit.
fn parse_bytes_mb(text: &str) -> Option<u64> {
    if all_digits(text) { Some(parse_number(text).div_ceil(1 << 20)) } else { parse_memory_mb(text) }
}

/// The arguments for past runs and their steps.
pub fn past_runs_args(nonce: &str, numbers: &[u64]) -> Option<Vec<String>> {
    let delimiter = delimiter_option(nonce)?;
    let numbers: Vec<String> = numbers.iter().map(u64::to_string).collect();
    let fields = format!("{STEP_FIELDS},{REQUEST_FIELDS}");
    (!numbers.is_empty())
        .then(|| ["-n", "-p", &delimiter, "-j", &numbers.join(","), "-o", &fields].map(str::to_owned).to_vec())
}

/// Parses one run for each job and each array task, in the order of the output.
pub fn parse_past_runs(answer: &[u8], nonce: &str) -> Vec<PastJobRun> {
    let mut found: Vec<(PastJobRun, StepTotals)> = Vec::new();
    let mut left = MAX_STEPS;
    for_each_record::<PAST_FIELD_COUNT>(answer, nonce, |fields| {
        let [id, state, elapsed, cpu, rss, tasks, average, most, limit, cpus, nodes, asked] = fields;
        let (job, step) = id.split_once('.').unwrap_or((id, ""));
        let of_step = [id, state, elapsed, cpu, rss, tasks, average, most];
        if step.is_empty()
            && found.len() < MAX_RUNS
            && let Some((JobId { number, .. }, None)) = parse_job_id(job, 0)
        {
            let asked = parse_tres(asked);
            let run = PastJobRun {
                number,
                state: JobState::parse(state),
                minutes: TimeLimit::parse(limit).minutes(),
                memory_mb: asked.memory_mb,
                cores: parse_u32(cpus),
                nodes: parse_u32(nodes),
                gpus: asked.gpus,
                usage: JobUsage::default(),
            };
            found.push((run, StepTotals::new(job)));
        }
        if let Some((_, totals)) = found.last_mut().filter(|(_, totals)| totals.job == job) {
            totals.add(step, &of_step);
        }
        left -= 1;
        left > 0
    });
    found.into_iter().map(|(run, totals)| PastJobRun { usage: totals.into_usage(), ..run }).collect()
}
