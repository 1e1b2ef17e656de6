//! Composing jobs: recipes to choose from, the form with its script beside it, what the job means, and submitting it.

pub mod choose_recipe;
pub mod compose_target;
pub mod cost_and_start;
pub mod edit_form;
pub mod fields;
pub mod form;
pub mod form_values;
pub mod recipe_lookup;
pub mod resubmit;
pub mod right_size;
pub mod script_panel;
pub mod start_estimate;
pub mod submit;

/// A form with a script by hand in it, and the one it was made from.
pub const MAX_FORM_BYTES: usize = 2 * 1024 * 1024;
