//! Figures of use in words.

use crate::usage::{SiteUnit, UsageMeasure};

/// An amount exactly enough that sums agree.
pub fn format_exact(amount: f64) -> String {
    format!("{amount:.4}")
}

/// `core hours`, `RGU hours`.
pub fn measure_label(measure: UsageMeasure, unit: Option<SiteUnit>) -> String {
    format!("{} hours", measure.noun(unit))
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
