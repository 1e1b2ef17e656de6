//! Queued demand: what a group's pending jobs ask for, and what its running jobs still hold. Pure.

use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::slurm::job::{JobStage, SlurmJob};

/// No job counts for longer than this, in seconds: an unlimited time limit says nothing.
const MAX_JOB_SECONDS: u64 = 366 * SECONDS_PER_DAY.unsigned_abs();

/// What a set of jobs asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct JobDemandTotals {
    /// Number of jobs; each array task counts as one.
    pub jobs: u64,
    /// Core seconds, if all jobs use their whole time limit.
    pub core_s: u64,
    /// GPU seconds, likewise.
    pub gpu_s: u64,
    /// Jobs without a known time limit; they are not in the sums.
    pub without_limit: u64,
}

/// The demand of a set of accounts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AccountDemand {
    pub waiting: JobDemandTotals,
    /// Running jobs: what they hold from now until their time limit.
    pub running: JobDemandTotals,
    /// Cores allocated to them now.
    pub cores: u64,
    /// GPUs allocated to them now.
    pub gpus: u64,
}

/// Adds up the jobs of these accounts.
pub fn compute_demand(jobs: &[SlurmJob], accounts: &[String], now: UnixTime) -> AccountDemand {
    let mut found = AccountDemand::default();
    for job in jobs.iter().filter(|job| accounts.contains(&job.account)) {
        match job.state.stage() {
            JobStage::Pending => {
                let tasks = job.tasks.as_ref().map_or(1, |tasks| tasks.len().max(1));
                let limit = job.time_limit.minutes().map(|minutes| u64::from(minutes) * 60);
                found.waiting.add(job, tasks, limit);
            }
            JobStage::Running => {
                let left = job.end.map(|end| u64::try_from(end.since(now)).unwrap_or(0));
                found.running.add(job, 1, left);
                found.cores = found.cores.saturating_add(job.cpus.into());
                found.gpus = found.gpus.saturating_add(job.gpu_count().into());
            }
            JobStage::Ended => {}
        }
    }
    found
}

impl JobDemandTotals {
    fn add(&mut self, job: &SlurmJob, tasks: u64, seconds: Option<u64>) {
        self.jobs = self.jobs.saturating_add(tasks);
        let Some(seconds) = seconds.filter(|seconds| *seconds <= MAX_JOB_SECONDS) else {
            self.without_limit = self.without_limit.saturating_add(tasks);
            return;
        };
        let all = |count: u32| seconds.saturating_mul(count.into()).saturating_mul(tasks);
        self.core_s = self.core_s.saturating_add(all(job.cpus));
        self.gpu_s = self.gpu_s.saturating_add(all(job.gpu_count()));
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::slurm::array_tasks::ArrayTaskSet;
    use crate::slurm::gres::GpuCount;
    use crate::slurm::job::JobState;
    use crate::slurm::units::TimeLimit;

    const NOW: UnixTime = UnixTime(1_790_000_000);

    fn job(state: JobState, cpus: u32, limit: TimeLimit) -> SlurmJob {
        SlurmJob { state, cpus, time_limit: limit, account: "def-smith".into(), ..SlurmJob::default() }
    }

    #[test]
    fn arrays_count_by_their_tasks() {
        let smith = ["def-smith".to_owned()];
        let array = SlurmJob {
            tasks: ArrayTaskSet::parse("0-9%2"),
            gpus: vec![GpuCount { model: Some("t4".into()), count: 2 }],
            ..job(JobState::Pending, 4, TimeLimit::Minutes(60))
        };
        let endless = job(JobState::Pending, 4, TimeLimit::Unlimited);
        let other = SlurmJob { account: "def-jones".into(), ..array.clone() };
        let running = SlurmJob { end: Some(NOW.plus(1800)), ..job(JobState::Running, 8, TimeLimit::Minutes(60)) };
        let over = job(JobState::Completed, 8, TimeLimit::Minutes(60));
        let found = compute_demand(&[array, endless, other, running, over], &smith, NOW);
        let waiting = JobDemandTotals { jobs: 11, core_s: 144_000, gpu_s: 72_000, without_limit: 1 };
        assert_eq!(found.waiting, waiting);
        assert_eq!((found.running.core_s, found.cores, found.gpus), (14_400, 8, 0));
        assert_eq!(compute_demand(&[], &smith, NOW), AccountDemand::default());
    }

    proptest! {
        #[test]
        fn any_amounts_are_survived(cpus in 0_u32..=u32::MAX, minutes in 0_u32..=u32::MAX, end in proptest::num::i64::ANY) {
            let waiting = SlurmJob {
                tasks: ArrayTaskSet::parse("0-4000000"),
                ..job(JobState::Pending, cpus, TimeLimit::Minutes(minutes))
            };
            let running =
                SlurmJob { end: Some(UnixTime(end)), ..job(JobState::Running, cpus, TimeLimit::Unknown) };
            let jobs = [waiting.clone(), waiting, running.clone(), running];
            let _ = compute_demand(&jobs, &["def-smith".to_owned()], NOW);
        }
    }
}
