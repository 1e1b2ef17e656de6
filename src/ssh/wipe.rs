//! Overwrites the stack after work with private keys: third-party code copies secrets there and leaves them.

/// As deep as such work goes, with room to spare.
const DEPTH: usize = 64 * 1024;

/// Runs `work`, then overwrites what it left on the stack. Its result must keep secrets on the heap.
pub(super) fn with_wiped_stack<T>(work: impl FnOnce() -> T) -> T {
    let done = run_apart(work);
    overwrite_stack();
    done
}

#[inline(never)]
fn run_apart<T>(work: impl FnOnce() -> T) -> T {
    work()
}

#[inline(never)]
#[expect(clippy::large_stack_arrays, reason = "it is there to cover the stack")]
fn overwrite_stack() {
    std::hint::black_box(&mut [0_u8; DEPTH]);
}
