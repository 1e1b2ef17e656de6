//! Whether any node can satisfy a request.

use super::RequestProblemCollector;
use crate::explain::job_types::{candidate_partitions, matching_job_types};
use crate::format;
use crate::recipes::context::Partition;
use crate::recipes::partition_choice::{PerNodeDemand, fits, gpus_per_node};
use crate::recipes::request::{GpuRequest, JobRequest, MemoryRequest, RequestField};
use crate::sites::{JobOptionRule, SiteFamily};

pub(super) fn check(request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let cluster = collector.cluster;
    let demand = PerNodeDemand::from_request(request);
    let candidates = candidate_partitions(request, cluster);
    let before = collector.problems.len();
    if let Some(most) = max_of(&candidates, |partition| partition.cpus.map(|span| span.most)) {
        if demand.cores > most {
            collector.add_refused(
                RequestField::Cores,
                format!(
                    "It requests {} on one node, but the largest node has {most}. Request {most} or fewer, or \
                     use more tasks or nodes with fewer cores each.",
                    format::count(demand.cores, "core")
                ),
            );
        }
        let all = max_nodes(&candidates).saturating_mul(most);
        if u64::from(request.all_cores()) > all && demand.cores <= most {
            collector.add_refused(
                RequestField::Tasks,
                format!(
                    "It requests {} in total, and there are only {all}. Request fewer tasks, or fewer cores per task.",
                    format::count(request.all_cores().into(), "core")
                ),
            );
        }
    }
    if let Some(most) = max_of(&candidates, |partition| partition.memory_mb.map(|span| span.most))
        .filter(|most| demand.memory_mb > *most)
    {
        let sets = match request.memory {
            Some(MemoryRequest::PerCore(_)) => RequestField::MemoryPerCore,
            _ => RequestField::Memory,
        };
        collector.add_refused(
            sets,
            format!(
                "It requests {} of memory on one node, but the largest node has {}. Request less memory.",
                format::memory(demand.memory_mb),
                format::memory(most)
            ),
        );
    }
    check_nodes(request, &candidates, collector);
    if let Some(gpus) = &request.gpus {
        check_gpu_models(gpus, request, collector);
        check_gpus_per_node(gpus, request, &candidates, collector);
    }
    if collector.problems.len() == before {
        check_combination(request, &demand, &candidates, collector);
    }
}

/// The maximum over all partitions; none unless it is known for each.
fn max_of(of: &[&Partition], what: impl Fn(&Partition) -> Option<u64>) -> Option<u64> {
    let with_nodes = of.iter().filter(|partition| partition.node_count() > 0);
    let all: Option<Vec<u64>> = with_nodes.map(|partition| what(partition)).collect();
    all?.into_iter().max()
}

fn max_nodes(of: &[&Partition]) -> u64 {
    of.iter().map(|partition| u64::from(partition.node_count())).max().unwrap_or(0)
}

fn check_nodes(request: &JobRequest, candidates: &[&Partition], collector: &mut RequestProblemCollector<'_>) {
    let Some(asked) = request.nodes else { return };
    let largest = max_nodes(candidates);
    if largest > 0 && u64::from(asked) > largest {
        collector.add_refused(
            RequestField::Nodes,
            format!(
                "It requests {}, and there are only {largest}. Request fewer.",
                format::count(asked.into(), "node")
            ),
        );
        return;
    }
    for job_type in matching_job_types(request, collector.cluster) {
        if let Some(most) = job_type.max_nodes.filter(|most| asked > *most) {
            collector.add_by_rule(
                "jobs.types",
                RequestField::Nodes,
                format!(
                    "Jobs in {} can use at most {}. Request fewer.",
                    job_type.name,
                    format::count(most.into(), "node")
                ),
            );
        }
        if let Some(least) = job_type.min_nodes.filter(|least| asked < *least) {
            collector.add_by_rule(
                "jobs.types",
                RequestField::Nodes,
                format!(
                    "Jobs in {} must use at least {}. Request more.",
                    job_type.name,
                    format::count(least.into(), "node")
                ),
            );
        }
    }
}

/// Whether the cluster has such GPUs at all.
fn check_gpu_models(gpus: &GpuRequest, request: &JobRequest, collector: &mut RequestProblemCollector<'_>) {
    let cluster = collector.cluster;
    let shown: Vec<&str> = cluster
        .partitions
        .iter()
        .flat_map(|partition| &partition.gpus)
        .filter_map(|gpu| gpu.model.as_deref())
        .collect();
    let Some(model) = gpus.model.as_deref() else { return };
    let known = cluster.gpu(model);
    if known.is_none() && !shown.contains(&model) && !(shown.is_empty() && cluster.gpus.is_empty()) {
        let mut names: Vec<&str> = cluster.gpus.iter().filter_map(|gpu| gpu.model.as_deref()).chain(shown).collect();
        names.sort_unstable();
        names.dedup();
        names.truncate(8);
        let sentence = format!("This cluster lists no GPU called {model}. It has {}.", names.join(", "));
        // GPU slices also have short names besides the ones that the cluster lists.
        if cluster.site.jobs.slices.is_empty() {
            collector.add_refused(RequestField::GpuModel, sentence);
        } else {
            collector.add_warning(RequestField::GpuModel, sentence);
        }
    }
    if known.is_some_and(|gpu| gpu.is_slice) && request.all_gpus() > 1 {
        let sentence = "A job can use only one GPU slice. Request one slice or a whole GPU.";
        let site = &cluster.site;
        if site.family == SiteFamily::Alliance && site.jobs.gpu_model == JobOptionRule::Required {
            collector.add_by_rule("jobs.gpu_model", RequestField::Gpus, sentence);
        } else {
            collector.add_warning(RequestField::Gpus, sentence);
        }
    }
}

/// Whether one node has that many.
fn check_gpus_per_node(
    gpus: &GpuRequest,
    request: &JobRequest,
    candidates: &[&Partition],
    collector: &mut RequestProblemCollector<'_>,
) {
    let cluster = collector.cluster;
    let model = gpus.model.as_deref();
    let of = |partition: &&Partition| gpus_per_node(partition, model);
    let most_anywhere = cluster.partitions.iter().map(|partition| gpus_per_node(partition, model)).max().unwrap_or(0);
    let most_here = candidates.iter().map(of).max().unwrap_or(0);
    let name = model.map_or_else(|| "GPU".to_owned(), |model| format!("{model} GPU"));
    if most_anywhere > 0 && most_here == 0 && !candidates.is_empty() {
        let with: Vec<&str> = cluster
            .partitions
            .iter()
            .filter(|partition| gpus_per_node(partition, model) > 0)
            .map(|partition| partition.name.as_str())
            .take(5)
            .collect();
        let where_to = match request.partition.as_deref() {
            Some(partition) => format!("The partition {partition}"),
            None => "The default partition".to_owned(),
        };
        collector
            .add_refused(RequestField::Partition, format!("{where_to} has no {name}s. Choose {}.", with.join(" or ")));
        return;
    }
    let listed = model.and_then(|model| cluster.gpu(model)).map_or(0, |gpu| gpu.per_node);
    let most = if most_here > 0 { most_here } else { listed };
    if most > 0 && gpus.count > most {
        collector.add_refused(
            RequestField::Gpus,
            format!(
                "It requests {} on one node, but no node has more than {most}. Request fewer, or use more nodes.",
                format::count(gpus.count.into(), &name)
            ),
        );
    }
}

/// Each requirement can be met alone; checks whether one partition meets them all.
fn check_combination(
    request: &JobRequest,
    demand: &PerNodeDemand,
    candidates: &[&Partition],
    collector: &mut RequestProblemCollector<'_>,
) {
    let fits = |partition: &&Partition| fits(request, demand, partition, collector.cluster);
    if candidates.len() > 1 && !candidates.iter().any(fits) {
        collector.add_refused(
            RequestField::Partition,
            "No single partition offers all of this together: the time limit, memory, cores and GPUs. Request \
             less of one of them.",
        );
    }
}
