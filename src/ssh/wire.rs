//! SSH's wire format (RFC 4251): four-byte numbers, and strings prefixed with their length.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use sha2::{Digest as _, Sha256};

/// Reads values from the front of a message. `None` means that the message ends too early.
#[derive(Clone, Copy)]
pub(super) struct WireReader<'a>(&'a [u8]);

impl<'a> WireReader<'a> {
    pub(super) const fn new(message: &'a [u8]) -> Self {
        Self(message)
    }

    pub(super) fn byte(&mut self) -> Option<u8> {
        let (&first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(first)
    }

    pub(super) fn number(&mut self) -> Option<u32> {
        let (bytes, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(u32::from_be_bytes(*bytes))
    }

    pub(super) fn string(&mut self) -> Option<&'a [u8]> {
        let length = usize::try_from(self.number()?).ok()?;
        let (string, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(string)
    }

    /// A string of UTF-8 text.
    pub(super) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.string()?).ok()
    }

    /// A non-negative integer, without leading zeros.
    pub(super) fn positive(&mut self) -> Option<&'a [u8]> {
        let bytes = self.string()?;
        let negative = bytes.first().is_some_and(|first| *first >= 0x80);
        let zeros = bytes.iter().take_while(|byte| **byte == 0).count();
        (!negative).then(|| &bytes[zeros..])
    }

    pub(super) const fn rest(&self) -> &'a [u8] {
        self.0
    }
}

/// `SHA256:…` of a key blob, as `ssh-keygen -l` and centres show it.
pub(super) fn fingerprint(blob: &[u8]) -> String {
    format!("SHA256:{}", STANDARD_NO_PAD.encode(Sha256::digest(blob)))
}

/// Writes a string with its length prefix.
pub(super) fn put_string(out: &mut Vec<u8>, string: &[u8]) {
    // Nothing written here comes near 4 GB: keys, signatures and their names.
    let length = u32::try_from(string.len()).unwrap_or(u32::MAX);
    out.extend_from_slice(&length.to_be_bytes());
    out.extend_from_slice(string);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_reads_back_and_short_messages_end() {
        let mut message = vec![9];
        put_string(&mut message, b"ssh");
        put_string(&mut message, &[0, 0x80]);
        message.extend_from_slice(b"end");
        let mut reader = WireReader::new(&message);
        assert_eq!(reader.byte(), Some(9));
        assert_eq!(reader.text(), Some("ssh"));
        assert_eq!(reader.positive(), Some(&[0x80][..]));
        assert_eq!(reader.rest(), b"end");

        assert_eq!(WireReader::new(&[]).byte(), None);
        assert_eq!(WireReader::new(&[0, 0, 0]).number(), None);
        assert_eq!(WireReader::new(&[0, 0, 0, 2, 1]).string(), None);
        assert_eq!(WireReader::new(&[0xff, 0xff, 0xff, 0xff, 1]).string(), None);
        assert_eq!(WireReader::new(&[0, 0, 0, 1, 0xff]).text(), None);
        assert_eq!(WireReader::new(&[0, 0, 0, 1, 0x80]).positive(), None, "negative");
    }
}
