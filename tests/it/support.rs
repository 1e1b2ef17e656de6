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

/// Text is compared with the snapshots in the folder of this test, until the value is dropped. After a change that was
/// meant, `INSTA_UPDATE=always` writes them anew.
pub fn snapshots_in(test: &str) -> insta::internals::SettingsBindDropGuard {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(test);
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind_to_scope()
}
