//! What a person can do with a cluster: connect, discover, disconnect. Everything runs over their own connection.

pub mod accounted_jobs;
pub mod accounting_day;
pub mod accounting_visibility;
pub mod administration;
mod attempt_log;
pub mod automation_wrapper;
pub mod checksums;
pub mod cluster_account;
pub mod cluster_profile;
mod connect;
mod connect_attempt;
pub mod connection_pool;
pub mod dashboard_folders;
pub mod discovered_facts;
mod discovery;
pub mod estimate;
pub mod folder_sizes;
pub mod folders;
mod forget;
pub mod job_actions;
pub mod job_details_query;
pub mod job_shell;
pub mod output_file;
pub mod past_runs;
mod pool_maintenance;
pub mod queue;
pub mod same_cluster;
pub mod submit;
pub mod submit_checks;

pub use cluster_account::{ClusterAccount, ClusterAccountCache, ClusterAccountId};
pub use cluster_profile::ClusterProfile;
pub use connect_attempt::{ConnectAttempt, ConnectPurpose, ConnectState};
pub use connection_pool::{ConnectStartError, ConnectionPool, ConnectionStatus, OpenConnection};
pub use discovered_facts::DiscoveredFacts;
