//! Composing jobs: recipes to choose from, the form with its script beside it, what the job means, and submitting it.

pub mod again;
pub mod cards;
pub mod chosen;
pub mod estimate;
pub mod fields;
pub mod filled;
pub mod form;
pub mod meaning;
pub mod panel;
pub mod place;
pub mod rework;
pub mod sizes;
pub mod submit;

/// A form with a script by hand in it, and the one it was made from.
pub const LARGEST_FORM: usize = 2 * 1024 * 1024;
