//! People's jobs: what is known of them, kept fresh, written down and told. Reads and acts through `cluster`, over the
//! person's own connection.

pub mod actions;
pub mod entry;
mod keep;
pub mod kitchen;
mod merge;
mod news;
pub mod notices;
pub mod output;
pub mod paper;
mod papers;
pub mod past;
pub mod picture;
mod record;
mod refresh;
pub mod submissions;
pub mod tidings;
pub mod watch;
pub mod webhook;

pub use entry::Entry;
pub use kitchen::Kitchen;
pub use output::Outputs;
pub use paper::Paper;
pub use papers::{Papers, Sheet};
pub use past::Past;
pub use picture::{Picture, Trouble};
pub use record::Record;
pub use submissions::Submissions;
pub use watch::{QueueKey, Queues};
