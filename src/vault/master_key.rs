//! The master key: 32 random bytes, written as 64 hexadecimal digits. Checked before use, never printed.

use zeroize::Zeroizing;

use crate::entropy;

/// 32 secret bytes from which every other key is derived.
#[derive(Clone)]
pub struct MasterKey(Zeroizing<[u8; 32]>);

/// Why a master key was rejected. The text never contains the key.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum MasterKeyError {
    #[error("the master key is empty")]
    Empty,
    /// Not 64 hexadecimal digits.
    #[error(
        "the master key must be exactly 64 hexadecimal digits (this one has {0} characters, or contains something else)"
    )]
    Malformed(usize),
    /// A key that can't have been generated at random.
    #[error("the master key repeats itself, so it isn't random")]
    NotRandom,
}

impl MasterKey {
    pub fn generate() -> std::io::Result<Self> {
        Ok(Self(Zeroizing::new(entropy::random_bytes()?)))
    }

    /// Parses 64 hexadecimal digits; surrounding white space is allowed.
    pub fn parse(text: &str) -> Result<Self, MasterKeyError> {
        let key = Self::from_text(text)?;
        let distinct: std::collections::BTreeSet<u8> = key.0.iter().copied().collect();
        // 32 random bytes hold fewer than 8 different values with a probability below 2^-100.
        if distinct.len() < 8 { Err(MasterKeyError::NotRandom) } else { Ok(key) }
    }

    pub(super) fn from_text(text: &str) -> Result<Self, MasterKeyError> {
        let text = text.trim();
        if text.is_empty() {
            return Err(MasterKeyError::Empty);
        }
        let malformed = || MasterKeyError::Malformed(text.chars().count());
        if text.len() != 64 || !text.is_ascii() {
            return Err(malformed());
        }
        let mut key = Zeroizing::new([0; 32]);
        for (byte, digits) in key.iter_mut().zip(text.as_bytes().chunks(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| malformed())?;
            if digits.starts_with('+') {
                return Err(malformed());
            }
            *byte = u8::from_str_radix(digits, 16).map_err(|_| malformed())?;
        }
        Ok(Self(key))
    }

    /// As written to the key file.
    pub fn to_text(&self) -> Zeroizing<String> {
        use std::fmt::Write as _;
        let mut text = Zeroizing::new(String::with_capacity(65));
        for byte in self.0.iter() {
            let _ = write!(text, "{byte:02x}");
        }
        text
    }

    pub(super) fn bytes(&self) -> &[u8] {
        &*self.0
    }
}

impl std::fmt::Debug for MasterKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("MasterKey")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_generated_key_reads_back() {
        let key = MasterKey::generate().unwrap();
        assert_eq!(MasterKey::parse(&format!(" {}\n", *key.to_text())).unwrap().0, key.0);
    }

    #[test]
    fn weak_keys_are_refused_without_being_quoted() {
        let short = "abcd".repeat(8);
        for (text, expected) in [
            ("", MasterKeyError::Empty),
            (" \n", MasterKeyError::Empty),
            (short.as_str(), MasterKeyError::Malformed(32)),
            (&"zz".repeat(32), MasterKeyError::Malformed(64)),
            (&"+1".repeat(32), MasterKeyError::Malformed(64)),
            (&"é".repeat(32), MasterKeyError::Malformed(32)),
            (&"00".repeat(32), MasterKeyError::NotRandom),
            (&"0123".repeat(16), MasterKeyError::NotRandom),
        ] {
            let error = MasterKey::parse(text).unwrap_err();
            assert_eq!(error, expected);
            assert!(text.trim().is_empty() || !error.to_string().contains(text));
        }
        assert_eq!(format!("{:?}", MasterKey::generate().unwrap()), "MasterKey");
    }
}
