//! Pages for the portal's administrators.

pub(in crate::web) mod activity;
pub(in crate::web) mod people;
