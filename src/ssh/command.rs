//! What may run on a cluster: a program and its arguments, turned into a command line in this one place. Programs are
//! literals in this source code; arguments may come from anywhere and are quoted so that no shell (sh, bash, tcsh,
//! fish) interprets them.

use std::fmt::Write as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::oneshot;

const DEFAULT_DEADLINE: Duration = Duration::from_mins(1);
const DEFAULT_MAX_OUTPUT: usize = 8 * 1024 * 1024;
/// Seconds between asking an overdue command to end and killing it.
const KILL_AFTER: u32 = 5;

/// Printed before the program's own output: anything a login shell prints before it is cut off.
pub const OUTPUT_MARK: &str = "::portolan::";

/// Variables with which sites and users change the output format of Slurm's programs.
const UNSET_VARIABLES: &str = "-u SQUEUE_FORMAT -u SQUEUE_FORMAT2 -u SQUEUE_SORT -u SQUEUE_STATES -u SINFO_FORMAT -u SACCT_FORMAT -u SLURM_CLUSTERS";

/// Characters that an automation host passes on unchanged: its wrapper splits at spaces and expands patterns.
fn is_plain(c: char) -> bool {
    c.is_ascii_alphanumeric() || "%|@:=,._/+-".contains(c)
}

/// Why a command cannot be sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InvalidCommandError {
    /// Each shell treats line breaks and other control characters (except tabs) differently.
    #[error("an argument contains a line break or another control character")]
    ControlCharacter,
    /// Automation hosts support neither quotes nor spaces inside a word.
    #[error("an argument contains a character that automation hosts don't accept")]
    NotPlain,
    /// Longer than any server accepts.
    #[error("the command is too long")]
    TooLong,
}

/// How the remote side parses a command.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum RemoteCommandMode {
    /// Any login shell, before the variables of a full login are known.
    #[default]
    Bare,
    /// Any login shell, with these variables set: name and value.
    Shell(Vec<(String, String)>),
    /// A forced command that splits at spaces: no quotes, no pipes, no variables.
    Automation,
}

/// Whether the held-back part of a command's input was sent. Once the command has ended or failed, *no* is final.
#[derive(Debug, Clone, Default)]
pub struct DeferredInputSentFlag(Arc<AtomicBool>);

impl DeferredInputSentFlag {
    /// True if it was sent, or may have been.
    pub fn is_sent(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// The end of an input, held back until the program prints a word.
#[derive(Debug, Clone)]
struct DeferredCommandInput {
    word: Vec<u8>,
    bytes: Vec<u8>,
    sent: DeferredInputSentFlag,
}

/// Held-back input in flight: the output reader passes it to the input writer.
pub(super) struct HeldInputSender {
    held: DeferredCommandInput,
    to: oneshot::Sender<Vec<u8>>,
}

impl HeldInputSender {
    /// Whether the program has printed the word.
    pub(super) fn is_due(&self, output: &[u8]) -> bool {
        memchr::memmem::find(output, &self.held.word).is_some()
    }

    /// Sends it. The flag is set first, so that a *no* can be relied on.
    pub(super) fn send(self) {
        self.held.sent.0.store(true, Ordering::SeqCst);
        let _ = self.to.send(self.held.bytes);
    }
}

/// A program's standard input: what is sent immediately, and what follows later.
pub(super) struct CommandInput {
    pub(super) bytes: Vec<u8>,
    pub(super) rest: Option<oneshot::Receiver<Vec<u8>>>,
}

#[derive(Debug, Clone)]
pub struct RemoteCommand {
    program: &'static str,
    args: Vec<String>,
    input: Option<Vec<u8>>,
    held_input: Option<DeferredCommandInput>,
    deadline: Duration,
    max_output: usize,
}

impl RemoteCommand {
    /// A program named in this source code.
    pub const fn new(program: &'static str) -> Self {
        Self {
            program,
            args: Vec::new(),
            input: None,
            held_input: None,
            deadline: DEFAULT_DEADLINE,
            max_output: DEFAULT_MAX_OUTPUT,
        }
    }

    #[must_use]
    pub fn arg(mut self, arg: impl Into<String>) -> Self {
        self.args.push(arg.into());
        self
    }

    #[must_use]
    pub fn args<I: IntoIterator<Item: Into<String>>>(mut self, args: I) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    /// The program's standard input; empty if this is not called.
    #[must_use]
    pub fn input(mut self, bytes: Vec<u8>) -> Self {
        self.input = Some(bytes);
        self
    }

    /// Holds back the end of the input until the program has printed `word`, which should be impossible to guess.
    /// This keeps a command that changes something from taking effect long after it was requested, wherever it was
    /// delayed: it waits a few seconds for this input and gives up.
    #[must_use]
    pub fn hold_back_input(mut self, word: &str, bytes: Vec<u8>) -> (Self, DeferredInputSentFlag) {
        let sent = DeferredInputSentFlag::default();
        self.held_input = Some(DeferredCommandInput { word: word.into(), bytes, sent: sent.clone() });
        (self, sent)
    }

    /// Applies both here and on the cluster.
    #[must_use]
    pub const fn with_deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    #[must_use]
    pub const fn with_max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    /// Combines several commands into one: one session, one call. Each has its own deadline; `nonce` is a random word
    /// that marks where each command's output begins and ends
    /// ([`CommandOutput::split_batch`](super::CommandOutput::split_batch)). Times are printed as seconds since 1970,
    /// because the cluster's time zone is unknown, and lists of array tasks in full.
    pub fn batch(nonce: &str, commands: &[Self]) -> Result<Self, InvalidCommandError> {
        let mut script = String::from("export SLURM_TIME_FORMAT=%s SLURM_BITSTR_LEN=0;");
        for command in commands {
            let seconds = command.deadline.as_secs().max(1);
            let _ = write!(
                script,
                " echo {nonce}; echo {nonce} >&2; timeout -k {KILL_AFTER} {seconds} {}",
                command.program
            );
            command.append_args(&mut script)?;
            let _ = write!(script, " </dev/null; echo {nonce}=$?;");
        }
        let all = commands.iter().map(|command| command.deadline).sum();
        let most = commands.iter().map(|command| command.max_output).sum();
        Ok(Self::new("/bin/sh").args(["-c", &script]).with_deadline(all).with_max_output(most))
    }

    /// The input, and the held-back part that the output reader sends.
    pub(super) fn take_input(&mut self) -> (Option<CommandInput>, Option<HeldInputSender>) {
        let (rest, handover) = match self.held_input.take() {
            Some(held) => {
                let (to, rest) = oneshot::channel();
                (Some(rest), Some(HeldInputSender { held, to }))
            }
            None => (None, None),
        };
        (self.input.take().map(|bytes| CommandInput { bytes, rest }), handover)
    }

    pub(super) const fn deadline(&self) -> Duration {
        self.deadline
    }

    pub(super) const fn max_output(&self) -> usize {
        self.max_output
    }

    /// The command line as the remote side receives it.
    pub fn to_command_line(&self, dialect: &RemoteCommandMode) -> Result<String, InvalidCommandError> {
        let line = match dialect {
            RemoteCommandMode::Bare => self.shell_line(&[]),
            RemoteCommandMode::Shell(variables) => self.shell_line(variables),
            RemoteCommandMode::Automation => self.automation_line(),
        }?;
        if line.len() > 100_000 { Err(InvalidCommandError::TooLong) } else { Ok(line) }
    }

    fn shell_line(&self, variables: &[(String, String)]) -> Result<String, InvalidCommandError> {
        let mut line = format!("exec /usr/bin/env {UNSET_VARIABLES} SLURM_TIME_FORMAT=standard");
        for (name, value) in variables {
            line.push(' ');
            line.push_str(&quote(&format!("{name}={value}"))?);
        }
        let seconds = self.deadline.as_secs().max(1);
        let _ = write!(
            line,
            " timeout -k {KILL_AFTER} {seconds} /bin/sh -c 'echo {OUTPUT_MARK}; echo {OUTPUT_MARK} >&2; exec \"$0\" \"$@\"' {}",
            self.program
        );
        self.append_args(&mut line)?;
        Ok(line)
    }

    /// The command line for a terminal: without a deadline, and with nothing of ours in its output. It runs for as long
    /// as the person wants.
    pub(super) fn to_terminal_line(&self, dialect: &RemoteCommandMode) -> Result<String, InvalidCommandError> {
        let mut line = String::from("exec /usr/bin/env");
        if let RemoteCommandMode::Shell(variables) = dialect {
            for (name, value) in variables {
                line.push(' ');
                line.push_str(&quote(&format!("{name}={value}"))?);
            }
        }
        line.push(' ');
        line.push_str(self.program);
        self.append_args(&mut line)?;
        Ok(line)
    }

    fn append_args(&self, line: &mut String) -> Result<(), InvalidCommandError> {
        for arg in &self.args {
            line.push(' ');
            line.push_str(&quote(arg)?);
        }
        Ok(())
    }

    fn automation_line(&self) -> Result<String, InvalidCommandError> {
        let mut line = self.program.to_owned();
        for arg in &self.args {
            if arg.is_empty() || !arg.chars().all(is_plain) {
                return Err(InvalidCommandError::NotPlain);
            }
            line.push(' ');
            line.push_str(arg);
        }
        Ok(line)
    }
}

/// A word that sh, bash, tcsh and fish all read as `text`. Three characters that some of them interpret even inside
/// single quotes are placed outside, with a backslash.
fn quote(text: &str) -> Result<String, InvalidCommandError> {
    if text.chars().any(|c| c.is_control() && c != '\t') {
        return Err(InvalidCommandError::ControlCharacter);
    }
    if !text.is_empty() && text.chars().all(|c| is_plain(c) && c != '|') {
        return Ok(text.to_owned());
    }
    let mut word = String::with_capacity(text.len() + 2);
    word.push('\'');
    for c in text.chars() {
        if matches!(c, '\'' | '\\' | '!') {
            word.push_str("'\\");
            word.push(c);
            word.push('\'');
        } else {
            word.push(c);
        }
    }
    word.push('\'');
    Ok(word)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What a local shell makes of a command line that prints its arguments.
    fn spoken(shell: &str, args: &[String]) -> Option<Vec<String>> {
        let command = RemoteCommand::new("printf").arg("%s@END@").args(args.iter().cloned());
        let line = command.to_command_line(&RemoteCommandMode::Bare).unwrap();
        let output = std::process::Command::new(shell).args(["-c", &line]).output().ok()?;
        let text = String::from_utf8(output.stdout).unwrap();
        let text = text
            .strip_prefix(&format!("{OUTPUT_MARK}\n"))
            .unwrap_or_else(|| panic!("{shell}: {line}\n{text}{}", String::from_utf8_lossy(&output.stderr)));
        let mut words: Vec<String> = text.split("@END@").map(str::to_owned).collect();
        words.pop();
        Some(words)
    }

    #[test]
    fn every_shell_reads_the_same_words() {
        let args: Vec<String> = [
            "", "a b", "it's", "\\", "a\\'b\\", "!!", "$HOME", "$(id)", "`id`", "*", "~", "#", "%", "a;b", "a|b",
            "a&b", ">x", "\"q\"", "{a,b}", "[a]", "?", "-rf", "ünï", "--", "=x", "^a", "a\tb",
        ]
        .map(str::to_owned)
        .to_vec();
        let mut tried = 0;
        for shell in ["/bin/sh", "/bin/bash", "/bin/tcsh", "/usr/bin/fish"] {
            if std::path::Path::new(shell).exists() {
                assert_eq!(spoken(shell, &args).unwrap(), args, "{shell}");
                tried += 1;
            }
        }
        assert!(tried >= 2);
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn nothing_is_read_into_an_argument(args in proptest::collection::vec("\\PC{0,12}", 1..6)) {
            prop_assume!(!args.iter().any(|arg| arg.contains("@END@")));
            for shell in ["/bin/bash", "/bin/tcsh", "/usr/bin/fish"] {
                if std::path::Path::new(shell).exists() {
                    prop_assert_eq!(spoken(shell, &args).unwrap(), args.clone());
                }
            }
        }

        #[test]
        fn a_robot_gets_plain_words_or_nothing(arg in ".{0,20}") {
            let line = RemoteCommand::new("squeue").arg(arg.clone()).to_command_line(&RemoteCommandMode::Automation);
            if let Ok(line) = line {
                prop_assert_eq!(line.split(' ').collect::<Vec<_>>(), ["squeue", arg.as_str()]);
            }
        }
    }

    #[test]
    fn control_characters_are_refused() {
        for bad in ["a\nb", "a\rb", "a\0b", "\u{1b}[0m"] {
            let line = RemoteCommand::new("ls").arg(bad).to_command_line(&RemoteCommandMode::Bare);
            assert_eq!(line, Err(InvalidCommandError::ControlCharacter));
        }
        assert_eq!(
            RemoteCommand::new("ls").arg("a b").to_command_line(&RemoteCommandMode::Automation),
            Err(InvalidCommandError::NotPlain)
        );
        let robot = RemoteCommand::new("squeue").args(["--me", "-h", "-o", "%i|%T|%r"]);
        assert_eq!(robot.to_command_line(&RemoteCommandMode::Automation).unwrap(), "squeue --me -h -o %i|%T|%r");
    }
}
