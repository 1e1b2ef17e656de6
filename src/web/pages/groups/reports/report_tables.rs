//! The tables of a report, each of which can be sorted by any of its columns. Links are relative, so that they work on
//! every page that shows a report.

use std::cmp::Ordering;

use crate::usage::report::{ReportBreakdown, ReportBreakdownRow, ReportTableRow, UsageReport};
use crate::web::pages::groups::table_sort::{SortColumn, SortHeading, TableSort, compare_known, compare_names};

/// A table of figures by person, job type or account.
pub struct ReportTable {
    pub id: &'static str,
    pub title: &'static str,
    pub headings: Vec<SortHeading>,
    pub rows: Vec<ReportTableRow>,
    /// The report's totals; none for a single row.
    pub total: Option<ReportTableRow>,
}

/// A table by partition, QOS or GPU model.
pub struct ReportBreakdownTable {
    pub id: String,
    pub headings: Vec<SortHeading>,
    pub breakdown: ReportBreakdown,
    /// The sum of the rows; none for a single row.
    pub total: Option<ReportBreakdownRow>,
}

pub struct ReportTables {
    pub tables: Vec<ReportTable>,
    pub breakdowns: Vec<ReportBreakdownTable>,
}

impl ReportTables {
    /// Takes the tables of a report in the chosen order. `query` is the page's own query string, without the order.
    pub fn new(report: &UsageReport, query: &str, sort: &str) -> Self {
        let sort = TableSort::parse(sort);
        let separator = if query.is_empty() { "" } else { "&" };
        let href = |id: &str, sort: &str| format!("?{query}{separator}sort={sort}#{id}-title");
        let of = [
            ("people", "By member", "Member", &report.members),
            ("kinds", "By job type", "Job type", &report.kinds),
            ("accounts", "By account", "Account", &report.accounts),
        ];
        let table = |(id, title, first, rows): (&'static str, &'static str, &str, &Vec<ReportTableRow>)| {
            let mut rows = rows.clone();
            sort.apply(id, &mut rows, compare_rows);
            rows.sort_by_key(|row| row.is_rest);
            let headings = sort.headings(id, columns(report, first), None, |sort| href(id, sort));
            let total = (rows.len() > 1).then(|| report.totals.clone());
            ReportTable { id, title, headings, rows, total }
        };
        let breakdown = |(index, breakdown): (usize, &ReportBreakdown)| {
            let id = format!("breakdown-{index}");
            let mut breakdown = breakdown.clone();
            sort.apply(&id, &mut breakdown.rows, compare_breakdown_rows);
            breakdown.rows.sort_by_key(|row| row.is_rest);
            let columns = breakdown_columns(report, &breakdown);
            let headings = sort.headings(&id, columns, None, |sort| href(&id, sort));
            let total = breakdown.total().filter(|_| breakdown.rows.len() > 1);
            ReportBreakdownTable { id, headings, breakdown, total }
        };
        Self {
            tables: of.into_iter().filter(|(.., rows)| !rows.is_empty()).map(table).collect(),
            breakdowns: report.breakdowns.iter().enumerate().map(breakdown).collect(),
        }
    }
}

fn columns(report: &UsageReport, first: &str) -> Vec<SortColumn> {
    let site = format!("{} hours", report.site_unit);
    let all = [
        (true, SortColumn::text("name", first)),
        (true, SortColumn::number("cores", "Core hours")),
        (report.totals.gpu_hours > 0.0, SortColumn::number("gpus", "GPU hours")),
        (!report.site_unit.is_empty(), SortColumn::number("site", &site)),
        (true, SortColumn::number("jobs", "Jobs ended")),
        (true, SortColumn::number("success", "Success rate")),
        (report.totals.node_failed > 0, SortColumn::number("node-failed", "Node failed")),
        (true, SortColumn::number("wait", "Median wait")),
        (true, SortColumn::number("cpu", "CPU efficiency")),
        (true, SortColumn::number("memory", "Memory efficiency")),
        (true, SortColumn::number("wasted", "Wasted hours")),
    ];
    all.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, column)| column).collect()
}

fn breakdown_columns(report: &UsageReport, breakdown: &ReportBreakdown) -> Vec<SortColumn> {
    let all = [
        (true, SortColumn::text("name", &breakdown.first)),
        (breakdown.has_cores, SortColumn::number("cores", "Core hours")),
        (report.totals.gpu_hours > 0.0, SortColumn::number("gpus", "GPU hours")),
        (breakdown.has_cores, SortColumn::number("jobs", "Jobs ended")),
    ];
    all.into_iter().filter(|(is_shown, _)| *is_shown).map(|(_, column)| column).collect()
}

fn compare_rows(a: &ReportTableRow, b: &ReportTableRow, column: &str) -> Option<Ordering> {
    Some(match column {
        "name" => compare_names(&a.name, &b.name),
        "cores" => a.core_hours.total_cmp(&b.core_hours),
        "gpus" => a.gpu_hours.total_cmp(&b.gpu_hours),
        "site" => a.site_hours.total_cmp(&b.site_hours),
        "jobs" => a.jobs.cmp(&b.jobs),
        "success" => compare_known(a.success, b.success),
        "node-failed" => a.node_failed.cmp(&b.node_failed),
        "wait" => a.median_wait_s.cmp(&b.median_wait_s),
        "cpu" => compare_known(a.core_use, b.core_use),
        "memory" => compare_known(a.memory_use, b.memory_use),
        "wasted" => {
            let by_gpus = a.lost_gpu_hours.total_cmp(&b.lost_gpu_hours);
            a.lost_core_hours.total_cmp(&b.lost_core_hours).then(by_gpus)
        }
        _ => return None,
    })
}

fn compare_breakdown_rows(a: &ReportBreakdownRow, b: &ReportBreakdownRow, column: &str) -> Option<Ordering> {
    Some(match column {
        "name" => compare_names(&a.name, &b.name),
        "cores" => a.core_hours.total_cmp(&b.core_hours),
        "gpus" => a.gpu_hours.total_cmp(&b.gpu_hours),
        "jobs" => a.jobs.cmp(&b.jobs),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::pages::groups::reports::chart::draw_report_chart;
    use crate::web::pages::groups::reports::report_format;
    use crate::web::pages::groups::stacked_bar_chart::StackedBarChart;

    fn row(name: &str, core_hours: f64, gpu_hours: f64, is_rest: bool) -> ReportTableRow {
        ReportTableRow { name: name.into(), core_hours, gpu_hours, is_rest, ..ReportTableRow::default() }
    }

    #[test]
    fn tables_are_sorted_by_any_column_and_the_rest_comes_last() {
        let report = UsageReport {
            members: vec![
                row("Ada", 3.0, 1.0, false),
                row("bob", 2.0, 5.0, false),
                row("9 other people", 9.0, 9.0, true),
            ],
            totals: ReportTableRow { gpu_hours: 6.0, node_failed: 1, ..ReportTableRow::default() },
            ..UsageReport::default()
        };
        let names = |sort: &str| {
            let tables = ReportTables::new(&report, "month=2026-11", sort).tables;
            assert_eq!(tables.len(), 1, "no table without rows");
            tables[0].rows.iter().map(|row| row.name.clone()).collect::<Vec<_>>()
        };
        for sort in ["", "people.cores-desc", "kinds.gpus-desc", "people.colour-desc"] {
            assert_eq!(names(sort), ["Ada", "bob", "9 other people"], "{sort}");
        }
        assert_eq!(names("people.gpus-desc"), ["bob", "Ada", "9 other people"]);
        assert_eq!(names("people.name-desc"), ["bob", "Ada", "9 other people"]);
        let headings = &ReportTables::new(&report, "month=2026-11", "").tables[0].headings;
        assert_eq!(headings[2].href, "?month=2026-11&sort=people.gpus-desc#people-title");
        for heading in headings {
            let (a, b) = (&report.members[0], &report.members[1]);
            assert!(compare_rows(a, b, &heading.column.code).is_some(), "{}", heading.column.code);
        }
    }

    #[derive(askama::Template)]
    #[template(path = "groups/reports/report.html")]
    struct ReportSheet {
        report: UsageReport,
        chart: StackedBarChart,
        tables: ReportTables,
    }

    /// A reader adds up a column and compares it with the figures at the top.
    #[test]
    fn tables_end_with_the_figures_above_them() {
        let partition = |name: &str, core_hours: f64, gpu_hours: f64, jobs: u64| ReportBreakdownRow {
            name: name.into(),
            is_rest: false,
            core_hours,
            gpu_hours,
            jobs,
        };
        let report = UsageReport {
            members: vec![row("Ada", 3.0, 1.0, false), row("bob", 2.5, 5.0, false)],
            kinds: vec![row("fold-#", 5.5, 6.0, false)],
            breakdowns: vec![ReportBreakdown {
                title: "By partition".into(),
                first: "Partition".into(),
                has_cores: true,
                rows: vec![partition("long", 5.0, 2.0, 7), partition("short", 0.5, 4.0, 5)],
                note: String::new(),
            }],
            totals: ReportTableRow { jobs: 12, ..row("Total", 5.5, 6.0, false) },
            ..UsageReport::default()
        };
        let tables = ReportTables::new(&report, "", "people.cores-asc");
        let sheet = ReportSheet { chart: draw_report_chart(&report), tables, report };
        let page = scraper::Html::parse_document(&askama::Template::render(&sheet).unwrap());
        let texts = |css: &str| {
            let css = scraper::Selector::parse(css).unwrap();
            page.select(&css).map(|one| one.text().collect::<String>().trim().to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(texts(".report-facts dd")[..3], ["5.5", "6", "12"]);
        assert_eq!(texts("[aria-labelledby=people-title] tfoot :is(th, td)")[..4], ["Total", "5.5", "6", "12"]);
        assert_eq!(texts("[aria-labelledby=breakdown-0-title] tfoot :is(th, td)"), ["Total", "5.5", "6", "12"]);
        assert_eq!(texts("tfoot").len(), 2, "a single row is its own total");
        let columns = texts("[aria-labelledby=people-title] thead th").len();
        assert_eq!(texts("[aria-labelledby=people-title] tfoot :is(th, td)").len(), columns);
    }
}
