//! A row in the list of jobs behind a figure.

use std::cmp::Ordering;
use std::collections::HashMap;

use crate::clock::UnixTime;
use crate::format;
use crate::store::usage::jobs::{StoredUsageJob, UsageJobColumn};
use crate::usage::daily_totals::spare_core_s;
use crate::usage::{GroupAccountUsage, UsageJobOutcome, hours};
use crate::web::pages::groups::table_sort::compare_known;
use crate::web::pages::groups::usage::UsagePageData;

pub struct UsageJobView {
    /// The cluster's short name.
    pub slug: String,
    pub cluster: String,
    pub account: String,
    /// Job ID, with the array task's if it is one.
    pub id: String,
    /// The owner's display name.
    pub member: String,
    /// The owner's user name on the cluster.
    pub user: String,
    pub kind: String,
    pub outcome: UsageJobOutcome,
    pub began: UnixTime,
    /// Core seconds within the period.
    pub core_s: u64,
    /// GPU seconds within the period.
    pub gpu_s: u64,
    /// Core seconds that requesting fewer cores would have saved, over the whole job.
    pub spare_s: u64,
    /// Whether it ended after the period or is still running.
    ran_past_period: bool,
    /// Whether it is the viewer's own job.
    pub is_own: bool,
    /// The stored row.
    pub row: StoredUsageJob,
}

impl UsageJobView {
    /// Builds it from a stored row, with people's names as the viewer may see them.
    pub fn from_row(
        data: &UsagePageData,
        account: &GroupAccountUsage,
        row: StoredUsageJob,
        names: &HashMap<i64, String>,
    ) -> Self {
        let facts = &account.details;
        let name = |id: i64| names.get(&id).cloned().unwrap_or_default();
        let user = name(row.user_id);
        let is_own = facts.own_user.as_deref() == Some(user.as_str());
        let outcome = UsageJobOutcome::from_number(row.state);
        let is_judged = outcome == UsageJobOutcome::Done && row.gpus.is_empty() && !facts.site.jobs.whole_node;
        let busy = u64::try_from(row.cpu_s).ok().filter(|_| is_judged);
        let spare = |busy| spare_core_s(whole(row.cores), whole(row.elapsed_s), busy);
        Self {
            slug: facts.slug.clone(),
            cluster: facts.title.clone(),
            account: facts.account.clone(),
            id: if row.task < 0 { row.number.to_string() } else { format!("{}_{}", row.number, row.task) },
            member: data.view.known_name(facts.cluster, &user).unwrap_or(&user).to_owned(),
            kind: name(row.kind_id),
            outcome,
            began: UnixTime(row.start_at),
            core_s: whole(row.seconds).saturating_mul(whole(row.cores)),
            gpu_s: whole(row.seconds).saturating_mul(count_gpus(&row.gpus)),
            spare_s: busy.map_or(0, spare),
            ran_past_period: outcome == UsageJobOutcome::Running && row.day < account.today.0,
            is_own,
            user,
            row,
        }
    }

    /// Core seconds since the job began, including days outside the period.
    pub fn run_core_s(&self) -> u64 {
        whole(self.row.elapsed_s).saturating_mul(whole(self.row.cores))
    }

    /// Whether it ever started; a job cancelled while pending has no cores.
    pub const fn has_begun(&self) -> bool {
        self.row.cores > 0
    }

    /// The colour class of its outcome.
    pub const fn tone(&self) -> &'static str {
        match self.outcome {
            UsageJobOutcome::Done => "ok",
            UsageJobOutcome::Running => "running",
            UsageJobOutcome::Cancelled => "neutral",
            UsageJobOutcome::Failed | UsageJobOutcome::TimedOut | UsageJobOutcome::OutOfMemory => "failed",
            UsageJobOutcome::Interrupted | UsageJobOutcome::NodeFailed | UsageJobOutcome::MissedDeadline => "warning",
        }
    }

    /// When it was submitted, if that is known.
    pub fn submitted(&self) -> Option<UnixTime> {
        (self.row.submitted_at > 0).then_some(UnixTime(self.row.submitted_at))
    }

    /// Whether when it was submitted tells more than when it started.
    pub const fn needs_submit_time(&self) -> bool {
        !self.has_begun() || matches!(self.outcome, UsageJobOutcome::MissedDeadline)
    }

    /// Compares by a column of the list, as the database does.
    pub fn compare(&self, other: &Self, column: &str) -> Ordering {
        let (a, b) = (&self.row, &other.row);
        match UsageJobColumn::parse(column) {
            None => self.spare_s.cmp(&other.spare_s),
            Some(UsageJobColumn::CoreHours) => self.core_s.cmp(&other.core_s),
            Some(UsageJobColumn::GpuHours) => self.gpu_s.cmp(&other.gpu_s),
            Some(UsageJobColumn::Job) => a.number.cmp(&b.number),
            Some(UsageJobColumn::User) => self.user.cmp(&other.user),
            Some(UsageJobColumn::Outcome) => a.state.cmp(&b.state),
            Some(UsageJobColumn::Started) => a.start_at.cmp(&b.start_at),
            Some(UsageJobColumn::RunTime) => a.elapsed_s.cmp(&b.elapsed_s),
            Some(UsageJobColumn::Wait) => a.wait_s.cmp(&b.wait_s),
            Some(UsageJobColumn::Cores) => a.cores.cmp(&b.cores),
            Some(UsageJobColumn::CpuEfficiency) => compare_known(core_use(a), core_use(b)),
            Some(UsageJobColumn::MemoryEfficiency) => compare_known(memory_use(a), memory_use(b)),
        }
    }

    /// Core hours within the period.
    pub fn core_hours(&self) -> String {
        format::amount(hours(self.core_s))
    }

    /// GPU hours within the period; empty for none.
    pub fn gpu_hours(&self) -> String {
        if self.gpu_s == 0 { String::new() } else { format::amount(hours(self.gpu_s)) }
    }

    /// Total run time.
    pub fn ran(&self) -> String {
        format::duration(whole(self.row.elapsed_s))
    }

    /// Time spent pending.
    pub fn waited(&self) -> String {
        if !self.has_begun() {
            return format::UNKNOWN.to_owned();
        }
        format::duration(whole(self.row.wait_s))
    }

    /// The outcome as text; a job that ran past the period had not ended within it.
    pub const fn end(&self) -> &'static str {
        if self.ran_past_period { "Ended later" } else { self.outcome.title() }
    }

    /// Over-requested core hours.
    pub fn spare_hours(&self) -> String {
        format::amount(hours(self.spare_s))
    }

    /// What it held: cores, memory, GPUs.
    pub fn held(&self) -> String {
        let mut parts = vec![format::count(whole(self.row.cores), "core")];
        if self.row.memory_mb > 0 {
            parts.push(format::memory(whole(self.row.memory_mb)));
        }
        if !self.row.gpus.is_empty() {
            let gpus = self.row.gpus.split(',').map(|item| match item.rsplit_once(':') {
                Some(("", count)) => format!("{count} GPU"),
                Some((model, count)) => format!("{count} {model}"),
                None => item.to_owned(),
            });
            parts.extend(gpus);
        }
        // Keep each number on the same line as its unit.
        parts.iter().map(|part| part.replace(' ', "\u{a0}")).collect::<Vec<_>>().join(" · ")
    }

    /// CPU efficiency.
    pub fn core_use(&self) -> String {
        format::or_unknown(core_use(&self.row), |part| format::percent(part.min(1.0)))
    }

    /// Memory efficiency.
    pub fn memory_use(&self) -> String {
        format::or_unknown(memory_use(&self.row), |part| format::percent(part.min(1.0)))
    }
}

fn core_use(row: &StoredUsageJob) -> Option<f64> {
    ratio(row.cpu_s, row.elapsed_s.saturating_mul(row.cores))
}

fn memory_use(row: &StoredUsageJob) -> Option<f64> {
    ratio(row.rss_mb, row.memory_mb)
}

/// What isn't known is stored as a negative number, and counts as nothing.
pub fn whole(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

/// The number of GPUs in a list such as `v100:2,t4:1`.
pub fn count_gpus(list: &str) -> u64 {
    list.split(',').filter_map(|part| part.rsplit_once(':')?.1.parse::<u64>().ok()).sum()
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(some: i64, all: i64) -> Option<f64> {
    (some >= 0 && all > 0).then(|| some as f64 / all as f64)
}
