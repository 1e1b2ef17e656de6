//! The `portolan` program: reads the command line and does what it says.

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;
use portolan::cli;
use zeroizing_alloc::ZeroAlloc;

/// Password checks take 19 MiB at a time; the system's allocator keeps such pieces, this one gives them back.
/// Everything is wiped when it is freed, so that passwords and keys do not linger in buffers of other people's code.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

fn main() -> ExitCode {
    // Started by ssh to ask a question: does that and nothing else.
    if let Some(code) = portolan::ssh::askpass::run_askpass_helper() {
        return code;
    }
    match cli::run(cli::CliArgs::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("portolan: {error:#}");
            ExitCode::FAILURE
        }
    }
}
