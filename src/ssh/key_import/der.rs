//! Keys in DER: PKCS#1 (RSA), SEC1 (ECDSA) and PKCS#8 (any kind, encrypted or not).

use rsa::pkcs1;
use rsa::pkcs8::der::asn1::{AnyRef, OctetStringRef};
use rsa::pkcs8::der::{Decode as _, Tag, Tagged as _};
use rsa::pkcs8::pkcs5::EncryptionScheme;
use rsa::pkcs8::pkcs5::pbes2::{Kdf, Pbkdf2Prf};
use rsa::pkcs8::{EncryptedPrivateKeyInfo, ObjectIdentifier, PrivateKeyInfo};
use sec1::{EcParameters, EcPrivateKey};
use secrecy::{ExposeSecret, SecretString};
use ssh_key::EcdsaCurve;
use zeroize::Zeroizing;

use super::KeyImportError;
use super::openssh::require_passphrase;
use crate::ssh::keys::PrivateKey;
use crate::ssh::keys::build::{self, RsaKeyNumbers};

const RSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.113549.1.1.1");
const DSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10040.4.1");
const ECDSA: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.2.1");
const ED25519: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.101.112");
const P256: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.2.840.10045.3.1.7");
const P384: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.34");
const P521: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.132.0.35");

/// The most PBKDF2 passes we compute, about a second; OpenSSL uses 2048.
const MAX_PBKDF2_PASSES: u32 = 1_000_000;
/// The most scrypt work we accept (N times r times p), some 64 MB and half a second; OpenSSL uses 2^17.
const MAX_SCRYPT_WORK: u64 = 1 << 19;

pub(super) fn pkcs1(der: &[u8]) -> Result<PrivateKey, KeyImportError> {
    let key = pkcs1::RsaPrivateKey::try_from(der).map_err(|_| KeyImportError::Damaged)?;
    if key.other_prime_infos.is_some() {
        return Err(KeyImportError::OtherKind);
    }
    let pair = build::rsa(RsaKeyNumbers {
        modulus: key.modulus.as_bytes(),
        public_exponent: key.public_exponent.as_bytes(),
        private_exponent: key.private_exponent.as_bytes(),
        primes: [key.prime1.as_bytes(), key.prime2.as_bytes()],
    })?;
    Ok(PrivateKey::from_pair(pair, "")?)
}

/// `curve` is the one named by the enclosing structure, if any.
pub(super) fn sec1(der: &[u8], curve: Option<ObjectIdentifier>) -> Result<PrivateKey, KeyImportError> {
    let key = EcPrivateKey::try_from(der).map_err(|_| KeyImportError::Damaged)?;
    let inside = key.parameters.and_then(EcParameters::named_curve);
    let curve = match curve.or(inside).ok_or(KeyImportError::Damaged)? {
        P256 => EcdsaCurve::NistP256,
        P384 => EcdsaCurve::NistP384,
        P521 => EcdsaCurve::NistP521,
        _ => return Err(KeyImportError::OtherKind),
    };
    let pair = build::ecdsa(curve, key.private_key, key.public_key)?;
    Ok(PrivateKey::from_pair(pair, "")?)
}

pub(super) fn pkcs8(der: &[u8]) -> Result<PrivateKey, KeyImportError> {
    let key = PrivateKeyInfo::try_from(der).map_err(|_| KeyImportError::Damaged)?;
    match key.algorithm.oid {
        RSA => pkcs1(key.private_key),
        ECDSA => {
            let curve = key.algorithm.parameters_oid().map_err(|_| KeyImportError::OtherKind)?;
            sec1(key.private_key, Some(curve))
        }
        ED25519 => {
            let seed = OctetStringRef::from_der(key.private_key).map_err(|_| KeyImportError::Damaged)?;
            let pair = build::ed25519(seed.as_bytes(), key.public_key)?;
            Ok(PrivateKey::from_pair(pair, "")?)
        }
        DSA => Err(KeyImportError::Dsa),
        _ => Err(KeyImportError::OtherKind),
    }
}

pub(super) fn encrypted_pkcs8(der: &[u8], passphrase: Option<&SecretString>) -> Result<PrivateKey, KeyImportError> {
    let Ok(file) = EncryptedPrivateKeyInfo::try_from(der) else {
        // Complete, but with an algorithm that the parser does not know?
        let whole = AnyRef::from_der(der).is_ok_and(|any| any.tag() == Tag::Sequence);
        return Err(if whole { KeyImportError::OtherEncryption } else { KeyImportError::Damaged });
    };
    let EncryptionScheme::Pbes2(parameters) = &file.encryption_algorithm else {
        return Err(KeyImportError::OtherEncryption);
    };
    let affordable = match &parameters.kdf {
        Kdf::Pbkdf2(kdf) if kdf.prf == Pbkdf2Prf::HmacWithSha1 => {
            return Err(KeyImportError::OtherEncryption);
        }
        Kdf::Pbkdf2(kdf) => kdf.iteration_count <= MAX_PBKDF2_PASSES,
        Kdf::Scrypt(kdf) => kdf
            .cost_parameter
            .checked_mul(u64::from(kdf.block_size))
            .and_then(|work| work.checked_mul(u64::from(kdf.parallelization)))
            .is_some_and(|work| work <= MAX_SCRYPT_WORK),
        _ => return Err(KeyImportError::OtherEncryption),
    };
    if !affordable {
        return Err(KeyImportError::TooManyRounds);
    }
    let passphrase = require_passphrase(passphrase)?;
    let mut buffer = Zeroizing::new(file.encrypted_data.to_vec());
    let opened = parameters.decrypt_in_place(passphrase.expose_secret(), &mut buffer).map_err(|error| match error {
        rsa::pkcs8::pkcs5::Error::EncryptFailed => KeyImportError::WrongPassphrase,
        _ => KeyImportError::OtherEncryption,
    })?;
    // Nothing authenticates this format: occasionally a wrong passphrase yields valid padding, but never a key.
    if PrivateKeyInfo::try_from(opened).is_err() {
        return Err(KeyImportError::WrongPassphrase);
    }
    pkcs8(opened)
}
