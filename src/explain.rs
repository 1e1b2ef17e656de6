//! What the facts about a job mean, in words for people who never saw a terminal.
//! Pure. Slurm's own words stay beside ours, and no moments stand in sentences: pages show those in the reader's time.

pub mod alternatives;
pub mod amounts;
pub mod can_start;
pub mod cost;
pub mod efficiency;
pub mod exit;
pub mod fair_share;
mod job_types;
pub mod refusals;
pub mod right_size;
pub mod sbatch;
pub mod verdict;
pub mod waiting;
