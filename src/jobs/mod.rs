//! People's jobs: what is known of them, kept fresh, written down and told. Reads and acts through `cluster`, over the
//! person's own connection.

pub mod actions;
pub mod entry;
mod keep;
mod merge;
mod news;
pub mod notices;
pub mod output;
pub mod paper;
mod papers;
pub mod picture;
mod record;
mod refresh;
pub mod tidings;
pub mod watch;
pub mod webhook;

pub use entry::Entry;
pub use output::Outputs;
pub use paper::Paper;
pub use papers::{Papers, Sheet};
pub use picture::{Picture, Trouble};
pub use record::Record;
pub use watch::{QueueKey, Queues};
