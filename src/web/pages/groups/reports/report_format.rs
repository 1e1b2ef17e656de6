//! Words of a report's page, for its templates.
#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "templates hand over references"
)]

use crate::clock::UnixTime;
use crate::format;
use crate::usage::report::ReportFigures;

/// An amount of hours.
pub fn amount(hours: &f64) -> String {
    format::amount(*hours)
}

/// A part of the whole, if it is known.
pub fn percent(part: &Option<f64>) -> String {
    format::or_unknown(*part, format::percent)
}

/// A part of the whole.
pub fn part(part: &f64) -> String {
    format::percent(*part)
}

/// A part of the whole for a bar, which ends at 100.
pub fn filled(part: &f64) -> u64 {
    format::round(part.min(1.0) * 100.0)
}

/// How long jobs waited.
pub fn wait(seconds: &Option<u64>) -> String {
    format::or_unknown(*seconds, format::duration)
}

/// A number of jobs.
pub fn number(jobs: &u64) -> String {
    format::number(*jobs)
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
            format::amount(line.lost_core_hours),
            format::amount(line.lost_gpu_hours)
        ),
        (_, false) => format::amount(line.lost_core_hours),
    }
}

/// GPU hours by model: `v100 120, t4 3.5`; empty if models are not known.
pub fn models(line: &ReportFigures) -> String {
    let one = |(model, hours): &(String, f64)| format!("{model} {}", format::amount(*hours));
    line.gpus.iter().map(one).collect::<Vec<_>>().join(", ")
}
