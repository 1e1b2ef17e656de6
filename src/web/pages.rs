//! The pages, grouped like the navigation.

pub(in crate::web) mod account;
pub(in crate::web) mod admin;
pub(in crate::web) mod clusters;
pub(in crate::web) mod compose;
pub(in crate::web) mod dashboards;
pub(in crate::web) mod files;
pub(in crate::web) mod folders;
pub(in crate::web) mod groups;
pub(in crate::web) mod help;
pub(in crate::web) mod home;
pub(in crate::web) mod jobs;
pub(in crate::web) mod notifications;
pub(in crate::web) mod recipes;
pub(in crate::web) mod sign_in;
#[cfg(debug_assertions)]
pub(in crate::web) mod styleguide;
pub(in crate::web) mod terminals;
