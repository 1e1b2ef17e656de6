//! Suggests a request based on what earlier runs used: never so little that one of them would have failed.

#[cfg(test)]
mod tests;

use super::amounts::{round_up_memory, round_up_minutes};
use super::efficiency::{MIN_MEASURED_S, SHORT_MINUTES, SMALL_MB};
use crate::format;
use crate::recipes::request::{JobRequest, MemoryRequest, RequestField};
use crate::slurm::job::JobState;
use crate::slurm::units::TimeLimit;

pub use crate::slurm::accounting::PastJobRun;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestFieldProposal {
    pub sets: RequestField,
    /// The new value, as typed into the form: `6G`, `2:00:00`, `2`.
    pub value: String,
    /// The current value, in the same form.
    pub was: String,
    /// Why, with the runs it is based on.
    pub sentence: String,
}

/// What to request instead; nothing if too little is known or the difference is small. `whole_node`: nodes are
/// allocated whole, so there is no point in saving cores and memory.
pub fn right_size(runs: &[PastJobRun], asked: &JobRequest, whole_node: bool) -> Vec<RequestFieldProposal> {
    if !runs.iter().any(|run| run.state == JobState::Completed) {
        return Vec::new();
    }
    let mut all: Vec<RequestFieldProposal> = propose_time(runs, asked).into_iter().collect();
    if !whole_node {
        all.extend(propose_memory(runs, asked));
        all.extend(propose_cores(runs, asked));
    }
    all
}

/// `From your last 5 runs`.
fn based_on(runs: usize) -> String {
    match runs {
        1 => "Your last run".to_owned(),
        runs => format!("Your last {runs} runs"),
    }
}

/// Whether a difference is worth a sentence: at least a quarter.
const fn differs(value: u64, was: u64) -> bool {
    value.abs_diff(was).saturating_mul(4) >= was && value != was
}

/// The runs that were long enough to be measured.
fn measured_runs(runs: &[PastJobRun]) -> impl Iterator<Item = &PastJobRun> {
    runs.iter().filter(|run| run.usage.elapsed_s >= MIN_MEASURED_S)
}

fn propose_time(runs: &[PastJobRun], asked: &JobRequest) -> Option<RequestFieldProposal> {
    let was = asked.minutes?;
    let ran = runs.iter().filter(|run| run.state == JobState::Completed);
    let used: Vec<u64> = ran.map(|run| run.usage.elapsed_s).collect();
    let longest = used.iter().copied().max()?;
    let whole = u32::try_from(longest.div_ceil(60)).unwrap_or(u32::MAX);
    let enough = round_up_minutes(whole.saturating_mul(13).div_ceil(10).max(5));
    let out = runs.iter().filter(|run| run.state == JobState::Timeout).filter_map(|run| run.minutes).max();
    let value = out.map_or(enough, |out| enough.max(more_minutes(out)));
    if !differs(value.into(), was.into()) || (value < was && was <= SHORT_MINUTES) {
        return None;
    }
    let based = based_on(used.len());
    let ended = match out {
        Some(out) => format!(" One timed out after {}.", format::minutes(out)),
        None => String::new(),
    };
    Some(RequestFieldProposal {
        sets: RequestField::Time,
        value: format_time_value(value),
        was: format_time_value(was),
        sentence: format!(
            "{based} took at most {}.{ended} {} leaves some margin.",
            format::duration(longest),
            format::minutes(value)
        ),
    })
}

/// Increases a time limit that was too short.
fn more_minutes(too_few: u32) -> u32 {
    round_up_minutes(too_few.saturating_add(too_few.div_ceil(4)).max(5))
}

/// As typed: `2:00:00`.
fn format_time_value(minutes: u32) -> String {
    let text = TimeLimit::Minutes(minutes).to_string();
    text.strip_prefix('0').unwrap_or(&text).to_owned()
}

/// The most memory that a run can have held on one node, in mebibytes; none if that is unknown.
fn peak_memory_per_node(run: &PastJobRun) -> Option<u64> {
    let peak = run.usage.max_rss_mb.filter(|mb| *mb > 0)?;
    let nodes = u64::from(run.nodes.max(1));
    let tasks = u64::from(run.usage.tasks.max(1));
    // Tasks may be spread unevenly; a single task on many nodes says nothing about the other nodes.
    (nodes == 1 || tasks > 1).then(|| peak.saturating_mul(tasks.div_ceil(nodes)))
}

fn propose_memory(runs: &[PastJobRun], asked: &JobRequest) -> Option<RequestFieldProposal> {
    let node_cores = u64::from((asked.all_cores() / asked.nodes_or_one()).max(1));
    // Per node, as it is requested now.
    let (was, sets, parts) = match asked.memory? {
        MemoryRequest::PerNode(mb) => (mb, RequestField::Memory, 1),
        MemoryRequest::PerCore(mb) => (mb.saturating_mul(node_cores), RequestField::MemoryPerCore, node_cores),
        MemoryRequest::PerGpu(_) => return None,
    };
    // A short run is no reason to request less, but what it needed counts.
    measured_runs(runs).find_map(peak_memory_per_node)?;
    let peaks: Vec<u64> = runs.iter().filter_map(peak_memory_per_node).collect();
    let peak = peaks.iter().copied().max()?;
    let per_node = |run: &PastJobRun| run.memory_mb.map(|mb| mb / u64::from(run.nodes.max(1)));
    let out = runs.iter().filter(|run| run.state == JobState::OutOfMemory).filter_map(per_node).max();
    let enough = round_up_memory(peak.saturating_mul(6).div_ceil(5).max(256));
    let value = out.map_or(enough, |out| enough.max(round_up_memory(out.saturating_add(out.div_ceil(4)))));
    let each = round_up_each(value, parts);
    let value = each.saturating_mul(parts);
    if !differs(value, was) || (value < was && was <= SMALL_MB) {
        return None;
    }
    let based = based_on(peaks.len());
    let ended = match out {
        Some(out) => format!(" One ran out of memory with {}.", format::memory(out)),
        None => String::new(),
    };
    let for_each = if parts > 1 { " per core" } else { "" };
    Some(RequestFieldProposal {
        sets,
        value: format::memory_option(each),
        was: format::memory_option(was / parts.max(1)),
        sentence: format!(
            "{based} used at most {} of the {} you're requesting now.{ended} {}{for_each} leaves some margin.",
            format::memory(peak),
            format::memory(was),
            format::memory(each)
        ),
    })
}

/// Divides an amount, rounding up.
const fn round_up_each(whole: u64, parts: u64) -> u64 {
    if parts <= 1 { whole } else { whole.div_ceil(parts).div_ceil(256).saturating_mul(256) }
}

fn propose_cores(runs: &[PastJobRun], asked: &JobRequest) -> Option<RequestFieldProposal> {
    let was = asked.cores.filter(|cores| *cores > 1)?;
    // For tasks that work together or wait for a GPU, the number of busy cores says little.
    if asked.all_tasks() > 1 || asked.gpus.is_some() {
        return None;
    }
    let single = |run: &&PastJobRun| run.nodes <= 1 && run.usage.tasks <= 1 && run.gpus.is_empty();
    let busy = |run: &PastJobRun| {
        let tenths = run.usage.cpu_s?.saturating_mul(10).div_ceil(run.usage.elapsed_s.max(1));
        (run.state == JobState::Completed).then_some((tenths, run.cores))
    };
    let found: Vec<(u64, u32)> = measured_runs(runs).filter(single).filter_map(busy).collect();
    let (most, _) = found.iter().copied().max()?;
    // All its cores were busy: if it had fewer than now, it may have needed more.
    let starved = found.iter().any(|(tenths, cores)| *tenths * 10 >= u64::from(*cores) * 90);
    let value = most.saturating_mul(12).div_ceil(100).max(1);
    if starved || value >= u64::from(was) || !differs(value, was.into()) {
        return None;
    }
    Some(RequestFieldProposal {
        sets: RequestField::Cores,
        value: value.to_string(),
        was: was.to_string(),
        sentence: format!(
            "{} kept {}.{} cores busy on average, and you're requesting {} now. More cores only help a program that is set to \
             use them.",
            based_on(found.len()),
            most / 10,
            most % 10,
            was
        ),
    })
}
