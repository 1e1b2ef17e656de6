//! Why a job waits, whether that is normal, and what would help. Combines Slurm's reason, the queue around the job,
//! its request and its group's usage.

mod limits;
mod reasons;
#[cfg(test)]
mod tests;

use crate::clock::UnixTime;
use crate::format;
use crate::slurm::job::SlurmJob;
use crate::text::sanitize;

/// How much of Slurm's reason is kept.
const MAX_REASON: usize = 300;
/// The most jobs named in one sentence.
const MAX_NAMED: usize = 5;
/// A start within this many seconds counts as soon.
const SOON_S: i64 = 3600;
/// Jobs shorter than this gain nothing from a shorter time limit.
const LONG_MINUTES: u32 = 180;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum WaitKind {
    /// It waits its turn.
    Normal,
    /// It is about to start.
    Soon,
    /// It is held until someone releases it.
    Held,
    /// It waits for other jobs.
    Depends,
    /// A limit is reached; it starts when usage drops below it.
    Limit,
    /// It waits for a set time.
    Later,
    /// It can never start as requested: someone must act.
    Never,
    /// The cause lies with the cluster.
    Site,
}

/// A job's position in its partition's queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueuePosition {
    /// Jobs with a higher priority.
    pub jobs_ahead: u64,
    /// All pending jobs in the partition.
    pub waiting: u64,
}

/// The components of a job's priority, already weighted.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct PriorityPoints {
    /// For the time it has waited.
    pub age: f64,
    /// For the group's unused share.
    pub fairshare: f64,
    pub size: f64,
    pub partition: f64,
    pub qos: f64,
    pub account: f64,
    /// For the requested resources.
    pub resources: f64,
    pub total: f64,
}

#[derive(Debug, Clone, Copy)]
pub struct WaitingJob<'a> {
    pub job: &'a SlurmJob,
    pub now: UnixTime,
    /// Its position in the partition's queue.
    pub ahead: Option<QueuePosition>,
    /// The person's other pending jobs and tasks.
    pub own_waiting: u64,
    /// Pending jobs of the same account.
    pub group_waiting: Option<u64>,
    pub factors: Option<PriorityPoints>,
    /// Whether fair share counts on this cluster.
    pub fair_share_counts: bool,
    /// The group's share divided by its usage; below 1 it has used more than its share.
    pub level_fs: Option<f64>,
    /// The partition's time limit.
    pub partition_max_minutes: Option<u32>,
    /// Whether none of the person's other jobs runs, and none ended a moment ago.
    pub is_own_idle: bool,
    /// The same for the jobs of its account; false if that is unknown.
    pub is_account_idle: bool,
}

impl<'a> WaitingJob<'a> {
    /// A job about which nothing else is known.
    pub const fn new(job: &'a SlurmJob, now: UnixTime) -> Self {
        Self {
            job,
            now,
            ahead: None,
            own_waiting: 0,
            group_waiting: None,
            factors: None,
            fair_share_counts: false,
            level_fs: None,
            partition_max_minutes: None,
            is_own_idle: false,
            is_account_idle: false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WaitExplanation {
    pub kind: WaitKind,
    /// A few words for a list.
    pub headline: String,
    pub sentence: String,
    /// What to do or to know, one sentence each.
    pub advice: Vec<String>,
    /// Slurm's own reason, for manuals and support.
    pub slurm: String,
    /// When it may start: the set time for [`WaitKind::Later`], otherwise Slurm's rough estimate.
    pub start: Option<UnixTime>,
}

/// Whether a job with this pending reason can never start as requested.
pub fn can_never_start(reason: &str) -> bool {
    let job = SlurmJob { reason: reason.to_owned(), ..SlurmJob::default() };
    explain_wait(&WaitingJob::new(&job, UnixTime(0))).kind == WaitKind::Never
}

/// Whether its owner can release a job with this pending reason: one that the centre holds, they can't.
pub fn can_release(reason: &str) -> bool {
    let job = SlurmJob { reason: reason.to_owned(), ..SlurmJob::default() };
    let reason = normalise_reason(reason);
    split_reasons(&reason).iter().all(|part| reasons::first_word(part) != "JobHeldAdmin")
        && explain_wait(&WaitingJob::new(&job, UnixTime(0))).kind == WaitKind::Held
}

pub fn explain_wait(waiting: &WaitingJob<'_>) -> WaitExplanation {
    let slurm = sanitize(&waiting.job.reason, MAX_REASON);
    let reason = normalise_reason(&slurm);
    let mut parts: Vec<WaitExplanation> =
        split_reasons(&reason).into_iter().map(|part| explain_reason(waiting, part)).collect();
    // Where only some tasks can never start, the row is about the others.
    let main = parts.iter().position(|part| part.kind != WaitKind::Never).unwrap_or(0);
    let mut why = parts.remove(main);
    why.slurm = slurm;
    let others = if waiting.job.tasks.is_some() { "Other tasks of this array" } else { "Another reason" };
    why.advice.extend(parts.into_iter().map(|part| format!("{others}: {}. {}", part.headline, part.sentence)));
    why
}

/// The reasons of one row. Slurm joins those of an array's tasks, or of several partitions, with commas; some reasons
/// have a comma of their own.
fn split_reasons(reason: &str) -> Vec<&str> {
    let parts: Vec<&str> = reason.split(',').map(str::trim).collect();
    let is_reason = |part: &&str| {
        !part.is_empty()
            && !part.contains(' ')
            && (reasons::explain_known(part).is_some() || limits::parse_limit(part).is_some())
    };
    if parts.len() > 1 && parts.iter().all(is_reason) { parts } else { vec![reason] }
}

/// Explains one reason.
fn explain_reason(waiting: &WaitingJob<'_>, reason: &str) -> WaitExplanation {
    let job = waiting.job;
    let mut why = reasons::explain_known(reason)
        .or_else(|| limits::parse_limit(reason).map(|limit| limit.explain(waiting)))
        .unwrap_or_else(|| reasons::explain_unknown(reason));
    let set = job.eligible.filter(|_| why.kind == WaitKind::Later);
    why.start = job.start.or(set).filter(|start| *start > waiting.now);
    let word = reasons::first_word(reason);
    match (why.kind, word) {
        (WaitKind::Depends, "Dependency") => explain_dependency(&mut why, &job.dependency),
        (WaitKind::Never, "PartitionTimeLimit") => explain_time_limit(&mut why, waiting),
        (WaitKind::Limit, "JobArrayTaskLimit") => explain_task_limit(&mut why, job),
        (WaitKind::Normal, _) => explain_queue(&mut why, waiting, word),
        _ => {}
    }
    why
}

/// Removes brackets, and turns the underscores that some programs write into spaces.
fn normalise_reason(reason: &str) -> String {
    reason.trim_matches(['(', ')', ' ']).replace('_', " ")
}

fn explain_time_limit(why: &mut WaitExplanation, waiting: &WaitingJob<'_>) {
    if let (Some(asked), Some(most)) = (waiting.job.time_limit.minutes(), waiting.partition_max_minutes)
        && asked > most
    {
        let (asked, most) = (format::minutes(asked), format::minutes(most));
        why.sentence =
            format!("It requests {asked}, but this partition's time limit is {most}. It can never start as submitted.");
        why.advice.insert(0, format!("Reduce its time limit to {most} or less."));
    }
}

fn explain_task_limit(why: &mut WaitExplanation, job: &SlurmJob) {
    if let Some(most) = job.tasks.as_ref().and_then(|tasks| tasks.max_running) {
        let tasks = format::count(most.into(), "task");
        why.sentence = format!("You limited this array to {tasks} running at a time.");
    }
}

/// Names the jobs it waits for: `afterok:123(unfulfilled),afterany:124_*(unfulfilled)`.
fn explain_dependency(why: &mut WaitExplanation, dependency: &str) {
    let mut parts = Vec::new();
    let mut more = 0_usize;
    for clause in dependency.split([',', '?']).map(str::trim).filter(|clause| !clause.is_empty()) {
        let (kind, ids) = clause.split_once(':').unwrap_or((clause, ""));
        let what = match kind.split('(').next().unwrap_or_default() {
            "after" => "has started",
            "afterany" => "has ended",
            "afterok" | "aftercorr" => "has completed successfully",
            "afternotok" => "has failed",
            "afterburstbuffer" => "has finished copying its files",
            "singleton" => {
                parts.push("your other jobs with the same name have ended".to_owned());
                continue;
            }
            _ => continue,
        };
        for id in ids.split(':').map(job_number).filter(|id| !id.is_empty()) {
            if parts.len() < MAX_NAMED {
                parts.push(format!("job {id} {what}"));
            } else {
                more += 1;
            }
        }
    }
    if more > 0 {
        parts.push(format!("{} more jobs", format::number(more.try_into().unwrap_or(u64::MAX))));
    }
    // A question mark between clauses means that one of them is enough.
    let join = if dependency.contains('?') { " or " } else { " and " };
    if !parts.is_empty() {
        why.sentence = format!("It's set to start after {}.", parts.join(join));
    }
}

/// `123`, `123_4` from `123_4(unfulfilled)`, `123_*`, `123+30`.
fn job_number(text: &str) -> String {
    let good = |c: &char| c.is_ascii_digit() || *c == '_';
    let id: String = text.chars().take_while(good).take(24).collect();
    id.trim_end_matches('_').to_owned()
}

/// Adds what the queue, the job's size and its group contribute to an ordinary wait.
fn explain_queue(why: &mut WaitExplanation, waiting: &WaitingJob<'_>, word: &str) {
    let ranked = matches!(word, "Priority" | "Resources");
    if let Some(QueuePosition { jobs_ahead, waiting: all }) = waiting.ahead.filter(|_| ranked) {
        let position = match (jobs_ahead, all) {
            (0, _) => "No job is ahead of it in its partition.".to_owned(),
            (1, all) => {
                format!("1 of {} there is ahead of it.", format::count(all.max(2), "pending job"))
            }
            (ahead, all) => {
                let all = format::count(all.max(ahead.saturating_add(1)), "pending job");
                format!("{} of {all} there are ahead of it.", format::number(ahead))
            }
        };
        why.sentence = format!("{} {position}", why.sentence);
    }
    if why.start.is_some_and(|start| start.since(waiting.now) <= SOON_S) {
        why.kind = WaitKind::Soon;
    }
    if why.start.is_some() {
        why.advice.push(
            "The start time is Slurm's estimate. It changes as jobs end early and new \
             ones arrive."
                .to_owned(),
        );
    }
    if !ranked {
        return;
    }
    if let Some(asked) = waiting.job.time_limit.minutes().filter(|asked| *asked > LONG_MINUTES) {
        why.advice.push(format!(
            "Its time limit is {}. If it needs less, a shorter time limit may let it start sooner.",
            format::minutes(asked)
        ));
    }
    explain_competition(why, waiting);
    if waiting.fair_share_counts {
        if waiting.level_fs.is_some_and(|level| level < 1.0) {
            why.advice.push(
                "Your group has recently used more than its share, so its jobs have lower priority. Past usage counts less \
                 each day."
                    .to_owned(),
            );
        }
    } else if word == "Priority" {
        why.advice.push("Its priority rises while it waits.".to_owned());
    }
    why.advice.extend(waiting.factors.and_then(|factors| main_rank_source(&factors)));
}

fn explain_competition(why: &mut WaitExplanation, waiting: &WaitingJob<'_>) {
    if waiting.own_waiting > 0 {
        let (other, they) = match waiting.own_waiting {
            1 => ("1 other job of yours is pending".to_owned(), "it competes"),
            many => (format!("{} other jobs of yours are pending", format::number(many)), "they compete"),
        };
        why.advice.push(format!("{other}; {they} with this one."));
    }
    // The group's jobs include this one and the person's others.
    let rest = waiting.group_waiting.unwrap_or(0).saturating_sub(waiting.own_waiting).saturating_sub(1);
    if rest > 0 {
        let (jobs, verb) = (format::count(rest, "job"), if rest == 1 { "is" } else { "are" });
        why.advice.push(format!("{jobs} of other group members {verb} also pending, with the same fair share."));
    }
}

/// The component that contributes most to its priority.
fn main_rank_source(factors: &PriorityPoints) -> Option<String> {
    let parts = [
        (factors.age, "the time it has waited"),
        (factors.fairshare, "your group's fair share"),
        (factors.size, "its size"),
        (factors.partition, "its partition"),
        (factors.qos, "its QOS"),
        (factors.account, "its account"),
        (factors.resources, "the resources it requests"),
    ];
    let (most, name) = parts.into_iter().max_by(|one, other| one.0.total_cmp(&other.0))?;
    let known = most.is_finite() && most > 0.0 && factors.total > 0.0;
    known.then(|| format!("Most of its priority comes from {name}."))
}
