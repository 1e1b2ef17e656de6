//! Portolan: a self-hosted web portal through which a research lab uses its Slurm clusters from a browser.
//!
//! Which module may use which (nothing points back; `tests/it/house.rs` enforces it):
//!
//! ```text
//! main → cli → web → app → {dashboards, files, terminals, usage} → jobs → cluster → {ssh, slurm, sites}, core → auth → store, vault
//! web, jobs → explain, recipes, logs       dashboards → proxy, recipes       usage → explain → recipes, slurm, sites, logs
//! where needed → domain, clock, config, entropy, text, format
//! ```
//!
//! Only `web` uses `axum` and `askama`, only `store` `sqlx`, only `ssh` `openssh`, and only `recipes` `minijinja`.
//! `docs/ARCHITECTURE.md` describes each module, `docs/GLOSSARY.md` each term.

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
pub mod files;
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
pub mod terminals;
pub mod text;
pub mod usage;
pub mod vault;
pub mod web;
