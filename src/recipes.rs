//! From a form to a script: recipe files, typed questions, quoting, sweeps. Pure: no files, no cluster, no clock.

pub mod catalog;
pub mod compose;
pub mod context;
pub mod edits;
pub mod form;
pub mod overrides;
pub mod partition_choice;
pub mod question;
pub mod quoting;
pub mod recipe;
pub mod request;
pub mod requirements;
pub mod sbatch_options;
pub mod script_import;
pub mod sweep;
pub mod template;
pub mod value;
pub mod working_folder;
