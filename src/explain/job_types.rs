//! Matches a request to the site's job types and to the partitions it may use.

use crate::recipes::context::{ComposeCluster, Partition};
use crate::recipes::request::{ArrayRequest, JobRequest};
use crate::sites::{JobOptionRule, SiteJobType};
use crate::slurm::array_tasks::ArrayTaskSet;

/// The job types whose rules apply to a request: an exact match, or those of its partition and of its QOS.
pub fn matching_job_types<'a>(request: &JobRequest, cluster: &'a ComposeCluster) -> Vec<&'a SiteJobType> {
    let types = &cluster.site.jobs.types;
    let partition = partition_name(request, cluster);
    let same_partition = |job_type: &SiteJobType| job_type.partition.as_deref() == partition;
    let exact = |job_type: &&SiteJobType| same_partition(job_type) && job_type.qos == request.qos;
    if let Some(exact) = types.iter().find(exact) {
        return vec![exact];
    }
    let either = |job_type: &&SiteJobType| match (&job_type.partition, &job_type.qos) {
        (_, None) => same_partition(job_type),
        (None, Some(_)) => job_type.qos == request.qos,
        (Some(_), Some(_)) => false,
    };
    types.iter().filter(either).collect()
}

/// The partition under which the site's job types list the request: the one it names, or the default one if a job
/// type names that.
fn partition_name<'a>(request: &'a JobRequest, cluster: &'a ComposeCluster) -> Option<&'a str> {
    if let Some(named) = request.partition.as_deref() {
        return named.split(',').next();
    }
    let usual = |job_type: &SiteJobType| job_type.partition.is_none() && job_type.qos.is_none();
    if cluster.site.jobs.types.iter().any(usual) {
        return None;
    }
    cluster.default_partition().map(|partition| partition.name.as_str())
}

/// The names under which a request's billing factors may be listed, closest first.
pub fn factor_names<'a>(request: &'a JobRequest, cluster: &'a ComposeCluster) -> Vec<&'a str> {
    let mut names: Vec<&str> =
        matching_job_types(request, cluster).into_iter().map(|job_type| job_type.name.as_str()).collect();
    let partition = partition_name(request, cluster);
    let of_partition = cluster
        .site
        .jobs
        .types
        .iter()
        .find(|job_type| job_type.partition.as_deref() == partition && job_type.qos.is_none());
    names.extend(of_partition.map(|job_type| job_type.name.as_str()));
    names.extend(partition);
    names
}

/// Whether it gets whole nodes to itself.
pub fn uses_whole_nodes(request: &JobRequest, cluster: &ComposeCluster) -> bool {
    cluster.site.jobs.whole_node || matching_job_types(request, cluster).iter().any(|job_type| job_type.whole_node)
}

/// The known partitions it may run in: those it names, or the default one, or all of them where the site chooses.
pub fn candidate_partitions<'a>(request: &JobRequest, cluster: &'a ComposeCluster) -> Vec<&'a Partition> {
    let named = request.partition.as_deref().filter(|name| *name != "default");
    if let Some(names) = named {
        return names.split(',').filter_map(|name| cluster.partition(name)).collect();
    }
    let usual = cluster.default_partition().filter(|_| cluster.site.jobs.partition != JobOptionRule::Never);
    match usual {
        Some(usual) => vec![usual],
        None => cluster.partitions.iter().collect(),
    }
}

/// The number of tasks in an array; none if its list is invalid.
pub fn task_count(array: &ArrayRequest) -> Option<u64> {
    ArrayTaskSet::parse(&array.tasks).map(|tasks| tasks.len())
}

#[cfg(test)]
pub(super) mod tests {
    use std::collections::BTreeMap;
    use std::sync::Arc;

    use super::*;
    use crate::recipes::context::AvailableGpu;
    use crate::sites::{Site, SiteLookupResult, find_site};
    use crate::slurm::partitions;

    const DEMO: &str = include_str!("../../tests/fixtures/slurm/sinfo-22.05.txt");
    const TRILLIUM: &str = include_str!("../../tests/fixtures/slurm/sinfo-trillium.txt");

    /// A built-in site, with the partitions recorded there, if any.
    pub fn cluster(name: &str) -> ComposeCluster {
        let SiteLookupResult::Site(site) = find_site(name) else { panic!("{name}") };
        let partitions = match name {
            "demo" => partitions::parse_partitions(DEMO),
            "trillium" => partitions::parse_partitions(TRILLIUM),
            _ => Vec::new(),
        };
        cluster_at(site.clone(), partitions)
    }

    /// A context at a site.
    pub fn cluster_at(site: Site, partitions: Vec<Partition>) -> ComposeCluster {
        let whole = site.jobs.gpus.iter().map(|gpu| AvailableGpu {
            model: Some(gpu.name.clone()),
            label: gpu.label.clone(),
            per_node: gpu.per_node.unwrap_or(0).into(),
            is_slice: false,
            cores: gpu.cores.map(u32::from),
            memory_gb: gpu.node_memory_gb.map(u32::from),
            partition: gpu.partition.clone(),
        });
        let slices = site.jobs.slices.iter().map(|slice| AvailableGpu {
            model: Some(slice.name.clone()),
            label: slice.label.clone(),
            is_slice: true,
            cores: slice.cores.map(u32::from),
            memory_gb: slice.node_memory_gb.map(u32::from),
            ..AvailableGpu::default()
        });
        ComposeCluster {
            gpus: whole.chain(slices).collect(),
            site: Arc::new(site),
            user: "alice".into(),
            accounts: Vec::new(),
            partitions,
            folders: BTreeMap::from([("HOME".into(), "/home/alice".into())]),
            max_array: None,
            keeps_comments: true,
        }
    }

    fn names(cluster: &ComposeCluster, partition: Option<&str>, qos: Option<&str>) -> Vec<String> {
        let request = JobRequest {
            partition: partition.map(str::to_owned),
            qos: qos.map(str::to_owned),
            ..JobRequest::default()
        };
        matching_job_types(&request, cluster).iter().map(|job_type| job_type.name.clone()).collect()
    }

    #[test]
    fn a_request_finds_its_sort() {
        let saga = cluster("saga");
        assert_eq!(names(&saga, None, None), ["normal"]);
        assert_eq!(names(&saga, Some("a100"), None), ["a100"]);
        assert_eq!(names(&saga, None, Some("devel")), ["devel"]);
        assert_eq!(names(&saga, Some("accel"), Some("devel")), ["accel", "devel"]);
        let request = JobRequest { qos: Some("devel".into()), ..JobRequest::default() };
        assert_eq!(factor_names(&request, &saga), ["devel", "normal"]);
        let demo = cluster("demo");
        assert_eq!(names(&demo, None, None), ["cpu"], "the usual partition has a name there");
        assert_eq!(names(&demo, Some("debug"), Some("debug")), ["debug"]);
        assert!(names(&cluster("generic"), None, None).is_empty());
    }

    #[test]
    fn partitions_that_it_may_come_to() {
        let demo = cluster("demo");
        let of = |name: Option<&str>| {
            let request = JobRequest { partition: name.map(str::to_owned), ..JobRequest::default() };
            candidate_partitions(&request, &demo).iter().map(|p| p.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(None), ["cpu"]);
        assert_eq!(of(Some("gpu,debug")), ["gpu", "debug"]);
        assert!(of(Some("nowhere")).is_empty());
        let trillium = cluster("trillium");
        assert_eq!(candidate_partitions(&JobRequest::default(), &trillium).len(), trillium.partitions.len());
    }
}
