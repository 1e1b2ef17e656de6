use proptest::prelude::*;

use super::*;
use crate::logs::terminal::render;

/// The findings of a log, as a page gets them.
fn of(log: &str) -> LogFindings {
    find_errors(&render(log.as_bytes(), false).texts())
}

fn kinds(log: &str) -> Vec<LogFindingKind> {
    of(log).list.into_iter().map(|finding| finding.kind).collect()
}

const TORCH: &str = "\
Loading data\n\
Epoch 1:   0%|          | 0/100 [00:00<?, ?it/s]\rEpoch 1:  37%|###7      | 37/100 [00:04<00:07, 8.4it/s]\
Traceback (most recent call last):
  File \"/home/ada/train.py\", line 88, in <module>
    main()
  File \"/home/ada/train.py\", line 61, in main
    loss = criterion(model(x), y)
           ^^^^^^^^^^^^^^^^^^^^^^
  File \"/home/ada/env/lib/python3.11/site-packages/torch/nn/functional.py\", line 3104, in cross_entropy
    return torch._C._nn.cross_entropy_loss(input, target)
ValueError: Expected input batch_size (32) to match target batch_size (31).
srun: error: c1: task 0: Exited with exit code 1
";

#[test]
fn a_traceback_behind_a_progress_bar() {
    let found = of(TORCH);
    assert_eq!(found.first_error_line, Some(1));
    let first = &found.list[0];
    assert_eq!((first.kind, first.line), (LogFindingKind::Python, 1));
    assert!(first.text.starts_with("Traceback (most recent"), "{}", first.text);
    assert_eq!(first.last, "ValueError: Expected input batch_size (32) to match target batch_size (31).");
    assert!(first.text.ends_with(&first.last) && first.text.contains("line 61, in main"));
    assert_eq!(found.list[1].kind, LogFindingKind::Slurm);
}

#[test]
fn the_gpus_memory() {
    let log = "\
[rank0]: Traceback (most recent call last):
[rank0]:   File \"train.py\", line 9, in <module>
[rank0]:     y = model(x)
[rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 15.77 GiB
[rank1]: Traceback (most recent call last):
[rank1]:   File \"train.py\", line 12, in <module>
[rank1]: torch.distributed.DistBackendError: NCCL error in: ProcessGroupNCCL.cpp:2027
slurmstepd: error: *** STEP 12.0 ON c1 CANCELLED AT 2026-11-16T09:12:00 ***
";
    let found = of(log);
    assert_eq!(found.list[0].kind, LogFindingKind::GpuMemory);
    assert!(found.list[0].last.starts_with("torch.OutOfMemoryError: CUDA"));
    assert!(!found.list[0].text.contains("[rank0]"), "{}", found.list[0].text);
    assert!(found.list[0].advice.contains("batch size"));
    assert_eq!(found.list[1].kind, LogFindingKind::Cancelled);
}

#[test]
fn joined_tracebacks_tell_the_last_error() {
    let log = "\
Traceback (most recent call last):
  File \"a.py\", line 1, in <module>
KeyError: 'x'

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File \"a.py\", line 3, in <module>
FileNotFoundError: [Errno 2] No such file or directory: '/scratch/ada/x.csv'
done
";
    let found = of(log);
    assert_eq!(found.list.len(), 1);
    assert_eq!((found.list[0].kind, found.list[0].line), (LogFindingKind::NoSuchFile, 0));
    assert!(found.list[0].text.contains("KeyError: 'x'"));
    let log = "\
Traceback (most recent call last):
  File \"a.py\", line 1, in <module>
RuntimeError: Caught ValueError in DataLoader worker process 0.
Original Traceback (most recent call last):
  File \"b.py\", line 3, in <module>
ValueError: bad row
";
    assert_eq!(of(log).list[0].last, "ValueError: bad row");
}

#[test]
fn messages_of_the_cluster() {
    let cases: &[(&str, LogFindingKind, &str)] = &[
        (
            "slurmstepd: error: Detected 1 oom-kill event(s) in step 997857.batch cgroup. Some of your processes may have been killed by the cgroup out-of-memory handler.",
            LogFindingKind::OutOfMemory,
            "more memory",
        ),
        ("slurmstepd: error: Detected 1 oom_kill event in StepId=7.batch.", LogFindingKind::OutOfMemory, ""),
        ("srun: error: c2: task 1: Out Of Memory", LogFindingKind::OutOfMemory, ""),
        ("Error: cannot allocate vector of size 8.0 Gb", LogFindingKind::OutOfMemory, ""),
        (
            "slurmstepd: error: *** JOB 1234 ON c1 CANCELLED AT 2026-11-16T09:12:00 DUE TO TIME LIMIT ***",
            LogFindingKind::TimeLimit,
            "more time",
        ),
        (
            "slurmstepd: error: *** JOB 1 ON c1 CANCELLED AT 2026-11-16T09:12:00 DUE TO PREEMPTION ***",
            LogFindingKind::Preempted,
            "",
        ),
        ("cp: error writing 'x': Disk quota exceeded", LogFindingKind::DiskFull, "number of files"),
        ("OSError: [Errno 28] No space left on device", LogFindingKind::DiskFull, "scratch"),
        (
            "/var/spool/slurmd/job12/slurm_script: line 9: blastn: command not found",
            LogFindingKind::CommandNotFound,
            "module",
        ),
        ("slurm_script: line 2: $'\\r': command not found", LogFindingKind::LineEnds, "Unix"),
        ("slurmstepd: error: execve(): ./run: No such file or directory", LogFindingKind::CommandNotFound, ""),
        ("ModuleNotFoundError: No module named 'torch'", LogFindingKind::MissingPackage, "Install torch"),
        ("Error in library(DESeq2) : there is no package called ‘DESeq2’", LogFindingKind::MissingPackage, "DESeq2"),
        ("ERROR: No matching distribution found for foo==1.2", LogFindingKind::MissingPackage, "foo"),
        ("bash: line 1: 4242 Segmentation fault      (core dumped) ./a.out", LogFindingKind::Crash, ""),
        ("cat: /project/x: Permission denied", LogFindingKind::Permission, ""),
        ("tail: cannot open 'a': No such file or directory", LogFindingKind::NoSuchFile, "path"),
        ("curl: (6) Could not resolve host: huggingface.co", LogFindingKind::Network, "internet"),
        ("slurmstepd: error: couldn't do it", LogFindingKind::Slurm, ""),
        ("Error in eval(expr) : object 'x' not found", LogFindingKind::Error, ""),
        ("[2026-11-16 09:00:00] ERROR could not open it", LogFindingKind::Error, ""),
        ("gcc: fatal error: no input files", LogFindingKind::Error, ""),
        ("requests.exceptions.HTTPError: 404 Client Error: Not Found", LogFindingKind::Error, ""),
    ];
    for (line, kind, advice) in cases {
        let found = of(&format!("begin\n{line}\nend\n"));
        assert_eq!(found.list.first().map(|f| f.kind), Some(*kind), "{line}");
        assert_eq!((found.list[0].line, found.first_error_line), (1, Some(1)), "{line}");
        assert!(found.list[0].advice.contains(advice), "{}", found.list[0].advice);
        assert!(!found.list[0].title.is_empty() && found.list[0].last == *line);
    }
}

#[test]
fn modules() {
    let log = "\
Lmod has detected the following error:  These module(s) or extension(s) exist but cannot be loaded as requested: \"cuda/12.2\"
   Try: \"module spider cuda/12.2\" to see how to load the module(s).

python: command not found
";
    let found = of(log);
    assert_eq!(kinds(log), [LogFindingKind::Module, LogFindingKind::CommandNotFound]);
    assert!(found.list[0].text.contains("Try: \"module spider"));
}

#[test]
fn harmless_lines_are_no_findings() {
    let log = "\
Compiling: 0 errors, 2 warnings
val_error: 0.1
epoch 3 loss=0.2 error=0.01 acc=0.9
Error: 0.034
test error rate 4.2 %
Mean squared error: small
No errors found. no error here
errors: 0
error_count 3, ErrorHandler loaded, terror
slurmstepd: info: Detected 0 oom-kill events
ERRORS_ARE_FINE
";
    let found = of(log);
    assert_eq!(found, LogFindings::default());
}

#[test]
fn a_log_with_several() {
    let log = format!("{TORCH}Disk quota exceeded\nerror: late\n");
    assert_eq!(
        kinds(&log),
        [LogFindingKind::DiskFull, LogFindingKind::Python, LogFindingKind::Slurm, LogFindingKind::Error]
    );
}

#[test]
fn findings_are_bounded() {
    let frames = "  File \"a.py\", line 1, in f\n    f()\n".repeat(5_000);
    let log = format!("Traceback (most recent call last):\n{frames}RecursionError: {}\n", "x".repeat(9_000));
    let found = of(&log);
    assert!(found.list.iter().all(|finding| finding.text.len() <= MAX_TEXT_BYTES));
    assert!(found.list.iter().all(|finding| finding.last.len() <= MAX_LINE_BYTES));
}

proptest! {
    #[test]
    fn any_lines_are_survived(lines in proptest::collection::vec(
        "(Traceback \\(most recent call last\\)|  File|Error|error|: |0\\.1|é|No module named|\\PC){0,12}", 0..30)) {
        let found = find_errors(&lines);
        prop_assert!(found.list.iter().all(|finding| finding.line < lines.len()));
        prop_assert_eq!(found.list.is_empty(), found.first_error_line.is_none());
    }
}
