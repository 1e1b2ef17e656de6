//! Matches a request to the site's job types and to the partitions it may use.

use crate::recipes::context::{ComposeCluster, Partition};
use crate::recipes::request::{ArrayRequest, JobRequest};
use crate::sites::{JobOptionRule, SiteJobType};
use crate::slurm::array_tasks::ArrayTaskSet;

/// The job types whose rules apply to a request: an exact match, or those of its partition and of its QOS.
pub fn matching_job_types<'a>(request: &JobRequest, place: &'a ComposeCluster) -> Vec<&'a SiteJobType> {
    let types = &place.site.jobs.types;
    let partition = partition_name(request, place);
    let same_partition = |one: &SiteJobType| one.partition.as_deref() == partition;
    let exact = |one: &&SiteJobType| same_partition(one) && one.qos == request.qos;
    if let Some(exact) = types.iter().find(exact) {
        return vec![exact];
    }
    let either = |one: &&SiteJobType| match (&one.partition, &one.qos) {
        (_, None) => same_partition(one),
        (None, Some(_)) => one.qos == request.qos,
        (Some(_), Some(_)) => false,
    };
    types.iter().filter(either).collect()
}

/// The partition under which the site's job types list the request: the one it names, or the default one if a job
/// type names that.
fn partition_name<'a>(request: &'a JobRequest, place: &'a ComposeCluster) -> Option<&'a str> {
    if let Some(named) = request.partition.as_deref() {
        return named.split(',').next();
    }
    let usual = |one: &SiteJobType| one.partition.is_none() && one.qos.is_none();
    if place.site.jobs.types.iter().any(usual) {
        return None;
    }
    place.default_partition().map(|partition| partition.name.as_str())
}

/// The names under which a request's billing factors may be listed, closest first.
pub fn factor_names<'a>(request: &'a JobRequest, place: &'a ComposeCluster) -> Vec<&'a str> {
    let mut names: Vec<&str> = matching_job_types(request, place).into_iter().map(|one| one.name.as_str()).collect();
    let partition = partition_name(request, place);
    let of_partition =
        place.site.jobs.types.iter().find(|one| one.partition.as_deref() == partition && one.qos.is_none());
    names.extend(of_partition.map(|one| one.name.as_str()));
    names.extend(partition);
    names
}

/// Whether it gets whole nodes to itself.
pub fn uses_whole_nodes(request: &JobRequest, place: &ComposeCluster) -> bool {
    place.site.jobs.whole_node || matching_job_types(request, place).iter().any(|one| one.whole_node)
}

/// The known partitions it may run in: those it names, or the default one, or all of them where the site chooses.
pub fn candidate_partitions<'a>(request: &JobRequest, place: &'a ComposeCluster) -> Vec<&'a Partition> {
    let named = request.partition.as_deref().filter(|name| *name != "default");
    if let Some(names) = named {
        return names.split(',').filter_map(|name| place.partition(name)).collect();
    }
    let usual = place.default_partition().filter(|_| place.site.jobs.partition != JobOptionRule::Never);
    match usual {
        Some(usual) => vec![usual],
        None => place.partitions.iter().collect(),
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
    use crate::sites::{Site, SiteLookup, find_site};
    use crate::slurm::partitions;

    const DEMO: &str = include_str!("../../tests/fixtures/slurm/sinfo-22.05.txt");
    const TRILLIUM: &str = include_str!("../../tests/fixtures/slurm/sinfo-trillium.txt");

    /// A built-in site, with the partitions recorded there, if any.
    pub fn place(name: &str) -> ComposeCluster {
        let SiteLookup::Site(site) = find_site(name) else { panic!("{name}") };
        let partitions = match name {
            "demo" => partitions::parse_partitions(DEMO),
            "trillium" => partitions::parse_partitions(TRILLIUM),
            _ => Vec::new(),
        };
        place_of(site.clone(), partitions)
    }

    /// A context at a site.
    pub fn place_of(site: Site, partitions: Vec<Partition>) -> ComposeCluster {
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

    fn names(place: &ComposeCluster, partition: Option<&str>, qos: Option<&str>) -> Vec<String> {
        let request = JobRequest {
            partition: partition.map(str::to_owned),
            qos: qos.map(str::to_owned),
            ..JobRequest::default()
        };
        matching_job_types(&request, place).iter().map(|one| one.name.clone()).collect()
    }

    #[test]
    fn a_request_finds_its_sort() {
        let saga = place("saga");
        assert_eq!(names(&saga, None, None), ["normal"]);
        assert_eq!(names(&saga, Some("a100"), None), ["a100"]);
        assert_eq!(names(&saga, None, Some("devel")), ["devel"]);
        assert_eq!(names(&saga, Some("accel"), Some("devel")), ["accel", "devel"]);
        let request = JobRequest { qos: Some("devel".into()), ..JobRequest::default() };
        assert_eq!(factor_names(&request, &saga), ["devel", "normal"]);
        let demo = place("demo");
        assert_eq!(names(&demo, None, None), ["cpu"], "the usual partition has a name there");
        assert_eq!(names(&demo, Some("debug"), Some("debug")), ["debug"]);
        assert!(names(&place("generic"), None, None).is_empty());
    }

    #[test]
    fn partitions_that_it_may_come_to() {
        let demo = place("demo");
        let of = |name: Option<&str>| {
            let request = JobRequest { partition: name.map(str::to_owned), ..JobRequest::default() };
            candidate_partitions(&request, &demo).iter().map(|p| p.name.clone()).collect::<Vec<_>>()
        };
        assert_eq!(of(None), ["cpu"]);
        assert_eq!(of(Some("gpu,debug")), ["gpu", "debug"]);
        assert!(of(Some("nowhere")).is_empty());
        let trillium = place("trillium");
        assert_eq!(candidate_partitions(&JobRequest::default(), &trillium).len(), trillium.partitions.len());
    }
}
