//! Runs the script with every shell on this machine, with the test's own `sbatch`.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use super::*;
use crate::slurm::submit::SubmitTokenField;
use crate::ssh::RemoteCommandMode;

const MARK: &str = "k3j9x0ab";

const TIMEOUTS: SbatchTimeouts = SbatchTimeouts { go: Duration::from_secs(1), sbatch: Duration::from_secs(5) };

fn command(script: &str, folders: &[String], timeouts: SbatchTimeouts) -> RemoteCommand {
    let args = submit::args(SubmitTokenField::Comment, "tok", "it's");
    sbatch_command(MARK, script, folders, args, timeouts).0
}

/// A folder with an `sbatch` that records what it got.
fn bench(answer: &str) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("sbatch");
    let at = dir.path().display();
    let text = format!("#!/bin/sh\ncat >{at}/script\necho \"$@\" >{at}/args\npwd >{at}/pwd\nenv >{at}/env\n{answer}\n");
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    dir
}

/// Runs the command as a server would; sends the first `sent` bytes of the script, and the go word if there is one.
fn run(
    shell: &str,
    bench: &Path,
    (script, folders): (&str, &[String]),
    timeouts: SbatchTimeouts,
    sent: usize,
    go: &str,
) -> SbatchOutcome {
    let line = command(script, folders, timeouts).to_command_line(&RemoteCommandMode::Bare).unwrap();
    let path = format!("{}:{}", bench.display(), std::env::var("PATH").unwrap());
    let mut child = Command::new(shell)
        .args(["-c", &line])
        .env("PATH", path)
        .env("SBATCH_ACCOUNT", "other")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stdin, mut stdout) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    stdin.write_all(&script.as_bytes()[..sent]).unwrap();
    let mut printed = Vec::new();
    let mut given = false;
    if sent == script.len() {
        let mut byte = [0];
        while !given && stdout.read(&mut byte).unwrap() > 0 {
            printed.push(byte[0]);
            given = printed.ends_with(format!("{MARK} ready\n").as_bytes());
        }
        if given && !go.is_empty() {
            stdin.write_all(go.as_bytes()).unwrap();
        }
    }
    if !go.is_empty() || !given {
        drop(stdin);
    }
    stdout.read_to_end(&mut printed).unwrap();
    let ended = child.wait_with_output().unwrap();
    let output = CommandOutput { code: ended.status.code().unwrap(), stdout: printed, stderr: ended.stderr };
    parse_outcome(MARK, given, Ok(output))
}

fn shells() -> impl Iterator<Item = &'static str> {
    let all = ["/bin/sh", "/bin/bash", "/bin/tcsh", "/usr/bin/fish"];
    all.into_iter().filter(|shell| Path::new(shell).exists())
}

const GO: &str = "k3j9x0ab go\n";

#[test]
fn the_script_arrives_as_it_is() {
    let script = "#!/bin/bash\n#SBATCH -t 5\necho 'it''s' \"$HOME\" \\n %s !! ünï\n\n\n";
    for shell in shells() {
        let bench = bench("echo Hello; echo 20012");
        let at = |name: &str| bench.path().join(name).to_str().unwrap().to_owned();
        let folders = [at("a b/c"), at("d'e")];
        let done = run(shell, bench.path(), (script, &folders), TIMEOUTS, script.len(), GO);
        assert_eq!(done, SbatchOutcome::Answered(SbatchAnswer::Accepted(20012)), "{shell}");
        let read = |name: &str| std::fs::read_to_string(at(name)).unwrap();
        assert_eq!(read("script"), script, "{shell}");
        assert_eq!(read("args"), "--parsable --comment=portolan:tok\n");
        assert_eq!(read("pwd").trim(), at("a b/c"));
        assert!(Path::new(&at("d'e")).is_dir());
        assert!(!read("env").contains("SBATCH_ACCOUNT"), "the script decides");
        assert!(!read("env").contains("SLURM_TIME_FORMAT"));
    }
}

#[test]
fn a_long_script_arrives_as_well() {
    let script = format!("#!/bin/bash\n{}", "# é and some more words of a comment\n".repeat(13_000));
    let bench = bench("echo 1");
    let done = run("/bin/bash", bench.path(), (&script, &[]), TIMEOUTS, script.len(), GO);
    assert_eq!(done, SbatchOutcome::Answered(SbatchAnswer::Accepted(1)));
    assert_eq!(std::fs::read_to_string(bench.path().join("script")).unwrap(), script);
}

#[test]
fn half_a_script_is_never_submitted() {
    let script = "#!/bin/bash\necho one\necho two\n";
    for shell in shells() {
        let bench = bench("echo 20012");
        for sent in [0, 5, 12, 21, script.len() - 1] {
            let done = run(shell, bench.path(), (script, &[]), TIMEOUTS, sent, "");
            assert!(matches!(done, SbatchOutcome::RetryLater(_)), "{shell} {sent}: {done:?}");
        }
        assert!(!bench.path().join("script").exists(), "{shell}");
    }
}

#[test]
fn without_the_word_nothing_is_submitted() {
    let script = "#!/bin/bash\n";
    let bench = bench("echo 20012");
    // The go word is missing, lacks its nonce, has a wrong one, or is empty.
    for go in ["", "go\n", "other go\n", "\n"] {
        let done = run("/bin/sh", bench.path(), (script, &[]), TIMEOUTS, script.len(), go);
        assert!(matches!(done, SbatchOutcome::RetryLater(_)), "{go}: {done:?}");
    }
    assert!(!bench.path().join("script").exists());
}

#[test]
fn folders_that_cannot_be_made_are_named() {
    let bench = bench("echo 20012");
    let folders = [bench.path().join("sbatch/x").to_str().unwrap().to_owned()];
    let done = run("/bin/sh", bench.path(), ("#!x\n", &folders), TIMEOUTS, 4, GO);
    assert!(
        matches!(&done, SbatchOutcome::Answered(SbatchAnswer::Refused(words)) if words.contains("Not a directory")),
        "{done:?}"
    );
    assert!(!bench.path().join("script").exists());
}

#[test]
fn what_sbatch_does_is_told_apart() {
    let say = |answer: &str| {
        let bench = bench(answer);
        run("/bin/sh", bench.path(), ("#!/bin/sh\n", &[]), TIMEOUTS, 10, GO)
    };
    let refused = say("echo 'sbatch: error: Invalid qos specification' >&2; exit 1");
    assert!(matches!(refused, SbatchOutcome::Answered(SbatchAnswer::Refused(_))), "{refused:?}");
    let killed = say("kill -9 $$");
    assert!(matches!(killed, SbatchOutcome::Answered(SbatchAnswer::Unconfirmed(_))), "{killed:?}");
    let slow = run(
        "/bin/sh",
        bench("sleep 30").path(),
        ("#!/bin/sh\n", &[]),
        SbatchTimeouts { sbatch: Duration::from_secs(1), ..TIMEOUTS },
        10,
        GO,
    );
    assert!(matches!(slow, SbatchOutcome::Answered(SbatchAnswer::Unconfirmed(_))), "{slow:?}");
}

#[test]
fn failures_before_the_word_are_certain_and_afterwards_not() {
    for error in [
        RunCommandError::TimedOut,
        RunCommandError::ConnectionLost,
        RunCommandError::OutputTooLong,
        RunCommandError::NotConnected,
    ] {
        assert!(matches!(parse_outcome(MARK, false, Err(error.clone())), SbatchOutcome::RetryLater(_)));
        assert!(matches!(parse_outcome(MARK, true, Err(error)), SbatchOutcome::Unconfirmed(_)));
    }
    let half =
        CommandOutput { code: 0, stdout: format!("{MARK} ready\n{MARK} begin\n200").into_bytes(), stderr: Vec::new() };
    assert!(matches!(parse_outcome(MARK, true, Ok(half)), SbatchOutcome::Unconfirmed(_)));
}

/// They start programs without a shell, so half a script could be submitted there.
#[test]
fn automation_hosts_get_none() {
    let refused = command("#!/bin/sh\n", &[], TIMEOUTS).to_command_line(&RemoteCommandMode::Automation).unwrap_err();
    let done = parse_outcome(MARK, false, Err(RunCommandError::InvalidCommand(refused)));
    assert!(matches!(done, SbatchOutcome::Impossible(_)));
    assert!(!SUBMIT_SCRIPT.contains(['\n', '\'', '\\', '!', '`']) && SUBMIT_SCRIPT.is_ascii());
}

fn part(code: i32, stdout: &str, stderr: &str) -> CommandOutput {
    CommandOutput { code, stdout: stdout.into(), stderr: stderr.into() }
}

#[test]
fn a_look_says_absent_only_if_both_have_answered() {
    let look = |queue: CommandOutput, history: CommandOutput| {
        SubmissionSearchOutput { fields: MARK.to_owned(), queue, history }.find("tok")
    };
    let none = || part(0, "", "");
    let there = part(0, "7_[1-2]_k3j9x0abname_k3j9x0abportolan:tok_k3j9x0ab\n", "");
    let bad = || part(1, "", "squeue: error: Unable to contact slurm controller");
    assert_eq!(look(none(), none()), SubmissionSearchResult::Absent);
    assert_eq!(look(there.clone(), bad()), SubmissionSearchResult::Found(7));
    assert_eq!(look(bad(), none()), SubmissionSearchResult::Unknown);
    assert_eq!(look(none(), bad()), SubmissionSearchResult::Unknown);
    assert_eq!(look(none(), part(0, "", "sacct: error: Problem talking")), SubmissionSearchResult::Unknown);
    let off = part(1, "", "Slurm accounting storage is disabled\n");
    assert_eq!(look(none(), off), SubmissionSearchResult::Absent);
}
