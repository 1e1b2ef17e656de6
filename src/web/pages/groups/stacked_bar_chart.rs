//! Bars stacked by person, rendered on the server for the usage page and reports. Colours are CSS classes;
//! `templates/groups/stacked_bars.html` draws the chart.

use std::fmt::Write as _;

use crate::format;

/// Colours available; all further members share one.
const COLOUR_COUNT: usize = 8;

/// How many bars share a label, if there are few bars.
const BARS_PER_LABEL: usize = 5;
/// With more bars than this, labels that close would overlap.
const MAX_BARS_CLOSELY_LABELLED: usize = 40;

/// The area of the drawing that holds the bars.
pub struct ChartFrame {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

pub struct StackedBar {
    pub label: String,
    /// A shorter label, shown below the bar.
    pub mark: String,
    /// The amount of each series.
    pub parts: Vec<f64>,
    /// What has not been read yet, as text; empty if everything has.
    pub missing: String,
    /// The bar's link; empty for none.
    pub href: String,
}

/// A chart, ready to be drawn.
pub struct StackedBarChart {
    /// Horizontal grid lines, as one path.
    pub grid: String,
    /// From the top: each grid line's position and label.
    pub ticks: Vec<(String, String)>,
    pub series: Vec<DrawnBarSeries>,
    pub bars: Vec<DrawnBar>,
    /// Where the tallest possible bar ends.
    pub top: String,
    pub height: String,
    pub is_empty: bool,
}

pub struct DrawnBarSeries {
    pub class: String,
    pub name: String,
    /// The whole series as one path: half the bytes of separate rectangles.
    pub path: String,
}

pub struct DrawnBar {
    pub bar: StackedBar,
    /// The amount of each series, for the table.
    pub cells: Vec<String>,
    pub total: String,
    pub x: String,
    pub middle: String,
    pub width: String,
    /// Everything the bar shows, as its tooltip.
    pub title: String,
}

impl StackedBarChart {
    /// Draws bars of amounts in `unit`; `series` holds colours and names.
    pub fn draw(frame: &ChartFrame, unit: &str, series: Vec<(Option<usize>, String)>, bars: Vec<StackedBar>) -> Self {
        let most = bars.iter().map(|bar| bar.parts.iter().sum()).fold(0.0, f64::max);
        let (highest, step) = axis_scale(most);
        let height = frame.bottom - frame.top;
        let slot = (frame.right - frame.left) / count_to_f64(bars.len().max(1));
        let (left, right) = (format::coordinate(frame.left), format::coordinate(frame.right));
        let mut chart = Self {
            grid: String::new(),
            ticks: Vec::new(),
            series: series.into_iter().map(DrawnBarSeries::new).collect(),
            bars: Vec::new(),
            top: format::coordinate(frame.top),
            height: format::coordinate(height),
            is_empty: most <= 0.0,
        };
        let mut tick = highest;
        while tick > -step / 2.0 {
            let y = format::coordinate(frame.bottom - height * tick / highest);
            let _ = write!(chart.grid, "M{left} {y}H{right}");
            // Repeated subtraction may end slightly above or below zero.
            chart.ticks.push((y, format::fine_amount(if tick < step / 2.0 { 0.0 } else { tick })));
            tick -= step;
        }
        for (index, bar) in bars.into_iter().enumerate() {
            let x = frame.left + slot * (count_to_f64(index) + 0.06);
            let total = format::amount(bar.parts.iter().sum());
            let mut drawn = DrawnBar {
                cells: Vec::new(),
                x: format::coordinate(x),
                middle: format::coordinate(x + slot * 0.44),
                width: format::coordinate(slot * 0.88),
                title: format!("{}: {total} {unit}", bar.label),
                total,
                bar,
            };
            let mut floor = frame.bottom;
            for (series, used) in chart.series.iter_mut().zip(&drawn.bar.parts) {
                let amount = format::amount(*used);
                if *used > 0.0 {
                    let (x, width) = (&drawn.x, &drawn.width);
                    let y = format::coordinate(floor);
                    let up = format::coordinate((used / highest * height).min(floor - frame.top));
                    let _ = write!(series.path, "M{x} {y}v-{up}h{width}v{up}z");
                    let _ = write!(drawn.title, "\n{}: {amount}", series.name);
                    floor -= used / highest * height;
                }
                drawn.cells.push(amount);
            }
            if !drawn.bar.missing.is_empty() {
                let _ = write!(drawn.title, "\n{}", drawn.bar.missing);
            }
            chart.bars.push(drawn);
        }
        chart
    }

    /// The bars that have their label below them, and whether it is left out where there is little room.
    pub fn labelled_bars(&self) -> Vec<(&DrawnBar, bool)> {
        let step = BARS_PER_LABEL * self.bars.len().div_ceil(MAX_BARS_CLOSELY_LABELLED).max(1);
        // Counted from 1, so that a month has its 1st, 5th and 10th.
        let labelled = (1..).zip(&self.bars).filter(|(number, _)| *number == 1 || number % step == 0);
        labelled.map(|(number, bar)| (bar, number != 1 && number % (2 * step) != 0)).collect()
    }

    /// Whether a bar lacks data.
    pub fn has_missing(&self) -> bool {
        self.bars.iter().any(|drawn| !drawn.bar.missing.is_empty())
    }
}

impl DrawnBarSeries {
    fn new((colour, name): (Option<usize>, String)) -> Self {
        let own = colour.filter(|colour| *colour < COLOUR_COUNT);
        let class = own.map_or_else(|| "cx".to_owned(), |colour| format!("c{colour}"));
        Self { class, name, path: String::new() }
    }
}

/// The top of a scale and its step: the lowest top that three to six round steps reach, with few steps rather than many.
fn axis_scale(most: f64) -> (f64, f64) {
    if !most.is_finite() || most <= 0.0 {
        return (1.0, 1.0);
    }
    // Six steps of this size are too few, and six of ten times this size are enough.
    let size = 10_f64.powf((most / 6.0).log10().floor());
    let mut best = (f64::INFINITY, size * 10.0);
    for step in [10.0, 8.0, 5.0, 4.0, 2.5, 2.0, 1.0].map(|step| step * size) {
        // Not one step more because of how numbers are rounded.
        let count = (most / step - 1e-9).ceil().max(3.0);
        if count <= 6.0 && count * step < best.0 * (1.0 - 1e-9) {
            best = (count * step, step);
        }
    }
    best
}

#[expect(clippy::cast_precision_loss, reason = "bars")]
fn count_to_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    const FRAME: ChartFrame = ChartFrame { left: 56.0, right: 706.0, top: 10.0, bottom: 176.0 };

    fn bar(parts: &[f64]) -> StackedBar {
        StackedBar {
            label: "1 Nov".into(),
            mark: "1 Nov".into(),
            parts: parts.to_vec(),
            missing: String::new(),
            href: String::new(),
        }
    }

    #[test]
    fn scales_are_round() {
        for (most, top, step) in [
            (0.0, 1.0, 1.0),
            (7.0, 7.5, 2.5),
            (20.5, 24.0, 8.0),
            (100.0, 100.0, 25.0),
            (0.3, 0.3, 0.1),
            (f64::NAN, 1.0, 1.0),
        ] {
            let (found, by) = axis_scale(most);
            assert!((found - top).abs() < 1e-9 && (by - step).abs() < 1e-9, "{most}: {found} {by}");
        }
        for most in [-1.0, f64::INFINITY, 1e-9, 1e15] {
            assert!(axis_scale(most).0 > 0.0 && axis_scale(most).0.is_finite(), "{most}");
        }
        for tenths in 1..5000 {
            let most = f64::from(tenths) / 10.0;
            let (top, step) = axis_scale(most);
            assert!(top >= most - 1e-9 && top <= most * 1.26, "the axis of {most} ends at {top}");
            assert!((2.9..6.1).contains(&(top / step)), "{most}: {top} by {step}");
        }
    }

    #[test]
    fn labels_have_room() {
        let labels = |count: usize| {
            let bars = (0..count).map(|_| bar(&[1.0])).collect();
            let chart = StackedBarChart::draw(&FRAME, "hours", vec![(None, "Ada".into())], bars);
            let all: Vec<(f64, bool)> = chart
                .labelled_bars()
                .into_iter()
                .map(|(drawn, is_extra)| (drawn.middle.parse().unwrap(), is_extra))
                .collect();
            all
        };
        let nearest = |all: &[f64]| all.windows(2).map(|two| two[1] - two[0]).fold(f64::INFINITY, f64::min);
        assert_eq!(labels(31).len(), 7, "1, 5, 10, 15, 20, 25, 30");
        assert_eq!(labels(31).iter().filter(|(_, is_extra)| !is_extra).count(), 4, "1, 10, 20, 30");
        for count in 10..400 {
            let all = labels(count);
            let few: Vec<f64> = all.iter().filter(|(_, is_extra)| !is_extra).map(|(at, _)| *at).collect();
            // The letters are larger on a tablet, and larger still on a phone.
            assert!(nearest(&all.iter().map(|(at, _)| *at).collect::<Vec<_>>()) > 60.0, "{count}");
            assert!(nearest(&few) > 100.0, "{count} on a phone");
        }
    }

    #[test]
    fn bars_stay_inside() {
        let series = || (0..20).map(|at| (Some(at), format!("P{at}"))).collect();
        let bars = (0..31).map(|_| bar(&[1.0; 20])).collect();
        let chart = StackedBarChart::draw(&FRAME, "hours", series(), bars);
        assert_eq!((chart.series.len(), chart.bars.len()), (20, 31));
        assert_eq!(chart.series[19].class, "cx");
        let last = &chart.series[19].path;
        assert!(last.starts_with("M57.3 18.3v-8.3h18.5v8.3z"), "{last}");
        let ticks: Vec<&str> = chart.ticks.iter().map(|(_, words)| words.as_str()).collect();
        assert_eq!(ticks, ["20", "15", "10", "5", "0"]);
        assert!(chart.grid.starts_with("M56.0 10.0H706.0") && chart.grid.ends_with("M56.0 176.0H706.0"));
        let empty = StackedBarChart::draw(&FRAME, "hours", series(), Vec::new());
        assert!(empty.is_empty && empty.ticks.len() == 2 && empty.series[0].path.is_empty());
    }
}
