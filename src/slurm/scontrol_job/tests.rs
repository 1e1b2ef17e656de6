//! Job details as real clusters printed them, and values that try to break the parser.

use proptest::prelude::*;

use super::*;

const V22: &str = include_str!("../../../tests/fixtures/slurm/scontrol-job-22.05.txt");
const TRILLIUM: &str = include_str!("../../../tests/fixtures/slurm/scontrol-job-trillium.txt");

fn one(raw: u64) -> ScontrolJob {
    parse_jobs(V22).into_iter().find(|details| details.raw_id == raw).unwrap()
}

#[test]
fn recorded_details() {
    let numbers: Vec<_> = parse_jobs(V22).iter().map(|details| details.raw_id).collect();
    assert_eq!(numbers, [20003, 20001, 20006, 20008, 20009, 20002, 20005]);
    let gpus = one(20005);
    assert_eq!(gpus.requested, "cpu=4,mem=2G,node=1,billing=20,gres/gpu=2,gres/gpu:t4=2");
    assert_eq!((gpus.nice, gpus.requeue), (100, true));
    assert_eq!(gpus.deadline, Some(UnixTime(1_794_833_843)));
    assert_eq!(gpus.time_min, TimeLimit::Minutes(5));
    assert_eq!((gpus.start, gpus.licenses.as_str()), (None, ""));
    assert_eq!(gpus.stdout, "/home/alice/slurm-20005.out");
    let array = one(20001);
    assert_eq!(array.id, JobId::without_task(20001));
    assert_eq!(one(20002).work_dir, "/home/alice");
}

#[test]
fn a_folder_with_a_key_in_it() {
    let details = one(20006);
    assert_eq!(details.work_dir, "/home/alice/with space StdErr=/x");
    assert_eq!(details.stderr, "/home/alice/with space StdErr=/x/err.20006");
    assert_eq!(details.stdout, "/home/alice/with space StdErr=/x/slurm-20006.out");
}

#[test]
fn a_name_and_a_note_with_keys_in_them() {
    let details = one(20003);
    assert_eq!(details.comment, "a b UserId=root(0) StdOut=/evil Power=");
    assert_eq!(details.work_dir, "/home/alice");
    let file = "/home/alice/out-x JobState=FAILED Account=evil WorkDir=/evil-%4j.20003.log";
    assert_eq!((details.stdout.as_str(), details.stderr.as_str()), (file, file));
}

#[test]
fn a_newer_version() {
    // Recorded with another time format: none of the times is understood, and none is made up.
    let found = parse_jobs(TRILLIUM);
    assert_eq!(found.len(), 1);
    let details = &found[0];
    assert_eq!(details.command, "/scratch/brad/x.sh");
    assert!(details.submit_line.starts_with("SBATCH --comment /opt/slurm/bin/sbatch"));
    assert_eq!(details.comment, "/opt/slurm/bin/sbatch --parsable /scratch/brad/x.sh");
    assert_eq!(details.allocated, "cpu=192,mem=767000M,node=1,billing=192");
    assert_eq!(details.requested, "cpu=1,mem=767000M,node=1,billing=1");
    assert_eq!(details.stdout, "/scratch/brad/slurm-2166954.out");
    assert_eq!(details.stderr, details.stdout, "empty means the same");
    assert_eq!((details.batch_host.as_str(), details.start), ("tri0002", None));
    assert_eq!(details.exit, Some(ExitStatus::default()));
}

#[test]
fn claims_count_for_nothing() {
    let honest = TRILLIUM.trim_end();
    let start = " UserId=root(0) GroupId=root(0) MCS_label=N/A Priority=1 Nice=-5 Requeue=1";
    for name in [
        format!("x{start}"),
        format!("x{start} JobState=FAILED Command=/evil WorkDir=/evil"),
        "x\nJobId=1 JobName=y UserId=root(0)".to_owned(),
        " Command=/evil WorkDir=/evil StdErr= StdIn= StdOut=/evil".to_owned(),
    ] {
        let hostile = honest.replace("JobName=rs_fixture", &format!("JobName={name}"));
        assert_eq!(parse_jobs(&hostile), parse_jobs(honest), "{name}");
    }
    let note = format!("Comment=x{start} JobState=FAILED Command=/evil WorkDir=/evil");
    let hostile = honest.replace("Comment=/opt", &format!("{note}/opt"));
    let found = &parse_jobs(&hostile)[0];
    assert_eq!((found.nice, found.work_dir.as_str()), (0, "/scratch/brad"));
}

#[test]
fn the_words() {
    assert_eq!(args(JobId { number: 5, task: Some(2) }), ["-o", "show", "job", "5_2"]);
}

proptest! {
    #[test]
    fn any_text_is_survived(
        pieces in proptest::collection::vec(
            "\n?JobId=[0-9]{1,4}| JobName=| UserId=a\\(1\\) GroupId=b\\(2\\) MCS_label=x Priority=1| JobState=| NumNodes=1|\
             | SubmitTime=5| Partition=p| Features=| Command=| WorkDir=/| StdErr=| StdIn=| StdOut=é| Comment=|.{0,5}",
            0..40,
        ),
    ) {
        let _ = parse_jobs(&pieces.concat());
    }
}
