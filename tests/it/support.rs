//! What the tests stand on: a portal in this process, people who use it, the program itself, a browser.

pub mod app;
pub mod browser;
pub mod client;
pub mod cluster;
pub mod connections;
pub mod program;
pub mod relay;
pub mod secret_scan;
pub mod server;
pub mod totp;
pub mod wait;

pub use app::TestApp;
pub use client::{Client, Page};

/// The password of everyone in the tests.
pub const PASSWORD: &str = "quiet harbour at dawn";
