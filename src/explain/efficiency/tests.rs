use proptest::prelude::*;

use super::*;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::JobId;

fn job() -> SlurmJob {
    SlurmJob {
        state: JobState::Completed,
        time_limit: TimeLimit::Minutes(1440),
        cpus: 8,
        nodes: 1,
        memory_mb: Some(65_536),
        ..SlurmJob::default()
    }
}

fn usage() -> JobUsage {
    JobUsage { elapsed_s: 7_200, cpu_s: Some(7_300), max_rss_mb: Some(10_240), tasks: 1, ..JobUsage::default() }
}

fn of(job: &SlurmJob, usage: &JobUsage) -> JobEfficiency {
    efficiency(&MeasuredJob { job, usage, whole_node: false })
}

fn options(found: &JobEfficiency) -> Vec<&str> {
    found.next.iter().map(|mended| mended.option.as_str()).collect()
}

#[test]
fn a_job_that_asked_for_too_much() {
    let found = of(&job(), &usage());
    let words: Vec<_> =
        found.figures.iter().map(|f| (f.label, f.used.as_str(), f.asked.as_str(), f.percent, f.judgement)).collect();
    assert_eq!(
        words,
        [
            ("Cores", "1", "8 cores", Some(13), UsageJudgement::Low),
            ("Memory", "10 GB", "64 GB", Some(16), UsageJudgement::Low),
            ("Time", "2 h", "1 day", Some(8), UsageJudgement::Low),
        ]
    );
    assert!(found.figures[0].note.contains("about one core"));
    assert_eq!(options(&found), ["--mem=13G", "--time=03:00:00", "--cpus-per-task=2"]);
    assert!(found.caveats.is_empty());
}

#[test]
fn a_job_that_asked_well() {
    let job = SlurmJob { time_limit: TimeLimit::Minutes(180), memory_mb: Some(12_288), cpus: 1, ..job() };
    let found = of(&job, &usage());
    assert!(found.figures.iter().all(|figure| figure.judgement == UsageJudgement::Good), "{found:?}");
    assert!(found.next.is_empty());
    let tight = of(&SlurmJob { memory_mb: Some(10_500), ..job }, &usage());
    assert_eq!(tight.figures[1].judgement, UsageJudgement::High);
    assert_eq!(options(&tight), ["--mem=13G"]);
}

#[test]
fn what_cannot_be_told_is_not_judged() {
    let brief = of(&job(), &JobUsage { elapsed_s: 20, cpu_s: Some(2), ..usage() });
    assert_eq!(brief.figures[0].judgement, UsageJudgement::Unknown);
    assert!(brief.caveats[0].contains("less than two minutes"));
    assert!(brief.figures[..2].iter().all(|figure| figure.note.is_empty()), "no advice either: {brief:?}");
    let young = SlurmJob { state: JobState::Running, ..job() };
    let young = of(&young, &JobUsage { elapsed_s: 2, cpu_s: Some(0), max_rss_mb: Some(5), ..usage() });
    assert!(young.figures[1].note.is_empty() && young.figures[1].judgement == UsageJudgement::Unknown, "{young:?}");
    assert!(options(&brief).is_empty(), "it says nothing about the next one");
    let whole = efficiency(&MeasuredJob { job: &job(), usage: &usage(), whole_node: true });
    assert_eq!(whole.figures[1].judgement, UsageJudgement::Unknown);
    assert_eq!(options(&whole), ["--time=03:00:00"]);
    let tasks = of(&job(), &JobUsage { tasks: 4, ..usage() });
    assert_eq!((tasks.figures[1].used.as_str(), tasks.figures[1].percent), ("at most 40 GB", Some(63)));
    assert!(tasks.figures[1].note.contains("4 tasks, the largest used 10 GB"));
    let nothing = of(&SlurmJob { time_limit: TimeLimit::Unknown, ..job() }, &JobUsage::default());
    assert!(nothing.figures.iter().all(|figure| figure.judgement == UsageJudgement::Unknown));
    let task = of(&SlurmJob { id: JobId { number: 7, task: Some(3) }, ..job() }, &usage());
    assert!(task.caveats[0].contains("array"));
    let running = of(&SlurmJob { state: JobState::Running, ..job() }, &usage());
    assert!(running.caveats[0].contains("so far") && running.next.is_empty());
    let early = of(&SlurmJob { state: JobState::Running, ..job() }, &JobUsage { elapsed_s: 20, ..usage() });
    assert!(early.caveats[0].starts_with("It's too early to rate usage."), "{:?}", early.caveats);
    // A job that failed early says nothing about the next one.
    assert!(of(&SlurmJob { state: JobState::Failed, ..job() }, &usage()).next.is_empty());
}

#[test]
fn gpus_are_told() {
    let job = SlurmJob { gpus: vec![GpuCount { model: Some("v100".to_owned()), count: 2 }], ..job() };
    let unknown = of(&job, &usage());
    let gpu = &unknown.figures[3];
    assert_eq!((gpu.asked.as_str(), gpu.judgement), ("2 v100 GPUs", UsageJudgement::Unknown));
    let idle = of(&job, &JobUsage { gpu_percent: Some(60), gpu_memory_mb: Some(2048), ..usage() });
    assert_eq!(idle.figures[3].used, "30% busy, 2 GB of its memory");
    assert_eq!(idle.figures[3].judgement, UsageJudgement::Low);
    assert!(idle.figures[0].note.contains("GPU"));
    let busy = of(&job, &JobUsage { gpu_percent: Some(180), ..usage() });
    assert_eq!((busy.figures[3].percent, busy.figures[3].judgement), (Some(90), UsageJudgement::Good));
}

proptest! {
    #[test]
    fn suggestions_leave_room(elapsed in 60_u64..1_000_000, rss in 1_u64..2_000_000, asked in 1_u64..4_000_000, limit in 1_u32..100_000) {
        let job = SlurmJob { time_limit: TimeLimit::Minutes(limit), memory_mb: Some(asked), ..job() };
        let usage = JobUsage { elapsed_s: elapsed, max_rss_mb: Some(rss), ..usage() };
        for mended in of(&job, &usage).next {
            let value = mended.option.split_once('=').unwrap().1;
            match mended.option.split('=').next().unwrap() {
                "--mem" => prop_assert!(crate::slurm::units::parse_memory_mb(value).unwrap() * 4 >= rss * 5),
                "--time" => prop_assert!(u64::from(TimeLimit::parse(value).minutes().unwrap()) * 600 >= elapsed * 13),
                _ => {}
            }
        }
    }

    #[test]
    fn any_numbers_are_survived(elapsed_s in any::<u64>(), cpu in any::<u64>(), rss in any::<u64>(), tasks in any::<u32>(),
        cpus in any::<u32>(), nodes in any::<u32>(), memory in any::<u64>(), limit in any::<u32>(), gpu in any::<u32>()) {
        let usage = JobUsage { elapsed_s, cpu_s: Some(cpu), max_rss_mb: Some(rss), tasks, gpu_percent: Some(gpu), gpu_memory_mb: Some(rss) };
        let gpus = vec![GpuCount { model: None, count: cpus }];
        let job = SlurmJob { cpus, nodes, memory_mb: Some(memory), time_limit: TimeLimit::Minutes(limit), gpus, ..job() };
        let _ = of(&job, &usage);
    }
}
