//! Terminals as people see them: the list, a terminal's page, and the socket behind it. `crate::terminals` holds them.

mod list;
pub mod open;
pub mod socket;
pub mod terminal;

pub use list::get as list;

use crate::terminals::TerminalSession;

/// What a terminal is, for headings and lists.
fn terminal_title(session: &TerminalSession) -> String {
    match session.job {
        Some(job) => format!("Job {job} on {}", session.cluster),
        None => session.cluster.clone(),
    }
}
