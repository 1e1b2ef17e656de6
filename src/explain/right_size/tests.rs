use proptest::prelude::*;

use super::*;
use crate::slurm::job_usage::JobUsage;

fn run(state: JobState, elapsed_s: u64, rss_mb: u64, cpu_s: u64) -> PastJobRun {
    PastJobRun {
        number: 1,
        state,
        minutes: Some(1440),
        memory_mb: Some(16_384),
        cores: 8,
        nodes: 1,
        gpus: Vec::new(),
        usage: JobUsage { elapsed_s, cpu_s: Some(cpu_s), max_rss_mb: Some(rss_mb), tasks: 1, ..JobUsage::default() },
    }
}

fn asked() -> JobRequest {
    JobRequest {
        minutes: Some(1440),
        cores: Some(8),
        memory: Some(MemoryRequest::PerNode(16_384)),
        ..JobRequest::default()
    }
}

fn values(runs: &[PastJobRun], asked: &JobRequest) -> Vec<(RequestField, String)> {
    right_size(runs, asked, false).into_iter().map(|one| (one.sets, one.value)).collect()
}

#[test]
fn what_was_not_used_is_not_asked_for() {
    let runs = [
        run(JobState::Completed, 5000, 3174, 6000),
        run(JobState::Completed, 4000, 2000, 5000),
        run(JobState::Failed, 100, 2500, 100),
    ];
    let found = right_size(&runs, &asked(), false);
    let as_typed: Vec<(&str, &str)> = found.iter().map(|one| (one.value.as_str(), one.was.as_str())).collect();
    assert_eq!(as_typed, [("2:00:00", "1-00:00:00"), ("4G", "16G"), ("2", "8")]);
    assert_eq!(
        found[1].sentence,
        "Your last 3 runs used at most 3.1 GB of the 16 GB you're requesting now. 4 GB leaves some margin."
    );
    assert!(found[0].sentence.starts_with("Your last 2 runs took at most 1 h 23 min."));
    assert!(
        found[2].sentence.contains("1.3 cores busy on average, and you're requesting 8 now"),
        "{}",
        found[2].sentence
    );
    assert_eq!(right_size(&runs, &asked(), true).len(), 1, "whole nodes are given as they are");
}

#[test]
fn nothing_without_a_run_that_ended_well() {
    assert!(values(&[], &asked()).is_empty());
    assert!(values(&[run(JobState::Failed, 5000, 100, 100)], &asked()).is_empty());
    let fits = run(JobState::Completed, 64_000, 12_500, 8 * 64_000);
    assert!(values(&[fits], &asked()).is_empty(), "small differences are none");
    let brief = run(JobState::Completed, 20, 10, 1);
    assert_eq!(values(&[brief], &asked()), [(RequestField::Time, "0:05:00".to_owned())]);
    let young = run(JobState::Completed, 119, 10, 1);
    assert!(values(&[young], &asked()).iter().all(|(sets, _)| *sets == RequestField::Time), "two minutes at least");
    let short = run(JobState::Failed, 90, 12_500, 1);
    let long = run(JobState::Completed, 5000, 1000, 6000);
    assert!(
        values(&[long, short], &asked()).iter().all(|(sets, _)| *sets != RequestField::Memory),
        "what a short run needed is still needed"
    );
}

#[test]
fn what_was_too_little_once_is_not_proposed_again() {
    let good = run(JobState::Completed, 3000, 1000, 20_000);
    let out_of_memory = PastJobRun { memory_mb: Some(12_288), ..run(JobState::OutOfMemory, 300, 900, 10) };
    let late = PastJobRun { minutes: Some(180), ..run(JobState::Timeout, 10_800, 900, 10) };
    let low = JobRequest { minutes: Some(120), memory: Some(MemoryRequest::PerNode(8192)), ..asked() };
    let found = right_size(&[good.clone(), out_of_memory, late], &low, false);
    assert_eq!((found[0].value.as_str(), found[1].value.as_str()), ("4:00:00", "15G"));
    assert!(found[0].sentence.contains("One timed out after 3 h."));
    assert!(found[1].sentence.contains("One ran out of memory with 12 GB."));
}

#[test]
fn memory_for_each_core_and_tasks_on_several_nodes() {
    let good = run(JobState::Completed, 3000, 3000, 3000);
    let each = JobRequest { memory: Some(MemoryRequest::PerCore(4096)), ..asked() };
    assert!(values(std::slice::from_ref(&good), &each).contains(&(RequestField::MemoryPerCore, "512M".to_owned())));
    let wide = PastJobRun { nodes: 2, ..good.clone() };
    assert!(!values(&[wide], &asked()).iter().any(|(sets, _)| *sets == RequestField::Memory));
    let many = PastJobRun { usage: JobUsage { tasks: 4, ..good.usage }, ..good };
    let found = values(&[many], &asked());
    assert_eq!(found, [(RequestField::Time, "1:30:00".to_owned())], "4 × 3 GB is close to 16");
}

#[test]
fn sentences_are_about_what_is_requested_now() {
    let wide = PastJobRun { cores: 32, ..run(JobState::Completed, 5000, 3174, 6000) };
    let now = JobRequest { cores: Some(4), memory: Some(MemoryRequest::PerNode(8192)), ..asked() };
    let found = right_size(&[wide], &now, false);
    let of = |sets: RequestField| found.iter().find(|one| one.sets == sets).unwrap();
    assert_eq!((of(RequestField::Cores).was.as_str(), of(RequestField::Memory).was.as_str()), ("4", "8G"));
    assert!(
        of(RequestField::Cores).sentence.contains("1.2 cores busy") && !of(RequestField::Cores).sentence.contains("32")
    );
    assert!(of(RequestField::Memory).sentence.contains("of the 8 GB you're requesting now"));
}

proptest! {
    #[test]
    fn never_below_what_a_run_needed(
        seconds in prop::collection::vec(60_u64..1_000_000, 1..6), mb in prop::collection::vec(1_u64..2_000_000, 1..6),
        minutes in 1_u32..30_000, memory in 1_u64..4_000_000, out in prop::option::of(1_u64..1_000_000),
    ) {
        let mut runs: Vec<PastJobRun> =
            seconds.iter().zip(&mb).map(|(s, mb)| run(JobState::Completed, *s, *mb, *s)).collect();
        runs.extend(out.map(|mb| PastJobRun { memory_mb: Some(mb), ..run(JobState::OutOfMemory, 90, 1, 1) }));
        let request = JobRequest { minutes: Some(minutes), memory: Some(MemoryRequest::PerNode(memory)), ..asked() };
        for one in right_size(&runs, &request, false) {
            prop_assert!(one.value != one.was);
            match one.sets {
                RequestField::Time => {
                    let value = TimeLimit::parse(&one.value).minutes().unwrap();
                    prop_assert!(runs.iter().all(|run| u64::from(value) * 60 >= run.usage.elapsed_s));
                }
                RequestField::Memory => {
                    let value = crate::slurm::units::parse_memory_mb(&one.value).unwrap();
                    prop_assert!(runs.iter().all(|run| value >= run.usage.max_rss_mb.unwrap()));
                    prop_assert!(out.is_none_or(|out| value > out));
                }
                _ => prop_assert!(one.value.parse::<u32>().unwrap() >= 1),
            }
        }
    }
}
