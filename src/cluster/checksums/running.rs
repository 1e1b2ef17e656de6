//! The checksum of bytes as they pass.

use crc32fast::Hasher;

use super::FileChecksum;

/// So many bytes are turned around at a time.
const BLOCK_BYTES: usize = 4096;
/// `cksum` begins with zero, which the other way of writing the state inverts.
const INITIAL: u32 = u32::MAX;

/// A checksum that is still being computed. It can be stored and goes on after a restart.
///
/// `cksum` takes the highest bit of a byte first, the CRC of zip files the lowest: the same polynomial otherwise. So that
/// one is computed, with the processor's own instructions, of bytes that are turned around.
#[derive(Debug, Clone)]
pub struct RunningChecksum {
    hasher: Hasher,
    size: u64,
}

impl RunningChecksum {
    pub fn new() -> Self {
        Self::from_state(INITIAL, 0)
    }

    /// Goes on from what [`Self::state`] gave after `size` bytes.
    pub fn from_state(state: u32, size: u64) -> Self {
        Self { hasher: Hasher::new_with_initial(state), size }
    }

    pub fn state(&self) -> u32 {
        self.hasher.clone().finalize()
    }

    /// How many bytes have passed.
    pub const fn size(&self) -> u64 {
        self.size
    }

    pub fn update(&mut self, data: &[u8]) {
        let mut reversed = [0; BLOCK_BYTES];
        for block in data.chunks(BLOCK_BYTES) {
            for (reversed, byte) in reversed.iter_mut().zip(block) {
                *reversed = byte.reverse_bits();
            }
            self.hasher.update(&reversed[..block.len()]);
            self.size += u64::try_from(block.len()).unwrap_or(u64::MAX);
        }
    }

    /// The size belongs to the checksum: its bytes, the lowest first, as many as it has.
    pub fn finish(mut self) -> FileChecksum {
        let size = self.size;
        let len = size.to_le_bytes().iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
        self.update(&size.to_le_bytes()[..len]);
        FileChecksum { crc: self.state().reverse_bits(), size }
    }
}

impl Default for RunningChecksum {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn checksum(data: &[u8]) -> u32 {
        let mut running = RunningChecksum::new();
        running.update(data);
        running.finish().crc
    }

    #[test]
    fn it_is_the_one_of_cksum() {
        // printf … | cksum, of coreutils 9.1
        assert_eq!(checksum(b""), 4_294_967_295);
        assert_eq!(checksum(b"a"), 1_220_704_766);
        assert_eq!(checksum(b"123456789"), 930_766_865);
        assert_eq!(checksum(&vec![0; 70_000]), 1_774_371_287);
    }

    proptest! {
        #[test]
        fn it_goes_on_over_a_restart(data in proptest::collection::vec(any::<u8>(), 0..9000), at in 0_usize..9000) {
            let (first, second) = data.split_at(at.min(data.len()));
            let mut running = RunningChecksum::new();
            running.update(first);
            let mut running = RunningChecksum::from_state(running.state(), first.len() as u64);
            running.update(second);
            prop_assert_eq!(running.finish().crc, checksum(&data));
        }
    }
}
