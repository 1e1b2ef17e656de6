//! Figures of use in words.

use crate::explain::amounts;
use crate::usage::{AllocationUnit, SiteUnit, UsageMeasure};

pub const UNKNOWN: &str = "–";

/// Hours, or any other amount: one digit after the point while that says something.
pub fn format_amount(amount: f64) -> String {
    match amount {
        less if less <= 0.0 => "0".to_owned(),
        little if little < 0.05 => "<0.1".to_owned(),
        some if some < 99.95 => format!("{some:.1}"),
        much => amounts::format_number(round_to_u64(much)),
    }
}

/// An amount exactly enough that sums agree.
pub fn format_exact(amount: f64) -> String {
    format!("{amount:.4}")
}

/// A part of a whole: `87 %`.
pub fn format_percent(part: f64) -> String {
    if part > 0.0 && part < 0.01 {
        "<1 %".to_owned()
    } else {
        format!("{} %", amounts::format_number(round_to_u64(part * 100.0)))
    }
}

/// A part that may not be known.
pub fn format_optional_percent(part: Option<f64>) -> String {
    part.map_or_else(|| UNKNOWN.to_owned(), format_percent)
}

/// Seconds that may not be known.
pub fn format_wait(seconds: Option<u64>) -> String {
    seconds.map_or_else(|| UNKNOWN.to_owned(), amounts::format_duration)
}

/// `core hours`, `RGU hours`.
pub fn measure_label(measure: UsageMeasure, unit: Option<SiteUnit>) -> String {
    format!("{} hours", unit_noun(measure, unit))
}

/// `core hours`, `GPU years`.
pub fn unit_label(unit: AllocationUnit, site: Option<SiteUnit>) -> String {
    let many = if unit.in_years { "years" } else { "hours" };
    format!("{} {many}", unit_noun(unit.measure, site))
}

fn unit_noun(measure: UsageMeasure, unit: Option<SiteUnit>) -> &'static str {
    match measure {
        UsageMeasure::Cores => "core",
        UsageMeasure::Gpus => "GPU",
        UsageMeasure::Site => unit.map_or("site", SiteUnit::title),
    }
}

/// With a capital letter at its beginning.
pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// The nearest whole number.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bounded before")]
pub fn round_to_u64(number: f64) -> u64 {
    if number.is_finite() { number.clamp(0.0, 1e15).round() as u64 } else { 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        for (hours, words) in [
            (0.0, "0"),
            (-3.0, "0"),
            (0.01, "<0.1"),
            (3.25, "3.2"),
            (99.96, "100"),
            (12_345.6, "12,346"),
            (f64::NAN, "0"),
        ] {
            assert_eq!(format_amount(hours), words);
        }
        assert_eq!(
            (format_percent(0.874), format_percent(0.001), format_optional_percent(None)),
            ("87 %".into(), "<1 %".into(), UNKNOWN.into())
        );
        assert_eq!(measure_label(UsageMeasure::Site, Some(SiteUnit::ReferenceGpus)), "RGU hours");
    }
}
