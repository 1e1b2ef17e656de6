# shellcheck shell=bash
# What it takes to build the program: source this file after steps.sh.
#
#   need_toolchain           a C compiler and cargo, or a sentence that says how to get them
#   PROGRAM                  the debug build, which serves the demo and the tests

# shellcheck disable=SC2034 # used by the scripts that source this file
PROGRAM=${CARGO_TARGET_DIR:-$REPO/target}/debug/portolan

need_toolchain() {
  [ ! -d "$HOME/.cargo/bin" ] || PATH=$PATH:$HOME/.cargo/bin
  command -v cc >/dev/null || need_packages build-essential
  need_packages openssh-client python3
  command -v cargo >/dev/null ||
    die "The Rust toolchain is missing. Install version 1.95 or newer from https://rustup.rs and run this again."
}

# cargo's own words only when something is wrong.
build_program() {
  step "building the portal (first time: minutes)" cargo build --quiet --locked --manifest-path "$REPO/Cargo.toml"
}
