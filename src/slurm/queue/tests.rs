//! Queue output of a real cluster, and names that try to break the parser.

use proptest::prelude::*;

use super::*;
use crate::clock::UnixTime;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::{JobId, JobState};
use crate::slurm::units::TimeLimit;

const V22: &[u8] = include_bytes!("../../../tests/fixtures/slurm/squeue-22.05.txt");
const NONCE: &str = "k3v9q2xw";

fn recorded() -> Vec<SlurmJob> {
    let answer = parse_queue(V22, NONCE);
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
    assert!(args[6].ends_with(",exit_code:\t,WorkDir:_k3v9q2xw,Name:_k3v9q2xw"), "{}", args[6]);
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
    let cut = parse_queue(&V22[..V22.len() - 3], NONCE);
    assert!(cut.is_cut);
    assert_eq!(cut.jobs.len(), recorded().len() - 1);
    assert_eq!(parse_queue(b"", NONCE), SqueueOutput::default());
    let refused = parse_queue(b"slurm_load_jobs error: Unable to contact slurm controller\n", NONCE);
    assert_eq!((refused.jobs.len(), refused.is_cut), (0, true));
    let mut noisy = b"a banner\n\n".to_vec();
    noisy.extend_from_slice(V22);
    assert_eq!(parse_queue(&noisy, NONCE).jobs, recorded());
}

#[test]
fn jobs_are_bounded() {
    let record = V22.split_inclusive(|byte| *byte == b'\n').next().unwrap();
    let many = record.repeat(MAX_JOBS + 2);
    let answer = parse_queue(&many, NONCE);
    assert_eq!((answer.jobs.len(), answer.is_cut), (MAX_JOBS, true));
}

proptest! {
    #[test]
    fn any_bytes_are_survived(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = parse_queue(&bytes, NONCE);
    }

    #[test]
    fn any_mixture_is_survived(pieces in proptest::collection::vec("\t|\n|_k3v9q2xw|[0-9]{1,5}|[a-z=,]{1,8}", 0..120)) {
        let _ = parse_queue(pieces.concat().as_bytes(), NONCE);
    }

    #[test]
    fn no_name_and_no_folder_changes_other_fields(
        name in proptest::collection::vec(any::<u8>(), 0..80),
        folder in "(\t|\n|.|PD){0,20}",
    ) {
        let record = |folder: &[u8], name: &[u8]| {
            let fixed = b"7\t7\teve\tPD\tPriority\ta\tp\tq\t1\t1\tN/A\tN/A\t5:00\t1\t1\tcpu=1\t\t9\t(null)\t0\t0\t";
            [fixed, folder, b"_k3v9q2xw", name, b"_k3v9q2xw\n"].concat()
        };
        let hostile = parse_queue(&record(folder.as_bytes(), &name).repeat(2), NONCE);
        let tame = parse_queue(&record(b"", b""), NONCE);
        prop_assert_eq!(hostile.jobs.len(), 2);
        for job in hostile.jobs {
            let job = SlurmJob { name: String::new(), work_dir: String::new(), ..job };
            prop_assert_eq!(&job, &tame.jobs[0]);
        }
    }
}
