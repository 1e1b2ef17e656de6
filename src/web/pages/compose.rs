//! Composing jobs: choosing a recipe, the form with its script beside it, cost and start, and submitting.

pub mod choose_recipe;
pub mod compose_target;
pub mod cost_and_start;
pub mod edit_form;
pub mod example;
pub mod fields;
pub mod form;
pub mod form_values;
pub mod job_draft;
pub mod recipe_lookup;
pub mod repeated_job;
pub mod resubmit;
pub mod right_size;
pub mod script_panel;
pub mod start_estimate;
pub mod submit;
pub mod submit_checks;

/// Room for a form with a hand-edited script and the script it was edited from.
pub const MAX_FORM_BYTES: usize = 2 * 1024 * 1024;
