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
mod automation;
mod browser;
mod browser_compose;
mod browser_connect;
mod browser_dashboards;
mod browser_folders;
mod browser_jobs;
mod cluster;
mod cluster_names;
mod command_line;
mod compose;
mod connection_faults;
mod connection_timeouts;
mod connections;
mod dashboard_access;
mod dashboard_jobs;
mod dashboard_lifecycle;
mod dashboards;
mod estimates;
mod events;
mod fair_share;
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
mod login_prompts;
mod login_shells;
mod notifications;
mod other_peoples_connections;
mod people;
mod queue;
mod queue_faults;
mod recipes;
mod recipes_scripts;
mod reports;
mod restarts;
mod saved_recipes;
mod second_factor;
mod secrets;
mod sessions;
mod set_up;
mod sign_in;
mod sign_out_effects;
mod stolen_database;
mod submission_faults;
mod submissions;
mod support;
mod tampered_keys;
mod upgrade;
mod usage;
mod usage_alerts;
mod usage_pages;
mod webhooks;
