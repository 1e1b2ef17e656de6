//! People's jobs: read, recorded, kept up to date, and turned into notifications. Reads and acts through `cluster`,
//! over the person's own connection.

pub mod actions;
mod change_notifications;
pub mod job_details;
mod job_details_cache;
pub mod job_list;
mod job_record;
pub mod notification_digest;
pub mod notifications;
mod older_jobs;
pub mod output;
pub mod past_runs;
mod queue_diff;
pub mod queue_monitor;
pub mod queue_snapshot;
mod refresh;
mod save;
pub mod saved_recipes;
pub mod submissions;
pub mod submit_checks;
pub mod webhook;

pub use job_details::JobDetails;
pub use job_details_cache::{JobDetailsCache, LoadedJobDetails};
pub use job_list::JobListItem;
pub use job_record::JobRecord;
pub use output::JobOutputCache;
pub use past_runs::PastRunsCache;
pub use queue_monitor::QueueMonitor;
pub use queue_snapshot::{PersonQueueSnapshot, QueueReadError};
pub use saved_recipes::SavedRecipeService;
pub use submissions::SubmissionWorker;
pub use submit_checks::SubmitCheckCache;
