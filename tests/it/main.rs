//! Integration tests: the whole portal, driven through HTTP and a real browser, and the program itself.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod accessibility;
mod activity;
mod attacks;
mod browser;
mod cluster;
mod command_line;
mod events;
mod faults;
mod groups;
mod health;
mod house;
mod invitations;
mod people;
mod second_factor;
mod sessions;
mod set_up;
mod sign_in;
mod support;
