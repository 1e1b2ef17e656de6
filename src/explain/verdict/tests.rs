use proptest::prelude::*;

use super::*;
use crate::logs::findings::find_errors;
use crate::slurm::job::ExitStatus;
use crate::slurm::queue::parse_queue;

fn job(state: JobState) -> SlurmJob {
    SlurmJob {
        state,
        user: "ada".to_owned(),
        start: Some(UnixTime(1_000)),
        end: Some(UnixTime(1_720)),
        time_limit: TimeLimit::Minutes(180),
        cpus: 4,
        nodes: 1,
        memory_mb: Some(16_384),
        node_list: "c1".to_owned(),
        ..SlurmJob::default()
    }
}

fn usage(rss: u64) -> JobUsage {
    JobUsage { elapsed_s: 720, cpu_s: Some(600), max_rss_mb: Some(rss), tasks: 1, ..JobUsage::default() }
}

fn with_log(job: &SlurmJob, log: &[&str]) -> JobVerdict {
    let found = find_errors(log);
    verdict(&EndedJobFacts { findings: &found.list, ..EndedJobFacts::new(job) })
}

#[test]
fn memory_that_ran_out() {
    let job = job(JobState::OutOfMemory);
    let told = verdict(&EndedJobFacts { usage: Some(&usage(16_282)), ..EndedJobFacts::new(&job) });
    assert_eq!(told.tone, VerdictTone::Danger);
    assert_eq!(
        told.text,
        "It needed more than the 16 GB of memory it requested (measured peak: 15.9 GB) and was stopped."
    );
    assert_eq!(told.suggestions[0].option, "--mem=24G");
    let missed = verdict(&EndedJobFacts { usage: Some(&usage(2_048)), ..EndedJobFacts::new(&job) });
    assert!(missed.text.contains("The last measurement was 2 GB") && missed.text.contains("missed the peak"));
    assert_eq!(missed.suggestions[0].option, "--mem=24G");
    let whole = verdict(&EndedJobFacts { whole_node: true, ..EndedJobFacts::new(&job) });
    assert!(whole.suggestions.is_empty() && whole.advice[0].contains("nodes with more"));
    let spread = SlurmJob { nodes: 4, ..job };
    let told = verdict(&EndedJobFacts::new(&spread));
    assert_eq!(told.suggestions[0].option, "--mem=6G");
    assert!(told.suggestions[0].why.contains("per node"));
}

#[test]
fn time_that_ran_out() {
    let job = job(JobState::Timeout);
    let told = verdict(&EndedJobFacts::new(&job));
    assert!(told.text.contains("limit of 3 h"));
    assert_eq!(told.suggestions[0].option, "--time=06:00:00");
    assert!(told.advice[0].contains("checkpoints"));
    let capped = verdict(&EndedJobFacts { partition_max_minutes: Some(240), ..EndedJobFacts::new(&job) });
    assert_eq!(capped.suggestions[0].option, "--time=04:00:00");
    let longest = verdict(&EndedJobFacts { partition_max_minutes: Some(180), ..EndedJobFacts::new(&job) });
    assert!(longest.suggestions.is_empty() && longest.advice[0].contains("longest"));
}

#[test]
fn programs_that_failed() {
    let mut job = job(JobState::Failed);
    job.exit = Some(ExitStatus { code: 1, signal: 0 });
    let plain = verdict(&EndedJobFacts::new(&job));
    assert!(plain.text.starts_with("After 12 min it ended with exit code 1: "), "{}", plain.text);
    let python = with_log(
        &job,
        &[
            "Traceback (most recent call last):",
            "  File \"a.py\", line 1, in <module>",
            "ValueError: bad shape",
            "srun: error: c1: task 0: Exited with exit code 1",
        ],
    );
    assert_eq!(python.title, "The Python program failed with an error");
    assert!(python.text.starts_with("Its output says: ValueError: bad shape. After 12 min"));
    let quota = with_log(&job, &["OSError: [Errno 122] Disk quota exceeded"]);
    assert_eq!(quota.title, "Storage quota exceeded");
    let gpu = with_log(&job, &["RuntimeError: CUDA out of memory. Tried"]);
    assert!(gpu.suggestions.is_empty() && gpu.advice[0].contains("batch size"));
    let oom = with_log(&job, &["slurmstepd: error: Detected 1 oom-kill event(s) in step 7.batch cgroup."]);
    assert_eq!((oom.title.as_str(), oom.suggestions[0].option.as_str()), ("Probably out of memory", "--mem=24G"));
    job.exit = Some(ExitStatus { code: 137, signal: 0 });
    assert!(verdict(&EndedJobFacts::new(&job)).title.contains("probably out of memory"));
    job.exit = Some(ExitStatus { code: 0, signal: 11 });
    assert!(verdict(&EndedJobFacts::new(&job)).text.contains("SIGSEGV"));
    job.exit = Some(ExitStatus { code: 0, signal: 53 });
    assert!(verdict(&EndedJobFacts::new(&job)).text.contains("its output folder"));
}

/// From the exit codes as a newer Slurm prints them in its queue to the words.
#[test]
fn ends_of_a_newer_version() {
    let answer = include_bytes!("../../../tests/fixtures/slurm/squeue-24.11.txt");
    let jobs = parse_queue(answer, "k3v9q2xw", UnixTime(1_794_973_248)).jobs;
    for (name, title, words) in [
        ("ok", "Completed", "completed successfully"),
        ("one", "Failed with an error", "It ended with exit code 1: a general error"),
        ("nine", "Failed with an error", "It ended with exit code 9: an error specific to the program"),
        ("segfault", "Stopped or crashed", "It ended with signal 11, SIGSEGV: it crashed"),
        ("oom", "Out of memory", "100 MB of memory it requested"),
        ("nodefail", "Node failed", "Your program didn't cause this"),
    ] {
        let job = jobs.iter().find(|job| job.name == name).unwrap();
        let told = verdict(&EndedJobFacts::new(job));
        assert_eq!(told.title, title, "{name}");
        assert!(told.text.contains(words), "{name}: {}", told.text);
    }
}

#[test]
fn jobs_that_never_began() {
    let mut job = job(JobState::Cancelled);
    (job.start, job.end) = (None, Some(UnixTime(5_000)));
    job.node_list.clear();
    assert_eq!(verdict(&EndedJobFacts::new(&job)).text, "It was cancelled before it started.");
    "DependencyNeverSatisfied".clone_into(&mut job.reason);
    let told = verdict(&EndedJobFacts { cancelled_by: Some("0"), ..EndedJobFacts::new(&job) });
    assert_eq!((told.title.as_str(), told.tone), ("Never started", VerdictTone::Danger));
    assert!(told.text.ends_with("Slurm's reason: DependencyNeverSatisfied."));
    job.state = JobState::Failed;
    "InvalidAccount".clone_into(&mut job.reason);
    assert_eq!(verdict(&EndedJobFacts::new(&job)).title, "Never started");
    "JobLaunchFailure".clone_into(&mut job.reason);
    assert_eq!(verdict(&EndedJobFacts::new(&job)).title, "Couldn't start");
}

#[test]
fn who_cancelled_it() {
    let job = job(JobState::Cancelled);
    let by = |who| verdict(&EndedJobFacts { cancelled_by: who, ..EndedJobFacts::new(&job) });
    assert_eq!(by(Some("ada")).text, "Its owner cancelled it after 12 min.");
    assert_eq!(by(Some("bob")).text, "It was cancelled after 12 min by bob.");
    assert_eq!(by(Some("31001")).text, "It was cancelled after 12 min by user ID 31001.");
    assert_eq!(by(Some("0")).tone, VerdictTone::Warning);
    assert_eq!(by(None).text, "It was cancelled after 12 min.");
    assert!(by(Some(&"x".repeat(9_000))).text.len() < 200);
}

#[test]
fn other_ends() {
    assert_eq!(
        verdict(&EndedJobFacts::new(&job(JobState::Completed))).text,
        "The job completed successfully after 12 min."
    );
    let hidden = with_log(&job(JobState::Completed), &["line 4: blastn: command not found"]);
    assert_eq!(hidden.tone, VerdictTone::Warning);
    assert!(hidden.advice[0].contains("command not found"), "{:?}", hidden.advice);
    for state in [JobState::NodeFail, JobState::BootFail, JobState::Preempted, JobState::Deadline] {
        let told = verdict(&EndedJobFacts::new(&job(state)));
        assert_eq!(told.tone, VerdictTone::Warning);
        assert!(!told.advice.is_empty());
    }
    let submitted = SlurmJob { submitted: Some(UnixTime(1_794_833_843)), ..job(JobState::Deadline) };
    let told = verdict(&EndedJobFacts::new(&submitted));
    assert_eq!(told.title, "Missed deadline");
    assert!(told.text.contains(&format!("submitted {}", UnixTime(1_794_833_843).words())), "{}", told.text);
    assert_eq!(verdict(&EndedJobFacts::new(&job(JobState::Running))).tone, VerdictTone::Neutral);
}

proptest! {
    #[test]
    fn any_numbers_are_survived(rss in any::<u64>(), memory in any::<u64>(), nodes in any::<u32>(), limit in any::<u32>(),
        code in any::<u32>(), signal in any::<u32>(), log in "\\PC{0,2000}") {
        let used = usage(rss);
        let found = find_errors(&[format!("error: {log}")]);
        for state in [JobState::OutOfMemory, JobState::Timeout, JobState::Failed, JobState::Cancelled, JobState::Completed] {
            let job = SlurmJob { nodes, memory_mb: Some(memory), time_limit: TimeLimit::Minutes(limit),
                exit: Some(ExitStatus { code, signal }), ..job(state) };
            let told = verdict(&EndedJobFacts { usage: Some(&used), findings: &found.list, ..EndedJobFacts::new(&job) });
            prop_assert!(!told.title.is_empty() && told.text.len() < 2000);
        }
    }
}

/// A newcomer's script opens a file that lies beside it, and the job runs elsewhere.
#[test]
fn missing_relative_file_names_the_folder_of_the_job() {
    let job = job(JobState::Failed);
    let log = [
        "Traceback (most recent call last):",
        "  File \"/home/ada/analysis/run.py\", line 1, in <module>",
        "FileNotFoundError: [Errno 2] No such file or directory: 'data.csv'",
    ];
    let found = find_errors(&log);
    let facts = EndedJobFacts { findings: &found.list, ..EndedJobFacts::new(&job) };
    let told = verdict(&EndedJobFacts { folder: Some("/scratch/ada/portolan"), ..facts });
    assert_eq!(told.advice[0], "The job looked for “data.csv” in the folder it ran in: /scratch/ada/portolan.");
    assert!(told.advice[1].contains("working folder"), "{:?}", told.advice);
    let unknown = verdict(&facts);
    assert!(unknown.advice[0].contains("relative to the job's working folder"), "{:?}", unknown.advice);
}
