use proptest::prelude::*;

use super::*;
use crate::explain::job_types::tests::{cluster, cluster_at};
use crate::recipes::context::SubmitAccount;
use crate::recipes::request::{ArrayRequest, GpuRequest, MemoryRequest};
use crate::slurm::partitions;

const DEMO: &str = include_str!("../../../tests/fixtures/slurm/sinfo-22.05.txt");

type Expected = &'static [(RequestField, RequestProblemSeverity)];

fn of(cluster: &ComposeCluster, request: &JobRequest) -> Vec<(RequestField, RequestProblemSeverity)> {
    find_problems(request, cluster).iter().map(|problem| (problem.sets, problem.severity)).collect()
}

fn one(cluster: &ComposeCluster, request: &JobRequest) -> RequestProblem {
    let mut all = find_problems(request, cluster);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn gpus(model: Option<&str>, count: u32) -> GpuRequest {
    GpuRequest { model: model.map(str::to_owned), count }
}

fn account(name: &str, without: bool, with: bool) -> SubmitAccount {
    SubmitAccount { name: name.into(), for_cpu: without, for_gpu: with, ..SubmitAccount::default() }
}

fn partition(name: &str) -> JobRequest {
    JobRequest { partition: Some(name.into()), ..JobRequest::default() }
}

#[test]
fn what_fits_is_not_complained_about() {
    let plain = JobRequest { cores: Some(4), minutes: Some(60), ..JobRequest::default() };
    let demo = cluster("demo");
    assert!(of(&demo, &plain).is_empty() && can_start(&plain, &demo));
    assert!(of(&cluster("generic"), &JobRequest { nodes: Some(9999), ..plain.clone() }).is_empty());
    let gpu = JobRequest { gpus: Some(gpus(Some("v100"), 1)), ..partition("gpu") };
    assert!(of(&demo, &gpu).is_empty());
    assert!(of(&demo, &JobRequest { memory: Some(MemoryRequest::PerNode(0)), ..plain }).is_empty());
}

#[test]
fn time_is_held_against_the_tightest_limit() {
    let demo = cluster("demo");
    let long = JobRequest { minutes: Some(2 * 1440), ..partition("gpu") };
    let problem = one(&demo, &JobRequest { gpus: Some(gpus(None, 1)), ..long });
    assert_eq!((problem.sets, problem.severity), (RequestField::Time, RequestProblemSeverity::Refused));
    assert!(problem.sentence.contains("for at most 1 day, and this one requests 2 days"), "{problem:?}");
    let debug = JobRequest { qos: Some("debug".into()), minutes: Some(45), ..partition("debug") };
    assert!(one(&demo, &debug).sentence.starts_with("Jobs in debug can run for at most 30 min"));
    let short = JobRequest { minutes: Some(10), ..JobRequest::default() };
    assert!(one(&cluster("trillium"), &short).sentence.contains("at least 15 min"));
    let mut own = cluster("demo");
    own.accounts = vec![SubmitAccount { max_minutes: Some(30), ..account("def-smith", true, true) }];
    let mine = JobRequest { account: Some("def-smith".into()), minutes: Some(31), ..JobRequest::default() };
    assert!(one(&own, &mine).sentence.contains("account def-smith"));
}

#[test]
fn machines_have_only_so_much() {
    let demo = cluster("demo");
    let cases = [
        (JobRequest { cores: Some(9), ..JobRequest::default() }, RequestField::Cores),
        (JobRequest { tasks: Some(20), nodes: Some(2), ..JobRequest::default() }, RequestField::Cores),
        (JobRequest { tasks: Some(500), ..JobRequest::default() }, RequestField::Tasks),
        (JobRequest { nodes: Some(4), ..JobRequest::default() }, RequestField::Nodes),
        (JobRequest { memory: Some(MemoryRequest::PerNode(16_001)), ..JobRequest::default() }, RequestField::Memory),
        (
            JobRequest { cores: Some(8), memory: Some(MemoryRequest::PerCore(2001)), ..JobRequest::default() },
            RequestField::MemoryPerCore,
        ),
        (JobRequest { gpus: Some(gpus(Some("t4"), 1)), ..JobRequest::default() }, RequestField::Partition),
        (JobRequest { gpus: Some(gpus(Some("v100"), 2)), ..partition("gpu") }, RequestField::Gpus),
        (JobRequest { gpus: Some(gpus(None, 4)), ..partition("gpu") }, RequestField::Gpus),
        (JobRequest { gpus: Some(gpus(Some("h100"), 1)), ..partition("gpu") }, RequestField::GpuModel),
    ];
    for (request, sets) in cases {
        let found = find_problems(&request, &demo);
        let refused: Vec<RequestField> = found
            .iter()
            .filter(|problem| problem.severity == RequestProblemSeverity::Refused)
            .map(|problem| problem.sets)
            .collect();
        assert_eq!(refused, [sets], "{request:?} {found:?}");
    }
    assert!(of(&demo, &JobRequest { tasks: Some(20), ..JobRequest::default() }).is_empty());
    let nowhere = one(&demo, &partition("nowhere"));
    assert_eq!((nowhere.sets, nowhere.severity), (RequestField::Partition, RequestProblemSeverity::Warning));
    assert!(nowhere.sentence.contains("It lists cpu, gpu"));
}

#[test]
fn a_site_that_chooses_the_partition_has_one_for_it_or_not() {
    let rows = "b1|up|3:00:00|9|idle|64|1000000|(null)\nb5|up|7-00:00:00|9|idle|64|250000|(null)\n";
    let site = (*cluster("narval").site).clone();
    let narval = cluster_at(site, partitions::parse_partitions(rows));
    let request =
        JobRequest { minutes: Some(1440), memory: Some(MemoryRequest::PerNode(200_000)), ..JobRequest::default() };
    assert!(of(&narval, &request).is_empty());
    let both = JobRequest { memory: Some(MemoryRequest::PerNode(900_000)), ..request };
    assert_eq!(of(&narval, &both), [(RequestField::Partition, RequestProblemSeverity::Refused)]);
    assert!(of(&narval, &JobRequest { minutes: Some(60), ..both }).is_empty());
    assert_eq!(of(&narval, &partition("b1")), [(RequestField::Partition, RequestProblemSeverity::Warning)]);
    assert!(of(&narval, &partition("default")).is_empty());
}

#[test]
fn rules_of_sites() {
    let bare = JobRequest::default();
    let gpu = |model: Option<&str>, count| JobRequest { gpus: Some(gpus(model, count)), ..JobRequest::default() };
    let cases: &[(&str, JobRequest, Expected)] = &[
        ("fir", gpu(None, 1), &[(RequestField::GpuModel, RequestProblemSeverity::Refused)]),
        (
            "vulcan",
            gpu(None, 1),
            &[
                (RequestField::Account, RequestProblemSeverity::Refused),
                (RequestField::GpuModel, RequestProblemSeverity::Warning),
            ],
        ),
        (
            "fir",
            gpu(Some("nvidia_h100_80gb_hbm3_1g.10gb"), 2),
            &[(RequestField::Gpus, RequestProblemSeverity::Refused)],
        ),
        ("narval", gpu(Some("a100_1g.5gb"), 2), &[(RequestField::Gpus, RequestProblemSeverity::Warning)]),
        ("narval", gpu(Some("a100"), 5), &[(RequestField::Gpus, RequestProblemSeverity::Refused)]),
        ("narval", gpu(Some("k80"), 1), &[(RequestField::GpuModel, RequestProblemSeverity::Warning)]),
        ("trillium-gpu", bare.clone(), &[(RequestField::Gpus, RequestProblemSeverity::Refused)]),
        (
            "trillium",
            JobRequest { memory: Some(MemoryRequest::PerNode(1)), ..bare.clone() },
            &[(RequestField::Memory, RequestProblemSeverity::Refused)],
        ),
        (
            "trillium",
            JobRequest { output: Some("/home/alice/x.out".into()), ..bare.clone() },
            &[(RequestField::Output, RequestProblemSeverity::Refused)],
        ),
        (
            "killarney",
            JobRequest { folder: Some("/home/alice".into()), account: Some("aip-x".into()), ..gpu(Some("l40s"), 1) },
            &[(RequestField::Folder, RequestProblemSeverity::Warning)],
        ),
        (
            "lumi",
            JobRequest { account: Some("project_1".into()), ..bare.clone() },
            &[(RequestField::Partition, RequestProblemSeverity::Refused)],
        ),
        (
            "saga",
            bare,
            &[
                (RequestField::Account, RequestProblemSeverity::Refused),
                (RequestField::Memory, RequestProblemSeverity::Refused),
            ],
        ),
        (
            "betzy",
            JobRequest { account: Some("nn1k".into()), nodes: Some(2), ..JobRequest::default() },
            &[(RequestField::Nodes, RequestProblemSeverity::Warning)],
        ),
        (
            "saga",
            JobRequest {
                account: Some("nn1k".into()),
                memory: Some(MemoryRequest::PerGpu(1000)),
                ..JobRequest { partition: Some("a100".into()), ..gpu(Some("a100"), 1) }
            },
            &[(RequestField::GpuModel, RequestProblemSeverity::Warning)],
        ),
    ];
    for (site, request, expected) in cases {
        assert_eq!(of(&cluster(site), request), *expected, "{site} {request:?}");
    }
}

#[test]
fn projects_pay_for_what_they_may() {
    let mut narval = cluster("narval");
    let gpu = JobRequest { gpus: Some(gpus(Some("a100"), 1)), ..JobRequest::default() };
    narval.accounts = vec![
        SubmitAccount { slurm_names: vec!["rrg-a_gpu".into()], ..account("rrg-a", false, true) },
        account("def-b", true, true),
    ];
    let by = |name: &str, request: &JobRequest| JobRequest { account: Some(name.into()), ..request.clone() };
    assert!(of(&narval, &JobRequest::default()).is_empty(), "only one can pay for it");
    assert!(one(&narval, &gpu).sentence.ends_with("Choose rrg-a or def-b."));
    assert!(one(&narval, &by("rrg-a", &JobRequest::default())).sentence.contains("without GPUs"));
    assert!(of(&narval, &by("rrg-a_gpu", &gpu)).is_empty());
    assert!(one(&narval, &by("def-x", &gpu)).sentence.starts_with("You have no account called def-x"));
    let mut demo = cluster("demo");
    demo.accounts = vec![SubmitAccount {
        qos: vec!["normal".into()],
        partitions: vec!["cpu".into()],
        ..account("def-b", true, true)
    }];
    let request = JobRequest { qos: Some("high".into()), ..by("def-b", &partition("debug")) };
    assert_eq!(
        of(&demo, &request),
        [
            (RequestField::Partition, RequestProblemSeverity::Refused),
            (RequestField::Qos, RequestProblemSeverity::Refused)
        ]
    );
}

#[test]
fn arrays_have_an_end() {
    let array = |tasks: &str| JobRequest {
        array: Some(ArrayRequest { tasks: tasks.into(), at_once: None }),
        ..JobRequest::default()
    };
    let mut demo = cluster("demo");
    demo.max_array = Some(1001);
    assert!(of(&demo, &array("0-1000")).is_empty());
    assert_eq!(of(&demo, &array("0-5000")), [(RequestField::Array, RequestProblemSeverity::Refused)]);
    assert_eq!(of(&demo, &array("a-b")), [(RequestField::Array, RequestProblemSeverity::Warning)]);
    assert!(one(&cluster("narval"), &array("1-1001")).sentence.contains("You can have 1000 pending and running jobs"));
    let tests = JobRequest { qos: Some("debug".into()), partition: Some("debug".into()), ..array("0-2") };
    assert_eq!(of(&demo, &tests), [(RequestField::Array, RequestProblemSeverity::Warning)]);
}

proptest! {
    #[test]
    fn any_request_is_survived(
        site in prop::sample::select(vec!["narval", "saga", "trillium", "demo", "betzy", "generic"]),
        numbers in prop::collection::vec(prop::option::of(any::<u32>()), 7), mb in any::<u64>(), per in 0..4,
        text in "[a-z0-9,-]{0,8}",
    ) {
        let request = JobRequest {
            minutes: numbers[0], nodes: numbers[1], tasks: numbers[2], tasks_per_node: numbers[3], cores: numbers[4],
            memory: match per { 0 => None, 1 => Some(MemoryRequest::PerNode(mb)), 2 => Some(MemoryRequest::PerCore(mb)), _ => Some(MemoryRequest::PerGpu(mb)) },
            gpus: numbers[5].map(|count| GpuRequest { model: Some(text.clone()), count }),
            array: numbers[6].map(|most| ArrayRequest { tasks: format!("{most}-{text}"), at_once: None }),
            partition: Some(text),
            ..JobRequest::default()
        };
        let found = find_problems(&request, &cluster(site));
        prop_assert!(found.iter().all(|problem| problem.sentence.ends_with('.')));
        prop_assert!(found.windows(2).all(|two| two[0].severity <= two[1].severity));
    }

    /// Requests that the recorded cluster accepted are never refused.
    #[test]
    fn small_requests_are_never_refused(cores in 1_u32..=8, mb in 0_u64..=16_000, minutes in 1_u32..=10_080, nodes in 1_u32..=3) {
        let request = JobRequest {
            cores: Some(cores), memory: Some(MemoryRequest::PerNode(mb)), minutes: Some(minutes), nodes: Some(nodes),
            ..JobRequest::default()
        };
        let demo = cluster_at((*cluster("demo").site).clone(), partitions::parse_partitions(DEMO));
        prop_assert!(can_start(&request, &demo));
    }
}
