//! Keychains: how private keys are stored so that neither the database alone, nor the database and the master key
//! together, opens them. Pure: no files, no database, no clock.
//!
//! ```text
//! private key ← a key of its own ← the person's chain key ← their password, then the master key
//!                               │                         └ or their session token, then the master key
//!                               └ or the master key alone, where the owner allows unattended use
//! ```
//!
//! Where the master key is involved, it is always the outer layer, made by [`Vault::seal`], so that changing it
//! (`Vault::reseal`) needs nobody's password. Inner layers start with a version byte.

use argon2::{Algorithm, Argon2, Params, Version};
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305, XNonce};
use hkdf::Hkdf;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{NONCE_LEN, Vault, VaultError, VaultPurpose};
use crate::entropy;

/// Bytes of the random salt for stretching a password.
pub const SALT_LEN: usize = 16;

/// First byte of every inner layer. Another cipher or stretching cost gets another number.
const VERSION: u8 = 1;
const KEY_LEN: usize = 32;

/// The stretching cost belongs to [`VERSION`]: if it followed the crate's defaults, an update of the crate
/// would lock everyone out. In KiB of memory, passes and lanes.
const STRETCH_COST: (u32, u32, u32) = (19 * 1024, 2, 1);

/// What an inner layer is for; each has its own key, derived from the secret that opens it.
#[derive(Clone, Copy)]
enum KeychainSealLayer {
    Password,
    Session,
    OwnKey,
    Private,
}

impl KeychainSealLayer {
    const fn info(self) -> &'static [u8] {
        match self {
            Self::Password => b"portolan/1/layer/password",
            Self::Session => b"portolan/1/layer/session",
            Self::OwnKey => b"portolan/1/layer/own-key",
            Self::Private => b"portolan/1/layer/private",
        }
    }

    fn cipher(self, secret: &[u8]) -> XChaCha20Poly1305 {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        let expanded = Hkdf::<Sha256>::new(None, secret).expand(self.info(), &mut key[..]);
        debug_assert!(expanded.is_ok(), "HKDF-SHA-256 gives up to 8160 bytes");
        XChaCha20Poly1305::new((&*key).into())
    }

    /// `version | nonce | ciphertext`; the version and the place are authenticated.
    fn seal(self, secret: &[u8], context: &str, plain: &[u8]) -> Result<Vec<u8>, VaultError> {
        let nonce: [u8; NONCE_LEN] = entropy::random_bytes()?;
        let sealed = self
            .cipher(secret)
            .encrypt(&XNonce::from(nonce), Payload { msg: plain, aad: &associated_data(context) })
            .map_err(|_| VaultError::DoesNotOpen)?;
        Ok([&[VERSION][..], &nonce, &sealed].concat())
    }

    fn open(self, secret: &[u8], context: &str, sealed: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        let Some((&VERSION, rest)) = sealed.split_first() else {
            return Err(VaultError::DoesNotOpen);
        };
        let (nonce, body) = rest.split_first_chunk::<NONCE_LEN>().ok_or(VaultError::DoesNotOpen)?;
        self.cipher(secret)
            .decrypt(&XNonce::from(*nonce), Payload { msg: body, aad: &associated_data(context) })
            .map(Zeroizing::new)
            .map_err(|_| VaultError::DoesNotOpen)
    }
}

fn associated_data(context: &str) -> Vec<u8> {
    [&[VERSION][..], context.as_bytes()].concat()
}

/// 32 secret bytes, zeroed when dropped and never shown.
struct SecretKeyBytes(Zeroizing<[u8; KEY_LEN]>);

impl SecretKeyBytes {
    fn random() -> Result<Self, VaultError> {
        Ok(Self(Zeroizing::new(entropy::random_bytes()?)))
    }

    fn from_opened(bytes: &[u8]) -> Result<Self, VaultError> {
        let mut key = Zeroizing::new([0; KEY_LEN]);
        if bytes.len() != KEY_LEN {
            return Err(VaultError::DoesNotOpen);
        }
        key.copy_from_slice(bytes);
        Ok(Self(key))
    }
}

/// A password after Argon2id. As secret as the password itself.
pub struct PasswordDerivedKey(SecretKeyBytes);

/// The key of one person's keychain: it opens the keys of their private keys.
pub struct PersonKeychainKey(SecretKeyBytes);

/// The key that seals exactly one private key.
struct DataEncryptionKey(SecretKeyBytes);

impl std::fmt::Debug for PasswordDerivedKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Stretched")
    }
}

impl std::fmt::Debug for PersonKeychainKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ChainKey")
    }
}

/// A private key as stored.
#[derive(Debug)]
pub struct SealedPrivateKey {
    /// The private key, sealed under its own key.
    pub body: Vec<u8>,
    /// Its own key, sealed under the owner's keychain key.
    pub own_key: Vec<u8>,
}

/// A stored private key, borrowed from wherever it was loaded.
#[derive(Debug, Clone, Copy)]
pub struct SealedPrivateKeyRef<'a> {
    /// See [`SealedPrivateKey::body`].
    pub body: &'a [u8],
    /// See [`SealedPrivateKey::own_key`].
    pub own_key: &'a [u8],
}

impl<'a> From<&'a SealedPrivateKey> for SealedPrivateKeyRef<'a> {
    fn from(sealed: &'a SealedPrivateKey) -> Self {
        Self { body: &sealed.body, own_key: &sealed.own_key }
    }
}

/// Stretches a password. As slow as checking one, so run it on a blocking thread.
pub fn derive_password_key(password: &SecretString, salt: &[u8; SALT_LEN]) -> Result<PasswordDerivedKey, VaultError> {
    let (memory, passes, lanes) = STRETCH_COST;
    let cost = Params::new(memory, passes, lanes, Some(KEY_LEN)).map_err(VaultError::Stretching)?;
    let mut out = Zeroizing::new([0; KEY_LEN]);
    Argon2::new(Algorithm::Argon2id, Version::V0x13, cost)
        .hash_password_into(password.expose_secret().as_bytes(), salt, &mut out[..])
        .map_err(VaultError::Stretching)?;
    Ok(PasswordDerivedKey(SecretKeyBytes(out)))
}

impl PersonKeychainKey {
    /// A new random keychain key, for a person who has none yet.
    pub fn generate() -> Result<Self, VaultError> {
        SecretKeyBytes::random().map(Self)
    }

    /// Seals a private key under a new key of its own. `place` is for example `person:17/key:5`.
    pub fn seal_private(&self, context: &str, private: &[u8]) -> Result<SealedPrivateKey, VaultError> {
        let own = DataEncryptionKey(SecretKeyBytes::random()?);
        let body = KeychainSealLayer::Private.seal(&*own.0.0, context, private)?;
        Ok(SealedPrivateKey { body, own_key: self.wrap(context, &own)? })
    }

    /// Opens what [`PersonKeychainKey::seal_private`] sealed for the same place.
    pub fn open_private(
        &self,
        context: &str,
        sealed: SealedPrivateKeyRef<'_>,
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        self.unwrap(context, sealed.own_key)?.open(context, sealed.body)
    }

    fn wrap(&self, context: &str, own: &DataEncryptionKey) -> Result<Vec<u8>, VaultError> {
        KeychainSealLayer::OwnKey.seal(&*self.0.0, context, &*own.0.0)
    }

    fn unwrap(&self, context: &str, own_key: &[u8]) -> Result<DataEncryptionKey, VaultError> {
        let opened = KeychainSealLayer::OwnKey.open(&*self.0.0, context, own_key)?;
        SecretKeyBytes::from_opened(&opened).map(DataEncryptionKey)
    }
}

impl DataEncryptionKey {
    fn open(&self, context: &str, body: &[u8]) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        KeychainSealLayer::Private.open(&*self.0.0, context, body)
    }
}

impl Vault {
    /// Locks a keychain key with a stretched password. `person` is its place, for example `person:17`.
    pub fn lock_keychain(
        &self,
        person: &str,
        stretched: &PasswordDerivedKey,
        keychain: &PersonKeychainKey,
    ) -> Result<Vec<u8>, VaultError> {
        let inner = KeychainSealLayer::Password.seal(&*stretched.0.0, person, &*keychain.0.0)?;
        self.seal(VaultPurpose::ChainByPassword, person, &inner)
    }

    /// Opens what [`Vault::lock_keychain`] locked for the same person and password.
    pub fn unlock_keychain(
        &self,
        person: &str,
        stretched: &PasswordDerivedKey,
        sealed: &[u8],
    ) -> Result<PersonKeychainKey, VaultError> {
        let inner = self.open(VaultPurpose::ChainByPassword, person, sealed)?;
        let keychain = KeychainSealLayer::Password.open(&*stretched.0.0, person, &inner)?;
        SecretKeyBytes::from_opened(&keychain).map(PersonKeychainKey)
    }

    /// Locks a keychain key with a session token, which only the browser keeps: after a restart, the portal unlocks
    /// the keychain again with the cookie. `place` is for example `person:17/session:9`.
    ///
    /// A token is fully random already, so it isn't stretched.
    pub fn lock_keychain_for_session(
        &self,
        context: &str,
        token: &str,
        keychain: &PersonKeychainKey,
    ) -> Result<Vec<u8>, VaultError> {
        let inner = KeychainSealLayer::Session.seal(token.as_bytes(), context, &*keychain.0.0)?;
        self.seal(VaultPurpose::ChainBySession, context, &inner)
    }

    /// Opens what [`Vault::lock_keychain_for_session`] locked for the same place and token.
    pub fn unlock_keychain_for_session(
        &self,
        context: &str,
        token: &str,
        sealed: &[u8],
    ) -> Result<PersonKeychainKey, VaultError> {
        let inner = self.open(VaultPurpose::ChainBySession, context, sealed)?;
        let keychain = KeychainSealLayer::Session.open(token.as_bytes(), context, &inner)?;
        SecretKeyBytes::from_opened(&keychain).map(PersonKeychainKey)
    }

    /// Allows unattended use of a private key: seals its own key under the master key alone.
    pub fn allow_unattended(
        &self,
        keychain: &PersonKeychainKey,
        context: &str,
        own_key: &[u8],
    ) -> Result<Vec<u8>, VaultError> {
        let own = keychain.unwrap(context, own_key)?;
        let mut versioned = Zeroizing::new([VERSION; 1 + KEY_LEN]);
        versioned[1..].copy_from_slice(&*own.0.0);
        self.seal(VaultPurpose::UnattendedKey, context, &*versioned)
    }

    /// Opens a private key with what [`Vault::allow_unattended`] returned.
    pub fn open_private_unattended(
        &self,
        context: &str,
        body: &[u8],
        unattended: &[u8],
    ) -> Result<Zeroizing<Vec<u8>>, VaultError> {
        self.open_unattended_data_key(context, unattended)?.open(context, body)
    }

    fn open_unattended_data_key(&self, context: &str, sealed: &[u8]) -> Result<DataEncryptionKey, VaultError> {
        match self.open(VaultPurpose::UnattendedKey, context, sealed)?.split_first() {
            Some((&VERSION, own)) => SecretKeyBytes::from_opened(own).map(DataEncryptionKey),
            _ => Err(VaultError::DoesNotOpen),
        }
    }
}

#[cfg(test)]
mod tests;
