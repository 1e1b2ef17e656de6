//! The tables by account, person and job type, with links to the jobs behind each figure.

use std::cmp::Ordering;

use crate::domain::{ClusterId, GroupId, PersonId};
use crate::explain::GlossaryTerm;
use crate::usage::figures::{UsageFigures, UsageMember};
use crate::usage::{UsageMeasure, UsageTotals};
use crate::web::pages::groups::table_sort::{SortColumn, SortHeading, compare_known, compare_names};
use crate::web::pages::groups::usage::formatting::measure_label;
use crate::web::pages::groups::usage::job_search::WITH_GPUS;
use crate::web::pages::groups::usage::query::UsageFilter;
use crate::web::pages::groups::usage::table_cells::{UsageTableCells, lost_hours, waste_noun};
use crate::web::pages::groups::usage::usage_path;

/// Filter value: jobs that requested more cores than they needed.
pub const OUTCOME_OVERSIZED: &str = "could-be-less";
/// Shown for a remote user that belongs to no known person.
const NOT_CONNECTED_NOTE: &str = "not linked to a group member";
/// Rows of a table; the CSV file has the rest.
const MAX_ROWS: usize = 60;
/// The name of the table by member in the query string.
const MEMBER_TABLE: &str = "members";

pub struct UsageTableRow {
    /// A person, an account or a job type.
    pub name: String,
    pub note: String,
    /// The colour's CSS class; empty for none.
    pub class: String,
    /// The jobs behind the row; empty where names are hidden.
    pub href: String,
    /// Those with GPUs.
    pub gpu_href: String,
    /// Those that ended.
    pub ended_href: String,
    /// Those that ended without success.
    pub lost_href: String,
    /// Those that over-requested cores; empty if the table shows GPUs.
    pub spare_href: String,
    pub cells: UsageTableCells,
}

/// Compares two rows by a column of [`sum_columns`]; none if there is no such column.
fn compare_sums(
    (a_name, a): (&str, &UsageTotals),
    (b_name, b): (&str, &UsageTotals),
    column: &str,
    measure: UsageMeasure,
) -> Option<Ordering> {
    #[expect(clippy::cast_precision_loss, reason = "for sorting")]
    let number = |count: u64| Some(count as f64);
    let by = |figure: &dyn Fn(&UsageTotals) -> Option<f64>| Some(compare_known(figure(a), figure(b)));
    match column {
        "name" => Some(compare_names(a_name, b_name)),
        "cores" => Some(a.core_s.cmp(&b.core_s)),
        "gpus" => Some(a.gpu_s.cmp(&b.gpu_s)),
        "site" => Some(a.site_ms.cmp(&b.site_ms)),
        "jobs" => Some(a.jobs.cmp(&b.jobs)),
        "success" => by(&UsageTotals::success_rate),
        "wait" => by(&|sums| sums.waits.median().and_then(number)),
        "cpu" => by(&UsageTotals::core_use),
        "memory" => by(&UsageTotals::memory_use),
        "wasted" => by(&|sums| Some(lost_hours(sums, measure))),
        "over-requested" if measure == UsageMeasure::Gpus => Some(a.spare_gpu_s.cmp(&b.spare_gpu_s)),
        "over-requested" => Some(a.spare_core_s.cmp(&b.spare_core_s)),
        _ => None,
    }
}

/// The columns of a table of sums. `is_explained`: whether its headings explain themselves, as one table of a page does.
fn sum_columns(first: &str, figures: &UsageFigures, filter: &UsageFilter, is_explained: bool) -> Vec<SortColumn> {
    let mut columns = vec![SortColumn::text("name", first), SortColumn::number("cores", "Core hours")];
    if figures.totals.gpu_s > 0 {
        columns.push(SortColumn::number("gpus", "GPU hours"));
    }
    if filter.unit.is_some() {
        columns.push(SortColumn::number("site", &measure_label(UsageMeasure::Site, filter.unit)));
    }
    let wasted = format!("Wasted\n{} hours", waste_noun(filter.choice.measure));
    columns.extend([
        SortColumn::number("jobs", "Jobs ended"),
        SortColumn::number("success", "Success rate"),
        SortColumn::number("wait", "Median wait"),
        SortColumn::number("cpu", "CPU\nefficiency").explained(GlossaryTerm::CpuEfficiency, is_explained),
        SortColumn::number("memory", "Memory\nefficiency").explained(GlossaryTerm::MemoryEfficiency, is_explained),
        SortColumn::number("wasted", &wasted).explained(GlossaryTerm::WastedHours, is_explained),
        SortColumn::number("over-requested", "Over-requested").explained(GlossaryTerm::OverRequested, is_explained),
    ]);
    columns
}

pub struct UsageTable {
    pub headings: Vec<SortHeading>,
    /// Whether the query string sorts this table: if it is folded, it is open.
    pub is_sorted: bool,
    pub rows: Vec<UsageTableRow>,
    /// How many rows are left out.
    pub more: usize,
}

/// A table in the making: its name in the query string, its first column, and what it shows.
struct UsageTableBuilder<'a> {
    table: &'static str,
    first: &'static str,
    group: GroupId,
    figures: &'a UsageFigures,
    filter: &'a UsageFilter,
}

impl UsageTableBuilder<'_> {
    /// `sums` gives a row's name and sums; `usual` is the column by which `all` is sorted already.
    fn build<T>(
        &self,
        all: &[T],
        usual: Option<(&str, bool)>,
        sums: impl Fn(&T) -> (&str, &UsageTotals),
        row: impl Fn(&T) -> UsageTableRow,
    ) -> UsageTable {
        let Self { table, filter, .. } = *self;
        let mut sorted: Vec<&T> = all.iter().collect();
        let measure = filter.choice.measure;
        filter.sort.apply(table, &mut sorted, |a, b, column| compare_sums(sums(a), sums(b), column, measure));
        let columns = sum_columns(self.first, self.figures, filter, table == MEMBER_TABLE);
        UsageTable {
            headings: filter.sort.headings(table, columns, usual, |sort| sort_href(self.group, filter, table, sort)),
            is_sorted: filter.sort.is_for(table),
            rows: sorted.iter().take(MAX_ROWS).map(|one| row(one)).collect(),
            more: all.len().saturating_sub(MAX_ROWS),
        }
    }

    /// The column by which figures are sorted.
    const fn by_measure(&self) -> (&'static str, bool) {
        (self.filter.choice.measure.as_str(), false)
    }

    /// A row whose figures lead to jobs; `behind` makes the link for changes of the query string.
    fn row(&self, name: &str, totals: &UsageTotals, behind: impl Fn(&[(&str, &str)]) -> String) -> UsageTableRow {
        let measure = self.filter.choice.measure;
        let in_gpus = measure == UsageMeasure::Gpus;
        UsageTableRow {
            name: name.to_owned(),
            note: String::new(),
            class: String::new(),
            href: behind(&[]),
            gpu_href: behind(&[("with", WITH_GPUS)]),
            ended_href: behind(&[("outcome", "ended")]),
            lost_href: behind(&[("outcome", "lost")]),
            spare_href: if in_gpus { String::new() } else { behind(&[("outcome", OUTCOME_OVERSIZED)]) },
            cells: UsageTableCells::from_sums(totals, measure),
        }
    }
}

/// The page with a table sorted, at that table.
pub fn sort_href(group: GroupId, filter: &UsageFilter, table: &str, sort: &str) -> String {
    format!("{}?{}#use-{table}", usage_path(group), filter.to_query_string(&[("sort", sort)]))
}

/// Usage by account, if there are several. An account of which nothing was read has no figures. Only PIs can open everyone's jobs behind it.
pub fn account_table(figures: &UsageFigures, group: GroupId, filter: &UsageFilter, leads: bool) -> UsageTable {
    let several = if figures.accounts.len() > 1 { figures.accounts.as_slice() } else { &[] };
    let builder = UsageTableBuilder { table: "accounts", first: "Account", group, figures, filter };
    builder.build(
        several,
        None,
        |account| (account.account.as_str(), &account.totals),
        |account| {
            let value = format!("{}/{}", account.slug, account.account);
            let row = builder.row(&account.account, &account.totals, |changes| {
                let changes = [&[("account", value.as_str())], changes].concat();
                if leads { jobs_href(group, filter, &changes) } else { String::new() }
            });
            if account.is_unread {
                let note = format!("{} · not loaded yet", account.cluster);
                return UsageTableRow { note, cells: UsageTableCells::unknown(), ..row };
            }
            UsageTableRow { note: account.cluster.clone(), ..row }
        },
    )
}

pub fn member_table(figures: &UsageFigures, group: GroupId, filter: &UsageFilter) -> UsageTable {
    let builder = UsageTableBuilder { table: MEMBER_TABLE, first: "Member", group, figures, filter };
    builder.build(
        &figures.members,
        Some(builder.by_measure()),
        |member| (member.name.as_str(), &member.totals),
        |member| {
            let word = member_query_value(&member.owner);
            let row = builder.row(&member.name, &member.totals, |changes| match &word {
                Some(word) => jobs_href(group, filter, &[&[("member", word.as_str())], changes].concat()),
                None => String::new(),
            });
            UsageTableRow {
                note: if member.is_in_group { "" } else { NOT_CONNECTED_NOTE }.to_owned(),
                class: member.colour.map_or_else(|| "cx".to_owned(), |colour| format!("c{colour}")),
                ..row
            }
        },
    )
}

pub fn kind_table(figures: &UsageFigures, group: GroupId, filter: &UsageFilter) -> UsageTable {
    let builder = UsageTableBuilder { table: "kinds", first: "Job type", group, figures, filter };
    builder.build(
        &figures.kinds,
        Some(builder.by_measure()),
        |kind| (kind_label(&kind.name), &kind.totals),
        |kind| {
            builder.row(kind_label(&kind.name), &kind.totals, |changes| match kind.name.as_str() {
                "" => String::new(),
                name => jobs_href(group, filter, &[&[("kind", name)], changes].concat()),
            })
        },
    )
}

pub fn kind_label(name: &str) -> &str {
    if name.is_empty() { "Everyone else's jobs" } else { name }
}

/// The path of the jobs behind a figure.
pub fn jobs_href(group: GroupId, filter: &UsageFilter, changes: &[(&str, &str)]) -> String {
    let (from, until) = (filter.choice.from.to_string(), filter.choice.until.to_string());
    // The list has columns of its own to sort by.
    let mut all = vec![("from", from.as_str()), ("until", until.as_str()), ("sort", "")];
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
    fn every_column_sorts() {
        let figures = UsageFigures { totals: UsageTotals { gpu_s: 1, ..UsageTotals::default() }, ..Default::default() };
        let view = crate::usage::GroupUsage {
            group: GroupId(1),
            is_leader: true,
            viewer: PersonId(1),
            accounts: Vec::new(),
            people: std::sync::Arc::default(),
            user_names: std::sync::Arc::default(),
        };
        let query = crate::web::pages::groups::usage::query::UsageQuery::from_pairs(&[]);
        let filter = UsageFilter::resolve(&query, &view, &[], crate::clock::Day(20_040).start());
        let (a, b) = (UsageTotals::default(), UsageTotals::default());
        for column in sum_columns("Member", &figures, &filter, true) {
            let order = compare_sums(("a", &a), ("B", &b), &column.code, UsageMeasure::Cores);
            assert!(order.is_some(), "{}", column.code);
        }
        assert_eq!(compare_sums(("a", &a), ("b", &b), "colour", UsageMeasure::Cores), None);
    }
}
