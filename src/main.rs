//! The `portolan` program: reads the command line and does what it says.

use std::process::ExitCode;

use clap::Parser as _;
use portolan::cli;

fn main() -> ExitCode {
    match cli::run(cli::Cli::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("portolan: {error:#}");
            ExitCode::FAILURE
        }
    }
}
