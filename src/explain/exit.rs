//! Exit codes and signals in words.

use crate::slurm::job::ExitStatus;

/// Linux signals: number, name, meaning.
const SIGNALS: &[(u32, &str, &str)] = &[
    (1, "SIGHUP", "its terminal or connection closed"),
    (2, "SIGINT", "it was interrupted, for example with Ctrl-C"),
    (3, "SIGQUIT", "it was told to quit"),
    (4, "SIGILL", "it was built for a different type of processor"),
    (5, "SIGTRAP", "it stopped at a debugger breakpoint"),
    (6, "SIGABRT", "it aborted after an internal error"),
    (7, "SIGBUS", "it couldn't access memory; shared memory or a disk may have been full"),
    (8, "SIGFPE", "it made an arithmetic error, such as dividing by zero"),
    (9, "SIGKILL", "it was killed, usually because it ran out of memory"),
    (10, "SIGUSR1", "it got a signal that the job had requested but the program doesn't handle"),
    (11, "SIGSEGV", "it crashed with a memory access error (segmentation fault)"),
    (12, "SIGUSR2", "it got a signal that the job had requested but the program doesn't handle"),
    (13, "SIGPIPE", "the program reading its output had already ended"),
    (14, "SIGALRM", "its own timer expired"),
    (15, "SIGTERM", "it was asked to stop, for example because it was cancelled or reached its time limit"),
    (24, "SIGXCPU", "it used more CPU time than allowed"),
    (25, "SIGXFSZ", "it wrote a file larger than allowed"),
    (31, "SIGSYS", "it made a forbidden system call"),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExitExplanation {
    /// The technical name: `exit code 1`, `signal 11, SIGSEGV`.
    pub name: String,
    /// The meaning, as part of a sentence.
    pub meaning: &'static str,
    /// The signal behind it, if any.
    pub signal: Option<u32>,
}

/// Explains an exit status; none for success.
pub fn explain_exit(exit: ExitStatus) -> Option<ExitExplanation> {
    match (exit.code, exit.signal) {
        (0, 0) => None,
        (_, 53) => Some(ExitExplanation {
            name: "signal 53".to_owned(),
            meaning: "Slurm couldn't start it, usually because its output folder doesn't exist or isn't writable",
            signal: None,
        }),
        (_, 125) => Some(ExitExplanation {
            name: "signal 125".to_owned(),
            meaning: "Slurm stopped it because it ran out of memory",
            signal: Some(9),
        }),
        (0, signal) => Some(explain_signal(signal)),
        (code, _) => Some(explain_code(code)),
    }
}

fn explain_signal(signal: u32) -> ExitExplanation {
    let known = SIGNALS.iter().find(|(number, _, _)| *number == signal);
    let (name, meaning) = match known {
        Some((_, name, meaning)) => (format!("signal {signal}, {name}"), *meaning),
        None => (format!("signal {signal}"), "it was stopped from outside"),
    };
    ExitExplanation { name, meaning, signal: Some(signal) }
}

fn explain_code(code: u32) -> ExitExplanation {
    let behind = code.checked_sub(128).filter(|signal| (1..=64).contains(signal));
    if let Some(signal) = behind.filter(|_| code != 255) {
        let ExitExplanation { name, meaning, .. } = explain_signal(signal);
        return ExitExplanation { name: format!("exit code {code} ({name})"), meaning, signal: Some(signal) };
    }
    let meaning = match code {
        1 => "a general error",
        2 => "a program got arguments it didn't understand, or couldn't find a file",
        126 => "a program was found but can't be run; its file may not be executable",
        127 => "a program wasn't found; its module may not be loaded, or its name may be misspelt",
        128 => "for git, a fatal error; see the output",
        255 => "an unspecified error, often a broken connection",
        _ => "an error specific to the program; see its output or manual",
    };
    ExitExplanation { name: format!("exit code {code}"), meaning, signal: None }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(code: u32, signal: u32) -> (String, &'static str, Option<u32>) {
        let words = explain_exit(ExitStatus { code, signal }).unwrap();
        (words.name, words.meaning, words.signal)
    }

    #[test]
    fn ends_in_words() {
        assert_eq!(explain_exit(ExitStatus::default()), None);
        for (code, signal, name, part) in [
            (1, 0, "exit code 1", "general error"),
            (2, 0, "exit code 2", "understand"),
            (126, 0, "exit code 126", "can't be run"),
            (127, 0, "exit code 127", "wasn't found"),
            (137, 0, "exit code 137 (signal 9, SIGKILL)", "memory"),
            (139, 0, "exit code 139 (signal 11, SIGSEGV)", "crashed"),
            (143, 0, "exit code 143 (signal 15, SIGTERM)", "asked to stop"),
            (255, 0, "exit code 255", "unspecified"),
            (42, 0, "exit code 42", "specific"),
            (250, 0, "exit code 250", "specific"),
            (0, 9, "signal 9, SIGKILL", "memory"),
            (0, 15, "signal 15, SIGTERM", "asked to stop"),
            (0, 53, "signal 53", "output"),
            (0, 125, "signal 125", "memory"),
            (0, 99, "signal 99", "outside"),
        ] {
            let (found, meaning, _) = of(code, signal);
            assert_eq!(found, name);
            assert!(meaning.contains(part), "{meaning}");
        }
        assert_eq!(of(137, 0).2, Some(9));
        assert_eq!(of(42, 0).2, None);
    }
}
