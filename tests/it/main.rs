//! Integration tests: the whole portal, driven through HTTP and a real browser, and the program itself.
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests fail by panicking"
)]

mod accessibility;
mod accessibility_clusters;
mod activity;
mod attacks;
mod board_access;
mod board_jobs;
mod board_life;
mod boards;
mod browser;
mod browser_boards;
mod browser_compose;
mod browser_connect;
mod browser_folders;
mod browser_jobs;
mod cluster;
mod cluster_names;
mod command_line;
mod compose;
mod connections;
mod estimates;
mod events;
mod faults;
mod folders;
mod groups;
mod health;
mod home_jobs;
mod host_key_alarm;
mod house;
mod invitations;
mod job_page;
mod key_import;
mod key_rotation;
mod leaving;
mod line_faults;
mod login_shells;
mod notices;
mod other_peoples_lines;
mod patience;
mod people;
mod questions;
mod queue;
mod queue_faults;
mod recipes;
mod recipes_scripts;
mod reports;
mod restarts;
mod robots;
mod saved_recipes;
mod sealed_rows;
mod sealing;
mod second_factor;
mod secrets;
mod sessions;
mod set_up;
mod sign_in;
mod submission_faults;
mod submissions;
mod support;
mod upgrade;
mod usage;
mod usage_alerts;
mod usage_pages;
mod usage_standing;
mod webhooks;
