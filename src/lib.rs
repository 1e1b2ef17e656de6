//! Portolan: a self-hosted web portal through which a research lab uses its Slurm clusters from a browser.
//!
//! The rooms and who may use whom (nothing points back; `tests/it/house.rs` guards it):
//!
//! ```text
//! main → cli → app → web → auth → store, vault
//!              app → housekeeping, health, telemetry
//!              cli → ssh (scanning host keys)
//! ```
//!
//! `store` is the only room that names `sqlx`, `web` the only one that names `axum` and `askama`.
//! `domain` and `clock` are words that everyone shares.

pub mod app;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod config;
pub mod domain;
pub mod entropy;
pub mod error;
pub mod health;
pub mod housekeeping;
pub mod outgoing;
pub mod probe;
pub mod ssh;
pub mod store;
pub mod telemetry;
pub mod vault;
pub mod web;
