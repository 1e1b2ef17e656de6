//! One row of the list of jobs, as text ready to be shown.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use crate::clock::UnixTime;
use crate::explain::amounts;
use crate::explain::waiting::{self, WaitExplanation, WaitKind, WaitingJob};
use crate::format;
use crate::jobs::job_list::{JobCounts, JobListItem, record_stage};
use crate::jobs::{JobRecord, PersonQueueSnapshot};
use crate::slurm::job::{JobStage, JobState, SlurmJob};
use crate::slurm::priority_factors::SprioFactors;
use crate::store::clusters::Cluster;
use crate::web::pages::files::folder_link;

/// The most tasks that an array shows in the list; its own page has them all.
const MAX_SHOWN_TASKS: usize = 20;

pub struct JobListRow {
    /// Identifies the row on the page: `fir-123_4`.
    pub key: String,
    /// The job's own page.
    pub href: String,
    /// What the checkbox sends; empty if no action is possible.
    pub pick: String,
    pub id: String,
    pub name: String,
    pub cluster: String,
    /// The owner's user name on the cluster.
    pub user: String,
    /// The style of the state.
    pub kind: &'static str,
    /// The state in a word or two.
    pub label: &'static str,
    /// What it requested.
    pub asked: String,
    pub time: JobTimeCell,
    pub why: Option<WaitExplanation>,
    /// Whether a row above already says why it waits in the same words.
    pub is_why_repeated: bool,
    /// For a job or task that failed: what is known about it.
    pub failure: Option<Box<JobRecord>>,
    /// Why it failed, in a few words; empty if its state says it all.
    pub failure_hint: String,
    /// For an array: its tasks by state.
    pub counts: Option<JobCounts>,
    /// For an expanded array: the first tasks.
    pub tasks: Vec<JobListRow>,
    /// How many more there are.
    pub more_tasks: u64,
    /// Whether the array is expanded.
    pub is_open: bool,
    pub account: String,
    pub partition: String,
    pub nodes: String,
    pub submitted: Option<UnixTime>,
    pub priority: String,
    /// The folder it runs in.
    pub folder: String,
    /// The folder's page; empty if its path isn't known.
    pub folder_href: String,
    /// Changes with the row's content; time alone doesn't change it.
    pub mark: u64,
}

impl JobListRow {
    pub fn title(&self) -> &str {
        if self.name.is_empty() { "(no name)" } else { &self.name }
    }

    /// Whether any action is still possible.
    pub fn can_act(&self) -> bool {
        !matches!(self.time, JobTimeCell::Ended { .. })
            || self.counts.is_some_and(|counts| counts.waiting + counts.running > 0)
    }
}

pub enum JobTimeCell {
    Running {
        elapsed: String,
        /// The same in seconds.
        seconds: u64,
        /// Whether it grows with the time: not while the job is suspended.
        is_ticking: bool,
        /// Empty if there is no limit.
        limit: String,
        value: u64,
        max: u64,
    },
    Waiting {
        since: Option<UnixTime>,
        /// When it might start.
        start: Option<UnixTime>,
        /// Its position in the queue.
        place: String,
    },
    Ended {
        at: Option<UnixTime>,
        /// How long it ran; empty if it never did.
        lasted: String,
    },
}

/// What all rows of a snapshot have in common.
pub struct JobRowBuilder<'a> {
    pub cluster: &'a Cluster,
    pub snapshot: &'a PersonQueueSnapshot,
    pub now: UnixTime,
    /// Whether this cluster ranks by fair share.
    pub uses_fair_share: bool,
    /// The array that is expanded.
    pub open: &'a str,
    /// How many of the person's jobs and tasks are pending here.
    pub own_waiting: u64,
    /// The person's user name there, if none of their jobs runs and none ended a moment ago.
    pub idle_user: Option<&'a str>,
    /// Whether all jobs of their accounts are known, as of a moment ago.
    pub is_group_known: bool,
}

impl JobRowBuilder<'_> {
    pub fn item_row(&self, item: &JobListItem) -> JobListRow {
        if item.is_array() {
            self.array_row(&item.head, item.counts, &item.tasks)
        } else {
            self.record_row(&item.head, true)
        }
    }

    /// The row of an array. `tasks` are shown if it is expanded.
    pub fn array_row(&self, head: &JobRecord, counts: JobCounts, tasks: &[Arc<JobRecord>]) -> JobListRow {
        let mut row = self.record_row(head, true);
        let number = head.job.id.number;
        row.key = format!("{}-{number}", self.cluster.slug);
        row.href = format!("/jobs/{}/{number}", self.cluster.slug);
        row.pick = format!("{}/{number}", self.cluster.slug);
        row.id = number.to_string();
        row.counts = Some(counts);
        row.failure = None;
        row.is_open = self.open == row.key;
        (row.kind, row.label) = match counts.stage() {
            JobStage::Running => ("running", "Running"),
            JobStage::Ended if counts.bad > 0 => ("failed", "Some tasks failed"),
            JobStage::Pending | JobStage::Ended => (row.kind, row.label),
        };
        if row.is_open {
            // Tasks that need attention come first.
            let mut tasks: Vec<_> = tasks.iter().collect();
            tasks.sort_by_key(|task| (!task.job.state.is_failure(), record_stage(task) != JobStage::Running));
            row.tasks = tasks.iter().take(MAX_SHOWN_TASKS).map(|task| self.record_row(task, true)).collect();
            let shown = u64::try_from(row.tasks.len()).unwrap_or(0);
            row.more_tasks = u64::try_from(tasks.len()).unwrap_or(0).saturating_sub(shown);
        }
        row.mark = content_hash(&row);
        row
    }

    /// The row of one of the person's own jobs or tasks.
    pub fn record_row(&self, record: &JobRecord, can_act: bool) -> JobListRow {
        let mut row = self.job_row(&record.job, record.is_over);
        if can_act && !record.is_over {
            row.pick = format!("{}/{}", self.cluster.slug, record.job.id);
        }
        if record.is_over && record.job.state.is_failure() {
            row.failure = Some(Box::new(record.clone()));
        }
        if record.is_lost() {
            (row.kind, row.label) = ("unknown", "Ended, outcome unknown");
        }
        row.mark = content_hash(&row);
        row
    }

    /// The row of any job.
    pub fn job_row(&self, job: &SlurmJob, is_over: bool) -> JobListRow {
        let why = (job.state.stage() == JobStage::Pending && !is_over).then(|| self.explain_waiting(job));
        let (kind, label) = match &why {
            Some(why) => waiting_label(why),
            None => state_label(job.state),
        };
        let mut row = JobListRow {
            key: format!("{}-{}", self.cluster.slug, job.id),
            href: format!("/jobs/{}/{}", self.cluster.slug, job.id),
            pick: String::new(),
            id: format_job_id(job),
            name: job.name.clone(),
            cluster: self.cluster.title.clone(),
            user: job.user.clone(),
            kind,
            label,
            asked: amounts::format_request(job),
            time: self.job_time(job, is_over),
            why,
            is_why_repeated: false,
            failure: None,
            failure_hint: String::new(),
            counts: None,
            tasks: Vec::new(),
            more_tasks: 0,
            is_open: false,
            account: job.account.clone(),
            partition: job.partition.clone(),
            nodes: job.node_list.clone(),
            submitted: job.submitted,
            priority: if job.priority > 0 { format::number(job.priority) } else { String::new() },
            folder: job.work_dir.clone(),
            folder_href: folder_link(&self.cluster.slug, &job.work_dir),
            mark: 0,
        };
        row.mark = content_hash(&row);
        row
    }

    pub fn explain_waiting(&self, job: &SlurmJob) -> WaitExplanation {
        let ahead = self.snapshot.ahead.as_ref().filter(|_| job.priority > 0).map(|ahead| {
            let (jobs_ahead, waiting) = ahead.count_ahead(&job.partition, job.priority);
            waiting::QueuePosition { jobs_ahead, waiting }
        });
        let resources = &self.snapshot.resources;
        let share = resources.shares.iter().find(|share| share.user.is_none() && share.account == job.account);
        let group = self.snapshot.group.as_ref();
        waiting::explain_wait(&WaitingJob {
            ahead,
            own_waiting: self.own_waiting.saturating_sub(1),
            group_waiting: group.map(|group| group.waiting_in_account(&job.account)),
            factors: self.snapshot.factors.get(&job.raw_id).map(priority_points),
            fair_share_counts: self.uses_fair_share,
            level_fs: share.and_then(|share| share.level_fs),
            is_own_idle: self.idle_user == Some(job.user.as_str()),
            is_account_idle: self.is_group_known && group.is_some_and(|group| !group.has_running(&job.account)),
            ..WaitingJob::new(job, self.now)
        })
    }

    fn job_time(&self, job: &SlurmJob, is_over: bool) -> JobTimeCell {
        match job.state.stage() {
            _ if is_over => JobTimeCell::Ended {
                at: job.end,
                lasted: match (job.start, job.end) {
                    (Some(start), Some(end)) if end > start => format::duration(job.running_s(end)),
                    _ => String::new(),
                },
            },
            JobStage::Pending => JobTimeCell::Waiting {
                since: job.submitted,
                start: job.start.filter(|start| *start > self.now && self.is_in_line(job)),
                place: self.queue_position(job),
            },
            JobStage::Running | JobStage::Ended => {
                let limit = job.time_limit.minutes().map(|minutes| u64::from(minutes) * 60);
                let seen = self.snapshot.seen.unwrap_or(self.now).min(self.now);
                let is_outdated = has_outrun_snapshot(job, limit, seen, self.now);
                // While it is suspended, it is as old as when it was last read.
                let until = if job.state == JobState::Suspended || is_outdated { seen } else { self.now };
                let elapsed = job.running_s(until);
                let asked = limit.map(format::duration).unwrap_or_default();
                JobTimeCell::Running {
                    elapsed: format::duration(elapsed),
                    seconds: elapsed,
                    is_ticking: job.start.is_some() && job.state == JobState::Running && !is_outdated,
                    limit: if is_outdated { format!("{asked} when last updated") } else { asked },
                    value: elapsed.min(limit.unwrap_or(0)),
                    max: limit.unwrap_or(0),
                }
            }
        }
    }

    /// Whether it is on its way to start: not held, not waiting for other jobs, and able to start at all.
    fn is_in_line(&self, job: &SlurmJob) -> bool {
        matches!(self.explain_waiting(job).kind, WaitKind::Normal | WaitKind::Soon | WaitKind::Limit)
    }

    /// Its position in the queue; empty if it isn't in line.
    fn queue_position(&self, job: &SlurmJob) -> String {
        // At a limit, the jobs ahead aren't what it waits for.
        let is_ranked = matches!(self.explain_waiting(job).kind, WaitKind::Normal | WaitKind::Soon);
        let Some(ahead) = self.snapshot.ahead.as_ref().filter(|_| job.priority > 0 && is_ranked) else {
            return String::new();
        };
        match ahead.count_ahead(&job.partition, job.priority).0 {
            0 => "Next in queue".to_owned(),
            jobs => format!("{} ahead", format::count(jobs, "job")),
        }
    }
}

/// Whether a job's time limit has passed since it was last seen running: it has probably ended, and its time must not go
/// on.
fn has_outrun_snapshot(job: &SlurmJob, limit_s: Option<u64>, seen: UnixTime, now: UnixTime) -> bool {
    limit_s.is_some_and(|limit| {
        job.state == JobState::Running && job.running_s(seen) <= limit && job.running_s(now) > limit
    })
}

/// Marks the rows whose hint a row above already gives, because a page says it once. A job that can never start always
/// says so.
pub fn mark_repeated_hints(rows: &mut [JobListRow]) {
    let mut given: Vec<String> = Vec::new();
    let mut mark = |row: &mut JobListRow| {
        let Some(why) = row.why.as_ref().filter(|why| why.kind != WaitKind::Never) else { return };
        row.is_why_repeated = given.contains(&why.headline);
        if !row.is_why_repeated {
            given.push(why.headline.clone());
        }
    };
    for row in rows {
        mark(row);
        row.tasks.iter_mut().for_each(&mut mark);
    }
}

/// The points of a priority, in the form that the explanation takes.
fn priority_points(factors: &SprioFactors) -> waiting::PriorityPoints {
    let number = |points: u64| f64::from(u32::try_from(points).unwrap_or(u32::MAX));
    waiting::PriorityPoints {
        age: number(factors.age),
        fairshare: number(factors.fair_share),
        size: number(factors.size),
        partition: number(factors.partition_points),
        qos: number(factors.qos),
        account: number(factors.association),
        resources: number(factors.resource_points()),
        total: number(factors.priority),
    }
}

/// `123`, `123_4`, `123_[5-9]`.
fn format_job_id(job: &SlurmJob) -> String {
    match &job.tasks {
        Some(tasks) => {
            let tasks = tasks.to_string();
            let short: String = tasks.chars().take(30).collect();
            let cut = if short.len() < tasks.len() { "…" } else { "" };
            format!("{}_[{short}{cut}]", job.id.number)
        }
        None => job.id.to_string(),
    }
}

const fn waiting_label(why: &WaitExplanation) -> (&'static str, &'static str) {
    match why.kind {
        WaitKind::Never => ("failed", "Can't start"),
        WaitKind::Held => ("neutral", "Held"),
        _ => ("waiting", "Pending"),
    }
}

/// The style and the label of a state.
pub const fn state_label(state: JobState) -> (&'static str, &'static str) {
    match state {
        JobState::Pending => ("waiting", "Pending"),
        JobState::Configuring => ("running", "Starting"),
        JobState::Running => ("running", "Running"),
        JobState::Suspended => ("warning", "Suspended"),
        JobState::Completing => ("running", "Completing"),
        JobState::Completed => ("ok", "Completed"),
        JobState::Failed => ("failed", "Failed"),
        JobState::Cancelled => ("neutral", "Cancelled"),
        JobState::Timeout => ("failed", "Timed out"),
        JobState::OutOfMemory => ("failed", "Out of memory"),
        JobState::NodeFail => ("failed", "Node failed"),
        JobState::BootFail => ("failed", "Node failed to boot"),
        JobState::Preempted => ("warning", "Preempted"),
        JobState::Deadline => ("failed", "Missed deadline"),
        JobState::Revoked => ("neutral", "Moved to another cluster"),
        JobState::Unknown => ("unknown", "Unknown state"),
    }
}

/// Changes with the row's content, not with the time.
fn content_hash(row: &JobListRow) -> u64 {
    let mut hasher = DefaultHasher::new();
    (&row.key, &row.name, row.label, &row.asked, &row.nodes).hash(&mut hasher);
    if let Some(why) = &row.why {
        why.headline.hash(&mut hasher);
    }
    if let Some(counts) = &row.counts {
        (counts.waiting, counts.running, counts.done, counts.cancelled, counts.bad).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_does_not_go_on_after_the_limit_unless_the_job_was_seen_then() {
        let job = SlurmJob { state: JobState::Running, start: Some(UnixTime(1_000)), ..SlurmJob::default() };
        let outrun = |seen, now| has_outrun_snapshot(&job, Some(1_800), UnixTime(seen), UnixTime(now));
        assert!(outrun(1_600, 33_000), "nobody has looked for hours");
        assert!(!outrun(1_600, 2_700), "it may still run");
        assert!(!outrun(33_000, 33_010), "Slurm lets it run on");
        assert!(!has_outrun_snapshot(&job, None, UnixTime(1_600), UnixTime(33_000)), "it has no limit");
    }
}
