//! Dashboards: TensorBoard and MLflow. Each run of one is a Slurm job of its owner, reached through the owner's own
//! connection.
//!
//! `job` writes the job's script (with `server.py` in it), `job_report` reads what the job reports about itself,
//! `handshake` authenticates both ends of a connection, and `read_only` limits what guests may request.
//! `new_dashboard` and `actions` take people's requests, and `reconciler` carries them out with `launch` and
//! `connect`. `guest_links` are links for guests, and `access` decides who may view a dashboard.

pub mod access;
pub mod actions;
mod connect;
pub mod guest_links;
pub mod handshake;
pub mod job;
pub mod job_report;
mod kind;
mod launch;
pub mod new_dashboard;
pub mod read_only;
mod reconciler;
mod run_end;
mod service;

pub use access::{CheckedDashboardAccess, DashboardViewer};
pub use actions::{DEFAULT_RUN_MINUTES, DashboardError, MAX_RUN_MINUTES, MIN_RUN_MINUTES};
pub use connect::LiveDashboard;
pub use kind::DashboardKind;
pub use new_dashboard::NewDashboard;
pub use service::{DashboardWithRuns, Dashboards, owner_of};
