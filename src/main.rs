//! The `portolan` program: reads the command line and does what it says.

use std::process::ExitCode;

use clap::Parser as _;
use portolan::cli;

/// Password checks take 19 MiB at a time; the system's allocator keeps such pieces, this one gives them back.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    match cli::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("portolan: {error:#}");
            ExitCode::FAILURE
        }
    }
}
