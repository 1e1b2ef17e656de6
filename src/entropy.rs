//! The only source of randomness: the operating system.

use std::io;

/// `N` random bytes from the operating system.
///
/// Nothing is safe without them, so a failure is an error that ends the request or the start.
#[expect(clippy::disallowed_methods, reason = "the one place that may ask the machine")]
pub fn random_bytes<const N: usize>() -> io::Result<[u8; N]> {
    let mut out = [0; N];
    getrandom::fill(&mut out).map_err(io::Error::from)?;
    Ok(out)
}
