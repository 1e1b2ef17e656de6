//! How a cluster is reached. The only module that uses `openssh`, and the only one that can run a remote command.

pub mod agent;
pub mod askpass;
mod call_budget;
pub mod command;
pub mod connection;
pub mod control_master;
mod exec;
mod forward;
pub mod host_keys;
pub mod key_import;
pub mod keys;
pub mod login;
pub mod login_error;
pub mod process;
pub mod route;
pub mod sftp;
mod slots;
pub mod terminal;
mod wipe;
mod wire;

pub use call_budget::ConnectionStats;
pub use command::{DeferredInputSentFlag, RemoteCommand, RemoteCommandMode};
pub use connection::{ClusterConnection, CommandOutput, RunCommandError, SHELL_FAILED};
pub use control_master::ControlMaster;
pub use forward::ForwardError;
pub use login_error::{ConnectError, RouteHop, SshLoginError};
pub use slots::CallUrgency;
