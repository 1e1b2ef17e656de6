//! How a cluster is reached.

pub mod host_keys;
