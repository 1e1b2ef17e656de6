//! From a form to a script: recipe files, typed questions, quoting, sweeps. Pure: no files, no cluster, no clock.

pub mod place;
pub mod request;
