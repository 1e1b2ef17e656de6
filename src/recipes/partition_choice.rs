//! Which partitions can run a request, by what the cluster showed, and which of them to name in the script.

#[cfg(test)]
mod tests;

use std::cmp::Reverse;

use super::context::{ComposeCluster, Partition};
use super::request::{JobRequest, MemoryRequest};
use crate::sites::JobOptionRule;
use crate::slurm::partitions::{PartitionGpu, PerNodeRange};

/// The least that a request needs on each node.
pub struct PerNodeDemand {
    pub cores: u64,
    pub memory_mb: u64,
}

impl PerNodeDemand {
    pub fn from_request(request: &JobRequest) -> Self {
        let cores_of_task = u64::from(request.cores.unwrap_or(1).max(1));
        // Without a node count, Slurm may spread tasks over as many nodes as it takes.
        let tasks = match (request.tasks_per_node, request.tasks, request.nodes) {
            (Some(tasks), _, _) => tasks,
            (None, Some(tasks), Some(nodes)) => tasks.div_ceil(nodes.max(1)),
            _ => 1,
        };
        let cores = cores_of_task.saturating_mul(u64::from(tasks.max(1)));
        let memory_mb = match request.memory {
            Some(MemoryRequest::PerNode(mb)) => mb,
            Some(MemoryRequest::PerCore(mb)) => mb.saturating_mul(cores),
            Some(MemoryRequest::PerGpu(mb)) => {
                mb.saturating_mul(request.gpus.as_ref().map_or(0, |gpus| gpus.count).into())
            }
            None => 0,
        };
        Self { cores, memory_mb }
    }
}

/// The partition to name in a request that names none. None if the site or Slurm's default partition decides, or if
/// nothing is known.
pub fn choose_partition<'a>(request: &JobRequest, cluster: &'a ComposeCluster) -> Option<&'a Partition> {
    let jobs = &cluster.site.jobs;
    let is_left_to_slurm = match &request.gpus {
        Some(_) => jobs.partition == JobOptionRule::Never,
        // Where there is a choice to make, it is the person's, unless Slurm would refuse every job without one.
        None => {
            jobs.partition != JobOptionRule::Optional || !jobs.types.is_empty() || cluster.default_partition().is_some()
        }
    };
    if is_left_to_slurm {
        return None;
    }
    let demand = PerNodeDemand::from_request(request);
    let has_gpus = |partition: &&Partition| request.gpus.is_none() || count_gpu_nodes(partition, request) > 0;
    let usable = cluster.partitions.iter().filter(|partition| !partition.is_restricted).filter(has_gpus);
    // If none fits, the closest one is named, so that what the portal and Slurm say is about that one.
    let best = usable.min_by_key(|partition| {
        let is_open = accepts_account(request, partition);
        let is_fitting = partition.is_up && is_open && fits(request, &demand, partition, cluster);
        let is_usual = is_fitting && partition.is_default;
        let preference = (is_fitting, is_open, is_usual, !partition.is_preemptible, is_meant_for(partition, request));
        let limit = partition.time_limit.minutes().unwrap_or(u32::MAX);
        Reverse((preference, count_gpu_nodes(partition, request), partition.node_count(), limit))
    });
    best.filter(|partition| !partition.is_default)
}

/// Whether its nodes are of the kind that the request is about: all with GPUs, or all without.
fn is_meant_for(partition: &Partition, request: &JobRequest) -> bool {
    let with_gpus = partition.gpus.iter().fold(0_u32, |sum, gpu| sum.saturating_add(gpu.nodes));
    if request.gpus.is_some() { with_gpus >= partition.node_count() } else { with_gpus == 0 }
}

/// Whether a partition takes the request's account, as far as is known.
pub fn accepts_account(request: &JobRequest, partition: &Partition) -> bool {
    request.account.as_ref().is_none_or(|account| !partition.closed_to.contains(account))
}

/// The kinds of GPU in a partition that the request would take.
fn matching_gpus<'a>(partition: &'a Partition, model: Option<&str>) -> impl Iterator<Item = &'a PartitionGpu> {
    let fits = move |gpu: &&PartitionGpu| model.is_none_or(|model| gpu.model.as_deref().is_none_or(|own| own == model));
    partition.gpus.iter().filter(fits)
}

/// The most GPUs of a model on one node of a partition; without a model, of all models together.
pub fn gpus_per_node(partition: &Partition, model: Option<&str>) -> u32 {
    matching_gpus(partition, model).fold(0, |sum, gpu| sum.saturating_add(gpu.per_node_most))
}

fn count_gpu_nodes(partition: &Partition, request: &JobRequest) -> u32 {
    let Some(gpus) = &request.gpus else { return 0 };
    matching_gpus(partition, gpus.model.as_deref()).fold(0, |sum, gpu| sum.saturating_add(gpu.nodes))
}

/// Whether a partition has the nodes that a request needs, and lets it run as long as it asks.
pub fn fits(request: &JobRequest, demand: &PerNodeDemand, partition: &Partition, cluster: &ComposeCluster) -> bool {
    let enough = |span: Option<PerNodeRange>, least: u64| span.is_none_or(|span| span.most >= least);
    let gpus = request.gpus.as_ref().is_none_or(|gpus| {
        let most_here = gpus_per_node(partition, gpus.model.as_deref());
        // The short name of a GPU slice is not in the cluster's list.
        let shown = cluster.partitions.iter().any(|partition| gpus_per_node(partition, gpus.model.as_deref()) > 0);
        most_here >= gpus.count || !shown
    });
    let most_nodes = partition.max_nodes.unwrap_or(u32::MAX).min(partition.node_count());
    gpus && enough(partition.cpus, demand.cores)
        && enough(partition.memory_mb, demand.memory_mb)
        && request.nodes.unwrap_or(1) <= most_nodes
        && partition.time_limit.minutes().is_none_or(|most| request.minutes.is_none_or(|asked| asked <= most))
}
