use proptest::prelude::*;

use super::*;
use crate::explain::sorts::tests::{place, place_of};
use crate::recipes::place::SlurmAccount;
use crate::recipes::request::{Array, Gpus, Memory};
use crate::slurm::partitions;

const DEMO: &str = include_str!("../../../tests/fixtures/slurm/sinfo-22.05.txt");

type Expected = &'static [(Sets, Severity)];

fn of(place: &Place, request: &Request) -> Vec<(Sets, Severity)> {
    problems(request, place).iter().map(|problem| (problem.sets, problem.severity)).collect()
}

fn one(place: &Place, request: &Request) -> Problem {
    let mut all = problems(request, place);
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

fn gpus(model: Option<&str>, count: u32) -> Gpus {
    Gpus { model: model.map(str::to_owned), count }
}

fn account(name: &str, without: bool, with: bool) -> SlurmAccount {
    SlurmAccount { name: name.into(), for_cpu: without, for_gpu: with, ..SlurmAccount::default() }
}

fn partition(name: &str) -> Request {
    Request { partition: Some(name.into()), ..Request::default() }
}

#[test]
fn what_fits_is_not_complained_about() {
    let plain = Request { cores: Some(4), minutes: Some(60), ..Request::default() };
    let demo = place("demo");
    assert!(of(&demo, &plain).is_empty() && can_start(&plain, &demo));
    assert!(of(&place("generic"), &Request { nodes: Some(9999), ..plain.clone() }).is_empty());
    let gpu = Request { gpus: Some(gpus(Some("v100"), 1)), ..partition("gpu") };
    assert!(of(&demo, &gpu).is_empty());
    assert!(of(&demo, &Request { memory: Some(Memory::PerNode(0)), ..plain }).is_empty());
}

#[test]
fn time_is_held_against_the_tightest_limit() {
    let demo = place("demo");
    let long = Request { minutes: Some(2 * 1440), ..partition("gpu") };
    let problem = one(&demo, &Request { gpus: Some(gpus(None, 1)), ..long });
    assert_eq!((problem.sets, problem.severity), (Sets::Time, Severity::Refused));
    assert!(problem.sentence.contains("for 1 d at most, and this one asks for 2 d"), "{problem:?}");
    let debug = Request { qos: Some("debug".into()), minutes: Some(45), ..partition("debug") };
    assert!(one(&demo, &debug).sentence.starts_with("Jobs of the sort debug run for 30 min"));
    let short = Request { minutes: Some(10), ..Request::default() };
    assert!(one(&place("trillium"), &short).sentence.contains("15 min at least"));
    let mut own = place("demo");
    own.accounts = vec![SlurmAccount { max_minutes: Some(30), ..account("def-smith", true, true) }];
    let mine =
        Request { account: Some("def-smith".into()), minutes: Some(31), ..Request::default() };
    assert!(one(&own, &mine).sentence.contains("project def-smith"));
}

#[test]
fn machines_have_only_so_much() {
    let demo = place("demo");
    let cases = [
        (Request { cores: Some(9), ..Request::default() }, Sets::Cores),
        (Request { tasks: Some(20), nodes: Some(2), ..Request::default() }, Sets::Cores),
        (Request { tasks: Some(500), ..Request::default() }, Sets::Tasks),
        (Request { nodes: Some(4), ..Request::default() }, Sets::Nodes),
        (Request { memory: Some(Memory::PerNode(16_001)), ..Request::default() }, Sets::Memory),
        (
            Request { cores: Some(8), memory: Some(Memory::PerCore(2001)), ..Request::default() },
            Sets::MemoryPerCore,
        ),
        (Request { gpus: Some(gpus(Some("t4"), 1)), ..Request::default() }, Sets::Partition),
        (Request { gpus: Some(gpus(Some("v100"), 2)), ..partition("gpu") }, Sets::Gpus),
        (Request { gpus: Some(gpus(None, 4)), ..partition("gpu") }, Sets::Gpus),
        (Request { gpus: Some(gpus(Some("h100"), 1)), ..partition("gpu") }, Sets::GpuModel),
    ];
    for (request, sets) in cases {
        let found = problems(&request, &demo);
        let refused: Vec<Sets> = found
            .iter()
            .filter(|problem| problem.severity == Severity::Refused)
            .map(|problem| problem.sets)
            .collect();
        assert_eq!(refused, [sets], "{request:?} {found:?}");
    }
    assert!(of(&demo, &Request { tasks: Some(20), ..Request::default() }).is_empty());
    let nowhere = one(&demo, &partition("nowhere"));
    assert_eq!((nowhere.sets, nowhere.severity), (Sets::Partition, Severity::Warning));
    assert!(nowhere.sentence.contains("It shows cpu, gpu"));
}

#[test]
fn a_site_that_chooses_the_partition_has_one_for_it_or_not() {
    let rows = "b1|up|3:00:00|9|idle|64|1000000|(null)\nb5|up|7-00:00:00|9|idle|64|250000|(null)\n";
    let site = (*place("narval").site).clone();
    let narval = place_of(site, partitions::parse_partitions(rows));
    let request = Request {
        minutes: Some(1440),
        memory: Some(Memory::PerNode(200_000)),
        ..Request::default()
    };
    assert!(of(&narval, &request).is_empty());
    let both = Request { memory: Some(Memory::PerNode(900_000)), ..request };
    assert_eq!(of(&narval, &both), [(Sets::Partition, Severity::Refused)]);
    assert!(of(&narval, &Request { minutes: Some(60), ..both }).is_empty());
    assert_eq!(of(&narval, &partition("b1")), [(Sets::Partition, Severity::Warning)]);
    assert!(of(&narval, &partition("default")).is_empty());
}

#[test]
fn rules_of_sites() {
    let bare = Request::default();
    let gpu = |model: Option<&str>, count| Request {
        gpus: Some(gpus(model, count)),
        ..Request::default()
    };
    let cases: &[(&str, Request, Expected)] = &[
        ("fir", gpu(None, 1), &[(Sets::GpuModel, Severity::Refused)]),
        (
            "vulcan",
            gpu(None, 1),
            &[(Sets::Account, Severity::Refused), (Sets::GpuModel, Severity::Warning)],
        ),
        ("fir", gpu(Some("nvidia_h100_80gb_hbm3_1g.10gb"), 2), &[(Sets::Gpus, Severity::Refused)]),
        ("narval", gpu(Some("a100_1g.5gb"), 2), &[(Sets::Gpus, Severity::Warning)]),
        ("narval", gpu(Some("a100"), 5), &[(Sets::Gpus, Severity::Refused)]),
        ("narval", gpu(Some("k80"), 1), &[(Sets::GpuModel, Severity::Warning)]),
        ("trillium-gpu", bare.clone(), &[(Sets::Gpus, Severity::Refused)]),
        (
            "trillium",
            Request { memory: Some(Memory::PerNode(1)), ..bare.clone() },
            &[(Sets::Memory, Severity::Refused)],
        ),
        (
            "trillium",
            Request { output: Some("/home/alice/x.out".into()), ..bare.clone() },
            &[(Sets::Output, Severity::Refused)],
        ),
        (
            "killarney",
            Request {
                folder: Some("/home/alice".into()),
                account: Some("aip-x".into()),
                ..gpu(Some("l40s"), 1)
            },
            &[(Sets::Folder, Severity::Warning)],
        ),
        (
            "lumi",
            Request { account: Some("project_1".into()), ..bare.clone() },
            &[(Sets::Partition, Severity::Refused)],
        ),
        ("saga", bare, &[(Sets::Account, Severity::Refused), (Sets::Memory, Severity::Refused)]),
        (
            "betzy",
            Request { account: Some("nn1k".into()), nodes: Some(2), ..Request::default() },
            &[(Sets::Nodes, Severity::Warning)],
        ),
        (
            "saga",
            Request {
                account: Some("nn1k".into()),
                memory: Some(Memory::PerGpu(1000)),
                ..Request { partition: Some("a100".into()), ..gpu(Some("a100"), 1) }
            },
            &[(Sets::GpuModel, Severity::Warning)],
        ),
    ];
    for (site, request, expected) in cases {
        assert_eq!(of(&place(site), request), *expected, "{site} {request:?}");
    }
}

#[test]
fn projects_pay_for_what_they_may() {
    let mut narval = place("narval");
    let gpu = Request { gpus: Some(gpus(Some("a100"), 1)), ..Request::default() };
    narval.accounts = vec![
        SlurmAccount { slurm_names: vec!["rrg-a_gpu".into()], ..account("rrg-a", false, true) },
        account("def-b", true, true),
    ];
    let by =
        |name: &str, request: &Request| Request { account: Some(name.into()), ..request.clone() };
    assert!(of(&narval, &Request::default()).is_empty(), "only one can pay for it");
    assert!(one(&narval, &gpu).sentence.ends_with("Choose rrg-a or def-b."));
    assert!(one(&narval, &by("rrg-a", &Request::default())).sentence.contains("without GPUs"));
    assert!(of(&narval, &by("rrg-a_gpu", &gpu)).is_empty());
    assert!(
        one(&narval, &by("def-x", &gpu)).sentence.starts_with("You have no project called def-x")
    );
    let mut demo = place("demo");
    demo.accounts = vec![SlurmAccount {
        qos: vec!["normal".into()],
        partitions: vec!["cpu".into()],
        ..account("def-b", true, true)
    }];
    let request = Request { qos: Some("high".into()), ..by("def-b", &partition("debug")) };
    assert_eq!(
        of(&demo, &request),
        [(Sets::Partition, Severity::Refused), (Sets::Qos, Severity::Refused)]
    );
}

#[test]
fn arrays_have_an_end() {
    let array = |tasks: &str| Request {
        array: Some(Array { tasks: tasks.into(), at_once: None }),
        ..Request::default()
    };
    let mut demo = place("demo");
    demo.max_array = Some(1001);
    assert!(of(&demo, &array("0-1000")).is_empty());
    assert_eq!(of(&demo, &array("0-5000")), [(Sets::Array, Severity::Refused)]);
    assert_eq!(of(&demo, &array("a-b")), [(Sets::Array, Severity::Warning)]);
    assert!(one(&place("narval"), &array("1-1001")).sentence.contains("1000 jobs at a time"));
    let tests =
        Request { qos: Some("debug".into()), partition: Some("debug".into()), ..array("0-2") };
    assert_eq!(of(&demo, &tests), [(Sets::Array, Severity::Warning)]);
}

proptest! {
    #[test]
    fn any_request_is_survived(
        site in prop::sample::select(vec!["narval", "saga", "trillium", "demo", "betzy", "generic"]),
        numbers in prop::collection::vec(prop::option::of(any::<u32>()), 7), mb in any::<u64>(), per in 0..4,
        text in "[a-z0-9,-]{0,8}",
    ) {
        let request = Request {
            minutes: numbers[0], nodes: numbers[1], tasks: numbers[2], tasks_per_node: numbers[3], cores: numbers[4],
            memory: match per { 0 => None, 1 => Some(Memory::PerNode(mb)), 2 => Some(Memory::PerCore(mb)), _ => Some(Memory::PerGpu(mb)) },
            gpus: numbers[5].map(|count| Gpus { model: Some(text.clone()), count }),
            array: numbers[6].map(|most| Array { tasks: format!("{most}-{text}"), at_once: None }),
            partition: Some(text),
            ..Request::default()
        };
        let found = problems(&request, &place(site));
        prop_assert!(found.iter().all(|problem| problem.sentence.ends_with('.')));
        prop_assert!(found.windows(2).all(|two| two[0].severity <= two[1].severity));
    }

    /// What the recorded cluster was seen to take is never refused.
    #[test]
    fn small_requests_are_never_refused(cores in 1_u32..=8, mb in 0_u64..=16_000, minutes in 1_u32..=10_080, nodes in 1_u32..=3) {
        let request = Request {
            cores: Some(cores), memory: Some(Memory::PerNode(mb)), minutes: Some(minutes), nodes: Some(nodes),
            ..Request::default()
        };
        let demo = place_of((*place("demo").site).clone(), partitions::parse_partitions(DEMO));
        prop_assert!(can_start(&request, &demo));
    }
}
