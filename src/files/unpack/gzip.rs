//! Inflates a gzip file piece by piece. Checks its checksum at the end.

use std::io::Write as _;

use bytes::{Buf as _, Bytes};
use flate2::write::MultiGzDecoder;

use super::UnpackError;
use super::limits::check_growth;

pub(super) struct GzipInflater {
    /// Each write leaves at most a few ten kilobytes in it.
    decoder: MultiGzDecoder<Vec<u8>>,
    taken: u64,
    inflated: u64,
}

impl Default for GzipInflater {
    fn default() -> Self {
        Self { decoder: MultiGzDecoder::new(Vec::new()), taken: 0, inflated: 0 }
    }
}

impl GzipInflater {
    /// The next inflated bytes; `None` if all of `chunk` was taken.
    pub fn next_piece(&mut self, chunk: &mut Bytes) -> Result<Option<Bytes>, UnpackError> {
        loop {
            if let Some(piece) = self.take_inflated()? {
                return Ok(Some(piece));
            }
            if chunk.is_empty() {
                return Ok(None);
            }
            let taken = self.decoder.write(chunk).map_err(|_| UnpackError::Damaged("it can't be decompressed"))?;
            if taken == 0 {
                return Err(UnpackError::Damaged("there is data after its end"));
            }
            chunk.advance(taken);
            self.taken += u64::try_from(taken).unwrap_or(u64::MAX);
        }
    }

    /// What is left when the file is at its end.
    pub fn finish(&mut self) -> Result<Option<Bytes>, UnpackError> {
        self.decoder.try_finish().map_err(|_| UnpackError::Truncated)?;
        self.take_inflated()
    }

    fn take_inflated(&mut self) -> Result<Option<Bytes>, UnpackError> {
        let inflated = std::mem::take(self.decoder.get_mut());
        if inflated.is_empty() {
            return Ok(None);
        }
        self.inflated += u64::try_from(inflated.len()).unwrap_or(u64::MAX);
        check_growth(self.taken, self.inflated)?;
        Ok(Some(inflated.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;

    #[test]
    fn bomb_stops_while_it_grows() {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![0; 100_000]).unwrap();
        let packed = Bytes::from(encoder.finish().unwrap());
        let mut harmless = GzipInflater::default();
        assert!(harmless.next_piece(&mut packed.clone()).unwrap().is_some());
        // As if a gigabyte had come out of these few bytes.
        let mut bomb = GzipInflater { inflated: 1 << 30, ..GzipInflater::default() };
        assert_eq!(bomb.next_piece(&mut packed.clone()), Err(UnpackError::Bomb));
        // The same amount out of a large file is fine.
        let mut large = GzipInflater { inflated: 1 << 30, taken: 1 << 28, ..GzipInflater::default() };
        assert!(large.next_piece(&mut packed.clone()).unwrap().is_some());
    }
}
