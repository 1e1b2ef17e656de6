//! The chart of a report, as figures for an SVG: bars of days, stacked by person. Colours are classes of the style
//! sheet; nothing is styled here.

use crate::format;
use crate::usage::report::UsageReport;

/// The size of the drawing, and where its bars are.
const RIGHT: f64 = 706.0;
const LEFT: f64 = 56.0;
const TOP: f64 = 10.0;
const BOTTOM: f64 = 176.0;
/// The colours that there are; whoever comes after them shares the last.
const COLOUR_COUNT: usize = 9;

/// A chart, ready to be drawn.
pub struct ReportChartSvg {
    /// Lines across, with what they stand for.
    pub ticks: Vec<(String, String)>,
    /// Days of which something was not read: where they begin, and how wide they are.
    pub gaps: Vec<(String, String)>,
    pub parts: Vec<ReportBarSegment>,
    /// Days below the bars.
    pub days: Vec<(String, String)>,
    /// Names, by the classes of their colours.
    pub legend: Vec<(usize, String)>,
    /// The same for those who do not see it: days and hours.
    pub rows: Vec<(String, String)>,
}

/// A part of a bar.
pub struct ReportBarSegment {
    /// The class of its colour.
    pub colour: usize,
    pub x: String,
    /// Where its upper edge is.
    pub y: String,
    /// How wide it is.
    pub width: String,
    /// How high it is.
    pub height: String,
}

impl ReportChartSvg {
    /// The chart of a report.
    pub fn draw(report: &UsageReport) -> Self {
        let most =
            report.bars.iter().map(crate::usage::report::ReportBar::total).fold(0.0, f64::max);
        let (top, step) = axis_scale(most);
        let slot = (RIGHT - LEFT) / count_to_f64(report.bars.len().max(1));
        let up = |hours: f64| BOTTOM - (BOTTOM - TOP) * (hours / top).clamp(0.0, 1.0);
        let mut chart = Self {
            ticks: Vec::new(),
            gaps: Vec::new(),
            parts: Vec::new(),
            days: Vec::new(),
            legend: Vec::new(),
            rows: Vec::new(),
        };
        let mut tick = 0.0;
        while tick <= top * 1.001 {
            chart.ticks.push((format_coordinate(up(tick)), format::amount(tick)));
            tick += step;
        }
        for (number, bar) in report.bars.iter().enumerate() {
            let x = LEFT + slot * count_to_f64(number);
            if bar.is_missing {
                chart.gaps.push((format_coordinate(x), format_coordinate(slot)));
            }
            let mut below = 0.0;
            for (colour, hours) in bar.parts.iter().enumerate().filter(|(_, hours)| **hours > 0.0) {
                let (lower, upper) = (up(below), up(below + hours));
                below += hours;
                chart.parts.push(ReportBarSegment {
                    colour: colour_of(report, colour),
                    x: format_coordinate(x + slot * 0.12),
                    y: format_coordinate(upper),
                    width: format_coordinate(slot * 0.76),
                    height: format_coordinate(lower - upper),
                });
            }
            if number == 0 || (number + 1).is_multiple_of(5) {
                chart.days.push((format_coordinate(x + slot / 2.0), bar.day.short()));
            }
            let missing = if bar.is_missing { " (not all was read)" } else { "" };
            chart.rows.push((bar.day.words(), format!("{}{missing}", format::amount(bar.total()))));
        }
        let named = report.series.iter().enumerate();
        chart.legend = named.map(|(at, name)| (colour_of(report, at), name.clone())).collect();
        chart
    }
}

/// The colour of one of those who are drawn; in reports of before, by their order.
fn colour_of(report: &UsageReport, at: usize) -> usize {
    report.colours.get(at).copied().unwrap_or(at).min(COLOUR_COUNT - 1)
}

/// The upper end of a scale and its steps: round numbers, three to five of them.
fn axis_scale(most: f64) -> (f64, f64) {
    if !most.is_finite() || most <= 0.0 {
        return (1.0, 1.0);
    }
    let size = 10_f64.powf((most / 4.0).log10().floor());
    let steps = [1.0, 2.0, 2.5, 5.0, 10.0];
    let step = steps.iter().map(|one| one * size).find(|one| *one * 4.0 >= most);
    let step = step.unwrap_or(size * 10.0);
    ((most / step).ceil() * step, step)
}

fn format_coordinate(number: f64) -> String {
    format!("{number:.1}")
}

#[expect(clippy::cast_precision_loss, reason = "days of a month")]
fn count_to_f64(number: usize) -> f64 {
    number as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Day;
    use crate::usage::report::ReportBar;

    #[test]
    fn scales_are_round() {
        for (most, top, step) in [
            (0.0, 1.0, 1.0),
            (7.0, 8.0, 2.0),
            (100.0, 100.0, 25.0),
            (0.3, 0.3, 0.1),
            (f64::NAN, 1.0, 1.0),
        ] {
            let (found, by) = axis_scale(most);
            assert!((found - top).abs() < 1e-9 && (by - step).abs() < 1e-9, "{most}: {found} {by}");
        }
    }

    #[test]
    fn bars_stay_inside() {
        let bar =
            |day: i64| ReportBar { day: Day(day), parts: vec![1.0; 20], is_missing: day == 3 };
        let report = UsageReport { bars: (0..31).map(bar).collect(), ..UsageReport::default() };
        let chart = ReportChartSvg::draw(&report);
        assert_eq!((chart.parts.len(), chart.gaps.len(), chart.rows.len()), (620, 1, 31));
        for part in &chart.parts {
            let (y, height): (f64, f64) = (part.y.parse().unwrap(), part.height.parse().unwrap());
            assert!(y >= TOP - 0.1 && y + height <= BOTTOM + 0.2 && part.colour < COLOUR_COUNT);
        }
        let empty = ReportChartSvg::draw(&UsageReport::default());
        assert!(empty.parts.is_empty() && empty.ticks.len() == 2);
    }
}
