//! The chart of usage over time: bars stacked by person, with the same figures as a table. Labels are placed beside
//! the drawing, so that it can stretch to any width without distorting text.

use std::cmp::Ordering;

use crate::domain::GroupId;
use crate::usage::figures::{ChartStep, MemberFigures, UsageFigures, UsageMember, UsagePeriodBar};
use crate::web::pages::groups::stacked_bar_chart::{ChartFrame, DrawnBarSeries, StackedBar, StackedBarChart};
use crate::web::pages::groups::table_sort::{SortColumn, SortHeading, compare_known};
use crate::web::pages::groups::usage::formatting::{capitalize, measure_label};
use crate::web::pages::groups::usage::query::UsageFilter;
use crate::web::pages::groups::usage::tables::{jobs_href, sort_href};

/// The drawing's internal width.
pub const WIDTH: f64 = 1000.0;
/// The drawing's internal height.
pub const HEIGHT: f64 = 300.0;
/// The table of the same figures, and two of its columns, in the query string.
const TIME_TABLE: &str = "time";
const PERIOD_COLUMN: &str = "period";
const TOTAL_COLUMN: &str = "total";
/// Labels below the bars.
const MAX_AXIS_LABELS: usize = 5;

pub struct UsageChart {
    /// What the chart shows, in one sentence.
    pub label: String,
    pub unit: String,
    pub marks: Vec<String>,
    pub drawing: StackedBarChart,
    pub headings: Vec<SortHeading>,
    /// Whether the query string sorts the table: then it is open.
    pub is_sorted: bool,
    /// The bars in the order of the table.
    pub rows: Vec<usize>,
}

/// Members that share a colour, as indexes into a bar's parts.
struct MemberColourGroup {
    colour: Option<usize>,
    name: String,
    member_indexes: Vec<usize>,
}

impl UsageChart {
    pub fn draw(figures: &UsageFigures, group: GroupId, filter: &UsageFilter) -> Self {
        let step = filter.choice.step;
        let unit = measure_label(filter.choice.measure, filter.unit);
        let series = build_series(figures);
        let stacked = |bar: &UsagePeriodBar| {
            let used =
                |group: &MemberColourGroup| group.member_indexes.iter().filter_map(|index| bar.parts.get(*index)).sum();
            let (from, until) = (bar.from.to_string(), bar.until.to_string());
            StackedBar {
                label: bar_label(bar, step),
                mark: match step {
                    ChartStep::Month => bar.from.month().words(),
                    _ => bar.from.short(),
                },
                parts: series.iter().map(used).collect(),
                missing: match bar.missing {
                    0 => String::new(),
                    1 => "1 day not loaded yet".to_owned(),
                    many => format!("{many} days not loaded yet"),
                },
                href: jobs_href(group, filter, &[("from", &from), ("until", &until)]),
            }
        };
        let bars: Vec<StackedBar> = figures.bars.iter().map(stacked).collect();
        let label = format!(
            "{} by {}, {} bars starting {}. The table below shows the same figures.",
            capitalize(&unit),
            step.as_str(),
            bars.len(),
            bars.first().map_or("", |bar| bar.label.as_str()),
        );
        let marks = axis_labels(&bars);
        let frame = ChartFrame { left: 0.0, right: WIDTH, top: 0.0, bottom: HEIGHT };
        let series = series.into_iter().map(|group| (group.colour, group.name)).collect();
        let mut rows: Vec<usize> = (0..bars.len()).collect();
        filter.sort.apply(TIME_TABLE, &mut rows, |a, b, column| compare_bars(&bars, *a, *b, column));
        let drawing = StackedBarChart::draw(&frame, &unit, series, bars);
        let columns = time_columns(&drawing);
        let sorted = |sort: &str| sort_href(group, filter, TIME_TABLE, sort);
        let headings = filter.sort.headings(TIME_TABLE, columns, Some((PERIOD_COLUMN, true)), sorted);
        Self { label, marks, drawing, unit, headings, is_sorted: filter.sort.is_for(TIME_TABLE), rows }
    }
}

/// The columns of the same figures as a table: the period, each series, and the total.
fn time_columns(drawing: &StackedBarChart) -> Vec<SortColumn> {
    let one = |(index, series): (usize, &DrawnBarSeries)| SortColumn::person(&format!("s{index}"), &series.name);
    let series = drawing.series.iter().enumerate().map(one);
    let first = SortColumn::text(PERIOD_COLUMN, "Period");
    std::iter::once(first).chain(series).chain([SortColumn::number(TOTAL_COLUMN, "Total")]).collect()
}

fn compare_bars(bars: &[StackedBar], a: usize, b: usize, column: &str) -> Option<Ordering> {
    let part = |bar: usize, series: usize| bars.get(bar)?.parts.get(series).copied();
    let total = |bar: usize| bars.get(bar).map(|bar| bar.parts.iter().sum::<f64>());
    match column {
        PERIOD_COLUMN => Some(a.cmp(&b)),
        TOTAL_COLUMN => Some(compare_known(total(a), total(b))),
        other => {
            let series = other.strip_prefix('s')?.parse().ok()?;
            Some(compare_known(part(a, series), part(b, series)))
        }
    }
}

/// A series for each member with a colour of their own, in order, and one for all others together. Members without
/// usage have none.
fn build_series(figures: &UsageFigures) -> Vec<MemberColourGroup> {
    let members: &[MemberFigures] = &figures.members;
    let is_drawn = |index: usize| figures.bars.iter().any(|bar| bar.parts.get(index).is_some_and(|used| *used > 0.0));
    let mut series = Vec::new();
    let mut others: Vec<usize> = Vec::new();
    for (index, member) in members.iter().enumerate().filter(|(index, _)| is_drawn(*index)) {
        match member.colour {
            Some(_) => series.push(MemberColourGroup {
                colour: member.colour,
                name: member.name.clone(),
                member_indexes: vec![index],
            }),
            None => others.push(index),
        }
    }
    let name = match others.as_slice() {
        [] => return series,
        [only] => members.get(*only).map(|member| member.name.clone()).unwrap_or_default(),
        many => {
            let nobody = |index: &usize| members.get(*index).is_some_and(|m| m.owner == UsageMember::Others);
            if many.iter().all(nobody) { "Everyone else".to_owned() } else { format!("{} others", many.len()) }
        }
    };
    series.push(MemberColourGroup { colour: None, name, member_indexes: others });
    series
}

fn bar_label(bar: &UsagePeriodBar, step: ChartStep) -> String {
    match step {
        ChartStep::Month if bar.from.month().first() == bar.from && bar.from.month().last() == bar.until => {
            bar.from.month().words()
        }
        ChartStep::Day => bar.from.short(),
        _ if bar.from == bar.until => bar.from.short(),
        _ => format!("{} to {}", bar.from.short(), bar.until.short()),
    }
}

/// A few labels, evenly spaced.
fn axis_labels(bars: &[StackedBar]) -> Vec<String> {
    let count = bars.len().min(MAX_AXIS_LABELS);
    (0..count)
        .filter_map(|tick| bars.get(if count < 2 { 0 } else { tick * (bars.len() - 1) / (count - 1) }))
        .map(|bar| bar.mark.clone())
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::clock::Day;
    use crate::domain::PersonId;
    use crate::usage::{GroupUsage, UsageTotals};
    use crate::web::pages::groups::usage::query::UsageQuery;

    fn member(id: i64, colour: Option<usize>) -> MemberFigures {
        let who = if id == 0 { UsageMember::Others } else { UsageMember::Person(PersonId(id)) };
        let name = format!("P{id}");
        MemberFigures { owner: who, name, is_in_group: true, colour, totals: UsageTotals::default() }
    }

    fn chart(parts: &[&[f64]], members: Vec<MemberFigures>) -> UsageChart {
        let bar = |(index, parts): (usize, &&[f64])| {
            let day = Day(20_000 + i64::try_from(index).unwrap());
            UsagePeriodBar { from: day, until: day, parts: parts.to_vec(), total: parts.iter().sum(), missing: 0 }
        };
        let bars = parts.iter().enumerate().map(bar).collect();
        let figures = UsageFigures { members, bars, ..UsageFigures::default() };
        let view = GroupUsage {
            group: GroupId(1),
            is_leader: true,
            viewer: PersonId(1),
            accounts: Vec::new(),
            people: Arc::default(),
            user_names: Arc::default(),
        };
        let query = UsageQuery::from_pairs(&[("by".to_owned(), "day".to_owned())]);
        let filter = UsageFilter::resolve(&query, &view, &[], Day(20_040).start());
        UsageChart::draw(&figures, GroupId(1), &filter)
    }

    #[test]
    fn pieces_stand_on_each_other() {
        let members = vec![member(1, Some(0)), member(2, Some(1)), member(3, None), member(0, None)];
        let chart = chart(&[&[1.0, 2.0, 0.5, 0.5], &[0.0, 0.0, 0.0, 0.0]], members);
        let classes: Vec<_> = chart.drawing.series.iter().map(|series| series.class.as_str()).collect();
        assert_eq!(classes, ["c0", "c1", "cx"]);
        assert_eq!(chart.drawing.series[2].name, "2 others");
        assert_eq!(chart.drawing.series[0].path, "M30.0 300.0v-75.0h440.0v75.0z", "nothing for nothing");
        assert_eq!(chart.drawing.series[2].path, "M30.0 75.0v-75.0h440.0v75.0z");
        let title = &chart.drawing.bars[0].title;
        assert!(title.ends_with("4 core hours\nP1: 1\nP2: 2\n2 others: 1"), "{title}");
        assert!(
            chart.drawing.bars[0].bar.href.starts_with("/groups/1/usage/jobs?"),
            "{}",
            chart.drawing.bars[0].bar.href
        );
        assert_eq!(chart.drawing.bars[0].cells, ["1", "2", "1"]);
        assert_eq!((chart.drawing.bars[0].total.as_str(), chart.drawing.ticks[0].1.as_str()), ("4", "4"));
    }

    #[test]
    fn members_without_usage_are_not_in_the_legend() {
        let members = vec![member(1, Some(0)), member(2, Some(1)), member(3, None), member(4, None)];
        let chart = chart(&[&[1.0, 0.0, 0.0, 2.0], &[3.0, 0.0, 0.0, 0.0]], members);
        let names: Vec<_> = chart.drawing.series.iter().map(|series| series.name.as_str()).collect();
        assert_eq!(names, ["P1", "P4"]);
    }

    #[test]
    fn nothing_and_odd_numbers_are_drawn() {
        let empty = chart(&[], Vec::new());
        assert!(empty.drawing.is_empty && empty.marks.is_empty());
        let many: Vec<&[f64]> = vec![&[1.0]; 92];
        assert_eq!(chart(&many, vec![member(1, Some(0))]).marks.len(), MAX_AXIS_LABELS);
    }
}
