//! Exit codes and signals in words.

use crate::slurm::job::ExitStatus;

/// Linux signals: number, name, meaning.
const SIGNALS: &[(u32, &str, &str)] = &[
    (1, "SIGHUP", "its terminal or its connection went away"),
    (2, "SIGINT", "it was interrupted, as Ctrl-C does"),
    (3, "SIGQUIT", "it was told to quit"),
    (4, "SIGILL", "it held an instruction that this processor does not know; it was built for another kind"),
    (5, "SIGTRAP", "it stopped at a mark for debugging"),
    (6, "SIGABRT", "it ended itself because something was wrong inside"),
    (7, "SIGBUS", "it could not reach its memory; shared memory or a disk may have been full"),
    (8, "SIGFPE", "it calculated something impossible, such as a division by zero"),
    (9, "SIGKILL", "it was ended at once from outside, most often because memory ran out"),
    (10, "SIGUSR1", "it got a signal that the job asked for, and had no answer to it"),
    (11, "SIGSEGV", "it touched memory that is not its own and crashed"),
    (12, "SIGUSR2", "it got a signal that the job asked for, and had no answer to it"),
    (13, "SIGPIPE", "the program that read its output had ended"),
    (14, "SIGALRM", "its own alarm clock rang"),
    (15, "SIGTERM", "it was asked to end, as cancelling and time limits do"),
    (24, "SIGXCPU", "it used more processor time than allowed"),
    (25, "SIGXFSZ", "it wrote a larger file than allowed"),
    (31, "SIGSYS", "it asked the system for something that is forbidden"),
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
            meaning: "Slurm could not begin it; mostly the folder for its output does not exist or may not be written",
            signal: None,
        }),
        (_, 125) => Some(ExitExplanation {
            name: "signal 125".to_owned(),
            meaning: "Slurm ended it because memory ran out",
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
        None => (format!("signal {signal}"), "it was ended from outside"),
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
        1 => "the last program reported a general error; its output tells more",
        2 => "a program was called in a way that it does not understand, or did not find a file",
        126 => "a program was found but may not be run; its file may not be marked as a program",
        127 => "a program was not found; a module may not be loaded, or its name may be misspelt",
        128 => "a script ended with a number that is not allowed",
        255 => "a program reported an error without telling which; often a connection that broke",
        _ => "the last program reported an error of its own; its manual or output tells which",
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
            (126, 0, "exit code 126", "may not be run"),
            (127, 0, "exit code 127", "not found"),
            (137, 0, "exit code 137 (signal 9, SIGKILL)", "memory"),
            (139, 0, "exit code 139 (signal 11, SIGSEGV)", "crashed"),
            (143, 0, "exit code 143 (signal 15, SIGTERM)", "asked to end"),
            (255, 0, "exit code 255", "without telling"),
            (42, 0, "exit code 42", "of its own"),
            (250, 0, "exit code 250", "of its own"),
            (0, 9, "signal 9, SIGKILL", "memory"),
            (0, 15, "signal 15, SIGTERM", "asked to end"),
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
