//! The `portolan` program: parses the command line and runs the command.

use std::process::ExitCode;

use clap::Parser as _;
use mimalloc::MiMalloc;
use portolan::cli;
use zeroizing_alloc::ZeroAlloc;

/// Password checks take 19 MiB each; the system's allocator holds on to such blocks, this one returns them. All
/// memory is wiped when freed, so that passwords and keys don't linger in buffers of third-party code.
#[global_allocator]
static ALLOCATOR: ZeroAlloc<MiMalloc> = ZeroAlloc(MiMalloc);

fn main() -> ExitCode {
    // If ssh started us to ask a question, do only that.
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
