//! A report's chart: hours per day, stacked by person.

use crate::clock::Day;
use crate::usage::report::{ReportChartDay, UsageReport};
use crate::web::pages::groups::stacked_bar_chart::{ChartFrame, StackedBar, StackedBarChart};

/// Leaves room for labels on the left and below.
const FRAME: ChartFrame = ChartFrame { left: 56.0, right: 706.0, top: 10.0, bottom: 176.0 };

pub fn draw_report_chart(report: &UsageReport) -> StackedBarChart {
    // Older reports store no colours: assign them in order.
    let colour = |at: usize| report.colours.get(at).copied().unwrap_or(at);
    let series = report.series.iter().enumerate().map(|(at, name)| (Some(colour(at)), name.clone()));
    let bar = |bar: &ReportChartDay| StackedBar {
        label: bar.until.map_or_else(|| bar.day.words(), |until| describe_days(bar.day, until)),
        mark: bar.day.short(),
        parts: bar.parts.clone(),
        missing: if bar.is_missing { "incomplete".to_owned() } else { String::new() },
        href: String::new(),
    };
    let bars = report.bars.iter().map(bar).collect();
    StackedBarChart::draw(&FRAME, &report.measure, series.collect(), bars)
}

/// `3 Nov to 9 Nov 2026`, with both years if they differ.
fn describe_days(from: Day, until: Day) -> String {
    let is_same_year = from.month().year() == until.month().year();
    format!("{} to {}", if is_same_year { from.short() } else { from.words() }, until.words())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_week_across_new_year_names_both_years() {
        let new_year = Day::parse("2026-01-01").unwrap();
        assert_eq!(describe_days(new_year.plus(-3), new_year.plus(3)), "29 Dec 2025 to 4 Jan 2026");
        assert_eq!(describe_days(new_year, new_year.plus(6)), "1 Jan to 7 Jan 2026");
    }

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
