//! Figures of use in words.

use crate::usage::{AllocationUnit, SiteUnit, UsageMeasure};

/// An amount exactly enough that sums agree.
pub fn format_exact(amount: f64) -> String {
    format!("{amount:.4}")
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_read_well() {
        assert_eq!(measure_label(UsageMeasure::Site, Some(SiteUnit::ReferenceGpus)), "RGU hours");
    }
}
