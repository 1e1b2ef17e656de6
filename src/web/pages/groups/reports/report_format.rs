//! Words of a report's page, for its templates.
#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "templates hand over references"
)]

use crate::clock::UnixTime;
use crate::explain::amounts;
use crate::usage::report::{self, ReportFigures};

/// Where nothing is known.
const UNKNOWN: &str = "–";

/// An amount of hours.
pub fn amount(hours: &f64) -> String {
    report::format_amount(*hours)
}

/// A part of the whole, if it is known.
pub fn percent(part: &Option<f64>) -> String {
    part.map_or_else(|| UNKNOWN.to_owned(), report::format_percent)
}

/// A part of the whole.
pub fn part(part: &f64) -> String {
    report::format_percent(*part)
}

/// A part of the whole for a bar, which ends at 100.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
pub fn filled(part: &f64) -> u32 {
    (part.clamp(0.0, 1.0) * 100.0).round() as u32
}

/// How long jobs waited.
pub fn wait(seconds: &Option<u64>) -> String {
    seconds.map_or_else(|| UNKNOWN.to_owned(), amounts::format_duration)
}

/// A number of jobs.
pub fn number(jobs: &u64) -> String {
    amounts::format_number(*jobs)
}

/// When it was made.
pub fn moment(at: &i64) -> String {
    UnixTime(*at).words()
}

/// Hours that came to nothing.
pub fn lost(line: &ReportFigures) -> String {
    match (line.lost_core_hours > 0.0, line.lost_gpu_hours > 0.0) {
        (_, true) => format!(
            "{} + {} GPU",
            report::format_amount(line.lost_core_hours),
            report::format_amount(line.lost_gpu_hours)
        ),
        (_, false) => report::format_amount(line.lost_core_hours),
    }
}

/// GPU hours by model: `v100 120, t4 3.5`; empty if models are not known.
pub fn models(line: &ReportFigures) -> String {
    let one = |(model, hours): &(String, f64)| format!("{model} {}", report::format_amount(*hours));
    line.gpus.iter().map(one).collect::<Vec<_>>().join(", ")
}
