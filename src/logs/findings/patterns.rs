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
            "The GPU's memory was full",
            "Make what is on the GPU at a time smaller: halve the batch size first. More --mem does not help, as that is \
             the machine's memory; a GPU with more memory does.",
        ),
        FindingKind::DiskFull => (
            "No more room for files",
            "The folder's limit is reached, either of space or of the number of files. Delete or move what is no longer \
             needed, or write to scratch, then run it again.",
        ),
        FindingKind::OutOfMemory => (
            "It needed more memory than it had",
            "Ask for more memory, or let the program work on less data at a time.",
        ),
        FindingKind::TimeLimit => (
            "The time limit was reached",
            "Ask for more time, or let the program save its state now and then and go on from there.",
        ),
        FindingKind::Preempted => (
            "Another job needed the place",
            "Submit it again; a program that saves its state now and then loses little.",
        ),
        FindingKind::NodeFailure => {
            ("A machine failed under the job", "This has nothing to do with your program. Submit it again.")
        }
        FindingKind::Cancelled => ("The job was cancelled", "If you did not do it, ask your group or the centre."),
        FindingKind::LineEnds => (
            "The script has the line ends of Windows",
            "Save it with line ends of Unix (LF), or run dos2unix on it, and submit it again.",
        ),
        FindingKind::MissingPackage => return missing_package(line),
        FindingKind::Module => (
            "A module could not be loaded",
            "Modules switch software on. Look at the name and version; 'module spider NAME' tells which others have to be \
             loaded first.",
        ),
        FindingKind::Network => (
            "Something outside could not be reached",
            "On many clusters jobs have no way to the internet. Download what is needed before, or use the centre's proxy \
             where there is one.",
        ),
        FindingKind::Python => (
            "The Python program ended with an error",
            "The last line names the error, the lines above it where in the program it came up.",
        ),
        FindingKind::CommandNotFound => (
            "A program was not found",
            "Load the module or activate the environment that has it, in the job's script and before it is used; also \
             look for a typing mistake.",
        ),
        FindingKind::Library => (
            "A library that the program needs was not found",
            "Load the same modules as when the program was built or installed.",
        ),
        FindingKind::Crash => (
            "The program crashed",
            "It touched memory that is not its own, or was built for another kind of processor. Try a newer version or \
             build it anew; tell its authors if it stays.",
        ),
        FindingKind::NoSuchFile => (
            "A file or folder was not found",
            "Compare the path, letter by letter. Paths without a leading slash count from the folder in which the job \
             runs.",
        ),
        FindingKind::Permission => (
            "A file may not be read, written or run",
            "Look whose file it is and whether your group may use it. On some clusters home or project folders are \
             read-only inside jobs: write to scratch there.",
        ),
        FindingKind::Slurm => {
            ("Slurm reports that a part of the job ended badly", "Why stands mostly in the lines before it.")
        }
        FindingKind::Error => ("An error is reported", "The first error is often the cause of those after it."),
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
        let advice = format!("Install {name} in R, in the same version that the job loads.");
        return ("A package of R is missing", advice);
    }
    if let Some(name) = after("No matching distribution found for") {
        let advice = format!(
            "pip did not find {name} where it may look. Without internet that is the centre's own collection: try \
             another version, or download it beforehand."
        );
        return ("A package of Python could not be installed", advice);
    }
    let what = after("No module named").unwrap_or_else(|| "the package".to_owned());
    let advice = format!(
        "Install {what} in the environment that the job uses, and look whether the script activates that environment \
         before it starts Python."
    );
    ("A package of Python is missing", advice)
}
