//! Recognises messages of well-known programs, what they mean, and what to do.

use super::FindingKind;
use super::generic;

/// Lower-case phrases that identify a line; all phrases of an entry must occur. The first match wins.
const PATTERNS: &[(FindingKind, &[&str])] = &[
    (FindingKind::GpuMemory, &["cuda out of memory"]),
    (FindingKind::GpuMemory, &["cuda error: out of memory"]),
    (FindingKind::GpuMemory, &["hip out of memory"]),
    (FindingKind::GpuMemory, &["resource_exhausted", "oom"]),
    (FindingKind::GpuMemory, &["resourceexhaustederror"]),
    (FindingKind::GpuMemory, &["resource_exhausted: out of memory"]),
    (FindingKind::GpuMemory, &["cublas_status_alloc_failed"]),
    (FindingKind::GpuMemory, &["cuda_error_out_of_memory"]),
    (FindingKind::DiskFull, &["disk quota exceeded"]),
    (FindingKind::DiskFull, &["no space left on device"]),
    (FindingKind::OutOfMemory, &["oom-kill event"]),
    (FindingKind::OutOfMemory, &["oom_kill event"]),
    (FindingKind::OutOfMemory, &["oom killed"]),
    (FindingKind::OutOfMemory, &["exceeded memory limit"]),
    (FindingKind::OutOfMemory, &["out of memory: killed"]),
    (FindingKind::OutOfMemory, &["error:", "out of memory"]),
    (FindingKind::OutOfMemory, &["std::bad_alloc"]),
    (FindingKind::OutOfMemory, &["memoryerror"]),
    (FindingKind::OutOfMemory, &["outofmemoryerror"]),
    (FindingKind::OutOfMemory, &["cannot allocate memory"]),
    (FindingKind::OutOfMemory, &["cannot allocate vector of size"]),
    (FindingKind::TimeLimit, &["due to time limit"]),
    (FindingKind::Preempted, &["due to preemption"]),
    (FindingKind::NodeFailure, &["due to node failure"]),
    (FindingKind::NodeFailure, &["due to node fail"]),
    (FindingKind::Cancelled, &["*** job", "cancelled at"]),
    (FindingKind::Cancelled, &["*** step", "cancelled at"]),
    (FindingKind::LineEnds, &["$'\\r': command not found"]),
    (FindingKind::LineEnds, &["bad interpreter", "^m"]),
    (FindingKind::MissingPackage, &["modulenotfounderror:"]),
    (FindingKind::MissingPackage, &["no matching distribution found for"]),
    (FindingKind::MissingPackage, &["there is no package called"]),
    (FindingKind::Module, &["lmod has detected the following error"]),
    (FindingKind::Module, &["unable to locate a modulefile"]),
    (FindingKind::Module, &["module: command not found"]),
    (FindingKind::Module, &["please load a python module before"]),
    (FindingKind::Network, &["temporary failure in name resolution"]),
    (FindingKind::Network, &["could not resolve host"]),
    (FindingKind::Network, &["name or service not known"]),
    (FindingKind::Network, &["network is unreachable"]),
    (FindingKind::CommandNotFound, &["execve()", "no such file or directory"]),
    (FindingKind::CommandNotFound, &["command not found"]),
    (FindingKind::Library, &["error while loading shared libraries"]),
    (FindingKind::Library, &["cannot open shared object file"]),
    (FindingKind::Crash, &["segmentation fault"]),
    (FindingKind::Crash, &["bus error"]),
    (FindingKind::Crash, &["illegal instruction"]),
    (FindingKind::Crash, &["(core dumped)"]),
    (FindingKind::NoSuchFile, &["no such file or directory"]),
    (FindingKind::NoSuchFile, &["filenotfounderror"]),
    (FindingKind::Permission, &["permission denied"]),
    (FindingKind::Slurm, &["slurmstepd: error:"]),
    (FindingKind::Slurm, &["srun: error:"]),
];

/// The kind of error that a line reports, if any.
pub fn classify_line(line: &str) -> Option<FindingKind> {
    let small = line.to_ascii_lowercase();
    let known = PATTERNS.iter().find(|(_, words)| words.iter().all(|word| small.contains(word)));
    match known {
        // "No memory errors" and counters of them.
        Some((FindingKind::OutOfMemory, _)) if small.contains("detected 0 oom") => None,
        Some((kind, _)) => Some(*kind),
        None => generic::is_error(line, &small).then_some(FindingKind::Error),
    }
}

/// What a kind means, and what to do; `line` is the most telling line.
pub fn describe(kind: FindingKind, line: &str) -> (&'static str, String) {
    let (title, advice) = match kind {
        FindingKind::GpuMemory => (
            "GPU out of memory",
            "Use less GPU memory at a time, for example by halving the batch size, or choose a GPU with more memory. \
             More --mem doesn't help: that's the node's own memory.",
        ),
        FindingKind::DiskFull => (
            "Storage quota exceeded",
            "The folder has reached its limit on space or number of files. Delete or move files you no longer \
             need, or write to scratch, then resubmit the job.",
        ),
        FindingKind::OutOfMemory => {
            ("Out of memory", "Request more memory, or have the program process less data at a time.")
        }
        FindingKind::TimeLimit => (
            "Time limit reached",
            "Request more time, or have the program save checkpoints and continue from the last one.",
        ),
        FindingKind::Preempted => {
            ("Preempted by another job", "Resubmit the job. A program that saves checkpoints loses little.")
        }
        FindingKind::NodeFailure => ("Node failed", "This isn't caused by your program. Resubmit the job."),
        FindingKind::Cancelled => ("Job cancelled", "If you didn't cancel it, ask your group or the centre."),
        FindingKind::LineEnds => (
            "The script has Windows line endings",
            "Save it with Unix line endings (LF), or run dos2unix on it, then resubmit the job.",
        ),
        FindingKind::MissingPackage => return missing_package(line),
        FindingKind::Module => (
            "Module couldn't be loaded",
            "Check its name and version. 'module spider NAME' shows which other modules must be \
             loaded first.",
        ),
        FindingKind::Network => (
            "Network address unreachable",
            "On many clusters, jobs have no internet access. Download what you need beforehand, or use the centre's proxy \
             if there is one.",
        ),
        FindingKind::Python => (
            "The Python program failed with an error",
            "The last line names the error; the lines above show where it occurred.",
        ),
        FindingKind::CommandNotFound => (
            "Command not found",
            "Load the module or activate the environment that provides it, in the job script before it's used. Also \
             check the spelling.",
        ),
        FindingKind::Library => {
            ("Library not found", "Load the same modules as when you built or installed the program.")
        }
        FindingKind::Crash => (
            "The program crashed",
            "It accessed invalid memory, or was built for a different type of processor. Try a newer version or \
             rebuild it. If it still crashes, tell its authors.",
        ),
        FindingKind::NoSuchFile => (
            "File or folder not found",
            "Check the path carefully. Paths without a leading slash are relative to the job's working \
             folder.",
        ),
        FindingKind::Permission => (
            "Permission denied",
            "Check who owns the file and whether your group has access. On some clusters, home or project folders are \
             read-only inside jobs: write to scratch instead.",
        ),
        FindingKind::Slurm => ("Slurm reports an error in a job step", "The lines before it usually show the cause."),
        FindingKind::Error => ("Error in the output", "The first error often causes the ones after it."),
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
