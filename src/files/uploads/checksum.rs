//! The checksum of one request, which the client announces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sha1::Sha1;
use sha2::{Digest as _, Sha256};

/// The algorithms that clients may use, as tus names them.
pub const CHECKSUM_ALGORITHMS: &str = "sha1,sha256";

/// The checksum of one request, as the header `Upload-Checksum` announced it.
pub struct RequestChecksum {
    hasher: RequestHasher,
    expected: Vec<u8>,
}

enum RequestHasher {
    Sha1(Sha1),
    Sha256(Sha256),
}

impl RequestChecksum {
    /// Reads the header: the algorithm and the sum in base64. `None` if we don't know the algorithm or can't read the sum.
    pub fn parse(header: &str) -> Option<Self> {
        let (algorithm, sum) = header.trim().split_once(' ')?;
        let hasher = match algorithm {
            "sha1" => RequestHasher::Sha1(Sha1::new()),
            "sha256" => RequestHasher::Sha256(Sha256::new()),
            _ => return None,
        };
        Some(Self { hasher, expected: STANDARD.decode(sum.trim()).ok()? })
    }

    pub(super) fn update(&mut self, data: &[u8]) {
        match &mut self.hasher {
            RequestHasher::Sha1(hasher) => hasher.update(data),
            RequestHasher::Sha256(hasher) => hasher.update(data),
        }
    }

    pub(super) fn matches(self) -> bool {
        match self.hasher {
            RequestHasher::Sha1(hasher) => hasher.finalize()[..] == self.expected,
            RequestHasher::Sha256(hasher) => hasher.finalize()[..] == self.expected,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn announced_sums_are_compared() {
        for (header, is_right) in [
            ("sha1 Kq5sNclPz7QV2+lfQIuc6R7oRu0=", true),
            ("sha256 uU0nuZNNPgilLlLX2n2r+sSE7+N6U4DukIj3rOLvzek=", true),
            ("sha1 AAAAAAAAAAAAAAAAAAAAAAAAAAA=", false),
            ("sha256 AA==", false),
        ] {
            let mut checksum = RequestChecksum::parse(header).unwrap();
            checksum.update(b"hello ");
            checksum.update(b"world");
            assert_eq!(checksum.matches(), is_right, "{header}");
        }
        for bad in ["", "sha1", "md5 XrY7u+Ae7tCTyyK7j1rNww==", "sha1 !!"] {
            assert!(RequestChecksum::parse(bad).is_none(), "{bad}");
        }
    }
}
