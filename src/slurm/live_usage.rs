//! `sstat`: what a running job has used so far. Slurm reports it to the job's owner only.

use super::fields::{parse_cpu_seconds, parse_u32};
use super::job_usage::JobUsage;
use super::units::parse_memory_mb;

pub const PROGRAM: &str = "sstat";

/// The most steps read.
const MAX_STEPS: usize = 2000;

/// The arguments for all steps of a job, by its raw job ID.
pub fn args(raw: u64) -> Vec<String> {
    let id = raw.to_string();
    ["-n", "-P", "-a", "-j", &id, "-o", "JobID,NTasks,MaxRSS,AveCPU"].map(str::to_owned).to_vec()
}

/// Parses the output. `elapsed_s` is how long the job has run, which `sstat` does not report. None if nothing is
/// measured yet.
pub fn parse_live_usage(answer: &str, elapsed_s: u64) -> Option<JobUsage> {
    let mut usage = JobUsage { elapsed_s, tasks: 1, ..JobUsage::default() };
    let mut is_known = false;
    for line in answer.lines().take(MAX_STEPS) {
        let mut fields = line.split('|');
        let mut next = || fields.next().unwrap_or_default().trim();
        let (id, tasks, rss, cpu) = (next(), next(), next(), next());
        if id.ends_with(".extern") || !id.starts_with(|c: char| c.is_ascii_digit()) {
            continue;
        }
        let tasks = parse_u32(tasks).max(1);
        if let Some(cpu) = parse_cpu_seconds(cpu) {
            let all = cpu.saturating_mul(u64::from(tasks));
            usage.cpu_s = Some(usage.cpu_s.unwrap_or(0).saturating_add(all));
            is_known = true;
        }
        let rss = parse_memory_mb(rss);
        if rss > usage.max_rss_mb {
            (usage.max_rss_mb, usage.tasks) = (rss, tasks);
            is_known = true;
        }
    }
    is_known.then_some(usage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_added_up() {
        let answer = "20117.extern|1|900K|00:00:00\n20117.batch|1|3168K|00:00:10\n20117.0|4|2G|1-00:00:01\nnonsense\n";
        let usage = parse_live_usage(answer, 90).unwrap();
        assert_eq!((usage.elapsed_s, usage.max_rss_mb, usage.tasks), (90, Some(2048), 4));
        assert_eq!(usage.cpu_s, Some(10 + 4 * 86_401));
        assert_eq!(parse_live_usage("", 5), None);
        assert_eq!(parse_live_usage("sstat: error: no steps", 5), None);
    }
}
