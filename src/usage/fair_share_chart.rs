//! Fair share over time as a line chart: the coordinates of its points in a drawing of fixed size. Pure.

use super::fair_share::{format_times, ratio_of_point};
use super::forecast::to_f64;
use crate::clock::{Day, SECONDS_PER_DAY, UnixTime};
use crate::format;
use crate::store::fair_share_history::FairSharePoint;

pub const WIDTH: f64 = 640.0;
pub const HEIGHT: f64 = 160.0;
/// Room for labels on the left.
const LEFT: f64 = 64.0;
/// Room around the line.
const EDGE: f64 = 12.0;
/// Ratios are clipped to this range.
const RANGE: (f64, f64) = (0.01, 100.0);
/// The line breaks where there is no point for longer than this, in seconds.
const MAX_GAP_SECONDS: i64 = 4 * SECONDS_PER_DAY;
/// At most this many points are drawn.
const MAX_POINTS: usize = 240;
/// Labelled ratios: the ratio, its label, and whether it gives way to the next where there is little room.
const MARKS: [(f64, &str, bool); 6] = [
    (0.01, "1%", false),
    (0.1, "10%", false),
    (0.5, "half", true),
    (2.0, "2 ×", true),
    (10.0, "10 ×", false),
    (100.0, "100 ×", false),
];

#[derive(Debug, Clone, PartialEq)]
pub struct FairShareHistoryChart {
    /// Segments without a gap: `x,y x,y …`.
    pub segments: Vec<String>,
    pub last: (String, String),
    /// Height of the line for exactly its share.
    pub baseline_y: String,
    /// Other heights, with their labels.
    pub marks: Vec<(String, &'static str)>,
    /// The first and the last day.
    pub days: (String, String),
    /// Description for screen readers.
    pub label: String,
}

/// Draws the points; none if there are fewer than two.
pub fn draw_chart(points: &[FairSharePoint]) -> Option<FairShareHistoryChart> {
    let step = points.len().div_ceil(MAX_POINTS).max(1);
    let known: Vec<(UnixTime, f64)> = points
        .iter()
        .rev()
        .step_by(step)
        .filter_map(|point| Some((point.at, ratio_of_point(point)?.clamp(RANGE.0, RANGE.1))))
        .collect::<Vec<_>>()
        .into_iter()
        .rev()
        .collect();
    let (first, last) = (known.first()?, known.last()?);
    let span = last.0.since(first.0);
    if span <= 0 {
        return None;
    }
    // The line at 1 always has room above and below.
    let low = known.iter().map(|one| one.1).fold(0.5, f64::min);
    let high = known.iter().map(|one| one.1).fold(2.0, f64::max);
    let y = |ratio: f64| {
        let part = (ratio.ln() - low.ln()) / (high.ln() - low.ln());
        format::coordinate(HEIGHT - EDGE - part * (HEIGHT - 2.0 * EDGE))
    };
    let x = |at: UnixTime| format::coordinate(LEFT + to_f64(at.since(first.0)) / to_f64(span) * (WIDTH - LEFT - EDGE));
    let mut segments: Vec<String> = Vec::new();
    let mut before: Option<UnixTime> = None;
    for (at, ratio) in &known {
        let point = format!("{},{}", x(*at), y(*ratio));
        match segments.last_mut().filter(|_| before.is_some_and(|b| at.since(b) <= MAX_GAP_SECONDS)) {
            Some(segment) => *segment = format!("{segment} {point}"),
            None => segments.push(point),
        }
        before = Some(*at);
    }
    let is_crowded = low < 0.09 || high > 11.0;
    let fits = |(ratio, _, gives_way): &&(f64, &str, bool)| (low..=high).contains(ratio) && !(*gives_way && is_crowded);
    let marks = MARKS.iter().filter(fits).map(|(ratio, words, _)| (y(*ratio), *words)).collect();
    let words = |ratio: f64| if ratio > 1.0 { format_times(ratio) } else { format::percent(ratio) };
    let days = (Day::from_time(first.0).short(), Day::from_time(last.0).short());
    let label = format!(
        "Usage relative to the share, {} to {}: from {} to {} of the share; lowest {}, highest {}",
        days.0,
        days.1,
        words(first.1),
        words(last.1),
        words(known.iter().map(|one| one.1).fold(f64::INFINITY, f64::min)),
        words(known.iter().map(|one| one.1).fold(0.0, f64::max)),
    );
    Some(FairShareHistoryChart { last: (x(last.0), y(last.1)), baseline_y: y(1.0), segments, marks, days, label })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn point(day: i64, used: f64) -> FairSharePoint {
        FairSharePoint { at: UnixTime(1_790_000_000 + day * 86_400), share: 0.2, used }
    }

    #[test]
    fn a_line_with_a_gap() {
        let line = draw_chart(&[point(0, 0.2), point(1, 0.4), point(2, 0.8), point(20, 0.1)]).unwrap();
        assert_eq!(line.segments.len(), 2, "{line:?}");
        assert!(line.segments[0].starts_with("64.0,"), "{line:?}");
        assert!(line.label.contains("highest 4.0 times"), "{}", line.label);
        assert!(line.marks.iter().any(|(_, words)| *words == "2 ×"));
        let (one, last): (f64, f64) = (line.baseline_y.parse().unwrap(), line.last.1.parse().unwrap());
        assert!(last > one, "less than its share lies below");
    }

    #[test]
    fn too_few_points() {
        assert_eq!(draw_chart(&[]), None);
        assert_eq!(draw_chart(&[point(0, 0.1)]), None);
        assert_eq!(draw_chart(&[point(0, 0.1), point(0, 0.2)]), None);
    }

    proptest! {
        #[test]
        fn any_points_lie_inside(
            points in proptest::collection::vec((0_i64..400, proptest::num::f64::ANY, proptest::num::f64::ANY), 0..400),
        ) {
            let mut points: Vec<FairSharePoint> = points
                .into_iter()
                .map(|(day, share, used)| FairSharePoint { share, used, ..point(day, 0.0) })
                .collect();
            points.sort_by_key(|one| one.at);
            if let Some(line) = draw_chart(&points) {
                for number in line.segments.iter().flat_map(|segment| segment.split([' ', ','])) {
                    let number: f64 = number.parse().unwrap();
                    prop_assert!((0.0..=WIDTH).contains(&number));
                }
            }
        }
    }
}
