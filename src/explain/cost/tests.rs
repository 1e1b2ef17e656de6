use proptest::prelude::*;

use super::*;
use crate::explain::job_types::tests::cluster;
use crate::recipes::request::{ArrayRequest, GpuRequest, MemoryRequest};

fn job(cores: u32, gib: u64, minutes: u32) -> JobRequest {
    JobRequest {
        cores: Some(cores),
        memory: Some(MemoryRequest::PerNode(gib * 1024)),
        minutes: Some(minutes),
        ..JobRequest::default()
    }
}

fn with_gpus(model: Option<&str>, count: u32, cores: u32, gib: u64) -> JobRequest {
    let gpus = GpuRequest { model: model.map(str::to_owned), count };
    JobRequest { gpus: Some(gpus), ..job(cores, gib, 60) }
}

/// Compares three digits, because that is what pages show.
fn near(one: f64, other: f64) -> bool {
    (one - other).abs() < 0.005 * other.abs().max(1.0)
}

#[test]
fn memory_counts_as_cores_on_the_general_clusters() {
    let narval = cluster("narval");
    let cost = estimate_cost(&job(4, 40, 1440), &narval, None);
    assert_eq!((cost.unit.as_str(), cost.driver), ("core hours", CostDriver::Memory));
    assert!(near(cost.per_hour, 10.0) && near(cost.total.unwrap(), 240.0), "{cost:?}");
    assert_eq!(
        cost.sentences[0],
        "You're charged for 10 cores because of the memory you request: 40 GB counts as much as 10 cores, and you \
         request 4 cores."
    );
    assert_eq!(cost.headline, "10 core hours for each hour the job runs: at most 240 core hours with this time limit.");
    assert_eq!(cost.sentences[1], "Allocations are granted in years: this is 0.0274 core years.");
    assert_eq!(cost.cheaper[0].changes, [(RequestField::Memory, "16G".to_owned())]);
    assert!(near(cost.cheaper[0].per_hour, 4.0), "{:?}", cost.cheaper);
    let plain = super::estimate_cost(&job(8, 16, 60), &narval, None);
    assert_eq!((plain.driver, plain.cheaper.len()), (CostDriver::Cores, 0));
    let unsaid = super::estimate_cost(&JobRequest { memory: None, ..job(8, 0, 60) }, &narval, None);
    assert!(near(unsaid.per_hour, 8.0), "256 MB for each core come with them");
}

#[test]
fn gpus_count_in_reference_units() {
    let narval = cluster("narval");
    let fair = estimate_cost(&with_gpus(Some("a100"), 1, 12, 124), &narval, None);
    assert_eq!((fair.unit.as_str(), fair.driver), ("RGU hours", CostDriver::Gpus));
    assert!(near(fair.per_hour, 4.0));
    assert!(fair.cheaper.is_empty(), "a part of it would pay as much, with so many cores");
    let small = estimate_cost(&with_gpus(Some("a100"), 1, 1, 10), &narval, None);
    let offered: Vec<&str> = small.cheaper.iter().map(|cheaper| cheaper.changes[0].1.as_str()).collect();
    assert_eq!(offered, ["a100_1g.5gb", "a100_2g.10gb", "a100_3g.20gb"]);
    assert!(small.cheaper[0].sentence.contains("0.57 instead of 4 per hour"), "{small:?}");
    let greedy = estimate_cost(&with_gpus(Some("a100"), 1, 24, 100), &narval, None);
    assert_eq!(greedy.driver, CostDriver::Cores);
    assert!(near(greedy.per_hour, 8.0), "24 cores are those of two GPUs");
    assert_eq!(greedy.cheaper[0].changes, [(RequestField::Cores, "12".to_owned())]);
    assert!(greedy.sentences[0].starts_with("You're charged for the cores: per hour, 24 cores cost 8"));
    let wide = estimate_cost(&with_gpus(Some("h100"), 1, 4, 560), &cluster("fir"), None);
    assert_eq!(wide.driver, CostDriver::Memory);
    assert!(near(wide.per_hour, 24.4));
    assert_eq!(wide.cheaper[0].changes, [(RequestField::Memory, "280G".to_owned())]);
}

#[test]
fn what_a_gpu_counts_may_not_be_known() {
    for (site, model) in [("vulcan", Some("l40s")), ("nibi", Some("mi300a")), ("killarney", None)] {
        let cost = estimate_cost(&with_gpus(model, 2, 4, 16), &cluster(site), Some(1.0));
        assert_eq!((cost.unit.as_str(), cost.notes.len()), ("GPU hours", 1), "{site}");
        assert!(near(cost.per_hour, 2.0) && cost.of_left.is_none());
        assert!(cost.notes[0].contains("isn't known") || cost.notes[0].contains("doesn't know"));
    }
    let tamia = estimate_cost(&with_gpus(Some("h100"), 1, 4, 16), &cluster("tamia"), None);
    assert!(near(tamia.per_hour, 4.0 * 12.2), "whole nodes have four");
}

#[test]
fn billing_units_of_sigma2() {
    let saga = cluster("saga");
    let per_core = |cores, gib: u64, partition: Option<&str>| JobRequest {
        memory: Some(MemoryRequest::PerCore(gib * 1024)),
        partition: partition.map(str::to_owned),
        ..job(cores, 0, 120)
    };
    let normal = estimate_cost(&per_core(4, 8, None), &saga, Some(164.93));
    assert_eq!((normal.unit.as_str(), normal.driver), ("billing hours", CostDriver::Memory));
    assert!(near(normal.per_hour, 32.0 * 0.257_703_1));
    assert_eq!(normal.cheaper[0].changes, [(RequestField::MemoryPerCore, "3G".to_owned())]);
    assert_eq!(normal.sentences[1], "That's 10% of the 165 billing hours your group has left.");
    let test = JobRequest { qos: Some("devel".into()), ..per_core(4, 8, None) };
    assert!(near(estimate_cost(&test, &saga, None).per_hour, normal.per_hour), "paid as on ordinary nodes");
    let bigmem = estimate_cost(&per_core(4, 8, Some("bigmem")), &saga, None);
    assert!(near(bigmem.per_hour, 4.0), "{bigmem:?}");
    let gpu = JobRequest { partition: Some("a100".into()), ..with_gpus(None, 2, 4, 100) };
    let gpu = estimate_cost(&gpu, &saga, Some(10.0));
    assert_eq!(gpu.driver, CostDriver::Gpus);
    assert!(near(gpu.per_hour, 16.0));
    assert!(gpu.sentences[1].starts_with("Your group has 10 billing hours left, and this job reserves 16."));
    let betzy = JobRequest { nodes: Some(4), memory: None, ..job(128, 0, 60) };
    let betzy = estimate_cost(&betzy, &cluster("betzy"), None);
    assert_eq!(betzy.driver, CostDriver::Nodes);
    assert!(near(betzy.per_hour, 512.0));
    let olivia = JobRequest { partition: Some("accel".into()), ..with_gpus(None, 4, 72, 100) };
    let olivia = estimate_cost(&olivia, &cluster("olivia"), Some(1.0));
    assert_eq!((olivia.unit.as_str(), olivia.of_left), ("GPU hours", None));
}

#[test]
fn whole_nodes_and_plain_hours() {
    let trillium = cluster("trillium");
    let node = estimate_cost(&JobRequest { memory: None, ..job(1, 0, 60) }, &trillium, None);
    assert!(near(node.per_hour, 192.0) && node.driver == CostDriver::Nodes);
    assert_eq!(node.sentences[0], "This cluster allocates whole nodes, so you're charged for 1 node in full.");
    let unknown = crate::recipes::context::ComposeCluster { partitions: Vec::new(), ..trillium };
    let unknown = estimate_cost(&JobRequest { nodes: Some(2), ..job(1, 0, 60) }, &unknown, None);
    assert_eq!((unknown.unit.as_str(), unknown.notes.len()), ("node hours", 1));
    let demo = estimate_cost(&with_gpus(Some("v100"), 1, 4, 16), &cluster("demo"), None);
    assert_eq!((demo.unit.as_str(), demo.notes.len()), ("core hours", 0));
    assert!(near(demo.per_hour, 4.0));
    assert_eq!(
        demo.headline,
        "4 core hours and 1 GPU hour for each hour the job runs: at most 4 core hours and 1 GPU hour with this time \
         limit."
    );
    let unnamed = estimate_cost(&with_gpus(None, 2, 4, 16), &cluster("generic"), None);
    assert!(unnamed.headline.starts_with("4 core hours and 2 GPU hours for each hour"), "{}", unnamed.headline);
    let array = Some(ArrayRequest { tasks: "0-2".into(), at_once: None });
    let tasks = JobRequest { array, ..with_gpus(Some("v100"), 1, 4, 16) };
    assert_eq!(
        estimate_cost(&tasks, &cluster("demo"), None).headline,
        "At most 12 core hours and 3 GPU hours with this time limit: 3 tasks with 4 core hours and 1 GPU hour each."
    );
    let generic = estimate_cost(&job(2, 4, 60), &cluster("generic"), Some(5.0));
    assert_eq!((generic.notes.len(), generic.of_left), (1, None));
    let lumi = JobRequest { partition: Some("small".into()), ..job(2, 16, 60) };
    assert!(near(estimate_cost(&lumi, &cluster("lumi"), None).per_hour, 8.0));
}

#[test]
fn each_task_of_an_array_pays() {
    let array = ArrayRequest { tasks: "0-11".into(), at_once: Some(2) };
    let request = JobRequest { array: Some(array), ..job(2, 4, 90) };
    let cost = estimate_cost(&request, &cluster("demo"), None);
    assert_eq!((cost.tasks, cost.total), (12, Some(36.0)));
    assert!(cost.headline.contains("36 core hours with this time limit: 12 tasks with 3 each"));
    let unsaid = super::estimate_cost(&JobRequest { minutes: None, ..request }, &cluster("demo"), None);
    assert_eq!(unsaid.total, None);
}

#[test]
fn what_is_left_is_that_of_the_account() {
    let told = crate::sites::cost::parse_cost("Account  Cpu hours\nnn1k  Available  5.00\nnn2k  Used  1\n");
    assert_eq!(
        (remaining_quota(&told, "nn1k"), remaining_quota(&told, "nn2k"), remaining_quota(&told, "x")),
        (Some(5.0), None, None)
    );
}

proptest! {
    #[test]
    fn what_is_cheaper_is_cheaper_and_nothing_is_senseless(
        site in prop::sample::select(vec!["narval", "saga", "fir", "betzy", "trillium", "demo", "lumi", "olivia"]),
        cores in 0_u32..5000, mb in any::<u64>(), gpus in 0_u32..20, minutes in any::<u32>(), nodes in 0_u32..2000,
        per in 0..3, model in prop::sample::select(vec![None, Some("a100"), Some("h100"), Some("a100_1g.5gb")]),
        partition in prop::sample::select(vec![None, Some("a100"), Some("accel"), Some("x")]), left in any::<f64>(),
    ) {
        let request = JobRequest {
            cores: Some(cores), nodes: Some(nodes), minutes: Some(minutes),
            memory: Some(match per { 0 => MemoryRequest::PerNode(mb), 1 => MemoryRequest::PerCore(mb), _ => MemoryRequest::PerGpu(mb) }),
            gpus: (gpus > 0).then(|| GpuRequest { model: model.map(str::to_owned), count: gpus }),
            partition: partition.map(str::to_owned),
            ..JobRequest::default()
        };
        let cost = estimate_cost(&request, &cluster(site), Some(left));
        prop_assert!(cost.per_hour.is_finite() && cost.per_hour >= 0.0);
        prop_assert!(cost.cheaper.iter().all(|cheaper| cheaper.per_hour < cost.per_hour));
        prop_assert!(cost.parts.iter().all(|part| part.counts <= cost.per_hour));
    }
}
