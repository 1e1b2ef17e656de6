//! A shell inside a running job, on the nodes that the job has.

use crate::slurm::job::JobId;
use crate::ssh::RemoteCommand;
use crate::ssh::terminal::TerminalProgram;

/// The running job of a shell.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobShellTarget {
    pub id: JobId,
    /// The number that Slurm gives the job alone; of an array task it isn't the array's.
    pub own_number: u64,
}

/// The person's shell as a step of their job, beside the steps that run.
pub fn job_shell(job: JobShellTarget) -> TerminalProgram {
    let script = format!("exec srun --jobid={} --overlap --pty \"${{SHELL:-/bin/sh}}\" -l", job.own_number);
    TerminalProgram::Command(RemoteCommand::new("/bin/sh").args(["-c", &script]))
}
