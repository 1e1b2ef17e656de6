//! The verbs a person has on a cluster: connect, look around, disconnect. Everything goes over their own connection.

pub mod administration;
mod attempt;
mod connect;
pub mod estimate;
pub mod folders;
pub mod found_boards;
pub mod job_actions;
pub mod job_paper;
mod keeper;
pub mod known;
pub mod learnt;
pub mod lines;
mod look;
mod notes;
pub mod output;
pub mod past_use;
pub mod queue;
pub mod submit;
pub mod usage;
pub mod wrapper;

pub use attempt::{Attempt, Progress, Purpose};
pub use known::Known;
pub use learnt::Learnt;
pub use lines::{Lines, NotBegun, Parts, Status, UpStatus};
