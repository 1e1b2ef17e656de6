//! Unguessable tokens for cookies and links: 32 random bytes; only a hash is stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::entropy;

/// A secret that is handed out once. Never shown in debug output.
#[derive(Clone)]
pub struct SecretToken(Zeroizing<String>);

impl SecretToken {
    pub fn generate() -> std::io::Result<Self> {
        Ok(Self(Zeroizing::new(URL_SAFE_NO_PAD.encode(entropy::random_bytes::<32>()?))))
    }

    /// The text for a cookie or a URL.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What the database stores.
    pub fn hash_token(&self) -> [u8; 32] {
        hash(&self.0)
    }
}

impl std::fmt::Debug for SecretToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token")
    }
}

/// The hash of a received token, as the database stores it. Random tokens need no salt.
pub fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_differ_and_do_not_show() {
        let (a, b) = (SecretToken::generate().unwrap(), SecretToken::generate().unwrap());
        assert_ne!(a.as_str(), b.as_str());
        assert_eq!(a.as_str().len(), 43);
        assert_eq!(a.hash_token(), hash(a.as_str()));
        assert_eq!(format!("{a:?}"), "Token");
    }
}
