//! The chart of use over time: bars stacked by person, drawn by the server, with the same figures as a table. Labels
//! stand beside the drawing, so that it can be stretched to any width without stretching letters.

use std::fmt::Write as _;

use crate::domain::GroupId;
use crate::format;
use crate::usage::figures::{ChartStep, MemberFigures, UsageBar, UsageFigures, UsageOwner};
use crate::web::pages::groups::usage::formatting::{capitalize, measure_label};
use crate::web::pages::groups::usage::query::UsageFilter;
use crate::web::pages::groups::usage::tables::jobs_href;

/// The drawing's own width and height.
pub const WIDTH: f64 = 1000.0;
/// The same for its height.
pub const HEIGHT: f64 = 300.0;
/// Labels below the bars.
const MAX_AXIS_LABELS: usize = 5;

pub struct UsageChart {
    /// What it shows, in one sentence.
    pub label: String,
    pub unit: String,
    /// Labels beside it, from the top.
    pub ticks: Vec<String>,
    pub marks: Vec<String>,
    /// Who has which colour.
    pub series: Vec<UsageChartSeries>,
    pub bars: Vec<UsageChartBar>,
    /// Whether nothing was used.
    pub is_empty: bool,
}

pub struct UsageChartSeries {
    pub class: String,
    pub name: String,
    /// All that is drawn in it, as one path: half the bytes of as many rectangles.
    pub path: String,
    /// Places in a bar's parts.
    member_indexes: Vec<usize>,
}

pub struct UsageChartBar {
    pub label: String,
    /// Hours of each series, for the table.
    pub cells: Vec<String>,
    pub total: String,
    /// Days that were not read yet, in words; empty if all were.
    pub missing: String,
    pub x: String,
    pub width: String,
    /// All that it shows, for whoever points at it.
    pub title: String,
    pub href: String,
}

impl UsageChart {
    pub fn draw(figures: &UsageFigures, group: GroupId, looked: &UsageFilter) -> Self {
        let (what, step) = (looked.choice.measure, looked.choice.step);
        let mut series = build_series(&figures.members);
        let most = figures.bars.iter().map(|bar| bar.total).fold(0.0, f64::max);
        let top = round_up_axis(most);
        let unit = measure_label(what, looked.unit);
        let count = figures.bars.len().max(1);
        let slot = WIDTH / count_to_f64(count);
        let mut bars = Vec::new();
        for (place, bar) in figures.bars.iter().enumerate() {
            let gap = slot * 0.12;
            let slot =
                UsageBarSlot { x: slot * count_to_f64(place) + gap / 2.0, width: slot - gap, top };
            let (from, until) = (bar.from.to_string(), bar.until.to_string());
            let href = jobs_href(group, looked, &[("from", &from), ("until", &until)]);
            bars.push(UsageChartBar { href, ..slot.draw(bar, &mut series, &unit, step) });
        }
        let label = format!(
            "{} by {}, {} bars from {}. The table below has the same figures.",
            capitalize(&unit),
            step.as_str(),
            bars.len(),
            bars.first().map_or_else(String::new, |bar| bar.label.clone()),
        );
        Self {
            label,
            ticks: vec![format::amount(top), format::amount(top / 2.0), "0".to_owned()],
            marks: axis_labels(&figures.bars, step),
            is_empty: most <= 0.0,
            unit,
            series,
            bars,
        }
    }
}

/// Where a bar is drawn.
struct UsageBarSlot {
    x: f64,
    width: f64,
    top: f64,
}

impl UsageBarSlot {
    fn draw(
        &self,
        bar: &UsageBar,
        series: &mut [UsageChartSeries],
        unit: &str,
        step: ChartStep,
    ) -> UsageChartBar {
        let label = bar_label(bar, step);
        let missing = match bar.missing {
            0 => String::new(),
            1 => "1 day not read yet".to_owned(),
            many => format!("{many} days not read yet"),
        };
        let total = format::amount(bar.total);
        let mut title = format!("{label}: {total} {unit}");
        let mut cells = Vec::new();
        let (x, width) = (format_coordinate(self.x), format_coordinate(self.width));
        let mut from = 0.0;
        for one in series {
            let used =
                one.member_indexes.iter().filter_map(|place| bar.parts.get(*place)).sum::<f64>();
            let words = format::amount(used);
            if used > 0.0 {
                let height = used / self.top * HEIGHT;
                let (floor, height_words) =
                    (format_coordinate(HEIGHT - from), format_coordinate(height));
                let _ = write!(one.path, "M{x} {floor}v-{height_words}h{width}v{height_words}z");
                let _ = write!(title, "\n{}: {words}", one.name);
                from += height;
            }
            cells.push(words);
        }
        if !missing.is_empty() {
            let _ = write!(title, "\n{missing}");
        }
        UsageChartBar { label, cells, total, missing, x, width, title, href: String::new() }
    }
}

/// Those with a colour of their own, in their order, and all others together.
fn build_series(members: &[MemberFigures]) -> Vec<UsageChartSeries> {
    let mut series = Vec::new();
    let mut others: Vec<usize> = Vec::new();
    for (place, member) in members.iter().enumerate() {
        match member.colour {
            Some(colour) => series.push(UsageChartSeries {
                class: format!("c{colour}"),
                name: member.name.clone(),
                path: String::new(),
                member_indexes: vec![place],
            }),
            None => others.push(place),
        }
    }
    let name = match others.as_slice() {
        [] => return series,
        [one] => members.get(*one).map(|one| one.name.clone()).unwrap_or_default(),
        many => {
            let nobody =
                |place: &usize| members.get(*place).is_some_and(|m| m.owner == UsageOwner::Others);
            if many.iter().all(nobody) {
                "Everybody else".to_owned()
            } else {
                format!("{} others", many.len())
            }
        }
    };
    series.push(UsageChartSeries {
        class: "cx".to_owned(),
        name,
        path: String::new(),
        member_indexes: others,
    });
    series
}

fn bar_label(bar: &UsageBar, step: ChartStep) -> String {
    match step {
        ChartStep::Month
            if bar.from.month().first() == bar.from && bar.from.month().last() == bar.until =>
        {
            bar.from.month().words()
        }
        ChartStep::Day => bar.from.short(),
        _ if bar.from == bar.until => bar.from.short(),
        _ => format!("{} to {}", bar.from.short(), bar.until.short()),
    }
}

/// A few first days, evenly apart.
fn axis_labels(bars: &[UsageBar], step: ChartStep) -> Vec<String> {
    let count = bars.len().min(MAX_AXIS_LABELS);
    let word = |bar: &UsageBar| match step {
        ChartStep::Month => bar.from.month().words(),
        _ => bar.from.short(),
    };
    (0..count)
        .filter_map(|one| {
            bars.get(if count < 2 { 0 } else { one * (bars.len() - 1) / (count - 1) })
        })
        .map(word)
        .collect()
}

/// The next of 1, 2, 4, 5 or 10 times a power of ten: what the highest line is called.
fn round_up_axis(most: f64) -> f64 {
    if !most.is_finite() || most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf(most.log10().floor());
    let fitting = [1.0, 2.0, 4.0, 5.0, 10.0].into_iter().find(|step| step * power >= most);
    fitting.unwrap_or(10.0) * power
}

/// A number of the drawing.
pub fn format_coordinate(number: f64) -> String {
    format!("{number:.1}")
}

/// A count as a number of the drawing.
#[expect(clippy::cast_precision_loss, reason = "bars")]
pub fn count_to_f64(count: usize) -> f64 {
    count as f64
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
        let who = if id == 0 { UsageOwner::Others } else { UsageOwner::Person(PersonId(id)) };
        let name = format!("P{id}");
        MemberFigures {
            owner: who,
            name,
            is_in_group: true,
            colour,
            totals: UsageTotals::default(),
        }
    }

    fn chart(parts: &[&[f64]], members: Vec<MemberFigures>) -> UsageChart {
        let bar = |(place, parts): (usize, &&[f64])| {
            let day = Day(20_000 + i64::try_from(place).unwrap());
            UsageBar {
                from: day,
                until: day,
                parts: parts.to_vec(),
                total: parts.iter().sum(),
                missing: 0,
            }
        };
        let bars = parts.iter().enumerate().map(bar).collect();
        let figures = UsageFigures { members, bars, ..UsageFigures::default() };
        let view = GroupUsage {
            group: GroupId(1),
            is_leader: true,
            viewer: PersonId(1),
            accounts: Vec::new(),
            people: Arc::default(),
        };
        let ask = UsageQuery::from_pairs(vec![("by".to_owned(), "day".to_owned())]);
        let looked = UsageFilter::resolve(&ask, &view, &[], Day(20_040).start());
        UsageChart::draw(&figures, GroupId(1), &looked)
    }

    #[test]
    fn pieces_stand_on_each_other() {
        let members =
            vec![member(1, Some(0)), member(2, Some(1)), member(3, None), member(0, None)];
        let chart = chart(&[&[1.0, 2.0, 0.5, 0.5], &[0.0, 0.0, 0.0, 0.0]], members);
        let classes: Vec<_> = chart.series.iter().map(|one| one.class.as_str()).collect();
        assert_eq!(classes, ["c0", "c1", "cx"]);
        assert_eq!(chart.series[2].name, "2 others");
        assert_eq!(chart.series[0].path, "M30.0 300.0v-75.0h440.0v75.0z", "nothing for nothing");
        assert_eq!(chart.series[2].path, "M30.0 75.0v-75.0h440.0v75.0z");
        let title = &chart.bars[0].title;
        assert!(title.ends_with("4.0 core hours\nP1: 1.0\nP2: 2.0\n2 others: 1.0"), "{title}");
        assert!(chart.bars[0].href.starts_with("/groups/1/usage/jobs?"), "{}", chart.bars[0].href);
        assert_eq!(chart.bars[0].cells, ["1.0", "2.0", "1.0"]);
        assert_eq!((chart.bars[0].total.as_str(), chart.ticks[0].as_str()), ("4.0", "4.0"));
    }

    #[test]
    fn nothing_and_odd_numbers_are_drawn() {
        let empty = chart(&[], Vec::new());
        assert!(empty.is_empty && empty.marks.is_empty());
        for most in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e-9, 3.0, 1e15] {
            assert!(round_up_axis(most) > 0.0 && round_up_axis(most).is_finite(), "{most}");
        }
        assert!(
            (round_up_axis(3.0) - 4.0).abs() < 1e-9 && (round_up_axis(42.0) - 50.0).abs() < 1e-9
        );
        let many: Vec<&[f64]> = vec![&[1.0]; 92];
        assert_eq!(chart(&many, vec![member(1, Some(0))]).marks.len(), MAX_AXIS_LABELS);
    }
}
