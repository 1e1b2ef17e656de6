//! Queue output of a real cluster, and names that try to break the parser.

use proptest::prelude::*;

use super::*;
use crate::clock::UnixTime;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::{JobId, JobState};
use crate::slurm::units::TimeLimit;

const V22: &[u8] = include_bytes!("../../../tests/fixtures/slurm/squeue-22.05.txt");
const V24: &[u8] = include_bytes!("../../../tests/fixtures/slurm/squeue-24.11.txt");
const NONCE: &str = "k3v9q2xw";
/// A moment after the recording, as the column `TimeUsed` assumes.
const ASKED: UnixTime = UnixTime(1_794_823_070);

fn parse(answer: &[u8]) -> SqueueOutput {
    parse_queue(answer, NONCE, ASKED)
}

fn recorded() -> Vec<SlurmJob> {
    let answer = parse(V22);
    assert!(!answer.is_cut);
    answer.jobs
}

fn one(raw: u64) -> SlurmJob {
    recorded().into_iter().find(|job| job.raw_id == raw).unwrap()
}

#[test]
fn the_words_hold_names_and_a_nonce() {
    let args = args(NONCE, SqueueFilter::User("alice")).unwrap();
    assert_eq!(args[..5], ["-h", "-t", "all", "-u", "alice"]);
    assert!(args[6].starts_with("JobArrayID:\t,JobID:\t,"), "{}", args[6]);
    assert!(args[6].ends_with(",exit_code:\t,TimeUsed:\t,WorkDir:_k3v9q2xw,Name:_k3v9q2xw"), "{}", args[6]);
    let accounts = ["def-smith_gpu".to_owned(), "rrg-smith".to_owned()];
    let args = super::args(NONCE, SqueueFilter::Accounts(&accounts)).unwrap();
    assert_eq!(args[3..5], ["-A", "def-smith_gpu,rrg-smith"]);
    for bad in ["", "a,b", "-x", "a b", "$(id)"] {
        assert_eq!(super::args(NONCE, SqueueFilter::User(bad)), None, "{bad}");
        assert_eq!(super::args(NONCE, SqueueFilter::Accounts(&[bad.to_owned()])), None, "{bad}");
    }
    assert_eq!(super::args(NONCE, SqueueFilter::Accounts(&[])), None);
    assert_eq!(super::args("a,b", SqueueFilter::User("alice")), None);
}

#[test]
fn a_recorded_job() {
    assert_eq!(
        one(20026),
        SlurmJob {
            id: JobId::without_task(20026),
            raw_id: 20026,
            user: "alice".into(),
            name: "resources".into(),
            state: JobState::Running,
            account: "def-smith".into(),
            partition: "trial".into(),
            qos: "normal".into(),
            submitted: Some(UnixTime(1_794_823_049)),
            eligible: Some(UnixTime(1_794_823_049)),
            start: Some(UnixTime(1_794_823_050)),
            end: Some(UnixTime(1_794_823_650)),
            time_limit: TimeLimit::Minutes(10),
            cpus: 4,
            nodes: 1,
            memory_mb: Some(1024),
            node_list: "x2".into(),
            priority: 281,
            work_dir: "/home/alice/states".into(),
            ..SlurmJob::default()
        }
    );
}

#[test]
fn recorded_kinds_of_jobs() {
    assert_eq!(recorded().len(), 28);
    let array = one(20001);
    assert_eq!(array.id, JobId::without_task(20001));
    let tasks = array.tasks.unwrap();
    assert_eq!((tasks.len(), tasks.max_running), (12, Some(3)));
    assert_eq!(one(20023).id, JobId { number: 20018, task: Some(2) });
    assert_eq!(one(20009).id, JobId::without_task(20009), "one part of a job with two");
    assert_eq!(one(20005).gpus, [GpuCount { model: Some("t4".into()), count: 2 }]);
    assert_eq!(one(20007).partition, "cpu,gpu");
    assert_eq!(one(20014).restarts, 1);
    assert_eq!(one(20025).dependency, "afterok:20024(unfulfilled)");
    assert_eq!(one(20028).name.len(), 1000);
    let waits = one(20027);
    assert_eq!((waits.reason.as_str(), waits.end), ("Resources", None));
    assert_eq!(waits.start, Some(UnixTime(1_794_823_650)), "when it is expected to start");
}

#[test]
fn recorded_ends() {
    let ends = [
        (20019, JobState::Completed, (0, 0)),
        (20017, JobState::Failed, (3, 0)),
        (20016, JobState::OutOfMemory, (0, 125)),
        (20013, JobState::Cancelled, (0, 15)),
        (20020, JobState::Timeout, (0, 15)),
        (20012, JobState::Deadline, (0, 1)),
    ];
    for (raw, state, (code, signal)) in ends {
        let job = one(raw);
        assert_eq!((job.state, job.exit), (state, Some(ExitStatus { code, signal })), "{raw}");
    }
    assert_eq!(one(20010).exit, None, "it still runs");
}

/// Newer versions print `code:signal` instead of the raw status.
#[test]
fn ends_of_a_newer_version() {
    let answer = parse_queue(V24, NONCE, UnixTime(1_794_973_248));
    assert!(!answer.is_cut);
    let one = |raw: u64| answer.jobs.iter().find(|job| job.raw_id == raw).unwrap();
    for (raw, state, (code, signal)) in [
        (20001, JobState::Completed, (0, 0)),
        (20002, JobState::Failed, (3, 0)),
        (20003, JobState::Failed, (1, 0)),
        (20004, JobState::Failed, (9, 0)),
        (20005, JobState::Failed, (0, 11)),
        (20006, JobState::Cancelled, (0, 15)),
        (20007, JobState::Timeout, (0, 15)),
        (20008, JobState::OutOfMemory, (0, 125)),
        (20011, JobState::NodeFail, (0, 1)),
    ] {
        let job = one(raw);
        assert_eq!((job.state, job.exit), (state, Some(ExitStatus { code, signal })), "{raw}");
    }
    assert_eq!(one(20009).exit, None, "it still runs");
    assert_eq!(one(20012).tasks.as_ref().unwrap().len(), 17);
    assert_eq!(one(20005).reason, "RaisedSignal:11(Segmentation fault)");
}

#[test]
fn suspended_time_is_not_running_time() {
    let row = |state: &str, end: &str, used: &str| {
        let row = format!(
            "7\t7\teve\t{state}\tNone\ta\tp\tq\t100\t100\t1000\t{end}\t50:00\t1\t1\tcpu=1\tc1\t9\t(null)\t0\t0\t{used}\t\
             /home_k3v9q2xwx_k3v9q2xw\n"
        );
        parse_queue(row.as_bytes(), NONCE, UnixTime(2000)).jobs.remove(0)
    };
    let suspended = row("S", "9000", "5:00");
    assert_eq!((suspended.suspended_s, suspended.running_s(UnixTime(2000))), (700, 300));
    let resumed = row("R", "9000", "10:00");
    assert_eq!((resumed.suspended_s, resumed.running_s(UnixTime(2060))), (400, 660));
    assert_eq!(row("R", "9000", "16:35").suspended_s, 0, "clocks differ by a few seconds");
    assert_eq!(row("R", "9000", "17:00").suspended_s, 0);
    let ended = row("CD", "1900", "10:00");
    assert_eq!((ended.suspended_s, ended.running_s(UnixTime(1900))), (300, 600));
    assert_eq!(row("PD", "N/A", "0:00").suspended_s, 0);
    assert_eq!(row("R", "9000", "INVALID").suspended_s, 0);
}

#[test]
fn names_forge_nothing() {
    assert_eq!(one(20002).name, "xy|z9999999999mallory");
    assert!(recorded().iter().all(|job| job.user == "alice"));
    assert_eq!(one(20003).name, "x JobState=FAILED Account=evil WorkDir=/evil");
    assert_eq!(one(20004).name, "rtl \u{fffd}\u{fffd} bad");
    assert_eq!(one(20006).work_dir, "/home/alice/with space StdErr=/x");
}

#[test]
fn an_answer_that_breaks_off() {
    let cut = parse(&V22[..V22.len() - 3]);
    assert!(cut.is_cut);
    assert_eq!(cut.jobs.len(), recorded().len() - 1);
    assert_eq!(parse(b""), SqueueOutput::default());
    let refused = parse(b"slurm_load_jobs error: Unable to contact slurm controller\n");
    assert_eq!((refused.jobs.len(), refused.is_cut), (0, true));
    let mut noisy = b"a banner\n\n".to_vec();
    noisy.extend_from_slice(V22);
    assert_eq!(parse(&noisy).jobs, recorded());
}

#[test]
fn jobs_are_bounded() {
    let record = V22.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    let many = record.repeat(MAX_JOBS + 2);
    let answer = parse(&many);
    assert_eq!((answer.jobs.len(), answer.is_cut), (MAX_JOBS, true));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse(&bytes);
    }

    #[test]
    fn any_mixture_is_survived(pieces in proptest::collection::vec("\t|\n|_k3v9q2xw|[0-9]{1,5}|[a-z=,]{1,8}", 0..120)) {
        let _ = parse(pieces.concat().as_bytes());
    }

    #[test]
    fn no_name_and_no_folder_changes_other_fields(
        name in proptest::collection::vec(any::<u8>(), 0..80),
        folder in "(\t|\n|.|PD){0,20}",
    ) {
        let record = |folder: &[u8], name: &[u8]| {
            let fixed = b"7\t7\teve\tPD\tPriority\ta\tp\tq\t1\t1\tN/A\tN/A\t5:00\t1\t1\tcpu=1\t\t9\t(null)\t0\t0\t0:00\t";
            [fixed, folder, b"_k3v9q2xw", name, b"_k3v9q2xw\n"].concat()
        };
        let hostile = parse(&record(folder.as_bytes(), &name).repeat(2));
        let tame = parse(&record(b"", b""));
        prop_assert_eq!(hostile.jobs.len(), 2);
        for job in hostile.jobs {
            let job = SlurmJob { name: String::new(), work_dir: String::new(), ..job };
            prop_assert_eq!(&job, &tame.jobs[0]);
        }
    }
}
