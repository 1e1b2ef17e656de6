//! One job behind a figure, as a row of the list.

use std::collections::HashMap;

use crate::clock::UnixTime;
use crate::format;
use crate::store::usage::jobs::UsageJobRow;
use crate::usage::daily_totals::spare_core_s;
use crate::usage::{GroupAccountUsage, UsageOutcome, hours};
use crate::web::pages::groups::usage::UsagePageData;

pub struct UsageJob {
    /// The cluster's short name.
    pub slug: String,
    pub cluster: String,
    pub account: String,
    /// Its number, and the task's.
    pub id: String,
    /// Whose, as people read it.
    pub member: String,
    /// Their name on the cluster.
    pub user: String,
    pub kind: String,
    pub outcome: UsageOutcome,
    pub began: UnixTime,
    /// Seconds of cores in the time looked at.
    pub core_s: u64,
    /// Seconds of GPUs in the time looked at.
    pub gpu_s: u64,
    /// Seconds of cores that asking for fewer would have saved, of the whole job.
    pub spare_s: u64,
    /// Whether it ended after the days that are looked at, or runs still.
    ran_past_period: bool,
    /// Whether it is the viewer's own.
    pub is_own: bool,
    /// All that is kept of it.
    pub row: UsageJobRow,
}

impl UsageJob {
    /// Of a row, as the viewer knows people.
    pub fn from_row(
        sight: &UsagePageData,
        account: &GroupAccountUsage,
        row: UsageJobRow,
        names: &HashMap<i64, String>,
    ) -> Self {
        let facts = &account.details;
        let name = |id: i64| names.get(&id).cloned().unwrap_or_default();
        let user = name(row.user_id);
        let is_own = facts.own_user.as_deref() == Some(user.as_str());
        let whole = |number: i64| u64::try_from(number).unwrap_or(0);
        let person = sight.view.people.get(&(facts.cluster, user.clone()));
        let outcome = UsageOutcome::from_number(row.state);
        let is_judged =
            outcome == UsageOutcome::Done && row.gpus.is_empty() && !facts.site.jobs.whole_node;
        let busy = u64::try_from(row.cpu_s).ok().filter(|_| is_judged);
        let spare = |busy| spare_core_s(whole(row.cores), whole(row.elapsed_s), busy);
        Self {
            slug: facts.slug.clone(),
            cluster: facts.title.clone(),
            account: facts.account.clone(),
            id: if row.task < 0 {
                row.number.to_string()
            } else {
                format!("{}_{}", row.number, row.task)
            },
            member: person.map_or_else(|| user.clone(), |person| person.name.clone()),
            kind: name(row.kind_id),
            outcome,
            began: UnixTime(row.start_at),
            core_s: whole(row.seconds).saturating_mul(whole(row.cores)),
            gpu_s: whole(row.seconds).saturating_mul(count_gpus(&row.gpus)),
            spare_s: busy.map_or(0, spare),
            ran_past_period: outcome == UsageOutcome::Running && row.day < account.today.0,
            is_own,
            user,
            row,
        }
    }

    /// Seconds of cores since it began, also on other days.
    pub fn run_core_s(&self) -> u64 {
        let whole = |number: i64| u64::try_from(number).unwrap_or(0);
        whole(self.row.elapsed_s).saturating_mul(whole(self.row.cores))
    }

    /// Whether it ever held anything; one that was given up before has no cores.
    pub const fn has_begun(&self) -> bool {
        self.row.cores > 0
    }

    /// The colour of its end.
    pub const fn tone(&self) -> &'static str {
        match self.outcome {
            UsageOutcome::Done => "ok",
            UsageOutcome::Running => "running",
            UsageOutcome::Cancelled => "neutral",
            UsageOutcome::Failed | UsageOutcome::TimedOut | UsageOutcome::OutOfMemory => "failed",
            UsageOutcome::Interrupted => "warning",
        }
    }

    /// Core hours in the time looked at.
    pub fn core_hours(&self) -> String {
        format::amount(hours(self.core_s))
    }

    /// GPU hours in the time looked at; empty for none.
    pub fn gpu_hours(&self) -> String {
        if self.gpu_s == 0 { String::new() } else { format::amount(hours(self.gpu_s)) }
    }

    /// How long it ran in all.
    pub fn ran(&self) -> String {
        format::duration(u64::try_from(self.row.elapsed_s).unwrap_or(0))
    }

    /// How long it had waited.
    pub fn waited(&self) -> String {
        if !self.has_begun() {
            return format::UNKNOWN.to_owned();
        }
        format::duration(u64::try_from(self.row.wait_s).unwrap_or(0))
    }

    /// How it ended, in words; one that ran on after the days looked at had not ended then.
    pub const fn end(&self) -> &'static str {
        if self.ran_past_period { "Ran on after that" } else { self.outcome.title() }
    }

    /// Core hours that need not have been asked for.
    pub fn spare_hours(&self) -> String {
        format::amount(hours(self.spare_s))
    }

    /// What it held: cores, memory, GPUs.
    pub fn held(&self) -> String {
        let whole = |number: i64| u64::try_from(number).unwrap_or(0);
        let mut parts = vec![format::count(whole(self.row.cores), "core")];
        if self.row.memory_mb > 0 {
            parts.push(format::memory(whole(self.row.memory_mb)));
        }
        if !self.row.gpus.is_empty() {
            let gpus = self.row.gpus.split(',').map(|one| match one.rsplit_once(':') {
                Some(("", count)) => format!("{count} GPU"),
                Some((model, count)) => format!("{count} {model}"),
                None => one.to_owned(),
            });
            parts.extend(gpus);
        }
        // A number stays with what it counts.
        parts.iter().map(|one| one.replace(' ', "\u{a0}")).collect::<Vec<_>>().join(" · ")
    }

    /// What it used of its cores.
    pub fn core_use(&self) -> String {
        format::or_unknown(
            ratio(self.row.cpu_s, self.row.elapsed_s.saturating_mul(self.row.cores)),
            format::percent,
        )
    }

    /// What it used of its memory.
    pub fn memory_use(&self) -> String {
        format::or_unknown(ratio(self.row.rss_mb, self.row.memory_mb), format::percent)
    }
}

/// How many GPUs are in `v100:2,t4:1`.
pub fn count_gpus(list: &str) -> u64 {
    list.split(',').filter_map(|one| one.rsplit_once(':')?.1.parse::<u64>().ok()).sum()
}

#[expect(clippy::cast_precision_loss, reason = "a ratio for people")]
fn ratio(some: i64, all: i64) -> Option<f64> {
    (some >= 0 && all > 0).then(|| (some as f64 / all as f64).min(1.0))
}
