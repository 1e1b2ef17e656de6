//! Boards: TensorBoard and MLflow, each run of one a Slurm job of its owner, reached through the owner's own connection.
//!
//! `kind` names them, `job` writes the job's script (with `server.py` in it), `state` reads what the job tells of
//! itself, `handshake` proves both ends of a connection to each other, `allowed` says what guests may ask for.

pub mod allowed;
pub mod handshake;
pub mod job;
mod kind;
pub mod state;

pub use kind::Kind;
