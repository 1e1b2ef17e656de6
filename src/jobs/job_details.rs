//! What a job's page shows beyond the queue: script, options, files and usage.

use serde::{Deserialize, Serialize};

use crate::clock::UnixTime;
use crate::cluster::job_details_query::JobDetailsReply;
use crate::slurm::job::{JobStage, SlurmJob};
use crate::slurm::job_usage::JobUsage;
use crate::slurm::output_path;

/// How much of the end of a log is stored permanently.
const MAX_LOG_BYTES: usize = 12 * 1024;
/// The same limit, in lines.
const MAX_LOG_LINES: usize = 120;

/// What was read. Stored as JSON, so every field may be missing.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct JobDetails {
    pub script: String,
    /// Whether the script was longer than what is stored.
    pub is_script_cut: bool,
    /// The command line it was submitted with.
    pub submit_line: String,
    /// The script file and its arguments.
    pub command: String,
    /// The output path that Slurm reported.
    pub stdout: String,
    /// The error path that Slurm reported.
    pub stderr: String,
    /// Whether Slurm reported both paths; otherwise they were derived from the job's options.
    pub paths_told: bool,
    pub comment: String,
    /// Features its nodes must have.
    pub features: String,
    pub licenses: String,
    /// The node that ran the batch script.
    pub batch_host: String,
    /// Requested TRES, as Slurm writes them.
    pub requested: String,
    /// Allocated TRES.
    pub allocated: String,
    /// The time by which it must finish.
    pub deadline: Option<i64>,
    pub usage: Option<JobUsage>,
    /// The person's user ID on the cluster.
    pub own_number: String,
    /// The end of its output after it ended, as plain lines.
    pub log_end: Vec<String>,
    /// The job's Slurm state at the time of reading.
    pub state: String,
    /// How often it had been requeued by then.
    pub restarts: u32,
    pub read_at: i64,
}

impl JobDetails {
    pub fn read_at(&self) -> Option<UnixTime> {
        (self.read_at > 0).then_some(UnixTime(self.read_at))
    }

    /// Merges new details into the known ones; what the cluster has since forgotten stays.
    pub(super) fn merged_with(mut self, reply: JobDetailsReply, job: &SlurmJob, now: UnixTime) -> Self {
        let put = |field: &mut String, value: String| {
            if !value.is_empty() {
                *field = value;
            }
        };
        if !reply.script.is_empty() {
            (self.script, self.is_script_cut) = (reply.script, reply.is_cut);
        }
        put(&mut self.submit_line, reply.submit_line);
        put(&mut self.own_number, reply.uid);
        let has_started = job.state.stage() != JobStage::Pending;
        if let Some(details) = reply.details {
            put(&mut self.submit_line, details.submit_line);
            put(&mut self.command, details.command);
            put(&mut self.comment, details.comment);
            put(&mut self.features, details.features);
            put(&mut self.licenses, details.licenses);
            put(&mut self.batch_host, details.batch_host);
            put(&mut self.requested, details.requested);
            put(&mut self.allocated, details.allocated);
            self.deadline = details.deadline.map(|at| at.0).or(self.deadline);
            // Until an array task starts, its output path is not a real one.
            if has_started && details.stdout.starts_with('/') {
                (self.stdout, self.stderr) = (details.stdout, details.stderr);
                self.paths_told = true;
            }
        }
        if has_started {
            self.derive_paths(job);
        }
        self.usage = reply.usage.or(self.usage);
        job.state.slurm_name().clone_into(&mut self.state);
        self.restarts = job.restarts;
        self.read_at = now.0;
        self
    }

    /// Whether the output paths of a started job are unknown although its script tells them.
    pub(super) fn lacks_paths(&self, job: &SlurmJob) -> bool {
        self.stdout.is_empty() && !self.script.is_empty() && job.state.stage() != JobStage::Pending
    }

    /// Fills in where the job writes by its script, so that the output can be shown before Slurm is asked.
    pub(super) fn with_expected_paths(mut self, job: &SlurmJob) -> Self {
        if self.lacks_paths(job) {
            self.derive_paths(job);
        }
        self
    }

    /// Derives the output paths from the job's options, for when Slurm does not report them or does not fill in
    /// widths.
    fn derive_paths(&mut self, job: &SlurmJob) {
        let in_script = output_path::parse_output_options(&format!("sbatch {}", directives(&self.script)));
        let in_line = output_path::parse_output_options(&self.submit_line);
        let output = in_line.output.or(in_script.output);
        let error = in_line.error.or(in_script.error);
        let has_width = |pattern: &Option<String>| {
            pattern.as_ref().is_some_and(|pattern| {
                pattern.as_bytes().windows(2).any(|pair| pair[0] == b'%' && pair[1].is_ascii_digit())
            })
        };
        if self.paths_told && !has_width(&output) && !has_width(&error) {
            return;
        }
        if let Some(stdout) = output_path::resolve_output_path(output.as_deref(), job) {
            let stderr = error.and_then(|error| output_path::resolve_output_path(Some(&error), job));
            self.stderr = stderr.unwrap_or_else(|| stdout.clone());
            self.stdout = stdout;
        }
    }

    pub(super) fn with_log_end(mut self, lines: &[String]) -> Self {
        let mut left = MAX_LOG_BYTES;
        let mut log_end: Vec<String> = Vec::new();
        for line in lines.iter().rev().take(MAX_LOG_LINES) {
            let line = &line[..line.floor_char_boundary(1000)];
            let Some(rest) = left.checked_sub(line.len() + 1) else { break };
            left = rest;
            log_end.push(line.to_owned());
        }
        log_end.reverse();
        self.log_end = log_end;
        self
    }
}

/// The `#SBATCH` options of a script, as one line.
fn directives(script: &str) -> String {
    let options = script.lines().take(500).filter_map(|line| line.strip_prefix("#SBATCH"));
    options.map(|line| line.split(" #").next().unwrap_or_default().trim()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slurm::job::{JobId, JobState};

    fn job(state: JobState) -> SlurmJob {
        SlurmJob { id: JobId::without_task(7), raw_id: 7, state, work_dir: "/home/a".into(), ..SlurmJob::default() }
    }

    #[test]
    fn what_the_cluster_forgot_stays() {
        let reply = JobDetailsReply {
            script: "#!/bin/sh\n#SBATCH -o logs/%j.txt # here\ntrue".into(),
            submit_line: "sbatch x.sh".into(),
            ..JobDetailsReply::default()
        };
        let paper = JobDetails::default().merged_with(reply, &job(JobState::Running), UnixTime(5));
        assert_eq!((paper.stdout.as_str(), paper.stderr.as_str()), ("/home/a/logs/7.txt", "/home/a/logs/7.txt"));
        let paper = paper.merged_with(JobDetailsReply::default(), &job(JobState::Completed), UnixTime(6));
        assert!(paper.script.contains("true") && paper.submit_line == "sbatch x.sh" && paper.read_at == 6);
        let back: JobDetails = serde_json::from_str(&serde_json::to_string(&paper).unwrap()).unwrap();
        assert_eq!(back, paper);
        assert_eq!(serde_json::from_str::<JobDetails>("{}").unwrap(), JobDetails::default());
    }

    #[test]
    fn the_script_tells_where_a_started_job_writes() {
        let known = JobDetails { script: "#!/bin/sh\n#SBATCH -o logs/%j.txt\ntrue".into(), ..JobDetails::default() };
        assert_eq!(known.clone().with_expected_paths(&job(JobState::Pending)).stdout, "");
        let expected = known.with_expected_paths(&job(JobState::Running));
        assert_eq!((expected.stdout.as_str(), expected.stderr.as_str()), ("/home/a/logs/7.txt", "/home/a/logs/7.txt"));
        assert!(!expected.paths_told && expected.read_at == 0, "Slurm still has the last word");
        assert_eq!(JobDetails::default().with_expected_paths(&job(JobState::Running)).stdout, "");
    }

    #[test]
    fn only_the_end_of_a_log_is_kept() {
        let lines: Vec<String> = (0..1000).map(|line| format!("{line} {}", "ä".repeat(400))).collect();
        let log_end = JobDetails::default().with_log_end(&lines).log_end;
        assert!(log_end.len() > 5 && log_end.last().unwrap().starts_with("999 "));
        assert!(log_end.iter().map(String::len).sum::<usize>() <= MAX_LOG_BYTES);
    }
}
