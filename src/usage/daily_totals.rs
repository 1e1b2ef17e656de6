//! Counts a day's jobs. Hours fall on the day on which they were spent; how a job ended, what it used and how long it
//! waited are counted once, on the day on which it ended. Pure.

use std::collections::HashMap;

use super::breakdown::BreakdownSums;
use super::totals::{UsageJobOutcome, UsageTotals};
use super::units::SiteUnit;
use crate::clock::UnixTime;
use crate::sites::Site;
use crate::slurm::accounting::account_runs::AccountedRun;
use crate::slurm::job_usage::JobUsage;

/// Shorter runs are sampled too rarely to be judged.
const MIN_JUDGED_SECONDS: u64 = 60;
/// Headroom: a job needs the cores and GPUs that were busy, and a fifth more.
const CORE_HEADROOM: (u64, u64) = (6, 5);
/// A job needs its peak memory and a fifth more, but never less than this, in mebibytes.
const MIN_MEMORY_MB: u64 = 1024;
/// One person has at most this many job types per day; the rest counts as one.
const MAX_KINDS_PER_USER: usize = 300;
/// Longest name of a job type, in characters.
const MAX_KIND_LEN: usize = 48;
/// The job type of jobs without a name, and of those beyond the limit.
const UNNAMED_KIND: &str = "without a name";
const OTHER_KINDS: &str = "other names";

/// Whose names are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum UserNameVisibility {
    All,
    /// One person's; everybody else is one sum without a name.
    Only(String),
}

/// A window of time: a day of the cluster's own calendar, or the part of it that is over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OneDayWindow {
    pub from: UnixTime,
    /// The first moment after the window.
    pub until: UnixTime,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DayUsageBreakdown {
    /// Sums by person and job type; both empty for others, whose names are not kept.
    pub rows: Vec<(String, String, UsageTotals)>,
    /// The jobs behind the sums, as far as names are kept.
    pub jobs: Vec<UsageRunDay>,
}

/// A job's run on one day.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UsageRunDay {
    pub raw: u64,
    /// When this run started; when it ended, if it never did.
    pub start: UnixTime,
    pub submitted: Option<UnixTime>,
    pub number: u64,
    /// The array task's index.
    pub task: Option<u32>,
    pub user: String,
    pub kind: String,
    /// How it ended, if it ended on this day: so the jobs of a period are exactly those that are counted in it.
    pub outcome: UsageJobOutcome,
    /// Seconds on this day.
    pub seconds: u64,
    /// Elapsed seconds in total, so far.
    pub elapsed_s: u64,
    /// Seconds in the queue.
    pub wait_s: u64,
    pub cores: u64,
    pub memory_mb: u64,
    /// GPUs by model, such as `v100:2`.
    pub gpus: String,
    pub partition: String,
    pub qos: String,
    /// CPU time, if it was measured.
    pub cpu_s: Option<u64>,
    /// Peak memory, if it was measured.
    pub rss_mb: Option<u64>,
}

/// Counts the runs of one account in a window.
pub fn count_day(
    runs: &[&AccountedRun],
    window: OneDayWindow,
    names: &UserNameVisibility,
    site: &Site,
) -> DayUsageBreakdown {
    let unit = SiteUnit::from_site(site);
    let mut rows: HashMap<(String, String), UsageTotals> = HashMap::new();
    let mut kinds_of: HashMap<String, usize> = HashMap::new();
    let mut jobs = Vec::new();
    for run in runs {
        let seconds = seconds_in(run, window);
        let ended = ends_in(run, window);
        if seconds == 0 && !ended {
            continue;
        }
        let is_named = match names {
            UserNameVisibility::All => true,
            UserNameVisibility::Only(user) => *user == run.user,
        };
        let user = if is_named { run.user.clone() } else { String::new() };
        let mut kind = if is_named { job_kind(&run.name) } else { String::new() };
        if !rows.contains_key(&(user.clone(), kind.clone())) {
            let known = kinds_of.entry(user.clone()).or_default();
            if *known >= MAX_KINDS_PER_USER {
                OTHER_KINDS.clone_into(&mut kind);
            } else {
                *known += 1;
            }
        }
        let rate = unit.map_or(0, |unit| unit.rate(site, run));
        let totals = rows.entry((user.clone(), kind.clone())).or_default();
        add_time(totals, run, seconds, rate);
        if ended {
            add_end(totals, run, is_whole_node(run, site));
        }
        if is_named {
            jobs.push(job_run(run, user, kind, seconds, window));
        }
    }
    let mut rows: Vec<_> = rows.into_iter().map(|((user, kind), totals)| (user, kind, totals)).collect();
    rows.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
    jobs.sort_by_key(|job| (job.raw, job.start));
    jobs.dedup_by_key(|job| (job.raw, job.start));
    DayUsageBreakdown { rows, jobs }
}

/// Whether a run ended within a window.
fn ends_in(run: &AccountedRun, window: OneDayWindow) -> bool {
    run.state.is_over() && run.end.is_some_and(|end| end >= window.from && end < window.until)
}

/// A run's seconds within a window. A run that is still going counts up to the window's end, which is not in the
/// future.
fn seconds_in(run: &AccountedRun, window: OneDayWindow) -> u64 {
    let Some(start) = run.start else { return 0 };
    let end = match run.end {
        Some(end) => end,
        None if run.state.is_over() => return 0,
        None => window.until,
    };
    let overlap = end.min(window.until).since(start.max(window.from));
    let overlap = u64::try_from(overlap).unwrap_or(0);
    // Slurm does not say when the job was suspended: that time is spread evenly over the whole run.
    match u64::try_from(end.since(start)) {
        Ok(whole) if run.suspended_s > 0 && whole > 0 => {
            let ran = whole.saturating_sub(run.suspended_s);
            u64::try_from(u128::from(overlap) * u128::from(ran) / u128::from(whole)).unwrap_or(0)
        }
        _ => overlap,
    }
}

fn add_time(totals: &mut UsageTotals, run: &AccountedRun, seconds: u64, rate: u64) {
    totals.core_s += seconds * u64::from(run.cores);
    totals.site_ms += seconds.saturating_mul(rate);
    let mut gpu_s = 0;
    for gpus in &run.gpus {
        let held = seconds * u64::from(gpus.count);
        gpu_s += held;
        totals.add_gpus(gpus.model.as_deref().unwrap_or_default(), held);
    }
    totals.gpu_s += gpu_s;
    add_breakdown(totals, run, &BreakdownSums { core_s: seconds * u64::from(run.cores), gpu_s, ..Default::default() });
}

fn add_breakdown(totals: &mut UsageTotals, run: &AccountedRun, sums: &BreakdownSums) {
    totals.partitions.add(&BreakdownSums { name: run.partition.clone(), ..sums.clone() });
    totals.qos.add(&BreakdownSums { name: run.qos.clone(), ..sums.clone() });
}

/// Adds a job's end: its outcome, its wait, and its usage against what was allocated.
fn add_end(totals: &mut UsageTotals, run: &AccountedRun, whole_node: bool) {
    let outcome = UsageJobOutcome::from_state(run.state);
    totals.jobs += 1;
    add_breakdown(totals, run, &BreakdownSums { jobs: 1, ..BreakdownSums::default() });
    match outcome {
        UsageJobOutcome::Done => totals.done += 1,
        UsageJobOutcome::Failed => totals.failed += 1,
        UsageJobOutcome::NodeFailed => totals.node_failed += 1,
        UsageJobOutcome::Interrupted => totals.interrupted += 1,
        UsageJobOutcome::MissedDeadline => totals.missed_deadline += 1,
        UsageJobOutcome::TimedOut => totals.timed_out += 1,
        UsageJobOutcome::OutOfMemory => totals.memory_out += 1,
        UsageJobOutcome::Cancelled => totals.cancelled += 1,
        UsageJobOutcome::Running => {}
    }
    let elapsed = elapsed_seconds(run);
    if elapsed > 0 {
        totals.waits.record(wait_seconds(run));
    }
    let cores = u64::from(run.cores);
    let gpus: u64 = run.gpus.iter().map(|gpu| u64::from(gpu.count)).sum();
    if outcome.is_lost() {
        totals.lost_core_s += elapsed * cores;
        totals.lost_gpu_s += elapsed * gpus;
    }
    if elapsed < MIN_JUDGED_SECONDS {
        return;
    }
    let judged = outcome == UsageJobOutcome::Done && !whole_node;
    if let Some(used) = run.usage.cpu_s {
        let held = elapsed * cores;
        totals.held_core_s += held;
        totals.used_core_s += used.min(held);
        // Cores come along with a GPU: asking for fewer would seldom save anything.
        if judged && gpus == 0 {
            totals.spare_core_s += spare_core_s(cores, elapsed, used);
        }
    }
    if let Some(most) = held_mb(&run.usage).filter(|_| run.memory_mb > 0) {
        totals.held_mb_s += elapsed * run.memory_mb;
        totals.used_mb_s += elapsed * most.min(run.memory_mb);
        if judged {
            let enough = (most + most / 5).max(MIN_MEMORY_MB);
            totals.spare_mb_s += run.memory_mb.saturating_sub(enough) * elapsed;
        }
    }
    if let Some(percent) = run.usage.gpu_percent.filter(|_| gpus > 0) {
        let held = elapsed * gpus;
        totals.held_gpu_s += held;
        totals.used_gpu_s += (elapsed * u64::from(percent) / 100).min(held);
        if judged {
            totals.spare_gpu_s += spare_gpu_s(gpus, elapsed, percent.into());
        }
    }
}

/// The core seconds that a smaller request would have saved a successful job without a GPU that did not have a whole
/// node.
pub fn spare_core_s(cores: u64, elapsed: u64, used: u64) -> u64 {
    if elapsed < MIN_JUDGED_SECONDS {
        return 0;
    }
    let busy = (used * CORE_HEADROOM.0).div_ceil(CORE_HEADROOM.1 * elapsed).max(1);
    cores.saturating_sub(busy) * elapsed
}

/// The GPU seconds that a successful job with several GPUs would have saved with fewer. `percent` counts all its GPUs:
/// 150 is one and a half.
fn spare_gpu_s(gpus: u64, elapsed: u64, percent: u64) -> u64 {
    let busy = (percent * CORE_HEADROOM.0).div_ceil(CORE_HEADROOM.1 * 100).max(1);
    gpus.saturating_sub(busy) * elapsed
}

/// The most memory that all its tasks together can have used.
fn held_mb(usage: &JobUsage) -> Option<u64> {
    usage.max_rss_mb.filter(|mb| *mb > 0).map(|mb| mb * u64::from(usage.tasks.max(1)))
}

fn elapsed_seconds(run: &AccountedRun) -> u64 {
    let whole = run.start.zip(run.end).and_then(|(start, end)| u64::try_from(end.since(start)).ok());
    whole.unwrap_or(run.usage.elapsed_s).saturating_sub(run.suspended_s)
}

fn wait_seconds(run: &AccountedRun) -> u64 {
    let wait = run.start.zip(run.eligible).map(|(start, eligible)| start.since(eligible));
    wait.and_then(|wait| u64::try_from(wait).ok()).unwrap_or(0)
}

/// Where jobs get whole nodes, asking for less would free nothing.
fn is_whole_node(run: &AccountedRun, site: &Site) -> bool {
    let of_type = |job_type: &&crate::sites::SiteJobType| job_type.partition.as_deref() == Some(&*run.partition);
    site.jobs.whole_node || site.jobs.types.iter().find(of_type).is_some_and(|job_type| job_type.whole_node)
}

fn job_run(run: &AccountedRun, user: String, kind: String, seconds: u64, window: OneDayWindow) -> UsageRunDay {
    // A run that has started is over, or was running until the window's end.
    let start = run.start.or(run.end).unwrap_or(window.from);
    let so_far = |start: UnixTime| u64::try_from(window.until.since(start)).unwrap_or(0);
    let elapsed_s = match (run.start, run.end) {
        (Some(start), None) if !run.state.is_over() => so_far(start),
        _ => elapsed_seconds(run),
    };
    let gpus = run.gpus.iter();
    let gpus = gpus.map(|gpu| format!("{}:{}", gpu.model.as_deref().unwrap_or_default(), gpu.count));
    UsageRunDay {
        raw: run.raw_id,
        start,
        submitted: run.submitted,
        number: run.number,
        task: run.task,
        user,
        kind,
        outcome: if ends_in(run, window) { UsageJobOutcome::from_state(run.state) } else { UsageJobOutcome::Running },
        seconds,
        elapsed_s,
        wait_s: wait_seconds(run),
        cores: run.cores.into(),
        memory_mb: run.memory_mb,
        gpus: gpus.collect::<Vec<_>>().join(","),
        partition: run.partition.clone(),
        qos: run.qos.clone(),
        cpu_s: run.usage.cpu_s.filter(|_| run.state.is_over()),
        rss_mb: held_mb(&run.usage).filter(|_| run.state.is_over()),
    }
}

/// A job's type: its name with all numbers made equal, so that `fold-1` and `fold-12` are one type.
pub fn job_kind(name: &str) -> String {
    let mut kind = String::new();
    let mut in_number = false;
    for letter in name.trim().chars() {
        let is_digit = letter.is_ascii_digit();
        if !(is_digit && in_number) {
            kind.push(if is_digit { '#' } else { letter });
        }
        in_number = is_digit;
    }
    let kind: String = kind.chars().take(MAX_KIND_LEN).collect();
    if kind.is_empty() { UNNAMED_KIND.to_owned() } else { kind }
}

#[cfg(test)]
mod tests;
