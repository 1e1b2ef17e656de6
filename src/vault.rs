//! Sealing and opening secrets under the master key. Pure: no files, no database, no clock.
//!
//! Every purpose has its own key (HKDF of the master key and the purpose's name), and every sealed value is bound
//! to its context, so that a row copied to another person doesn't open.

use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

mod keychain;
mod master_key;
mod rotation;

pub use keychain::{
    PasswordDerivedKey, PersonKeychainKey, SALT_LEN, SealedPrivateKey, SealedPrivateKeyRef, derive_password_key,
};
pub use master_key::{MasterKey, MasterKeyError};
pub use rotation::RetiredSigningKey;

use crate::entropy;

const NONCE_LEN: usize = 24;

/// What a sealed value or a signature is for; each purpose has its own key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VaultPurpose {
    /// Password hashes: a stolen database alone can't be attacked with a word list.
    PasswordHash,
    /// Secrets of one-time-code apps.
    OneTimeCodeSecret,
    /// Recovery codes: only a signature of each is stored.
    RecoveryCode,
    /// New links on their way to the page that reveals them once.
    ShownOnce,
    /// The mark that shows that a person has signed in with this browser before.
    KnownBrowser,
    /// The mark with which `portolan doctor` asks the running portal what it sees.
    DoctorProbe,
    /// A fixed value that shows whether this master key belongs to this database.
    KeyCheck,
    /// Outer layer of a keychain key that a password unlocks.
    ChainByPassword,
    /// Outer layer of a keychain key that a session unlocks.
    ChainBySession,
    /// The key of a private key whose owner allows unattended use.
    UnattendedKey,
    /// A signing key of an earlier master key, kept so that its signatures stay valid.
    FormerSigningKey,
    /// A person's webhook URL: such URLs contain secrets.
    WebhookAddress,
    /// The secret that signs webhook messages.
    WebhookSecret,
}

impl VaultPurpose {
    const fn info(self) -> &'static [u8] {
        match self {
            Self::PasswordHash => b"portolan/1/password-hash",
            Self::OneTimeCodeSecret => b"portolan/1/one-time-code-secret",
            Self::RecoveryCode => b"portolan/1/recovery-code",
            Self::ShownOnce => b"portolan/1/shown-once",
            Self::KnownBrowser => b"portolan/1/known-browser",
            Self::DoctorProbe => b"portolan/1/doctor-probe",
            Self::KeyCheck => b"portolan/1/key-check",
            Self::ChainByPassword => b"portolan/1/chain-by-password",
            Self::ChainBySession => b"portolan/1/chain-by-session",
            Self::UnattendedKey => b"portolan/1/unattended-key",
            Self::FormerSigningKey => b"portolan/1/former-signing-key",
            Self::WebhookAddress => b"portolan/1/webhook-address",
            Self::WebhookSecret => b"portolan/1/webhook-secret",
        }
    }
}

/// Why something could not be sealed or opened. Deliberately vague.
#[derive(Debug, thiserror::Error)]
pub enum VaultError {
    /// The value was changed, belongs elsewhere, or was sealed under another master key.
    #[error("an encrypted value can't be decrypted: it was changed, moved, or encrypted with another master key")]
    DoesNotOpen,
    #[error("the operating system provided no random bytes: {0}")]
    NoRandomness(#[from] std::io::Error),
    /// A password could not be stretched because memory ran out.
    #[error("could not derive a key from a password: {0}")]
    Stretching(argon2::Error),
}

/// Seals and opens values under one master key.
#[derive(Clone)]
pub struct Vault {
    master: MasterKey,
}

impl Vault {
    pub const fn new(master: MasterKey) -> Self {
        Self { master }
    }

    /// Seals `plain` for `purpose`, bound to `place` (for example `person:17`).
    pub fn seal(&self, purpose: VaultPurpose, context: &str, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
        let nonce: [u8; NONCE_LEN] = entropy::random_bytes()?;
        let sealed = self
            .cipher(purpose)
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: context.as_bytes() })
            .map_err(|_| VaultError::DoesNotOpen)?;
        Ok([&nonce[..], &sealed].concat())
    }

    /// Opens what [`Vault::seal`] sealed for the same purpose and place.
    pub fn open(&self, purpose: VaultPurpose, context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let (nonce, body) = sealed.split_first_chunk::<NONCE_LEN>().ok_or(VaultError::DoesNotOpen)?;
        self.cipher(purpose)
            .decrypt(&XNonce::from(*nonce), Payload { msg: body, aad: context.as_bytes() })
            .map(Zeroizing::new)
            .map_err(|_| VaultError::DoesNotOpen)
    }

    /// Signs `message` for `purpose`.
    pub fn sign(&self, purpose: VaultPurpose, message: &[u8]) -> [u8; 32] {
        self.mac(purpose, message).finalize().into_bytes().into()
    }

    /// Whether `signature` is ours, compared in constant time.
    pub fn verify(&self, purpose: VaultPurpose, message: &[u8], signature: &[u8]) -> bool {
        self.mac(purpose, message).verify_slice(signature).is_ok()
    }

    fn mac(&self, purpose: VaultPurpose, message: &[u8]) -> Hmac<Sha256> {
        let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new(&(*self.key::<64>(purpose)).into());
        mac.update(message);
        mac
    }

    fn cipher(&self, purpose: VaultPurpose) -> XChaCha20Poly1305 {
        XChaCha20Poly1305::new(&(*self.key::<32>(purpose)).into())
    }

    fn key<const N: usize>(&self, purpose: VaultPurpose) -> Zeroizing<[u8; N]> {
        let mut key = Zeroizing::new([0; N]);
        let expanded = Hkdf::<Sha256>::new(None, self.master.bytes()).expand(purpose.info(), &mut key[..]);
        debug_assert!(expanded.is_ok(), "HKDF-SHA-256 gives up to 8160 bytes");
        key
    }
}

impl std::fmt::Debug for Vault {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Vault")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn vault(byte: char) -> Vault {
        Vault::new(MasterKey::from_text(&byte.to_string().repeat(64)).unwrap())
    }

    #[test]
    fn what_was_sealed_opens_in_its_place_only() {
        let vault_a = vault('a');
        let sealed = vault_a.seal(VaultPurpose::PasswordHash, "person:1", b"secret").unwrap();
        assert_eq!(&**vault_a.open(VaultPurpose::PasswordHash, "person:1", &sealed).unwrap(), b"secret");
        assert!(vault_a.open(VaultPurpose::PasswordHash, "person:2", &sealed).is_err(), "moved to another person");
        assert!(vault_a.open(VaultPurpose::OneTimeCodeSecret, "person:1", &sealed).is_err(), "other purpose");
        assert!(vault('b').open(VaultPurpose::PasswordHash, "person:1", &sealed).is_err(), "other master key");
        for position in 0..sealed.len() {
            let mut changed = sealed.clone();
            changed[position] ^= 1;
            assert!(vault_a.open(VaultPurpose::PasswordHash, "person:1", &changed).is_err());
        }
        assert!(vault_a.open(VaultPurpose::PasswordHash, "person:1", &sealed[..10]).is_err());
    }

    #[test]
    fn equal_values_seal_differently() {
        let seal = || vault('a').seal(VaultPurpose::PasswordHash, "x", b"same").unwrap();
        assert_ne!(seal(), seal());
    }

    #[test]
    fn signatures_hold_for_their_purpose_and_message() {
        let vault = vault('a');
        let signature = vault.sign(VaultPurpose::KnownBrowser, b"m");
        assert!(vault.verify(VaultPurpose::KnownBrowser, b"m", &signature));
        assert!(!vault.verify(VaultPurpose::KnownBrowser, b"n", &signature));
        assert!(!vault.verify(VaultPurpose::DoctorProbe, b"m", &signature));
        assert!(!vault.verify(VaultPurpose::KnownBrowser, b"m", &signature[..31]));
    }

    #[test]
    fn nothing_secret_shows_in_debug_output() {
        assert_eq!(format!("{:?}", vault('a')), "Vault");
    }
}
