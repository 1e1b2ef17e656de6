//! Portolan: a self-hosted web portal through which a research lab uses its Slurm clusters from a browser.
//!
//! The rooms and who may use whom (nothing points back; `tests/it/house.rs` guards it):
//!
//! ```text
//! main → cli → app → web → cluster → auth → store, vault
//!                          cluster → ssh (how it is reached), slurm (what it says), sites (what it is like)
//!              app → housekeeping, health, telemetry
//! ```
//!
//! `store` is the only room that names `sqlx`, `web` the only one that names `axum` and `askama`, `ssh` the only one
//! that names `openssh`.
//! `domain` and `clock` are words that everyone shares.

pub mod app;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod dashboards;
pub mod domain;
pub mod entropy;
pub mod error;
pub mod explain;
pub mod health;
pub mod housekeeping;
pub mod http_client;
pub mod jobs;
pub mod logs;
pub mod probe;
pub mod proxy;
pub mod recipes;
pub mod sites;
pub mod slurm;
pub mod ssh;
pub mod store;
pub mod telemetry;
pub mod usage;
pub mod vault;
pub mod web;
