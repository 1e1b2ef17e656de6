//! Portolan: a self-hosted web portal through which a research lab uses its Slurm clusters from a browser.
//!
//! Who may use whom (nothing points back; `tests/it/house.rs` guards it):
//!
//! ```text
//! main → cli → web → app → {jobs, dashboards, usage} → cluster → {ssh, slurm, sites, core} → auth → store, vault
//! web → explain, recipes, logs, proxy        explain → recipes, slurm, sites, logs
//! everyone → domain, clock, config, entropy, text, format
//! ```
//!
//! `web` alone names `axum` and `askama`, `store` alone `sqlx`, `ssh` alone `openssh`, `recipes` alone `minijinja`.
//! `docs/ARCHITECTURE.md` says what each room does, `docs/GLOSSARY.md` what each term means.

pub mod app;
pub mod auth;
pub mod cli;
pub mod clock;
pub mod cluster;
pub mod config;
pub mod core;
pub mod dashboards;
pub mod domain;
pub mod entropy;
pub mod error;
pub mod explain;
pub mod format;
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
pub mod text;
pub mod usage;
pub mod vault;
pub mod web;
