//! People's SSH keys: generating, serializing and signing. No files: a private key is only ever stored sealed, and
//! never printed.

use rsa::signature::Signer as _;
use ssh_key::Signature;
use ssh_key::private::{Ed25519Keypair, KeypairData};
use zeroize::Zeroizing;

use super::wipe::with_wiped_stack;
use crate::entropy;

pub(super) mod build;
mod public;
mod rsa_signing;

pub use public::{PublicKey, PublicKeyError};

/// Flag in an agent's sign request: RSA with SHA-256.
pub const RSA_SHA2_256: u32 = 2;
/// Flag in an agent's sign request: RSA with SHA-512.
pub const RSA_SHA2_512: u32 = 4;

/// Why a key could not be generated, written or read.
#[derive(Debug, thiserror::Error)]
pub enum SshKeyError {
    /// The operating system provided no randomness.
    #[error("the operating system provided no random bytes: {0}")]
    NoRandomness(#[from] std::io::Error),
    #[error("a stored SSH key could not be read")]
    Unreadable,
}

#[derive(Debug, thiserror::Error)]
pub enum SshSignError {
    /// RSA with SHA-1, which nothing should accept any more.
    #[error("the server asks for an RSA signature with SHA-1, which is no longer secure")]
    Sha1Refused,
    /// The operating system provided no randomness.
    #[error("the operating system provided no random bytes: {0}")]
    NoRandomness(#[from] std::io::Error),
    #[error("this SSH key is damaged and can't sign")]
    Damaged,
}

/// A private SSH key. Its secret numbers are zeroed when it is dropped.
pub struct PrivateKey {
    /// Boxed, because moving the value itself would leave copies behind.
    key: Box<ssh_key::PrivateKey>,
    public: PublicKey,
}

impl PrivateKey {
    /// Generates an Ed25519 key.
    pub fn generate(comment: &str) -> Result<Self, SshKeyError> {
        with_wiped_stack(|| {
            let seed = Zeroizing::new(entropy::random_bytes()?);
            Self::from_pair(KeypairData::Ed25519(Ed25519Keypair::from_seed(&seed)), comment)
        })
    }

    /// Reads what [`PrivateKey::to_bytes`] wrote.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SshKeyError> {
        with_wiped_stack(|| {
            let key = ssh_key::PrivateKey::from_bytes(bytes).map_err(|_| SshKeyError::Unreadable)?;
            Self::from_key(key)
        })
    }

    pub(super) fn from_pair(pair: KeypairData, comment: &str) -> Result<Self, SshKeyError> {
        let comment = public::clean_comment(comment);
        Self::from_key(ssh_key::PrivateKey::new(pair, comment).map_err(|_| SshKeyError::Unreadable)?)
    }

    fn from_key(key: ssh_key::PrivateKey) -> Result<Self, SshKeyError> {
        let usable = matches!(key.key_data(), KeypairData::Ed25519(_) | KeypairData::Ecdsa(_) | KeypairData::Rsa(_));
        let public = PublicKey::from_data(key.public_key().key_data().clone(), key.comment());
        match public {
            Ok(public) if usable => Ok(Self { key: Box::new(key), public }),
            _ => Err(SshKeyError::Unreadable),
        }
    }

    /// The whole key with its comment, in OpenSSH's unencrypted form: seal it immediately.
    pub fn to_bytes(&self) -> Result<Zeroizing<Vec<u8>>, SshKeyError> {
        self.key.to_bytes().map_err(|_| SshKeyError::Unreadable)
    }

    pub const fn public(&self) -> &PublicKey {
        &self.public
    }

    /// Signs `data` and returns the signature in SSH's format. `flags` are those of an agent's request and only
    /// matter for RSA.
    pub fn sign(&self, data: &[u8], flags: u32) -> Result<Vec<u8>, SshSignError> {
        let signature: Signature = with_wiped_stack(|| match self.key.key_data() {
            KeypairData::Rsa(pair) => rsa_signing::sign(pair, data, flags),
            other => other.try_sign(data).map_err(|_| SshSignError::Damaged),
        })?;
        signature.try_into().map_err(|_| SshSignError::Damaged)
    }
}

impl std::fmt::Debug for PrivateKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("PrivateKey")
    }
}

#[cfg(test)]
pub(super) mod tests;
