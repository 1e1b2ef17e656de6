//! A job as it is stored: what the cluster last reported, and since when it is known.

use crate::clock::UnixTime;
use crate::domain::{ClusterId, JobRowId, PersonId};
use crate::slurm::array_tasks::ArrayTaskSet;
use crate::slurm::gres::GpuCount;
use crate::slurm::job::{ExitStatus, JobId, JobState, SlurmJob};
use crate::slurm::units::TimeLimit;
use crate::store::jobs::StoredJobRow;

#[derive(Debug, Clone, PartialEq)]
pub struct JobRecord {
    /// The database ID; 0 until it is saved.
    pub id: JobRowId,
    /// What the cluster last reported.
    pub job: SlurmJob,
    /// The submit command line, if accounting keeps it.
    pub submit_line: String,
    /// The user ID of whoever cancelled it; empty if nobody did.
    pub cancelled_by: String,
    /// Whether it has ended. A job that the cluster has forgotten ended in an unknown state.
    pub is_over: bool,
    /// Whether accounting has confirmed the end.
    pub is_settled: bool,
    /// When the portal first saw it.
    pub first_seen: UnixTime,
    /// When the cluster last reported it.
    pub seen: UnixTime,
}

impl JobRecord {
    /// A job seen for the first time.
    pub fn new(job: SlurmJob, now: UnixTime) -> Self {
        Self {
            id: JobRowId(0),
            is_over: job.state.is_over(),
            job,
            submit_line: String::new(),
            cancelled_by: String::new(),
            is_settled: false,
            first_seen: now,
            seen: now,
        }
    }

    /// Whether the cluster forgot it before the portal could learn how it ended.
    pub fn is_lost(&self) -> bool {
        self.is_over && !self.job.state.is_over()
    }

    pub fn ended_at(&self) -> Option<UnixTime> {
        if self.is_over { self.job.end } else { None }
    }

    pub fn from_row(row: StoredJobRow) -> Self {
        let small = |number: i64| u32::try_from(number).unwrap_or(0);
        let exit =
            row.exit_code.map(|code| ExitStatus { code: small(code), signal: small(row.exit_signal.unwrap_or(0)) });
        let job = SlurmJob {
            id: JobId { number: u64::try_from(row.number).unwrap_or(0), task: u32::try_from(row.task).ok() },
            raw_id: u64::try_from(row.raw).unwrap_or(0),
            tasks: ArrayTaskSet::parse(&row.tasks),
            user: row.user,
            name: row.name,
            state: JobState::parse(&row.state),
            reason: row.reason,
            account: row.account,
            partition: row.partition,
            qos: row.qos,
            submitted: row.submitted_at.map(UnixTime),
            eligible: row.eligible_at.map(UnixTime),
            start: row.start_at.map(UnixTime),
            end: row.end_at.map(UnixTime),
            time_limit: match row.limit_minutes {
                None => TimeLimit::Unknown,
                Some(minutes) => u32::try_from(minutes).map_or(TimeLimit::Unlimited, TimeLimit::Minutes),
            },
            cpus: small(row.cpus),
            nodes: small(row.nodes),
            memory_mb: row.memory_mb.and_then(|mb| u64::try_from(mb).ok()),
            gpus: parse_gpus(&row.gpus),
            node_list: row.node_list,
            priority: u64::try_from(row.priority).unwrap_or(0),
            dependency: row.dependency,
            restarts: small(row.restarts),
            suspended_s: u64::try_from(row.suspended_s).unwrap_or(0),
            exit,
            work_dir: row.work_dir,
        };
        Self {
            id: JobRowId(row.id),
            job,
            submit_line: row.submit_line,
            cancelled_by: row.cancelled_by,
            is_over: row.is_over,
            is_settled: row.is_settled,
            first_seen: UnixTime(row.first_seen_at),
            seen: UnixTime(row.seen_at),
        }
    }

    pub fn to_row(&self, person: PersonId, cluster: ClusterId) -> StoredJobRow {
        let big = |number: u64| i64::try_from(number).unwrap_or(i64::MAX);
        let job = &self.job;
        StoredJobRow {
            id: self.id.0,
            person_id: person.0,
            cluster_id: cluster.0,
            number: big(job.id.number),
            task: job.id.task.map_or(-1, i64::from),
            raw: big(job.raw_id),
            tasks: job.tasks.as_ref().map_or_else(String::new, format_tasks),
            user: job.user.clone(),
            name: job.name.clone(),
            state: job.state.slurm_name().to_owned(),
            reason: job.reason.clone(),
            account: job.account.clone(),
            partition: job.partition.clone(),
            qos: job.qos.clone(),
            submitted_at: job.submitted.map(|at| at.0),
            eligible_at: job.eligible.map(|at| at.0),
            start_at: job.start.map(|at| at.0),
            end_at: job.end.map(|at| at.0),
            limit_minutes: match job.time_limit {
                TimeLimit::Unknown => None,
                TimeLimit::Unlimited => Some(-1),
                TimeLimit::Minutes(minutes) => Some(i64::from(minutes)),
            },
            cpus: i64::from(job.cpus),
            nodes: i64::from(job.nodes),
            memory_mb: job.memory_mb.map(big),
            gpus: format_gpus(&job.gpus),
            node_list: job.node_list.clone(),
            priority: big(job.priority),
            dependency: job.dependency.clone(),
            restarts: i64::from(job.restarts),
            suspended_s: big(job.suspended_s),
            exit_code: job.exit.map(|exit| i64::from(exit.code)),
            exit_signal: job.exit.map(|exit| i64::from(exit.signal)),
            work_dir: job.work_dir.clone(),
            submit_line: self.submit_line.clone(),
            cancelled_by: self.cancelled_by.clone(),
            is_over: self.is_over,
            is_settled: self.is_settled,
            first_seen_at: self.first_seen.0,
            seen_at: self.seen.0,
        }
    }
}

fn format_tasks(tasks: &ArrayTaskSet) -> String {
    match tasks.max_running {
        Some(most) => format!("{tasks}%{most}"),
        None => tasks.to_string(),
    }
}

fn format_gpus(gpus: &[GpuCount]) -> String {
    let format = |gpus: &GpuCount| format!("{}:{}", gpus.model.as_deref().unwrap_or_default(), gpus.count);
    gpus.iter().map(format).collect::<Vec<_>>().join(",")
}

fn parse_gpus(text: &str) -> Vec<GpuCount> {
    let parse = |word: &str| {
        let (model, count) = word.rsplit_once(':')?;
        let model = (!model.is_empty()).then(|| model.to_owned());
        Some(GpuCount { model, count: count.parse().ok()? })
    };
    text.split(',').filter_map(parse).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_comes_back_as_it_was() {
        let job = SlurmJob {
            id: JobId { number: 20_010, task: None },
            raw_id: 20_010,
            tasks: ArrayTaskSet::parse("5-9,20%3"),
            user: "alice".into(),
            name: "sweep".into(),
            state: JobState::Pending,
            reason: "Priority".into(),
            time_limit: TimeLimit::Minutes(90),
            cpus: 4,
            nodes: 1,
            memory_mb: Some(16_384),
            gpus: vec![GpuCount { model: Some("v100".into()), count: 2 }, GpuCount { model: None, count: 1 }],
            start: Some(UnixTime(5)),
            suspended_s: 90,
            exit: Some(ExitStatus { code: 3, signal: 9 }),
            ..SlurmJob::default()
        };
        let record = JobRecord::new(job, UnixTime(77));
        assert_eq!(JobRecord::from_row(record.to_row(PersonId(1), ClusterId(2))), record);
    }

    #[test]
    fn no_limit_and_no_known_limit_are_different() {
        for limit in [TimeLimit::Unknown, TimeLimit::Unlimited] {
            let record = JobRecord::new(SlurmJob { time_limit: limit, ..SlurmJob::default() }, UnixTime(1));
            assert_eq!(JobRecord::from_row(record.to_row(PersonId(1), ClusterId(1))).job.time_limit, limit);
        }
    }
}
