//! Can a request ever start here? Checks it against known facts only: where nothing is known, nothing is reported.

mod account_check;
mod node_fit;
#[cfg(test)]
mod tests;

use super::job_types::{candidate_partitions, matching_job_types, task_count};
use crate::format;
use crate::recipes::context::ComposeCluster;
use crate::recipes::partition_choice::accepts_account;
use crate::recipes::request::{JobRequest, RequestField};
use crate::sites::{JobOptionRule, SiteFamily, StorageAreaKind, SubmitFolderRule};

/// A reason why a request may not start.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RequestProblem {
    /// The field that it is about.
    pub sets: RequestField,
    pub severity: RequestProblemSeverity,
    /// What is wrong, and what to do.
    pub sentence: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum RequestProblemSeverity {
    /// The cluster will reject it, or let it wait forever.
    Refused,
    /// The cluster may reject it, or do something unexpected.
    Warning,
}

/// All problems, the certain ones first.
pub fn find_problems(request: &JobRequest, cluster: &ComposeCluster) -> Vec<RequestProblem> {
    let mut collector = RequestProblemCollector { cluster, problems: Vec::new() };
    account_check::check(request, &mut collector);
    check_partition(request, &mut collector);
    check_time(request, &mut collector);
    check_site_rules(request, &mut collector);
    node_fit::check(request, &mut collector);
    check_array(request, &mut collector);
    check_folders(request, &mut collector);
    collector.problems.sort_by_key(|problem| problem.severity);
    collector.problems
}

/// Whether there are no certain problems.
pub fn can_start(request: &JobRequest, cluster: &ComposeCluster) -> bool {
    find_problems(request, cluster).iter().all(|problem| problem.severity != RequestProblemSeverity::Refused)
}

/// The problems found so far.
struct RequestProblemCollector<'a> {
    cluster: &'a ComposeCluster,
    problems: Vec<RequestProblem>,
}

impl RequestProblemCollector<'_> {
    fn add_refused(&mut self, sets: RequestField, sentence: impl Into<String>) {
        self.add(sets, RequestProblemSeverity::Refused, sentence);
    }

    fn add_warning(&mut self, sets: RequestField, sentence: impl Into<String>) {
        self.add(sets, RequestProblemSeverity::Warning, sentence);
    }

    /// Adds a problem from a rule in the site's file; a warning if the file marks the rule as uncertain.
    fn add_by_rule(&mut self, field: &str, sets: RequestField, sentence: impl Into<String>) {
        let doubted = self.cluster.site.uncertain.iter().any(|uncertain| uncertain.field == field);
        let severity = if doubted { RequestProblemSeverity::Warning } else { RequestProblemSeverity::Refused };
        self.add(sets, severity, sentence);
    }

    fn add(&mut self, sets: RequestField, severity: RequestProblemSeverity, sentence: impl Into<String>) {
        let sentence = sentence.into();
        self.problems.push(RequestProblem { sets, severity, sentence });
    }
}

fn check_partition(request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let cluster = collector.cluster;
    let asked = request.partition.as_deref().filter(|name| *name != "default");
    let Some(names) = asked else {
        if cluster.site.jobs.partition == JobOptionRule::Required {
            collector.add_by_rule(
                "jobs.partition",
                RequestField::Partition,
                "Choose a partition: this cluster requires one.",
            );
        }
        return;
    };
    if cluster.site.jobs.partition == JobOptionRule::Never {
        collector.add_warning(
            RequestField::Partition,
            "This cluster chooses the partition by time and size. Leave it empty.",
        );
    }
    for name in names.split(',') {
        match cluster.partition(name) {
            None if !cluster.partitions.is_empty() => {
                let known: Vec<&str> =
                    cluster.partitions.iter().take(8).map(|partition| partition.name.as_str()).collect();
                // A hidden partition may still accept jobs.
                collector.add_warning(
                    RequestField::Partition,
                    format!("This cluster lists no partition called {name}. It lists {}.", known.join(", ")),
                );
            }
            Some(partition) if !partition.is_up => collector.add_warning(
                RequestField::Partition,
                format!("The partition {name} isn't starting jobs at the moment. Jobs wait until it reopens."),
            ),
            // Only a warning: a partition that takes an account also takes accounts below it, which it doesn't list.
            Some(partition) if !accepts_account(request, partition) => collector.add_warning(
                RequestField::Partition,
                format!("The partition {name} may not accept your account. Choose another account or partition."),
            ),
            _ => {}
        }
    }
}

fn check_time(request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let Some(asked) = request.minutes else { return };
    let cluster = collector.cluster;
    let jobs = &cluster.site.jobs;
    let words = format::minutes(asked);
    // Only the tightest limit is worth naming.
    let mut limits: Vec<(u32, String, &str)> = Vec::new();
    let in_partitions: Vec<_> =
        candidate_partitions(request, cluster).iter().map(|partition| partition.time_limit.minutes()).collect();
    if let Some(most) = in_partitions.iter().copied().collect::<Option<Vec<u32>>>() {
        limits.extend(most.into_iter().max().map(|most| (most, "Jobs in this partition".to_owned(), "")));
    }
    limits.extend(
        jobs.max_hours.map(|hours| (hours.saturating_mul(60), "Jobs on this cluster".to_owned(), "jobs.max_hours")),
    );
    for job_type in matching_job_types(request, cluster) {
        let whose = format!("Jobs in {}", job_type.name);
        limits.extend(job_type.max_minutes.map(|most| (most, whose, "jobs.types")));
    }
    if let Some(account) = account_check::find_account(request, cluster) {
        let whose = format!("Jobs of the account {}", account.name);
        limits.extend(account.max_minutes.map(|most| (most, whose, "")));
    }
    let tightest = limits.into_iter().min_by_key(|(most, _, _)| *most);
    if let Some((most, whose, field)) = tightest.filter(|(most, _, _)| asked > *most) {
        let most = format::minutes(most);
        collector.add_by_rule(
            field,
            RequestField::Time,
            format!("{whose} can run for at most {most}, and this one requests {words}. Request {most} or less."),
        );
    }
    if let Some(least) = jobs.min_minutes.filter(|least| asked < *least) {
        let least = format::minutes(least);
        collector.add_by_rule(
            "jobs.min_minutes",
            RequestField::Time,
            format!(
                "Jobs on this cluster must request at least {least}, and this one requests {words}. Request more time."
            ),
        );
    }
}

/// Checks the options that the site requires or forbids.
fn check_site_rules(request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let jobs = &collector.cluster.site.jobs;
    let of_type = matching_job_types(request, collector.cluster).into_iter().find_map(|job_type| job_type.memory);
    let note = jobs.memory_note.clone().map(|note| format!(" {note}")).unwrap_or_default();
    match (of_type.unwrap_or(jobs.memory), request.memory) {
        (JobOptionRule::Required, None) => collector.add_by_rule(
            "jobs.memory",
            RequestField::Memory,
            format!("Enter the memory it needs: this cluster requires it.{note}"),
        ),
        (JobOptionRule::Never, Some(_)) => collector.add_by_rule(
            "jobs.memory",
            RequestField::Memory,
            format!("Leave the memory empty: here, this job gets all the memory of its nodes.{note}"),
        ),
        _ => {}
    }
    match &request.gpus {
        Some(gpus) => match (jobs.gpu_model, &gpus.model) {
            (JobOptionRule::Required, None) => collector.add_by_rule(
                "jobs.gpu_model",
                RequestField::GpuModel,
                "Choose a GPU model: this cluster requires one.",
            ),
            (JobOptionRule::Never, Some(model)) => collector.add_warning(
                RequestField::GpuModel,
                format!("Leave the GPU model ({model}) empty: here, the partition determines it."),
            ),
            _ => {}
        },
        None if jobs.gpu_only => collector.add_by_rule(
            "jobs.gpu_only",
            RequestField::Gpus,
            "Request a GPU: this cluster doesn't accept jobs without one.",
        ),
        None => {}
    }
}

fn check_array(request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let Some(array) = &request.array else { return };
    let Some(tasks) = task_count(array) else {
        collector.add_warning(
            RequestField::Array,
            format!("The task list {} isn't valid. Write it like 0-11 or 1,3,5.", array.tasks),
        );
        return;
    };
    let cluster = collector.cluster;
    let jobs = &cluster.site.jobs;
    let words = format::count(tasks, "task");
    let over = |most: Option<u32>| most.filter(|most| tasks > u64::from(*most));
    let of_site = over(jobs.max_array).map(|most| (most, "jobs.max_array"));
    let of_slurm = over(cluster.max_array).map(|most| (most, ""));
    if let Some((most, field)) = of_slurm.or(of_site) {
        collector.add_by_rule(
            field,
            RequestField::Array,
            format!(
                "Job arrays can have at most {most} tasks here, and this one has {words}. Make it smaller or split it."
            ),
        );
        return;
    }
    let of_account = account_check::find_account(request, cluster).and_then(|account| account.max_submit);
    if let Some(most) = over(jobs.max_jobs.into_iter().chain(of_account).min()) {
        let rule = if over(of_account).is_some() { "" } else { "jobs.max_jobs" };
        collector.add_by_rule(
            rule,
            RequestField::Array,
            format!(
                "You can have {most} pending and running jobs here, and each of its {words} counts as one. Make the \
                 job array smaller."
            ),
        );
    }
    for job_type in matching_job_types(request, cluster) {
        if let Some(most) = over(job_type.max_jobs) {
            collector.add_warning(
                RequestField::Array,
                format!(
                    "You can have {} in {} at a time, and this job array has {words}. Make it smaller.",
                    format::count(most.into(), "job"),
                    job_type.name
                ),
            );
        }
    }
}

/// Checks the working directory and the output path.
fn check_folders(request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let cluster = collector.cluster;
    let Some(home) = cluster.folders.get("HOME") else { return };
    let in_home = |path: &Option<String>| {
        path.as_deref()
            .and_then(|path| path.strip_prefix(home.as_str()))
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    if cluster.site.jobs.submit_from == SubmitFolderRule::Scratch && in_home(&request.folder) {
        let some = if cluster.site.family == SiteFamily::Alliance { "Some" } else { "These" };
        collector.add_warning(
            RequestField::Folder,
            format!("{some} clusters reject jobs submitted from a home folder. Choose a folder on scratch."),
        );
    }
    let area = cluster.site.storage.area(StorageAreaKind::Home);
    if area.is_some_and(|area| area.read_only_in_jobs) && in_home(&request.output) {
        collector.add_refused(
            RequestField::Output,
            "Home folders are read-only for jobs here, so the output can't go there. Choose a folder on scratch.",
        );
    }
}
