//! A report's chart: hours per day, stacked by person.

use crate::usage::report::{ReportChartDay, UsageReport};
use crate::web::pages::groups::stacked_bar_chart::{ChartFrame, StackedBar, StackedBarChart};

/// Leaves room for labels on the left and below.
const FRAME: ChartFrame = ChartFrame { left: 56.0, right: 706.0, top: 10.0, bottom: 176.0 };

pub fn draw_report_chart(report: &UsageReport) -> StackedBarChart {
    // Older reports store no colours: assign them in order.
    let colour = |at: usize| report.colours.get(at).copied().unwrap_or(at);
    let series = report.series.iter().enumerate().map(|(at, name)| (Some(colour(at)), name.clone()));
    let bar = |bar: &ReportChartDay| StackedBar {
        label: bar.until.map_or_else(|| bar.day.words(), |until| format!("{} to {}", bar.day.short(), until.words())),
        mark: bar.day.short(),
        parts: bar.parts.clone(),
        missing: if bar.is_missing { "incomplete".to_owned() } else { String::new() },
        href: String::new(),
    };
    let bars = report.bars.iter().map(bar).collect();
    StackedBarChart::draw(&FRAME, &report.measure, series.collect(), bars)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::Day;

    #[test]
    fn days_of_which_not_all_was_read_are_told() {
        let bar = |day: i64| ReportChartDay { day: Day(day), until: None, parts: vec![1.0, 2.0], is_missing: day == 3 };
        let report = UsageReport {
            bars: (0..31).map(bar).collect(),
            series: vec!["Ada".into(), "Others".into()],
            colours: vec![4, 8],
            ..UsageReport::default()
        };
        let chart = draw_report_chart(&report);
        let classes: Vec<_> = chart.series.iter().map(|series| series.class.as_str()).collect();
        assert_eq!(classes, ["c4", "cx"]);
        assert!(chart.has_missing() && chart.bars[3].title.ends_with("incomplete"));
        assert_eq!((chart.bars.len(), chart.bars[0].total.as_str()), (31, "3"));
        assert!(draw_report_chart(&UsageReport::default()).is_empty);
    }
}
