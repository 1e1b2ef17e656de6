//! The rows of the tables by account, person and job type, with links to the jobs behind each figure.

use crate::domain::{ClusterId, GroupId, PersonId};
use crate::format;
use crate::usage::figures::{UsageFigures, UsageMember};
use crate::usage::{UsageMeasure, UsageTotals, hours};
use crate::web::pages::groups::usage::query::UsageFilter;
use crate::web::pages::groups::usage::usage_path;

/// Filter value: jobs that requested more cores than they needed.
pub const OUTCOME_OVERSIZED: &str = "could-be-less";
/// Shown for a remote user that belongs to no known person.
const NOT_CONNECTED_NOTE: &str = "not linked to a portal account";
/// Rows of a table; the CSV file has the rest.
const MAX_ROWS: usize = 60;
const MB_PER_GB: f64 = 1024.0;

pub struct UsageTableRow {
    /// A person, an account or a job type.
    pub name: String,
    pub note: String,
    /// The colour's CSS class; empty for none.
    pub class: String,
    /// The jobs behind the row; empty where names are hidden.
    pub href: String,
    /// Those that ended.
    pub ended_href: String,
    /// Those that ended without success.
    pub lost_href: String,
    /// Those that over-requested.
    pub spare_href: String,
    pub cells: UsageTableCells,
}

pub struct UsageTableCells {
    pub cores: String,
    pub gpus: String,
    pub models: String,
    /// The amount in the centre's own unit.
    pub site: String,
    pub jobs: String,
    /// Success rate.
    pub success: String,
    pub wait: String,
    /// CPU efficiency.
    pub core_use: String,
    pub memory_use: String,
    /// GPU efficiency, where it is measured; empty otherwise.
    pub gpu_use: String,
    /// Wasted core hours.
    pub lost: String,
    /// The outcomes behind the wasted hours, and the GPU hours among them.
    pub lost_note: String,
    lost_ends: String,
    lost_gpus: String,
    /// Over-requested core hours.
    pub spare: String,
    pub spare_note: String,
}

impl UsageTableCells {
    pub fn from_sums(sums: &UsageTotals) -> Self {
        let models = sums.gpus.iter().filter(|(_, seconds)| *seconds > 0);
        let model = |(name, seconds): &(String, u64)| {
            let name = if name.is_empty() { "unknown model" } else { name };
            format!("{name} {}", format::amount(hours(*seconds)))
        };
        let mut ends = Vec::new();
        for (count, words) in
            [(sums.failed, "failed"), (sums.timed_out, "timed out"), (sums.memory_out, "out of memory")]
        {
            if count > 0 {
                ends.push(format!("{} {words}", format::number(count)));
            }
        }
        let lost_ends = ends.join(" · ");
        let mut lost_gpus = String::new();
        if sums.lost_gpu_s > 0 {
            lost_gpus = format!("{} GPU hours", format::amount(hours(sums.lost_gpu_s)));
            ends.push(lost_gpus.clone());
        }
        let spare_gb = hours(sums.spare_mb_s) / MB_PER_GB;
        Self {
            cores: format::amount(hours(sums.core_s)),
            gpus: format::amount(hours(sums.gpu_s)),
            models: models.map(model).collect::<Vec<_>>().join(" · "),
            site: format::amount(UsageMeasure::Site.hours(sums)),
            jobs: format::number(sums.jobs),
            success: format::or_unknown(sums.success_rate(), format::percent),
            wait: format::or_unknown(sums.waits.median(), format::duration),
            core_use: format::or_unknown(sums.core_use(), format::percent),
            memory_use: format::or_unknown(sums.memory_use(), format::percent),
            gpu_use: sums.gpu_use().map(format::percent).unwrap_or_default(),
            lost: format::amount(hours(sums.lost_core_s)),
            lost_note: ends.join(" · "),
            lost_ends,
            lost_gpus,
            spare: format::amount(hours(sums.spare_core_s)),
            spare_note: if spare_gb > 0.05 {
                format!("{} GB hours of memory", format::amount(spare_gb))
            } else {
                String::new()
            },
        }
    }

    /// How jobs failed and what that cost, as a sentence without a full stop; empty if none did.
    pub fn lost_summary(&self) -> String {
        if self.lost_ends.is_empty() {
            return String::new();
        }
        let gpus = if self.lost_gpus.is_empty() { String::new() } else { format!(" and {}", self.lost_gpus) };
        format!("{} · {} core hours{gpus} wasted", self.lost_ends, self.lost)
    }
}

pub struct UsageTable {
    pub rows: Vec<UsageTableRow>,
    /// How many rows are left out.
    pub more: usize,
}

impl UsageTable {
    fn new<T>(all: &[T], row: impl Fn(&T) -> UsageTableRow) -> Self {
        Self { rows: all.iter().take(MAX_ROWS).map(row).collect(), more: all.len().saturating_sub(MAX_ROWS) }
    }
}

impl UsageTableRow {
    /// A row whose figures lead to jobs; `behind` makes the link for an outcome.
    fn new(name: &str, totals: &UsageTotals, behind: impl Fn(&str) -> String) -> Self {
        Self {
            name: name.to_owned(),
            note: String::new(),
            class: String::new(),
            href: behind(""),
            ended_href: behind("ended"),
            lost_href: behind("lost"),
            spare_href: behind(OUTCOME_OVERSIZED),
            cells: UsageTableCells::from_sums(totals),
        }
    }
}

/// Usage by account, if there are several. Only PIs can open everyone's jobs behind it.
pub fn account_table(figures: &UsageFigures, group: GroupId, filter: &UsageFilter, leads: bool) -> UsageTable {
    let several = if figures.accounts.len() > 1 { figures.accounts.as_slice() } else { &[] };
    UsageTable::new(several, |account| {
        let value = format!("{}/{}", account.slug, account.account);
        let row = UsageTableRow::new(&account.account, &account.totals, |outcome| {
            let changes = [("account", value.as_str()), ("outcome", outcome)];
            if leads { jobs_href(group, filter, &changes) } else { String::new() }
        });
        UsageTableRow { note: account.cluster.clone(), ..row }
    })
}

pub fn member_table(figures: &UsageFigures, group: GroupId, filter: &UsageFilter) -> UsageTable {
    UsageTable::new(&figures.members, |member| {
        let word = member_query_value(&member.owner);
        let row = UsageTableRow::new(&member.name, &member.totals, |outcome| match &word {
            Some(word) => jobs_href(group, filter, &[("member", word), ("outcome", outcome)]),
            None => String::new(),
        });
        UsageTableRow {
            note: if member.is_in_group { "" } else { NOT_CONNECTED_NOTE }.to_owned(),
            class: member.colour.map_or_else(|| "cx".to_owned(), |colour| format!("c{colour}")),
            ..row
        }
    })
}

pub fn kind_table(figures: &UsageFigures, group: GroupId, filter: &UsageFilter) -> UsageTable {
    UsageTable::new(&figures.kinds, |kind| {
        UsageTableRow::new(kind_label(&kind.name), &kind.totals, |outcome| match kind.name.as_str() {
            "" => String::new(),
            name => jobs_href(group, filter, &[("kind", name), ("outcome", outcome)]),
        })
    })
}

pub fn kind_label(name: &str) -> &str {
    if name.is_empty() { "Everyone else's jobs" } else { name }
}

/// The path of the jobs behind a figure.
pub fn jobs_href(group: GroupId, filter: &UsageFilter, changes: &[(&str, &str)]) -> String {
    let (from, until) = (filter.choice.from.to_string(), filter.choice.until.to_string());
    let mut all = vec![("from", from.as_str()), ("until", until.as_str())];
    all.extend(changes);
    format!("{}/jobs?{}", usage_path(group), filter.to_query_string(&all))
}

/// A person's query value; `None` for those without a name.
pub fn member_query_value(who: &UsageMember) -> Option<String> {
    match who {
        UsageMember::Person(id) => Some(format!("p{id}")),
        UsageMember::User(cluster, user) => Some(format!("u{cluster}-{user}")),
        UsageMember::Others => None,
    }
}

/// The inverse of `member_query_value`.
pub fn parse_member(word: &str) -> Option<UsageMember> {
    if let Some(id) = word.strip_prefix('p') {
        return id.parse().ok().map(|id: i64| UsageMember::Person(PersonId(id)));
    }
    let (cluster, user) = word.strip_prefix('u')?.split_once('-')?;
    let cluster = cluster.parse().ok().map(ClusterId)?;
    (!user.is_empty()).then(|| UsageMember::User(cluster, user.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn people_come_back_from_addresses() {
        for who in [UsageMember::Person(PersonId(7)), UsageMember::User(ClusterId(3), "a-b".into())] {
            assert_eq!(parse_member(&member_query_value(&who).unwrap()), Some(who));
        }
        for odd in ["", "p", "px", "u", "u3", "u3-", "ux-y", "others"] {
            assert_eq!(parse_member(odd), None, "{odd}");
        }
        assert_eq!(member_query_value(&UsageMember::Others), None);
    }

    #[test]
    fn figures_in_words() {
        let mut sums = UsageTotals { core_s: 7200, failed: 2, lost_core_s: 3600, ..UsageTotals::default() };
        sums.add_gpus("", 3600);
        sums.add_gpus("v100", 36_000);
        let cells = UsageTableCells::from_sums(&sums);
        assert_eq!(cells.models, "unknown model 1 · v100 10");
        assert_eq!((cells.cores.as_str(), cells.lost_note.as_str()), ("2", "2 failed"));
        assert_eq!((cells.success.as_str(), cells.gpu_use.as_str()), ("–", ""));
    }
}
