//! What the facts about a job mean, in words for people who have never seen a terminal. Pure. Slurm's own terms stay
//! beside ours, and sentences contain no times: pages show those in the reader's time zone.

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
mod terms;
pub mod verdict;
pub mod waiting;

pub use terms::GlossaryTerm;
