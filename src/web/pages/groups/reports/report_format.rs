//! Formatting helpers for the report templates.
#![expect(clippy::trivially_copy_pass_by_ref, clippy::ref_option, reason = "templates hand over references")]

use crate::clock::UnixTime;
use crate::format;
use crate::usage::report::ReportTableRow;
use crate::web::pages::groups::usage::allocation_card;

pub fn amount(hours: &f64) -> String {
    format::amount(*hours)
}

/// What was granted.
pub fn granted(amount: &f64) -> String {
    format::fine_amount(*amount)
}

/// A fraction as a percentage, if it is known.
pub fn percent(part: &Option<f64>) -> String {
    format::or_unknown(*part, format::percent)
}

/// A fraction as a percentage.
pub fn part(part: &f64) -> String {
    format::percent(*part)
}

/// A fraction as a percentage for a bar, at most 100.
pub fn filled(part: &f64) -> u64 {
    format::round(part.min(1.0) * 100.0)
}

/// The style of that bar, by the same rule as on the usage page.
pub fn level(part: &f64) -> &'static str {
    allocation_card::level(*part)
}

/// How long jobs waited, if it is known.
pub fn wait(seconds: &Option<u64>) -> String {
    format::or_unknown(*seconds, format::rough_duration)
}

/// How jobs ended without success, such as `2 failed, 1 lost to node failures`; empty if none did.
pub fn outcomes(row: &ReportTableRow) -> String {
    let parts = [
        (row.failed, "failed"),
        (row.timed_out, "timed out"),
        (row.memory_out, "out of memory"),
        (row.missed_deadline, if row.missed_deadline == 1 { "missed its deadline" } else { "missed their deadline" }),
        (row.node_failed, "lost to node failures"),
        (row.interrupted, "interrupted by the cluster"),
    ];
    let part = |(count, words): (u64, &str)| (count > 0).then(|| format!("{} {words}", format::number(count)));
    parts.into_iter().filter_map(part).collect::<Vec<_>>().join(", ")
}

pub fn number(jobs: &u64) -> String {
    format::number(*jobs)
}

pub fn moment(at: &i64) -> String {
    UnixTime(*at).words()
}

/// Wasted hours.
pub fn lost(row: &ReportTableRow) -> String {
    match (row.lost_core_hours > 0.0, row.lost_gpu_hours > 0.0) {
        (_, true) => {
            format!("{} core + {} GPU", format::amount(row.lost_core_hours), format::amount(row.lost_gpu_hours))
        }
        (_, false) => format::amount(row.lost_core_hours),
    }
}

/// GPU hours by model, such as `v100 120, t4 3.5`; empty if models are unknown.
pub fn models(row: &ReportTableRow) -> String {
    let part = |(model, hours): &(String, f64)| format!("{model} {}", format::amount(*hours));
    row.gpus.iter().map(part).collect::<Vec<_>>().join(", ")
}
