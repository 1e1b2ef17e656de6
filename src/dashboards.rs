//! Boards: `TensorBoard` and `MLflow`. Each run of one is a Slurm job of its owner, reached through the owner's own
//! connection.
//!
//! `kind` names them, `job` writes the job's script (with `server.py` in it), `state` reads what the job tells of
//! itself, `handshake` proves both ends of a connection to each other, `allowed` says what guests may ask for.
//! `wish` and `wishes` take what people want, `keeper` carries it out (`hand_over`, `reach`), `shares` are links for guests, and
//! `entry` decides who may look.

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

pub use access::{DashboardAccessError, DashboardPass, DashboardViewer};
pub use actions::{DEFAULT_RUN_MINUTES, DashboardError, MAX_RUN_MINUTES, MIN_RUN_MINUTES};
pub use connect::LiveDashboard;
pub use kind::DashboardKind;
pub use new_dashboard::NewDashboard;
pub use service::{DashboardStatus, Dashboards, owner_of};
