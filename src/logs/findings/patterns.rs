//! Recognises messages of well-known programs, what they mean, and what to do.

use super::LogFindingKind;
use super::generic;

/// Lower-case phrases that identify a line; all phrases of an entry must occur. The first match wins.
const PATTERNS: &[(LogFindingKind, &[&str])] = &[
    (LogFindingKind::GpuMemory, &["cuda out of memory"]),
    (LogFindingKind::GpuMemory, &["cuda error: out of memory"]),
    (LogFindingKind::GpuMemory, &["hip out of memory"]),
    (LogFindingKind::GpuMemory, &["resource_exhausted", "oom"]),
    (LogFindingKind::GpuMemory, &["resourceexhaustederror"]),
    (LogFindingKind::GpuMemory, &["resource_exhausted: out of memory"]),
    (LogFindingKind::GpuMemory, &["cublas_status_alloc_failed"]),
    (LogFindingKind::GpuMemory, &["cuda_error_out_of_memory"]),
    (LogFindingKind::DiskFull, &["disk quota exceeded"]),
    (LogFindingKind::DiskFull, &["no space left on device"]),
    (LogFindingKind::OutOfMemory, &["oom-kill event"]),
    (LogFindingKind::OutOfMemory, &["oom_kill event"]),
    (LogFindingKind::OutOfMemory, &["oom killed"]),
    (LogFindingKind::OutOfMemory, &["exceeded memory limit"]),
    (LogFindingKind::OutOfMemory, &["out of memory: killed"]),
    (LogFindingKind::OutOfMemory, &["error:", "out of memory"]),
    (LogFindingKind::OutOfMemory, &["std::bad_alloc"]),
    (LogFindingKind::OutOfMemory, &["memoryerror"]),
    (LogFindingKind::OutOfMemory, &["outofmemoryerror"]),
    (LogFindingKind::OutOfMemory, &["cannot allocate memory"]),
    (LogFindingKind::OutOfMemory, &["cannot allocate vector of size"]),
    (LogFindingKind::TimeLimit, &["due to time limit"]),
    (LogFindingKind::Preempted, &["due to preemption"]),
    (LogFindingKind::NodeFailure, &["due to node failure"]),
    (LogFindingKind::NodeFailure, &["due to node fail"]),
    (LogFindingKind::Cancelled, &["*** job", "cancelled at"]),
    (LogFindingKind::Cancelled, &["*** step", "cancelled at"]),
    (LogFindingKind::LineEnds, &["$'\\r': command not found"]),
    (LogFindingKind::LineEnds, &["bad interpreter", "^m"]),
    (LogFindingKind::MissingPackage, &["modulenotfounderror:"]),
    (LogFindingKind::MissingPackage, &["no matching distribution found for"]),
    (LogFindingKind::MissingPackage, &["there is no package called"]),
    (LogFindingKind::Module, &["lmod has detected the following error"]),
    (LogFindingKind::Module, &["unable to locate a modulefile"]),
    (LogFindingKind::Module, &["module: command not found"]),
    (LogFindingKind::Module, &["please load a python module before"]),
    (LogFindingKind::Network, &["temporary failure in name resolution"]),
    (LogFindingKind::Network, &["could not resolve host"]),
    (LogFindingKind::Network, &["name or service not known"]),
    (LogFindingKind::Network, &["network is unreachable"]),
    (LogFindingKind::CommandNotFound, &["execve()", "no such file or directory"]),
    (LogFindingKind::CommandNotFound, &["command not found"]),
    (LogFindingKind::Library, &["error while loading shared libraries"]),
    (LogFindingKind::Library, &["cannot open shared object file"]),
    (LogFindingKind::Crash, &["segmentation fault"]),
    (LogFindingKind::Crash, &["bus error"]),
    (LogFindingKind::Crash, &["illegal instruction"]),
    (LogFindingKind::Crash, &["(core dumped)"]),
    (LogFindingKind::NoSuchFile, &["no such file or directory"]),
    (LogFindingKind::NoSuchFile, &["filenotfounderror"]),
    (LogFindingKind::Permission, &["permission denied"]),
    (LogFindingKind::Slurm, &["slurmstepd: error:"]),
    (LogFindingKind::Slurm, &["srun: error:"]),
];

/// The kind of error that a line reports, if any.
pub fn classify_line(line: &str) -> Option<LogFindingKind> {
    let small = line.to_ascii_lowercase();
    let known = PATTERNS.iter().find(|(_, words)| words.iter().all(|word| small.contains(word)));
    match known {
        // "No memory errors" and counters of them.
        Some((LogFindingKind::OutOfMemory, _)) if small.contains("detected 0 oom") => None,
        Some((kind, _)) => Some(*kind),
        None => generic::is_error(line, &small).then_some(LogFindingKind::Error),
    }
}

/// What a kind means, and what to do; `line` is the most telling line.
pub fn describe(kind: LogFindingKind, line: &str) -> (&'static str, String) {
    let (title, advice) = match kind {
        LogFindingKind::GpuMemory => (
            "GPU out of memory",
            "Use less GPU memory at a time, for example by halving the batch size, or choose a GPU with more memory. \
             More --mem doesn't help: that's the node's own memory.",
        ),
        LogFindingKind::DiskFull => (
            "Storage quota exceeded",
            "The folder has reached its limit on space or number of files. Delete or move files you no longer \
             need, or write to scratch, then resubmit the job.",
        ),
        LogFindingKind::OutOfMemory => {
            ("Out of memory", "Request more memory, or have the program process less data at a time.")
        }
        LogFindingKind::TimeLimit => (
            "Time limit reached",
            "Request more time, or have the program save checkpoints and continue from the last one.",
        ),
        LogFindingKind::Preempted => {
            ("Preempted by another job", "Resubmit the job. A program that saves checkpoints loses little.")
        }
        LogFindingKind::NodeFailure => ("Node failed", "Your program didn't cause this. Resubmit the job."),
        LogFindingKind::Cancelled => ("Job cancelled", "If you didn't cancel it, ask your group or the centre."),
        LogFindingKind::LineEnds => (
            "The script has Windows line endings",
            "Save it with Unix line endings (LF), or run dos2unix on it, then resubmit the job.",
        ),
        LogFindingKind::MissingPackage => return missing_package(line),
        LogFindingKind::Module => (
            "Module couldn't be loaded",
            "Check its name and version. 'module spider NAME' shows which other modules must be \
             loaded first.",
        ),
        LogFindingKind::Network => (
            "Network address unreachable",
            "On many clusters, jobs have no internet access. Download what you need beforehand, or use the centre's proxy \
             if there is one.",
        ),
        LogFindingKind::Python => (
            "The Python program failed with an error",
            "The last line names the error; the lines above show where it occurred.",
        ),
        LogFindingKind::CommandNotFound => (
            "Command not found",
            "Load the module or activate the environment that provides it, in the job script before it's used. Also \
             check the spelling.",
        ),
        LogFindingKind::Library => {
            ("Library not found", "Load the same modules as when you built or installed the program.")
        }
        LogFindingKind::Crash => (
            "The program crashed",
            "It accessed invalid memory, or was built for a different type of processor. Try a newer version or \
             rebuild it. If it still crashes, tell its authors.",
        ),
        LogFindingKind::NoSuchFile => (
            "File or folder not found",
            "Check the path carefully. Paths without a leading slash are relative to the job's working \
             folder.",
        ),
        LogFindingKind::Permission => (
            "Permission denied",
            "Check who owns the file and whether your group has access. On some clusters, home or project folders are \
             read-only inside jobs: write to scratch instead.",
        ),
        LogFindingKind::Slurm => {
            ("Slurm reports an error in a job step", "The lines before it usually show the cause.")
        }
        LogFindingKind::Error => ("Error in the output", "The first error often causes the ones after it."),
    };
    (title, advice.to_owned())
}

fn missing_package(line: &str) -> (&'static str, String) {
    let after = |mark: &str| {
        let rest = &line[line.find(mark)? + mark.len()..];
        let good = |c: &char| c.is_alphanumeric() || "._-".contains(*c);
        let rest = rest.trim_start_matches(['\'', '"', '‘', '“', ' ']);
        let name: String = rest.chars().take_while(good).take(80).collect();
        (!name.is_empty()).then_some(name)
    };
    if let Some(name) = after("there is no package called") {
        let advice = format!("Install {name} in the R version that the job loads.");
        return ("Missing R package", advice);
    }
    if let Some(name) = after("No matching distribution found for") {
        let advice = format!(
            "pip couldn't find {name}. Without internet access, it only looks in the centre's own wheels: try \
             another version, or download it beforehand."
        );
        return ("Couldn't install a Python package", advice);
    }
    let what = after("No module named").unwrap_or_else(|| "the package".to_owned());
    let advice = format!(
        "Install {what} in the environment that the job uses, and check that the script activates that environment \
         before it starts Python."
    );
    ("Missing Python package", advice)
}
