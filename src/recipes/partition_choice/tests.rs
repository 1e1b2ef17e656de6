use std::collections::BTreeMap;
use std::sync::Arc;

use super::*;
use crate::recipes::request::GpuRequest;
use crate::sites::{SiteLookupResult, find_site};
use crate::slurm::partitions::parse_partitions;

/// The test cluster, as a portal sees it that knows nothing of it but its host.
fn cluster_of(site: &str, sinfo: &str) -> ComposeCluster {
    let SiteLookupResult::Site(site) = find_site(site) else { panic!("{site}") };
    ComposeCluster {
        site: Arc::new(site.clone()),
        user: "alice".into(),
        accounts: Vec::new(),
        partitions: parse_partitions(sinfo),
        gpus: Vec::new(),
        folders: BTreeMap::new(),
        max_array: None,
        keeps_comments: true,
    }
}

fn cluster() -> ComposeCluster {
    cluster_of("generic", include_str!("../../../tests/fixtures/slurm/sinfo-22.05.txt"))
}

fn with_gpus(model: Option<&str>, count: u32) -> JobRequest {
    let gpus = Some(GpuRequest { model: model.map(str::to_owned), count });
    JobRequest { gpus, account: Some("def-smith".into()), minutes: Some(60), ..JobRequest::default() }
}

fn chosen(request: &JobRequest, cluster: &ComposeCluster) -> Option<String> {
    choose_partition(request, cluster).map(|partition| partition.name.clone())
}

#[test]
fn gpus_outside_the_default_partition() {
    let cluster = cluster();
    for model in [Some("t4"), Some("v100"), None] {
        assert_eq!(chosen(&with_gpus(model, 1), &cluster).as_deref(), Some("gpu"), "{model:?}");
    }
    assert_eq!(chosen(&with_gpus(Some("h100"), 1), &cluster), None, "nothing to choose from");
    assert_eq!(chosen(&JobRequest::default(), &cluster), None, "the default partition");
}

#[test]
fn a_default_partition_with_the_gpu_is_not_named() {
    let sinfo = "main*|up|1-00:00:00|4|idle|8|16000|gpu:t4:2\nbig|up|7-00:00:00|40|idle|64|16000|gpu:t4:8\n";
    let cluster = cluster_of("generic", sinfo);
    assert_eq!(chosen(&with_gpus(Some("t4"), 2), &cluster), None);
    // More than it can give.
    assert_eq!(chosen(&with_gpus(Some("t4"), 4), &cluster).as_deref(), Some("big"));
    let long = JobRequest { minutes: Some(2 * 1440), ..with_gpus(Some("t4"), 1) };
    assert_eq!(chosen(&long, &cluster).as_deref(), Some("big"));
    let wide = JobRequest { cores: Some(32), ..with_gpus(Some("t4"), 1) };
    assert_eq!(chosen(&wide, &cluster).as_deref(), Some("big"));
    assert_eq!(chosen(&with_gpus(Some("t4"), 9), &cluster).as_deref(), Some("big"), "none has that many");
}

#[test]
fn partitions_that_take_the_job() {
    let sinfo = "cpu*|up|1:00:00|9|idle|8|16000|(null)\nown|up|7-00:00:00|9|idle|8|16000|gpu:t4:2\n\
                 open|up|1-00:00:00|2|idle|8|16000|gpu:t4:2\nshort|up|1:00:00|3|idle|8|16000|gpu:t4:2\n";
    let mut cluster = cluster_of("generic", sinfo);
    let request = with_gpus(Some("t4"), 1);
    assert_eq!(chosen(&request, &cluster).as_deref(), Some("own"), "the most nodes with it");
    cluster.partitions[1].closed_to.push("def-smith".into());
    assert_eq!(chosen(&request, &cluster).as_deref(), Some("short"));
    assert_eq!(chosen(&JobRequest { minutes: Some(61), ..request.clone() }, &cluster).as_deref(), Some("open"));
    cluster.partitions[3].is_preemptible = true;
    assert_eq!(chosen(&request, &cluster).as_deref(), Some("open"));
    cluster.partitions[2].max_nodes = Some(1);
    let two = JobRequest { nodes: Some(2), ..request.clone() };
    assert_eq!(chosen(&two, &cluster).as_deref(), Some("short"));
    // Where none takes it, the closest one says why.
    let long = JobRequest { minutes: Some(3 * 1440), ..request.clone() };
    assert_eq!(chosen(&long, &cluster).as_deref(), Some("open"));
    for partition in &mut cluster.partitions[2..] {
        partition.is_restricted = true;
    }
    assert_eq!(chosen(&request, &cluster).as_deref(), Some("own"));
}

#[test]
fn the_site_decides() {
    let sinfo = "gpubase_b1|up|3:00:00|9|idle|8|16000|gpu:a100:4\n";
    assert_eq!(chosen(&with_gpus(Some("a100"), 1), &cluster_of("narval", sinfo)), None);
    // Without a default partition, Slurm refuses jobs that name none.
    let none = "a|up|3:00:00|9|idle|8|16000|gpu:a100:4\nb|up|3:00:00|2|idle|8|16000|(null)\n";
    assert_eq!(chosen(&JobRequest::default(), &cluster_of("generic", none)).as_deref(), Some("b"));
    assert_eq!(chosen(&JobRequest::default(), &cluster_of("lumi", none)), None, "the person chooses there");
}
