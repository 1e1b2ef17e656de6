//! Words of a report's page, for its templates.
#![expect(
    clippy::trivially_copy_pass_by_ref,
    clippy::ref_option,
    reason = "templates hand over references"
)]

use crate::clock::UnixTime;
use crate::explain::sizes;
use crate::usage::report::{self, Line};

/// Where nothing is known.
const UNKNOWN: &str = "–";

/// An amount of hours.
pub fn amount(hours: &f64) -> String {
    report::amount(*hours)
}

/// A part of the whole, if it is known.
pub fn percent(part: &Option<f64>) -> String {
    part.map_or_else(|| UNKNOWN.to_owned(), report::percent)
}

/// A part of the whole.
pub fn part(part: &f64) -> String {
    report::percent(*part)
}

/// A part of the whole for a bar, which ends at 100.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
pub fn filled(part: &f64) -> u32 {
    (part.clamp(0.0, 1.0) * 100.0).round() as u32
}

/// How long jobs waited.
pub fn wait(seconds: &Option<u64>) -> String {
    seconds.map_or_else(|| UNKNOWN.to_owned(), sizes::duration)
}

/// A number of jobs.
pub fn number(jobs: &u64) -> String {
    sizes::number(*jobs)
}

/// When it was made.
pub fn moment(at: &i64) -> String {
    UnixTime(*at).words()
}

/// Hours that came to nothing.
pub fn lost(line: &Line) -> String {
    match (line.lost_core_hours > 0.0, line.lost_gpu_hours > 0.0) {
        (_, true) => format!(
            "{} + {} GPU",
            report::amount(line.lost_core_hours),
            report::amount(line.lost_gpu_hours)
        ),
        (_, false) => report::amount(line.lost_core_hours),
    }
}

/// GPU hours by model: `v100 120, t4 3.5`; empty if models are not known.
pub fn models(line: &Line) -> String {
    let one = |(model, hours): &(String, f64)| format!("{model} {}", report::amount(*hours));
    line.gpus.iter().map(one).collect::<Vec<_>>().join(", ")
}
