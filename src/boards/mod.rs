//! Boards: `TensorBoard` and `MLflow`. Each run of one is a Slurm job of its owner, reached through the owner's own
//! connection.
//!
//! `kind` names them, `job` writes the job's script (with `server.py` in it), `state` reads what the job tells of
//! itself, `handshake` proves both ends of a connection to each other, `allowed` says what guests may ask for.
//! `wish` and `wishes` take what people want, `keeper` carries it out (`hand_over`, `reach`), `shares` are links for guests, and
//! `entry` decides who may look.

pub mod allowed;
mod desk;
pub mod entry;
mod hand_over;
pub mod handshake;
pub mod job;
mod keeper;
mod kind;
mod reach;
pub mod shares;
pub mod state;
pub mod wish;
pub mod wishes;

pub use desk::{Boards, Parts, Standing, whose};
pub use entry::{NoEntry, Pass, Who};
pub use kind::Kind;
pub use reach::Live;
pub use wish::Wish;
pub use wishes::{LONGEST, NotDone, SHORTEST, USUAL};
