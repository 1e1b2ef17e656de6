//! Jobs: the list, the page of a job, and job actions.

pub(in crate::web) mod submissions;

mod action_buttons;
mod action_words;
pub mod actions;
mod array;
mod can_resubmit;
pub mod cluster_queues;
pub mod download;
mod facts;
mod failure_hints;
mod history;
pub mod job;
pub mod job_lookup;
pub mod list;
pub mod list_options;
mod list_query;
pub mod list_row;
mod older_job;
pub mod output;
mod output_words;
mod priority_parts;
mod program_folder;
mod result_groups;
pub mod results;
mod timeline;
