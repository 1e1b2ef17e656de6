//! Accounting output of a real cluster.

use proptest::prelude::*;

use super::steps::STEP_FIELD_COUNT;
use super::*;
use crate::slurm::fields::parse_cpu_seconds;
use crate::slurm::job::JobState;
use crate::slurm::job_usage::JobUsage;

const V22: &[u8] = include_bytes!("../../../tests/fixtures/slurm/sacct-22.05.txt");
const STEPS: &[u8] = include_bytes!("../../../tests/fixtures/slurm/sacct-steps-22.05.txt");
const NONCE: &str = "k3v9q2xw";

fn one(raw: u64) -> (SlurmJob, AccountingExtra) {
    parse_accounting(V22, NONCE).into_iter().find(|(job, _)| job.raw_id == raw).unwrap()
}

#[test]
fn the_words() {
    let args = super::args_for_user(NONCE, "alice", UnixTime(1000), Some(UnixTime(2000))).unwrap();
    assert_eq!(args[..8], ["-n", "-p", "-X", "--delimiter=_k3v9q2xw", "-u", "alice", "-S", "uts1000"]);
    assert_eq!(args[8..11], ["-E", "uts2000", "-o"]);
    assert_eq!(args[11].split(',').count(), FIELD_COUNT);
    assert_eq!(super::args_for_user(NONCE, "a,b", UnixTime(0), None), None);
    let args = steps_args(NONCE, JobId { number: 7, task: Some(3) }).unwrap();
    assert_eq!(args[3..5], ["-j", "7_3"]);
    assert_eq!(args[6].split(',').count(), STEP_FIELD_COUNT);
}

#[test]
fn recorded_jobs() {
    assert_eq!(parse_accounting(V22, NONCE).len(), 16);
    let (steps, extra) = one(20010);
    assert_eq!((steps.state, steps.exit), (JobState::Running, None));
    assert_eq!(steps.end, Some(UnixTime(1_794_823_044 + 600)), "when it must end");
    assert!(extra.submit_line.contains("import time"), "lines of one word");
    let (task, _) = one(20023);
    assert_eq!(task.id, JobId { number: 20018, task: Some(2) });
    assert_eq!(task.exit, Some(ExitStatus { code: 1, signal: 0 }));
    let (cancelled, extra) = one(20013);
    assert_eq!(cancelled.state, JobState::Cancelled);
    assert_eq!(extra.cancelled_by.as_deref(), Some("31001"));
    let (requeued, _) = one(20014);
    assert_eq!((requeued.state, requeued.start, requeued.end), (JobState::Pending, None, None));
    let (waits, extra) = one(20027);
    assert_eq!((waits.node_list.as_str(), waits.memory_mb, waits.start), ("", Some(256), None));
    assert_eq!(extra.cancelled_by, None);
    let (oom, _) = one(20016);
    assert_eq!(oom.exit, Some(ExitStatus { code: 0, signal: 125 }));
    assert_eq!(oom.work_dir, "/home/alice/states");
}

#[test]
fn recorded_steps() {
    let usage = parse_steps(STEPS, NONCE).unwrap();
    assert_eq!(
        usage,
        JobUsage {
            elapsed_s: 15,
            cpu_s: Some(27),
            max_rss_mb: Some(94),
            tasks: 2,
            gpu_percent: None,
            gpu_memory_mb: None
        }
    );
    assert_eq!(parse_steps(b"", NONCE), None);
}

#[test]
fn steps_with_gpus_and_a_watcher() {
    let rows = "7|RUNNING|90||||||\n7.extern|RUNNING|90|00:00:00|900000K|1|||\n\
                7.batch|COMPLETED|90|1-00:00:01|2G|1|gres/gpumem=3G,gres/gpuutil=45|gres/gpumem=6144M,gres/gpuutil=99|\n";
    let usage = parse_steps(rows.replace('|', "_k3v9q2xw").as_bytes(), NONCE).unwrap();
    assert_eq!((usage.max_rss_mb, usage.cpu_s), (Some(2048), Some(86_401)));
    assert_eq!((usage.gpu_percent, usage.gpu_memory_mb), (Some(45), Some(6144)));
    let alone = "7|COMPLETED|9|00:01.5||||\n7.extern|COMPLETED|9|00:00:00|2048K|1|||\n";
    let alone = alone.replace("||||", "|||||").replace('|', "_k3v9q2xw");
    assert_eq!(parse_steps(alone.as_bytes(), NONCE).unwrap().max_rss_mb, Some(2));
}

#[test]
fn times_of_processors() {
    for (text, expected) in
        [("1-02:03:04.5", 93_784), ("00:27.462", 27), ("58-22:54:16", 5_093_656), ("02:48:58", 10_138)]
    {
        assert_eq!(parse_cpu_seconds(text), Some(expected), "{text}");
    }
    for bad in ["", "x", "1-", "::", "99999999999"] {
        assert_eq!(parse_cpu_seconds(bad), None, "{bad}");
    }
}

proptest! {
    #[test]
    fn any_mixture_is_survived(pieces in proptest::collection::vec("\n|_k3v9q2xw|[0-9.]{1,9}|(?s).{0,6}", 0..200)) {
        let bytes = pieces.concat();
        let _ = parse_accounting(bytes.as_bytes(), NONCE);
        let _ = parse_steps(bytes.as_bytes(), NONCE);
        let _ = parse_cpu_seconds(&bytes);
    }
}

const PAST: &str = include_str!("../../../tests/fixtures/slurm/sacct-past-22.05.txt");

#[test]
fn past_runs_with_their_steps() {
    let args = past_runs_args("k3v9q2xw", &[20_070, 20_071]).unwrap();
    assert_eq!((args[4].as_str(), args[6].split(',').count()), ("20070,20071", 12));
    assert_eq!(past_runs_args("k3v9q2xw", &[]), None);
    let runs = parse_past_runs(PAST.as_bytes(), "k3v9q2xw");
    let words: Vec<_> = runs
        .iter()
        .map(|run| {
            let rss = run.usage.max_rss_mb;
            (run.number, run.state, run.minutes, run.memory_mb, run.cores, run.nodes, rss, run.usage.tasks)
        })
        .collect();
    assert_eq!(
        words,
        [
            (20_070, JobState::Completed, Some(30), Some(500), 2, 1, Some(67), 1),
            (20_071, JobState::Failed, Some(1440), Some(400), 2, 1, Some(11), 1),
            (20_072, JobState::Completed, Some(5), Some(256), 1, 1, Some(3), 1),
            (20_072, JobState::Completed, Some(5), Some(256), 1, 1, Some(3), 1),
        ]
    );
    assert_eq!((runs[0].usage.elapsed_s, runs[0].usage.cpu_s), (3, Some(0)));
    assert!(parse_past_runs(b"sacct: error: nothing", "k3v9q2xw").is_empty());
    for cut in 0..PAST.len() {
        let _ = parse_past_runs(&PAST.as_bytes()[..cut], "k3v9q2xw");
    }
}
