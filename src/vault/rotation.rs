//! Changing the master key: sealed values move to the new vault, and old signatures stay verifiable.

use hmac::{Hmac, Mac};
use sha2::Sha256;
use zeroize::Zeroizing;

use super::{Vault, VaultError, VaultPurpose};

/// The key of one signing purpose under one master key. What is stored only as a signature can't be signed again, so
/// the key itself moves along, sealed for [`VaultPurpose::FormerSigningKey`].
pub struct RetiredSigningKey(Zeroizing<[u8; 64]>);

impl RetiredSigningKey {
    /// Reads what [`RetiredSigningKey::as_bytes`] returned.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, VaultError> {
        let mut key = Zeroizing::new([0; 64]);
        if bytes.len() != key.len() {
            return Err(VaultError::DoesNotOpen);
        }
        key.copy_from_slice(bytes);
        Ok(Self(key))
    }

    /// The secret bytes; seal them at once.
    pub fn as_bytes(&self) -> &[u8] {
        &*self.0
    }

    pub fn sign(&self, message: &[u8]) -> [u8; 32] {
        let mut mac = <Hmac<Sha256> as hmac::KeyInit>::new((&*self.0).into());
        mac.update(message);
        mac.finalize().into_bytes().into()
    }
}

impl std::fmt::Debug for RetiredSigningKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("RetiredSigningKey")
    }
}

impl Vault {
    /// Seals again under another master key what [`Vault::seal`] made. Keychain keys and unattended keys have such an
    /// outer layer too, so moving them needs neither a password nor a session.
    pub fn reseal(&self, to: &Self, purpose: VaultPurpose, place: &str, sealed: &[u8]) -> Result<Vec<u8>, VaultError> {
        to.seal(purpose, place, &self.open(purpose, place, sealed)?)
    }

    /// The key with which [`Vault::sign`] signs for `purpose`. Only for purposes that sign and never seal: the
    /// sealing key of a purpose starts with the same bytes.
    pub fn signing_key(&self, purpose: VaultPurpose) -> RetiredSigningKey {
        RetiredSigningKey(self.key(purpose))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vault::MasterKey;

    fn vault(digit: char) -> Vault {
        Vault::new(MasterKey::from_text(&digit.to_string().repeat(64)).unwrap())
    }

    #[test]
    fn a_sealed_value_moves_to_another_master_key() {
        let (old, new) = (vault('a'), vault('b'));
        let sealed = old.seal(VaultPurpose::OneTimeCodeSecret, "person:1", b"secret").unwrap();
        let moved = old.reseal(&new, VaultPurpose::OneTimeCodeSecret, "person:1", &sealed).unwrap();
        assert_eq!(&**new.open(VaultPurpose::OneTimeCodeSecret, "person:1", &moved).unwrap(), b"secret");
        assert!(old.open(VaultPurpose::OneTimeCodeSecret, "person:1", &moved).is_err());
        assert!(old.reseal(&new, VaultPurpose::OneTimeCodeSecret, "person:2", &sealed).is_err());
        assert!(new.reseal(&old, VaultPurpose::OneTimeCodeSecret, "person:1", &sealed).is_err());
    }

    #[test]
    fn old_signatures_are_checked_with_the_key_that_was_kept() {
        let (old, new) = (vault('a'), vault('b'));
        let signature = old.sign(VaultPurpose::RecoveryCode, b"code");
        let kept = new
            .seal(
                VaultPurpose::FormerSigningKey,
                "recovery-code",
                old.signing_key(VaultPurpose::RecoveryCode).as_bytes(),
            )
            .unwrap();
        let key =
            RetiredSigningKey::from_bytes(&new.open(VaultPurpose::FormerSigningKey, "recovery-code", &kept).unwrap())
                .unwrap();
        assert_eq!(key.sign(b"code"), signature);
        assert_ne!(key.sign(b"other"), signature);
        assert!(!new.verify(VaultPurpose::RecoveryCode, b"code", &signature));
        assert_ne!(new.signing_key(VaultPurpose::RecoveryCode).sign(b"code"), signature);
        assert!(RetiredSigningKey::from_bytes(&[0; 63]).is_err());
        assert_eq!(format!("{key:?}"), "RetiredSigningKey");
    }
}
