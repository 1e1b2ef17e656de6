//! Decides whether a day that was read again replaces what is stored of it. Pure.

use super::daily_totals::DayUsageBreakdown;
use crate::store::usage::StoredUsageDay;

/// Whether the cluster has deleted a part of a day since it was stored, so that what is stored is worth more than what
/// was read now. Clusters delete old jobs from the accounting, and old job steps, which hold what a job used, earlier.
///
/// A day that has usage never becomes empty. A day that was settled when it was stored had all its jobs by then, so if
/// one of them is missing now, or is no longer measured, the day stays as it is: figures that add up and lack the newer
/// breakdown are better than a mix of both readings, or than a part that looks like the whole. Of days that were not
/// settled, the later reading is the right one, because Slurm still corrects when their jobs ended.
pub fn keeps_stored_day(stored: StoredUsageDay, read: &DayUsageBreakdown) -> bool {
    if stored.sums == 0 {
        return false;
    }
    if read.rows.is_empty() {
        return true;
    }
    let count = |number: usize| i64::try_from(number).unwrap_or(i64::MAX);
    let ended: u64 = read.rows.iter().map(|(.., totals)| totals.jobs).sum();
    let measured = read.jobs.iter().filter(|job| job.cpu_s.is_some()).count();
    stored.is_outdated
        && (i64::try_from(ended).unwrap_or(i64::MAX) < stored.ended_jobs
            || count(read.jobs.len()) < stored.runs
            || count(measured) < stored.measured_runs)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::usage::daily_totals::UsageRunDay;
    use crate::usage::totals::{UsageJobOutcome, UsageTotals};

    /// A day with so many jobs that ended, so many of them measured.
    fn read(jobs: usize, measured: usize) -> DayUsageBreakdown {
        let run = |number: usize| UsageRunDay {
            raw: number as u64,
            start: UnixTime(0),
            submitted: None,
            number: number as u64,
            task: None,
            user: "bob".into(),
            kind: "fit".into(),
            outcome: UsageJobOutcome::Done,
            seconds: 60,
            elapsed_s: 60,
            wait_s: 0,
            cores: 1,
            memory_mb: 1,
            gpus: String::new(),
            partition: "cpu".into(),
            qos: String::new(),
            cpu_s: (number < measured).then_some(50),
            rss_mb: None,
        };
        let totals = UsageTotals { jobs: jobs as u64, ..UsageTotals::default() };
        DayUsageBreakdown { rows: vec![("bob".into(), "fit".into(), totals)], jobs: (0..jobs).map(run).collect() }
    }

    #[test]
    fn what_the_cluster_has_deleted_stays() {
        let stored = StoredUsageDay { sums: 1, ended_jobs: 3, runs: 3, measured_runs: 2, is_outdated: true };
        assert!(keeps_stored_day(stored, &DayUsageBreakdown::default()), "everything was deleted");
        assert!(keeps_stored_day(stored, &read(2, 2)), "a job was deleted");
        assert!(keeps_stored_day(stored, &read(3, 1)), "its steps were deleted");
        assert!(!keeps_stored_day(stored, &read(3, 2)));
        assert!(!keeps_stored_day(stored, &read(4, 4)));
    }

    #[test]
    fn recent_days_follow_the_cluster() {
        let stored = StoredUsageDay { sums: 1, ended_jobs: 3, runs: 3, measured_runs: 3, is_outdated: false };
        assert!(!keeps_stored_day(stored, &read(2, 0)));
        assert!(keeps_stored_day(stored, &DayUsageBreakdown::default()));
        assert!(!keeps_stored_day(StoredUsageDay::default(), &DayUsageBreakdown::default()), "empty as before");
    }
}
