//! From a form to a script: recipe files, typed questions, quoting, sweeps. Pure: no files, no cluster, no clock.

pub mod book;
pub mod compose;
pub mod edits;
pub mod fits;
pub mod form;
pub mod keep;
pub mod place;
pub mod question;
pub mod quoting;
pub mod read_back;
pub mod recipe;
pub mod request;
pub mod sweep;
pub mod template;
pub mod value;
