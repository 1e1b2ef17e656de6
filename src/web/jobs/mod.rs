//! Jobs: the list, single jobs, and what one can do to them.

pub mod act;
pub mod list;
mod queues;
mod row;
mod view;

pub use queues::Places;
