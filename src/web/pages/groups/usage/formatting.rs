//! Formatting of usage figures.

use crate::usage::{SiteUnit, UsageMeasure};

/// Precise enough that totals agree.
pub fn format_exact(amount: f64) -> String {
    // The sum of nothing is a negative zero.
    format!("{:.4}", amount + 0.0)
}

/// For example `core hours` or `RGU hours`.
pub fn measure_label(measure: UsageMeasure, unit: Option<SiteUnit>) -> String {
    format!("{} hours", measure.noun(unit))
}

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
        assert_eq!(format_exact(std::iter::empty::<f64>().sum()), "0.0000");
    }
}
