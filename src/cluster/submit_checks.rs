//! Looks at what a new job depends on, before it is submitted: whether files and folders exist, and whether the cluster
//! knows a job. One bounded command over the person's own connection. Nothing is read or changed.

use std::sync::Arc;
use std::time::Duration;

use crate::ssh::{CallUrgency, ClusterConnection, RemoteCommand, RunCommandError};

/// A shared file system that hangs must not hold a session for long.
const CHECK_TIMEOUT: Duration = Duration::from_secs(8);
/// A word for each path.
const MAX_OUTPUT_BYTES: usize = 16 * 1024;
/// How many paths are looked at.
pub const MAX_CHECKED_PATHS: usize = 20;

/// Prints a word for each path, and one for the job: `$1` the job, or empty; then the paths. Values are passed only as
/// arguments; no text is built from them. Only Slurm's own message proves that it doesn't know a job.
const CHECK_SCRIPT: &str = "job=$1; shift; \
for path do \
if [ -d \"$path\" ]; then if [ -r \"$path\" ] && [ -x \"$path\" ]; then echo folder; else echo denied; fi; \
elif [ -e \"$path\" ]; then if [ -r \"$path\" ]; then echo file; else echo denied; fi; \
else echo missing; fi; \
done; \
if [ -n \"$job\" ]; then \
said=$(squeue --noheader --states=all --jobs=\"$job\" --format=%A 2>&1); \
case \"$? $said\" in \"0 \"[0-9]*) echo known ;; *\"Invalid job id\"*) echo unknown ;; *) echo unclear ;; esac; \
fi";

/// What is at a path on a cluster. Links are followed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RemotePathState {
    Folder,
    File,
    /// It exists, but the person can't read it.
    Unreadable,
    /// Nothing, or something in a folder that the person can't open.
    Missing,
}

/// What the cluster said.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SubmitCheckReply {
    /// In the order of the paths; at most [`MAX_CHECKED_PATHS`].
    pub paths: Vec<RemotePathState>,
    /// Whether the cluster knows the job; `None` if there is none, or Slurm didn't say.
    pub is_job_known: Option<bool>,
}

/// Looks at these paths, and for this job. Paths beyond [`MAX_CHECKED_PATHS`] are skipped.
pub async fn check_before_submit(
    connection: &Arc<ClusterConnection>,
    paths: &[String],
    job: Option<u64>,
    urgency: CallUrgency,
) -> Result<SubmitCheckReply, RunCommandError> {
    let paths = &paths[..paths.len().min(MAX_CHECKED_PATHS)];
    let output = connection.run(check_command(paths, job), urgency).await?;
    parse_reply(&output.stdout_text(), paths.len(), job.is_some()).ok_or(RunCommandError::IncompleteReply)
}

fn check_command(paths: &[String], job: Option<u64>) -> RemoteCommand {
    let job = job.map(|job| job.to_string()).unwrap_or_default();
    RemoteCommand::new("/bin/sh")
        .args(["-c", CHECK_SCRIPT, "sh", &job])
        .args(paths.iter().map(String::as_str))
        .with_deadline(CHECK_TIMEOUT)
        .with_max_output(MAX_OUTPUT_BYTES)
}

/// `None` if the reply isn't complete.
fn parse_reply(printed: &str, paths: usize, has_job: bool) -> Option<SubmitCheckReply> {
    let mut words = printed.lines();
    let mut reply = SubmitCheckReply::default();
    for _ in 0..paths {
        reply.paths.push(match words.next()? {
            "folder" => RemotePathState::Folder,
            "file" => RemotePathState::File,
            "denied" => RemotePathState::Unreadable,
            "missing" => RemotePathState::Missing,
            _ => return None,
        });
    }
    if has_job {
        reply.is_job_known = match words.next()? {
            "known" => Some(true),
            "unknown" => Some(false),
            "unclear" => None,
            _ => return None,
        };
    }
    Some(reply)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::RemotePathState::{File, Folder, Missing};
    use super::*;
    use crate::ssh::RemoteCommandMode;

    /// Run by a local shell, with a program in place of `squeue`.
    fn carried_out(squeue: &str, paths: &[String], job: Option<u64>) -> SubmitCheckReply {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("squeue");
        std::fs::write(&program, format!("#!/bin/sh\n{squeue}\n")).unwrap();
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        let line = check_command(paths, job).to_command_line(&RemoteCommandMode::Bare).unwrap();
        let done = Command::new("/bin/sh")
            .args(["-c", &line])
            .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
            .output()
            .unwrap();
        let printed = String::from_utf8(done.stdout).unwrap();
        // The first line only marks where the output begins.
        let (_, printed) = printed.split_once('\n').unwrap();
        parse_reply(printed, paths.len(), job.is_some()).unwrap()
    }

    #[test]
    fn each_path_is_looked_at_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
        for name in ["it's $(id) `id` \"x\"; *.py", "-n", "plain"] {
            std::fs::write(at(name), "").unwrap();
        }
        std::fs::create_dir(at("a folder")).unwrap();
        std::os::unix::fs::symlink(at("nowhere"), at("broken")).unwrap();
        let names = ["it's $(id) `id` \"x\"; *.py", "-n", "plain", "a folder", "broken", "*.py", "nothing/below"];
        let reply = carried_out("exit 1", &names.map(at), None);
        assert_eq!(reply.paths, [File, File, File, Folder, Missing, Missing, Missing]);
        assert_eq!(reply.is_job_known, None);
    }

    #[test]
    fn only_slurm_says_that_a_job_is_unknown() {
        for (squeue, expected) in [
            ("[ \"$3\" = --jobs=77 ] && echo 77", Some(true)),
            ("echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1", Some(false)),
            ("echo 'slurm_load_jobs error: Unable to contact slurm controller' >&2; exit 1", None),
            ("exit 0", None),
        ] {
            assert_eq!(carried_out(squeue, &[], Some(77)).is_job_known, expected, "{squeue}");
        }
    }

    #[test]
    fn replies_that_are_not_whole() {
        assert_eq!(parse_reply("", 0, false), Some(SubmitCheckReply::default()));
        for (printed, paths, has_job) in
            [("", 1, false), ("file\n", 2, false), ("file\n", 1, true), ("what\n", 1, false)]
        {
            assert_eq!(parse_reply(printed, paths, has_job), None, "{printed:?}");
        }
        let bad = ["/a\nb".to_owned()];
        assert!(check_command(&bad, None).to_command_line(&RemoteCommandMode::Bare).is_err());
    }
}
