//! How a cluster is reached. The only room that names `openssh`, and the only one that can run a remote command.

pub mod agent;
pub mod command;
mod exec;
pub mod failure;
mod forward;
pub mod host_keys;
pub mod key_import;
pub mod keys;
pub mod line;
pub mod master;
pub mod opening;
pub mod process;
pub mod prompts;
pub mod route;
pub mod sftp;
mod slots;
mod tally;
mod wipe;
mod wire;

pub use command::{Dialect, Given, RemoteCommand};
pub use failure::{Failure, Hop};
pub use forward::ForwardError;
pub use line::{Line, Output, RunError};
pub use master::Master;
pub use slots::Urgency;
pub use tally::Figures;
