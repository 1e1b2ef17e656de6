//! Compares what a job used with what it requested, and suggests what to request next time. Memory and GPU usage is
//! only sampled, and some samples mean little: such figures say so and are not judged.

#[cfg(test)]
mod tests;

use super::amounts::{round_up_memory, round_up_minutes};
use super::verdict::SuggestedSbatchOption;
use crate::format;
use crate::slurm::job::{JobStage, JobState, SlurmJob};
use crate::slurm::job_usage::JobUsage;
use crate::slurm::units::TimeLimit;

/// Shorter jobs are sampled too rarely, and their first seconds say little about the rest.
pub(super) const MIN_MEASURED_S: u64 = 120;
/// Less memory than this is not worth saving.
pub(super) const SMALL_MB: u64 = 2048;
/// Less time than this is not worth saving.
pub(super) const SHORT_MINUTES: u32 = 60;

/// A running or ended job with its usage.
#[derive(Debug, Clone, Copy)]
pub struct MeasuredJob<'a> {
    pub job: &'a SlurmJob,
    /// Usage (so far).
    pub usage: &'a JobUsage,
    /// Whether it has whole nodes to itself.
    pub whole_node: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum UsageJudgement {
    /// The request matched the need.
    Good,
    /// Much of the request went unused.
    Low,
    /// Usage came close to the limit.
    High,
    Unknown,
}

/// One requested resource and its usage.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EfficiencyFigure {
    /// The resource: `Cores`.
    pub label: &'static str,
    /// Usage: `3.1 cores`; empty if unknown.
    pub used: String,
    /// The request: `4 cores`; empty if unknown.
    pub asked: String,
    /// Usage as a percentage of the request; may exceed 100.
    pub percent: Option<u32>,
    pub judgement: UsageJudgement,
    /// A remark; may be empty.
    pub note: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobEfficiency {
    /// Cores, memory, time, and GPUs if it had any.
    pub figures: Vec<EfficiencyFigure>,
    /// What to request next time; empty if the request fit or nothing can be said.
    pub next: Vec<SuggestedSbatchOption>,
    /// What makes the figures less certain, one sentence each.
    pub caveats: Vec<String>,
}

/// Compares usage with the request.
pub fn efficiency(measured: &MeasuredJob<'_>) -> JobEfficiency {
    let MeasuredJob { job, usage, whole_node } = *measured;
    let mut all = JobEfficiency::default();
    let brief = usage.elapsed_s < MIN_MEASURED_S;
    let is_running = job.state.stage() == JobStage::Running;
    if brief && usage.elapsed_s > 0 {
        let caveat = if is_running {
            "It's too early to rate usage. The portal does this once a job has run for two minutes."
        } else {
            "The job ran for less than two minutes, too short to rate its usage."
        };
        all.caveats.push(caveat.to_owned());
    }
    if is_running {
        all.caveats.push("The job is still running; these are the figures so far.".to_owned());
    }
    if job.id.task.is_some() || job.tasks.is_some() {
        all.caveats.push(
            "This is one task of a job array. Others may need more, so check the largest before you request less."
                .to_owned(),
        );
    }
    all.figures.push(cores_figure(job, usage, whole_node));
    all.figures.push(memory_figure(job, usage, whole_node));
    all.figures.push(time_figure(job, usage));
    all.figures.extend(gpus_figure(job, usage));
    if brief {
        for figure in all.figures.iter_mut().filter(|figure| figure.label != TIME_LABEL) {
            figure.judgement = UsageJudgement::Unknown;
            // Notes are advice as well.
            figure.note.clear();
        }
    }
    if job.state == JobState::Completed {
        all.next = suggest_options(measured, brief);
    }
    all
}

/// The label of the figure for the time.
pub const TIME_LABEL: &str = "Time";

/// None instead of a division by zero.
fn percent(used: u64, asked: u64) -> Option<u32> {
    let percent = (u128::from(used) * 100 + u128::from(asked) / 2).checked_div(u128::from(asked))?;
    Some(u32::try_from(percent.min(9999)).unwrap_or(9999))
}

/// Average busy cores, in tenths.
fn busy_core_tenths(usage: &JobUsage) -> Option<u64> {
    (usage.cpu_s?.saturating_mul(10).saturating_add(usage.elapsed_s / 2)).checked_div(usage.elapsed_s)
}

fn cores_figure(job: &SlurmJob, usage: &JobUsage, whole_node: bool) -> EfficiencyFigure {
    let cpus = u64::from(job.cpus);
    let percent = usage.cpu_s.and_then(|cpu| percent(cpu, usage.elapsed_s.saturating_mul(cpus)));
    let busy = busy_core_tenths(usage);
    let used = match busy {
        Some(tenths) if tenths % 10 == 0 => (tenths / 10).to_string(),
        Some(tenths) => format!("{}.{}", tenths / 10, tenths % 10),
        None => String::new(),
    };
    let judgement = match percent {
        None => UsageJudgement::Unknown,
        Some(0..50) => UsageJudgement::Low,
        Some(_) => UsageJudgement::Good,
    };
    let low = judgement == UsageJudgement::Low;
    let note = match (low, busy) {
        (true, _) if whole_node => "This cluster allocates whole nodes, so the idle cores were reserved anyway.",
        (true, _) if job.gpu_count() > 0 => "This is often fine for GPU programs, unless the GPU had to wait for data.",
        (true, Some(7..=12)) if cpus > 1 => {
            "It kept about one core busy. Many programs use more cores only if you set an option, or the OMP_NUM_THREADS variable."
        }
        (true, _) if cpus == 1 => "Idle much of the time. The program may be waiting for files.",
        (true, _) => "Idle much of the time. The program may be waiting for files, or the cores for each other.",
        (false, _) => "",
    };
    let asked = if cpus > 0 { format::count(cpus, "core") } else { String::new() };
    EfficiencyFigure { label: "Cores", used, asked, percent, judgement, note: note.to_owned() }
}

/// The most memory that all tasks together can have held, in mebibytes, and whether that is an estimate.
fn peak_memory(usage: &JobUsage) -> Option<(u64, bool)> {
    let most = usage.max_rss_mb.filter(|mb| *mb > 0)?;
    let tasks = u64::from(usage.tasks.max(1));
    Some((most.saturating_mul(tasks), tasks > 1))
}

fn memory_figure(job: &SlurmJob, usage: &JobUsage, whole_node: bool) -> EfficiencyFigure {
    let asked = job.memory_mb.filter(|mb| *mb > 0);
    let peak = peak_memory(usage);
    let percent = peak.zip(asked).and_then(|((peak, _), asked)| percent(peak, asked));
    let several = peak.is_some_and(|(_, estimate)| estimate);
    let (judgement, note) = match percent {
        None => (UsageJudgement::Unknown, "Memory use wasn't measured.".to_owned()),
        Some(_) if whole_node => (
            UsageJudgement::Unknown,
            "The job had its nodes to itself, so all their memory was counted. Requesting less would free nothing."
                .to_owned(),
        ),
        Some(_) if several => (
            UsageJudgement::Unknown,
            format!(
                "Measured per task: {} tasks, the largest used {}. Together they used no more than this, possibly \
                 much less.",
                usage.tasks,
                format::memory(usage.max_rss_mb.unwrap_or(0))
            ),
        ),
        Some(0..50) if asked.is_some_and(|asked| asked > SMALL_MB) => (
            UsageJudgement::Low,
            "Nobody else can use memory that you request but don't use, and smaller requests start sooner.".to_owned(),
        ),
        Some(101..) => (UsageJudgement::High, "Over the limit: Slurm stops jobs that do this.".to_owned()),
        Some(95..) => (
            UsageJudgement::High,
            "Close to the limit: with slightly more, Slurm would have stopped the job.".to_owned(),
        ),
        Some(_) => (UsageJudgement::Good, String::new()),
    };
    let at_most = if several { "at most " } else { "" };
    EfficiencyFigure {
        label: "Memory",
        used: peak.map(|(peak, _)| format!("{at_most}{}", format::memory(peak))).unwrap_or_default(),
        asked: asked.map(format::memory).unwrap_or_default(),
        percent,
        judgement,
        note,
    }
}

fn time_figure(job: &SlurmJob, usage: &JobUsage) -> EfficiencyFigure {
    let asked = job.time_limit.minutes();
    let percent = asked.and_then(|asked| percent(usage.elapsed_s, u64::from(asked) * 60));
    let over = job.state.is_over();
    // Nothing is said about a job that never started.
    let (judgement, note) = match percent.filter(|_| usage.elapsed_s > 0) {
        None => (UsageJudgement::Unknown, ""),
        Some(0..25) if over && asked.is_some_and(|asked| asked > SHORT_MINUTES) => {
            (UsageJudgement::Low, "Jobs with shorter time limits often start sooner.")
        }
        Some(90..) => (UsageJudgement::High, "Close to the limit: Slurm stops jobs that run longer."),
        Some(_) => (UsageJudgement::Good, ""),
    };
    let asked = match job.time_limit {
        TimeLimit::Minutes(asked) => format::minutes(asked),
        TimeLimit::Unlimited => "no limit".to_owned(),
        TimeLimit::Unknown => String::new(),
    };
    let used = format::duration(usage.elapsed_s);
    EfficiencyFigure { label: TIME_LABEL, used, asked, percent, judgement, note: note.to_owned() }
}

fn gpus_figure(job: &SlurmJob, usage: &JobUsage) -> Option<EfficiencyFigure> {
    let asked = job.gpu_count();
    if asked == 0 {
        return None;
    }
    // Accounting reports percent of one GPU: two busy ones are 200.
    let percent = usage.gpu_percent.map(|percent| percent / asked);
    let (judgement, note) = match percent {
        None => (
            UsageJudgement::Unknown,
            "This cluster doesn't report GPU use. You can run nvidia-smi in the job script to see it.",
        ),
        Some(0..5) => (
            UsageJudgement::Low,
            "The GPU was hardly used. Check that the program was installed with GPU support and is set to use it.",
        ),
        Some(5..40) => (
            UsageJudgement::Low,
            "The GPU was idle much of the time, usually waiting for data. More cores for loading or larger batches may help.",
        ),
        Some(_) => (UsageJudgement::Good, ""),
    };
    let mut used = percent.map(|percent| format!("{percent}% busy")).unwrap_or_default();
    if let Some(peak) = usage.gpu_memory_mb.filter(|mb| *mb > 0) {
        let join = if used.is_empty() { "" } else { ", " };
        used = format!("{used}{join}{} of its memory", format::memory(peak));
    }
    let asked = super::amounts::format_gpus(&job.gpus);
    Some(EfficiencyFigure { label: "GPUs", used, asked, percent, judgement, note: note.to_owned() })
}

/// What to request next time, with headroom. Only where it changes the request by a quarter or more.
fn suggest_options(measured: &MeasuredJob<'_>, brief: bool) -> Vec<SuggestedSbatchOption> {
    let MeasuredJob { job, usage, whole_node } = *measured;
    let mut next = Vec::new();
    let saves = |value: u64, asked: u64| value.saturating_mul(4) <= asked.saturating_mul(3);
    let nodes = u64::from(job.nodes.max(1));
    if let (Some((peak, _)), Some(asked), false) = (peak_memory(usage), job.memory_mb, whole_node || brief) {
        let value = round_up_memory((peak / nodes).saturating_mul(5).div_ceil(4).max(256));
        let near = peak.saturating_mul(100) >= asked.saturating_mul(95) && usage.tasks <= 1;
        let each = if nodes > 1 { " per node" } else { "" };
        // Tasks may be spread unevenly over nodes; then no safe suggestion is possible.
        let uneven = nodes > 1 && usage.tasks <= 1;
        if (saves(value, asked / nodes) && asked > SMALL_MB && !uneven) || (near && nodes == 1) {
            next.push(SuggestedSbatchOption {
                option: format!("--mem={}", format::memory_option(value)),
                why: format!("Its peak plus 25%: {}{each}.", format::memory(value)),
            });
        }
    }
    if let Some(asked) = job.time_limit.minutes().filter(|asked| *asked > SHORT_MINUTES && !brief) {
        let ran = u32::try_from(usage.elapsed_s.div_ceil(60)).unwrap_or(u32::MAX);
        let value = round_up_minutes(ran.saturating_mul(13).div_ceil(10).max(5));
        if saves(value.into(), asked.into()) {
            next.push(SuggestedSbatchOption {
                option: format!("--time={}", TimeLimit::Minutes(value)),
                why: format!("Its run time plus 30%: {}.", format::minutes(value)),
            });
        }
    }
    let single = job.nodes <= 1 && usage.tasks <= 1 && job.gpu_count() == 0 && !whole_node && !brief;
    if let Some(tenths) = busy_core_tenths(usage).filter(|_| single) {
        let value = tenths.saturating_mul(12).div_ceil(100).max(1);
        if value.saturating_mul(2) <= u64::from(job.cpus) {
            next.push(SuggestedSbatchOption {
                option: format!("--cpus-per-task={value}"),
                why: "It kept fewer cores than that busy on average. The rest is headroom.".to_owned(),
            });
        }
    }
    next
}
