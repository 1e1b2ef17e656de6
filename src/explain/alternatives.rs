//! Alternative requests that may start sooner: less time, another GPU, another job type, fewer nodes. Also compares
//! the scheduler's estimates for them.

#[cfg(test)]
mod tests;

use super::can_start::can_start;
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::format;
use crate::recipes::context::{AvailableGpu, ComposeCluster};
use crate::recipes::partition_choice::choose_partition;
use crate::recipes::request::{JobRequest, RequestField, SbatchDirective};
use crate::sites::{JobOptionRule, SiteJobType};
use crate::slurm::test_only::TestOnlyAnswer;

/// The most alternatives to try: each one costs the scheduler a pass through its plan.
const MAX_ALTERNATIVES: usize = 6;
/// Where clusters commonly separate long jobs from short ones, in minutes.
const TIME_BINS: [u32; 4] = [1440, 720, 180, 60];
/// The most shorter time limits to try.
const MAX_TIMES: usize = 3;
/// The most other GPUs, and the most other job types, to try.
const MAX_PER_KIND: usize = 2;
/// An estimate counts as sooner only if it saves this many seconds and a fifth of the wait.
const NOTABLE_S: i64 = 600;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestAlternative {
    /// `with 3 h instead of 1 day`.
    pub words: String,
    /// What to change, as typed into the form.
    pub changes: Vec<(RequestField, String)>,
    /// The `sbatch` options that override those in the script.
    pub args: Vec<String>,
}

/// Lists alternatives that can start here.
pub fn alternatives(request: &JobRequest, cluster: &ComposeCluster) -> Vec<RequestAlternative> {
    let make = |(words, changes, then): AlternativeRequest| {
        let args = changed_options(request, &then, cluster)?;
        can_start(&then, cluster).then_some(RequestAlternative { words, changes, args })
    };
    let mut all: Vec<RequestAlternative> =
        shorter_times(request).into_iter().filter_map(make).take(MAX_TIMES).collect();
    all.extend(other_gpus(request, cluster).into_iter().filter_map(make).take(MAX_PER_KIND));
    all.extend(other_job_types(request, cluster).into_iter().filter_map(make).take(MAX_PER_KIND));
    all.extend(fewer_nodes(request).into_iter().filter_map(make));
    all.truncate(MAX_ALTERNATIVES);
    all
}

type AlternativeRequest = (String, Vec<(RequestField, String)>, JobRequest);

/// The options that differ. None if one would have to be removed: options inside the script cannot be.
fn changed_options(request: &JobRequest, changed: &JobRequest, cluster: &ComposeCluster) -> Option<Vec<String>> {
    let option = cluster.site.jobs.gpu_option;
    let (before, after) = (request.directives(option), changed.directives(option));
    let is_kept = |old: &SbatchDirective| after.iter().any(|new| new.option == old.option);
    before.iter().all(is_kept).then_some(())?;
    let new: Vec<&SbatchDirective> = after.iter().filter(|directive| !before.contains(directive)).collect();
    (!new.is_empty()).then(|| new.into_iter().map(SbatchDirective::to_argument).collect())
}

fn shorter_times(request: &JobRequest) -> Vec<AlternativeRequest> {
    let Some(asked) = request.minutes else { return Vec::new() };
    let shorter = TIME_BINS.into_iter().filter(|bin| *bin < asked);
    let alternative = |bin: u32| {
        let words = format!("with {} instead of {}", format::minutes(bin), format::minutes(asked));
        let value = format!("{}:00:00", bin / 60);
        (words, vec![(RequestField::Time, value)], JobRequest { minutes: Some(bin), ..request.clone() })
    };
    shorter.map(alternative).collect()
}

fn other_gpus(request: &JobRequest, cluster: &ComposeCluster) -> Vec<AlternativeRequest> {
    let Some(asked) = &request.gpus else { return Vec::new() };
    // Where jobs name no GPU model, the job type decides: see below.
    if cluster.site.jobs.gpu_model == JobOptionRule::Never {
        return Vec::new();
    }
    let is_other = |gpu: &&AvailableGpu| {
        gpu.model.is_some() && gpu.model != asked.model && !(gpu.is_slice && request.all_gpus() > 1)
    };
    let now = asked.model.as_deref().unwrap_or("any GPU");
    let alternative = |gpu: &AvailableGpu| {
        let model = gpu.model.clone()?;
        let mut then = request.clone();
        then.gpus.as_mut()?.model = Some(model.clone());
        let mut changes = vec![(RequestField::GpuModel, model)];
        if request.partition.is_some() {
            let unset = JobRequest { partition: None, ..then.clone() };
            let by_cluster = || choose_partition(&unset, cluster).map(|partition| partition.name.clone());
            then.partition = gpu.partition.clone().or_else(by_cluster).or(then.partition);
            let other = then.partition.iter().find(|partition| request.partition.as_ref() != Some(partition));
            changes.extend(other.map(|partition| (RequestField::Partition, form_value(cluster, partition))));
        }
        Some((format!("on {} instead of {now}", gpu.label), changes, then))
    };
    cluster.gpus.iter().filter(is_other).filter_map(alternative).collect()
}

/// The name of a partition's job type, which forms show instead of the partition.
fn form_value(cluster: &ComposeCluster, partition: &str) -> String {
    let fits = |job_type: &&SiteJobType| job_type.partition.as_deref() == Some(partition) && job_type.qos.is_none();
    let job_type = cluster.site.jobs.types.iter().find(fits);
    job_type.map_or(partition, |job_type| job_type.name.as_str()).to_owned()
}

fn other_job_types(request: &JobRequest, cluster: &ComposeCluster) -> Vec<AlternativeRequest> {
    let jobs = &cluster.site.jobs;
    if jobs.partition == JobOptionRule::Never {
        return Vec::new();
    }
    let wants_gpus = request.gpus.is_some();
    let change = |name: &str, partition: Option<String>, qos: Option<String>| {
        let changed = JobRequest { partition, qos, ..request.clone() };
        let differs = (&changed.partition, &changed.qos) != (&request.partition, &request.qos);
        let words = format!("in {name}");
        differs.then(|| (words, vec![(RequestField::Partition, name.to_owned())], changed))
    };
    if jobs.types.is_empty() {
        let fits = |partition: &&crate::recipes::context::Partition| {
            partition.is_up
                && !partition.is_restricted
                && partition.gpus.is_empty() != wants_gpus
                && !(partition.is_default && request.partition.is_none())
        };
        return cluster
            .partitions
            .iter()
            .filter(fits)
            .filter_map(|partition| change(&partition.name, Some(partition.name.clone()), request.qos.clone()))
            .collect();
    }
    let fits = |job_type: &&SiteJobType| {
        job_type.gpus == wants_gpus || (job_type.qos.is_some() && job_type.partition.is_none())
    };
    jobs.types
        .iter()
        .filter(fits)
        // A job type that is only a QOS keeps the job's partition.
        .filter_map(|job_type| {
            change(&job_type.name, job_type.partition.clone().or(request.partition.clone()), job_type.qos.clone())
        })
        .collect()
}

fn fewer_nodes(request: &JobRequest) -> Vec<AlternativeRequest> {
    let Some(asked) = request.nodes.filter(|nodes| *nodes > 1) else { return Vec::new() };
    let fewer = asked / 2;
    let words = format!("on {} instead of {asked}", format::count(fewer.into(), "node"));
    let mut then = JobRequest { nodes: Some(fewer), ..request.clone() };
    let mut changes = vec![(RequestField::Nodes, fewer.to_string())];
    // Keep the number of tasks per node.
    if let Some(tasks) = request.tasks {
        let tasks = (tasks / 2).max(1);
        then.tasks = Some(tasks);
        changes.push((RequestField::Tasks, tasks.to_string()));
    }
    vec![(words, changes, then)]
}

/// One line of the comparison.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SoonerStart {
    /// In words, relative to now: `with 3 h instead of 1 day: in about 20 min instead of in about 2 days 4 h`.
    pub sentence: String,
    /// When it would start; pages show it in the reader's time zone.
    pub at: UnixTime,
    pub changes: Vec<(RequestField, String)>,
}

/// When a request would start, in words; none if unknown.
pub fn start_words(now: UnixTime, asked: &TestOnlyAnswer) -> Option<String> {
    match asked {
        TestOnlyAnswer::Starts(start) => Some(format!("Starts {} (estimated).", from_now(now, start.at))),
        TestOnlyAnswer::Refused(_) | TestOnlyAnswer::Unclear => None,
    }
}

/// The alternatives that would start notably sooner, soonest first. These are estimates: jobs end early, and new ones
/// arrive.
pub fn compare_starts(
    now: UnixTime,
    asked: &TestOnlyAnswer,
    tried: &[(RequestAlternative, TestOnlyAnswer)],
) -> Vec<SoonerStart> {
    let as_asked = match asked {
        TestOnlyAnswer::Starts(start) => Some(start.at),
        TestOnlyAnswer::Refused(_) => None,
        // If the original start is unknown, nothing can be called sooner.
        TestOnlyAnswer::Unclear => return Vec::new(),
    };
    let is_notable = |at: UnixTime| {
        as_asked.is_none_or(|asked| {
            let (wait, saved) = (asked.since(now).max(0), asked.since(at));
            saved >= NOTABLE_S && saved >= wait / 5
        })
    };
    let row = |(alternative, answer): &(RequestAlternative, TestOnlyAnswer)| {
        let TestOnlyAnswer::Starts(start) = answer else { return None };
        let then = match as_asked {
            Some(asked) => format!("instead of {}", from_now(now, asked)),
            None => "(the current request would be rejected)".to_owned(),
        };
        let soon = from_now(now, start.at);
        is_notable(start.at).then(|| SoonerStart {
            sentence: format!("{}: {soon} {then}", alternative.words),
            at: start.at,
            changes: alternative.changes.clone(),
        })
    };
    let mut rows: Vec<SoonerStart> = tried.iter().filter_map(row).collect();
    rows.sort_by_key(|row| row.at);
    rows
}

/// `at once`, `in about 20 min`, `in about 2 days 4 h`. Rounded, as the cluster's clock and ours differ a little.
fn from_now(now: UnixTime, at: UnixTime) -> String {
    const DAY: u64 = SECONDS_PER_DAY.unsigned_abs();
    let seconds = u64::try_from(at.since(now)).unwrap_or(0);
    let rounded = match seconds {
        0..90 => return "immediately".to_owned(),
        90..3600 => seconds.div_ceil(60) * 60,
        3600..DAY => seconds.div_ceil(900) * 900,
        _ => seconds.div_ceil(3600) * 3600,
    };
    format!("in about {}", format::duration(rounded))
}
