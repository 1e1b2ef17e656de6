//! When a job and its alternatives would start, with one command. Nothing is submitted: each of them runs with
//! `--test-only`, whatever its other options are.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::slurm::test_only::{self, TestOnlyAnswer};
use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// Each estimate takes no longer than this, or counts as unanswered.
const ESTIMATE_TIMEOUT: Duration = Duration::from_secs(10);
/// The scheduler works through its plan for each variant, so there is a limit.
pub const MAX_VARIANTS: usize = 8;
const MAX_OUTPUT_BYTES: usize = 256 * 1024;

/// Reads the script once and runs `sbatch` for each list of options: their number, then the options. In a subshell,
/// the options of one list are moved behind the rest, and the rest is dropped. Values are passed only as arguments;
/// no text is built from them.
const ESTIMATE_SCRIPT: &str = "export SLURM_TIME_FORMAT=%s; mark=$1; within=$2; shift 2; script=$(cat; echo x); script=${script%x}; \
    while [ $# -gt 0 ]; do n=$1; shift; echo \"$mark\"; echo \"$mark\" >&2; \
    ( rest=$(($# - n)); while [ $n -gt 0 ]; do set -- \"$@\" \"$1\"; shift; n=$((n - 1)); done; shift $rest; \
    printf %s \"$script\" | timeout -k 5 \"$within\" sbatch --test-only \"$@\" ); \
    echo \"$mark=$?\"; shift $n; done";

/// Estimates a script with each of these lists of options, which override those in the script. Results come in the
/// same order; variants beyond [`MAX_VARIANTS`] are skipped.
pub async fn estimate_starts(
    connection: &Arc<ClusterConnection>,
    script: &str,
    variants: &[Vec<String>],
) -> Result<Vec<TestOnlyAnswer>, RunCommandError> {
    let variants = &variants[..variants.len().min(MAX_VARIANTS)];
    if variants.is_empty() {
        return Ok(Vec::new());
    }
    let marks = nonce()?;
    let output = connection.run(estimate_command(&marks, script, variants), CallUrgency::Interactive).await?;
    let mut answers: Vec<TestOnlyAnswer> = output
        .split_batch(&marks)
        .into_iter()
        .map(|part| {
            let part = part?;
            Some(test_only::parse_test_only(&part.stderr_text(), part.code))
        })
        .map(|answer| answer.unwrap_or(TestOnlyAnswer::Unclear))
        .collect();
    answers.resize(variants.len(), TestOnlyAnswer::Unclear);
    Ok(answers)
}

fn estimate_command(marks: &str, script: &str, variants: &[Vec<String>]) -> RemoteCommand {
    let each = ESTIMATE_TIMEOUT.as_secs();
    let mut words = vec!["-c".to_owned(), ESTIMATE_SCRIPT.to_owned(), "sh".to_owned(), marks.to_owned()];
    words.push(each.to_string());
    for variant in variants {
        words.push(variant.len().to_string());
        words.extend(variant.iter().cloned());
    }
    let all = ESTIMATE_TIMEOUT * u32::try_from(variants.len()).unwrap_or(1) + Duration::from_secs(5);
    RemoteCommand::new("/bin/sh")
        .args(words)
        .input(script.as_bytes().to_vec())
        .with_deadline(all)
        .with_max_output(MAX_OUTPUT_BYTES)
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::process::{Command, Stdio};

    use super::*;
    use crate::ssh::{CommandOutput, RemoteCommandMode};

    /// Run by a local shell, with a program in place of `sbatch` that prints what it got.
    fn carried_out(script: &str, variants: &[Vec<String>]) -> Vec<CommandOutput> {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("sbatch");
        std::fs::write(
            &program,
            "#!/bin/sh\nprintf '<%s>' \"$@\"\nprintf '[%s]' \"$SLURM_TIME_FORMAT\"\ncat\necho oh >&2\nexit $#\n",
        )
        .unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let line = estimate_command("k3j9x0ab", script, variants).to_command_line(&RemoteCommandMode::Bare).unwrap();
        let mut child = Command::new("/bin/sh")
            .args(["-c", &line])
            .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
        let done = child.wait_with_output().unwrap();
        let output = CommandOutput { code: 0, stdout: done.stdout, stderr: done.stderr };
        output.split_batch("k3j9x0ab").into_iter().map(Option::unwrap).collect()
    }

    #[test]
    fn each_list_of_words_arrives_as_it_is() {
        let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
        let script = "#!/bin/sh\n#SBATCH -t 5\necho \"$HOME\" `id` %s '\\n'\n\n";
        let odd = ["--comment=it's $(id) `id` ; \"x\"", "", "--job-name=a b", "7", "*"];
        let parts = carried_out(script, &[words(&[]), words(&odd), words(&["--time=5", "--mem=1G"])]);
        assert_eq!(parts.len(), 3);
        let expected = |words: &[&str]| {
            let all = [&["--test-only"], words].concat().join("><");
            format!("<{all}>[%s]{script}")
        };
        assert_eq!(parts[0].stdout_text(), expected(&[]));
        assert_eq!(parts[1].stdout_text(), expected(&odd));
        assert_eq!(parts[2].stdout_text(), expected(&["--time=5", "--mem=1G"]));
        assert_eq!((parts[1].code, parts[1].stderr_text()), (6, "oh\n".to_owned()));
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        let bad = vec![vec!["--job-name=a\nb".to_owned()]];
        assert!(estimate_command("k3j9x0ab", "", &bad).to_command_line(&RemoteCommandMode::Bare).is_err());
    }
}
