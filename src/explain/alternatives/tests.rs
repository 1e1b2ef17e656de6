use proptest::prelude::*;

use super::*;
use crate::explain::job_types::tests::cluster;
use crate::recipes::request::{GpuRequest, MemoryRequest};
use crate::slurm::test_only::TestOnlyStart;

fn of(request: &JobRequest, site: &str) -> Vec<(String, Vec<String>)> {
    alternatives(request, &cluster(site)).into_iter().map(|one| (one.words, one.args)).collect()
}

fn gpu(model: &str) -> GpuRequest {
    GpuRequest { model: Some(model.into()), count: 1 }
}

fn starts(at: i64) -> TestOnlyAnswer {
    let (nodes, partition) = (String::new(), String::new());
    TestOnlyAnswer::Starts(TestOnlyStart { at: UnixTime(at), processors: 1, nodes, partition })
}

#[test]
fn less_time_comes_first() {
    let request = JobRequest { minutes: Some(1440), ..JobRequest::default() };
    let found = alternatives(&request, &cluster("narval"));
    let words: Vec<&str> = found.iter().map(|one| one.words.as_str()).collect();
    assert_eq!(words, ["with 12 h instead of 1 day", "with 3 h instead of 1 day", "with 1 h instead of 1 day"]);
    assert_eq!(found[1].changes, [(RequestField::Time, "3:00:00".to_owned())]);
    assert_eq!(found[1].args, ["--time=03:00:00"]);
    assert!(of(&JobRequest { minutes: Some(60), ..JobRequest::default() }, "narval").is_empty());
    assert!(of(&JobRequest::default(), "narval").is_empty());
}

#[test]
fn other_gpus_and_parts_of_them() {
    let request = JobRequest { minutes: Some(60), gpus: Some(gpu("a100")), ..JobRequest::default() };
    let found = of(&request, "narval");
    assert_eq!(found[0].1, ["--gpus-per-node=a100_1g.5gb:1"]);
    assert_eq!(found[0].0, "on A100 slice, 5 GB instead of a100");
    assert_eq!(found.len(), 2);
    let two = JobRequest { gpus: Some(GpuRequest { model: Some("a100".into()), count: 2 }), ..request };
    assert!(of(&two, "narval").is_empty(), "a job takes one part only");
    let demo = JobRequest { gpus: Some(gpu("v100")), partition: Some("gpu".into()), ..JobRequest::default() };
    assert_eq!(of(&demo, "demo")[0].1, ["--gpus-per-node=t4:1"]);
}

#[test]
fn other_sorts_of_job() {
    let request = JobRequest {
        account: Some("nn1k".into()),
        minutes: Some(60),
        memory: Some(MemoryRequest::PerCore(1000)),
        ..JobRequest::default()
    };
    let found = alternatives(&request, &cluster("saga"));
    let values: Vec<&str> = found.iter().map(|one| one.changes[0].1.as_str()).collect();
    assert_eq!(values, ["bigmem", "hugemem"]);
    assert_eq!(found[0].args, ["--partition=bigmem"]);
    let long = JobRequest { partition: Some("cpu".into()), minutes: Some(40), ..JobRequest::default() };
    assert!(of(&long, "demo").is_empty(), "debug takes half an hour only, and has no GPUs to give");
    let short = JobRequest { minutes: Some(20), ..long };
    assert_eq!(of(&short, "demo")[0].1, ["--partition=debug", "--qos=debug"]);
    let tested = JobRequest { partition: Some("debug".into()), qos: Some("debug".into()), ..short };
    assert!(of(&tested, "demo").is_empty(), "a script's own --qos cannot be taken away");
}

#[test]
fn fewer_nodes() {
    let request = JobRequest { nodes: Some(3), tasks: Some(6), ..JobRequest::default() };
    let found = of(&request, "demo");
    assert_eq!(found.last().unwrap().1, ["--nodes=1", "--ntasks=3"]);
}

#[test]
fn only_what_is_notably_sooner_is_shown() {
    let now = UnixTime(1_000_000);
    let tried = |at: &[i64]| -> Vec<(RequestAlternative, TestOnlyAnswer)> {
        at.iter()
            .enumerate()
            .map(|(cluster, at)| {
                let words = format!("with {cluster}");
                (RequestAlternative { words, changes: Vec::new(), args: Vec::new() }, starts(now.0 + at))
            })
            .collect()
    };
    let asked = starts(now.0 + 187_000);
    let rows = compare_starts(now, &asked, &tried(&[186_900, 40_000, 1150, -20]));
    let sentences: Vec<&str> = rows.iter().map(|row| row.sentence.as_str()).collect();
    assert_eq!(
        sentences,
        [
            "with 3: immediately instead of in about 2 days 4 h",
            "with 2: in about 20 min instead of in about 2 days 4 h",
            "with 1: in about 11 h 15 min instead of in about 2 days 4 h",
        ]
    );
    let refused = compare_starts(now, &TestOnlyAnswer::Refused("no".into()), &tried(&[5000]));
    assert!(refused[0].sentence.ends_with("in about 1 h 30 min (the current request would be rejected)"));
    assert!(compare_starts(now, &TestOnlyAnswer::Unclear, &tried(&[0])).is_empty());
    assert!(compare_starts(now, &starts(now.0 + 60), &tried(&[0])).is_empty(), "both at once");
    assert_eq!(start_words(now, &starts(now.0)).unwrap(), "Starts immediately (estimated).");
}

proptest! {
    #[test]
    fn what_is_offered_can_start(
        site in prop::sample::select(vec!["narval", "saga", "demo", "betzy", "generic", "lumi"]),
        minutes in 1_u32..20_000, nodes in prop::option::of(1_u32..20),
        model in prop::option::of(prop::sample::select(vec!["a100", "v100", "t4"])),
    ) {
        let gpus = model.map(|model| GpuRequest { model: Some(model.to_owned()), count: 1 });
        let request = JobRequest { minutes: Some(minutes), nodes, gpus, ..JobRequest::default() };
        let found = alternatives(&request, &cluster(site));
        prop_assert!(found.len() <= MAX_ALTERNATIVES);
        for one in &found {
            prop_assert!(!one.args.is_empty() && !one.changes.is_empty());
            prop_assert!(one.args.iter().all(|arg| arg.starts_with("--")));
        }
    }
}
