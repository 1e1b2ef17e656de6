//! Reads the details of one job with one command: what Slurm remembers of it, its script, what it used.

use std::sync::Arc;
use std::time::Duration;

use super::queue::nonce;
use crate::slurm::job::JobId;
use crate::slurm::job_usage::JobUsage;
use crate::slurm::scontrol_job::{self, ScontrolJob};
use crate::slurm::{accounting, live_usage};
use crate::ssh::{CallUrgency, ClusterConnection, CommandOutput, RemoteCommand, RunCommandError};
use crate::text::{is_disruptive, sanitize};

/// Each of Slurm's programs answers within a few seconds, or not at all.
const SLURM_TIMEOUT: Duration = Duration::from_secs(12);
const MAX_SCRIPT_LEN: usize = 64 * 1024;
const MAX_SUBMIT_LINE_LEN: usize = 4096;
/// No answer is longer than this; a script may be.
const MAX_OUTPUT_BYTES: usize = 4 * 1024 * 1024;

/// The job, and what is worth reading about it.
#[derive(Debug, Clone, Copy)]
pub struct JobDetailsRequest {
    pub id: JobId,
    /// Slurm's own ID of this very job.
    pub raw_id: u64,
    /// How long it has been running, if it is.
    pub running_s: Option<u64>,
    /// Whether it has ended: then the accounting may have the script that Slurm has forgotten.
    pub is_over: bool,
}

/// What the cluster returned. What Slurm did not report is empty.
#[derive(Debug, Default)]
pub struct JobDetailsReply {
    /// What Slurm remembers; `None` once it has forgotten the job.
    pub details: Option<ScontrolJob>,
    pub script: String,
    /// Whether the script was longer.
    pub is_cut: bool,
    /// The command line it was submitted with.
    pub submit_line: String,
    pub usage: Option<JobUsage>,
    /// The user ID of this connection.
    pub uid: String,
}

pub async fn load_job_details(
    connection: &Arc<ClusterConnection>,
    wanted: JobDetailsRequest,
) -> Result<JobDetailsReply, RunCommandError> {
    let (marks, fields) = (nonce()?, nonce()?);
    let id = wanted.id.to_string();
    let raw = if wanted.raw_id == 0 { wanted.id.number } else { wanted.raw_id };
    let command = |program, args: Vec<String>| {
        RemoteCommand::new(program).args(args).with_deadline(SLURM_TIMEOUT).with_max_output(MAX_OUTPUT_BYTES)
    };
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>();
    let steps = accounting::steps_args(&fields, wanted.id).unwrap_or_default();
    let mut commands = vec![
        command(scontrol_job::PROGRAM, scontrol_job::args(wanted.id)),
        command("scontrol", words(&["write", "batch_script", &raw.to_string(), "-"])),
        command("sacct", words(&["-n", "-P", "-X", "-j", &id, "-o", "SubmitLine"])),
        command(accounting::PROGRAM, steps),
        command("id", words(&["-u"])),
    ];
    if wanted.is_over {
        commands.push(command("sacct", words(&["--batch-script", "-j", &id])));
    } else if wanted.running_s.is_some() {
        commands.push(command(live_usage::PROGRAM, live_usage::args(raw)));
    }
    let batch = RemoteCommand::batch(&marks, &commands)?;
    let output = connection.run(batch, CallUrgency::Interactive).await?;
    let mut parts = output.split_batch(&marks).into_iter();
    let mut next = || parts.next().flatten().ok_or(RunCommandError::ConnectionLost);
    let (show, script, submit, steps, own) = (next()?, next()?, next()?, next()?, next()?);
    let last = if commands.len() > 5 { Some(next()?) } else { None };
    let mut reply = JobDetailsReply {
        details: scontrol_job::parse_jobs(&show.stdout_text())
            .into_iter()
            .find(|one| one.id == wanted.id || one.raw_id == raw),
        submit_line: sanitize(submit.stdout_text().lines().next().unwrap_or_default(), MAX_SUBMIT_LINE_LEN),
        usage: accounting::parse_steps(&steps.stdout, &fields),
        uid: own.stdout_text().trim().chars().filter(char::is_ascii_digit).take(20).collect(),
        ..JobDetailsReply::default()
    };
    // Some versions exit with success and print nothing.
    (reply.script, reply.is_cut) = clean_script(&script.stdout);
    match last {
        Some(last) if wanted.is_over && reply.script.is_empty() => {
            (reply.script, reply.is_cut) = clean_script(script_from_sacct(&last));
        }
        Some(last) if !wanted.is_over => {
            let so_far = live_usage::parse_live_usage(&last.stdout_text(), wanted.running_s.unwrap_or(0));
            reply.usage = so_far.or(reply.usage);
        }
        _ => {}
    }
    Ok(reply)
}

/// The script below the heading that `sacct` prints above it.
fn script_from_sacct(part: &CommandOutput) -> &[u8] {
    let text = &part.stdout;
    if !text.starts_with(b"Batch Script for ") {
        return &[];
    }
    // The heading, and the line under it.
    let mut ends = memchr::memchr_iter(b'\n', text);
    let begin = ends.nth(1).map_or(text.len(), |at| at + 1);
    let script = &text[begin..];
    let end = memchr::memmem::find(script, b"\nBatch Script for ").unwrap_or(script.len());
    let script = &script[..end];
    if script.trim_ascii() == b"NONE" { &[] } else { script }
}

/// A script as text, up to a limit: tabs and line breaks stay, other control characters are made visible.
fn clean_script(bytes: &[u8]) -> (String, bool) {
    let is_cut = bytes.len() > MAX_SCRIPT_LEN;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(MAX_SCRIPT_LEN)]);
    let shown = |c: char| match c {
        '\n' | '\t' => c,
        // A carriage return at the end of a line stays visible: scripts from Windows fail because of it.
        c if is_disruptive(c) => '▯',
        c => c,
    };
    (text.trim_end().chars().map(shown).collect(), is_cut)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(text: &str) -> CommandOutput {
        CommandOutput { code: 0, stdout: text.as_bytes().to_vec(), stderr: Vec::new() }
    }

    #[test]
    fn the_accounting_puts_a_heading_over_scripts() {
        let text = "Batch Script for 20117\n-----\n#!/bin/sh\necho hi\n\nBatch Script for 20118\n-----\nx\n";
        assert_eq!(clean_script(script_from_sacct(&printed(text))).0, "#!/bin/sh\necho hi");
        for none in ["", "\n", "Batch Script for 1\n---\nNONE\n", "sacct: error"] {
            assert_eq!(script_from_sacct(&printed(none)), b"", "{none}");
        }
    }

    #[test]
    fn scripts_are_bounded_and_steer_nothing() {
        assert_eq!(clean_script(b"#!/bin/sh\r\n\tls \x1b[31m\xff\n").0, "#!/bin/sh▯\n\tls ▯[31m\u{fffd}");
        let (text, is_cut) = clean_script(&vec![b'x'; MAX_SCRIPT_LEN + 1]);
        assert_eq!((text.len(), is_cut), (MAX_SCRIPT_LEN, true));
    }
}
