//! Jobs: the list, single jobs, and what one can do to them.

pub mod act;
mod array;
pub mod choices;
pub mod download;
mod facts;
pub mod found;
pub mod job;
pub mod list;
pub mod output;
pub mod queues;
pub mod row;
mod story;
mod view;

pub use queues::Places;
