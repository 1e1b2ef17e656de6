//! Builds key pairs from the numbers in a key file. Each is checked: a key whose halves do not match could not sign,
//! and a malicious one could keep the signer busy forever.

use rsa::BigUint;
use ssh_key::private::{EcdsaKeypair, Ed25519Keypair, KeypairData, RsaKeypair, RsaPrivateKey as RsaSecret};
use ssh_key::public::RsaPublicKey;
use ssh_key::{EcdsaCurve, Mpint};
use zeroize::Zeroizing;

use super::public::bit_length;

pub(crate) const RSA_MIN_BITS: usize = 3072;
/// One signature with a key of this length takes a good part of a second.
pub(crate) const RSA_MAX_BITS: usize = 8192;
/// How much longer one prime may be than the other, in bits. The shorter one determines how many steps signing takes.
const RSA_MAX_PRIME_BIT_DIFF: usize = 4;

/// Why the numbers do not form a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyBuildError {
    Mismatch,
    RsaTooShort(usize),
    RsaTooLong(usize),
}

/// An Ed25519 key from its seed. `public` is the public half in the file, if any.
pub(crate) fn ed25519(seed: &[u8], public: Option<&[u8]>) -> Result<KeypairData, KeyBuildError> {
    let seed: &[u8; 32] = seed.try_into().map_err(|_| KeyBuildError::Mismatch)?;
    let pair = Ed25519Keypair::from_seed(seed);
    if public.is_some_and(|public| public != pair.public.0) {
        return Err(KeyBuildError::Mismatch);
    }
    Ok(KeypairData::Ed25519(pair))
}

/// An ECDSA key from its scalar, with or without leading zeros.
pub(crate) fn ecdsa(curve: EcdsaCurve, scalar: &[u8], public: Option<&[u8]>) -> Result<KeypairData, KeyBuildError> {
    macro_rules! on_curve {
        ($curve:ident, $name:ident, $size:literal) => {{
            let scalar = left_pad::<$size>(scalar).ok_or(KeyBuildError::Mismatch)?;
            let secret = $curve::SecretKey::from_slice(&*scalar).map_err(|_| KeyBuildError::Mismatch)?;
            let own = secret.public_key();
            let matches = public
                .is_none_or(|public| $curve::PublicKey::from_sec1_bytes(public).is_ok_and(|public| public == own));
            matches.then(|| EcdsaKeypair::$name { public: own.into(), private: secret.into() })
        }};
    }
    let pair = match curve {
        EcdsaCurve::NistP256 => on_curve!(p256, NistP256, 32),
        EcdsaCurve::NistP384 => on_curve!(p384, NistP384, 48),
        EcdsaCurve::NistP521 => on_curve!(p521, NistP521, 66),
    };
    pair.map(KeypairData::Ecdsa).ok_or(KeyBuildError::Mismatch)
}

fn left_pad<const N: usize>(number: &[u8]) -> Option<Zeroizing<[u8; N]>> {
    let zeros = number.iter().take_while(|byte| **byte == 0).count();
    let number = &number[zeros..];
    let mut out = Zeroizing::new([0; N]);
    out[N.checked_sub(number.len())?..].copy_from_slice(number);
    Some(out)
}

/// The numbers of an RSA key, without leading zeros.
#[derive(Clone, Copy)]
pub(crate) struct RsaKeyNumbers<'a> {
    pub(crate) modulus: &'a [u8],
    pub(crate) public_exponent: &'a [u8],
    pub(crate) private_exponent: &'a [u8],
    pub(crate) primes: [&'a [u8]; 2],
}

/// Whether an RSA key with this modulus may be used.
pub(crate) fn check_rsa_length(modulus: &[u8]) -> Result<(), KeyBuildError> {
    match bit_length(modulus) {
        few if few < RSA_MIN_BITS => Err(KeyBuildError::RsaTooShort(few)),
        many if many > RSA_MAX_BITS => Err(KeyBuildError::RsaTooLong(many)),
        _ => Ok(()),
    }
}

/// An RSA key with two primes.
pub(crate) fn rsa(numbers: RsaKeyNumbers<'_>) -> Result<KeypairData, KeyBuildError> {
    check_rsa_length(numbers.modulus)?;
    let [p, q] = numbers.primes;
    if bit_length(p).abs_diff(bit_length(q)) > RSA_MAX_PRIME_BIT_DIFF
        || bit_length(numbers.private_exponent) > bit_length(numbers.modulus)
    {
        return Err(KeyBuildError::Mismatch);
    }
    let key = rsa::RsaPrivateKey::from_components(
        BigUint::from_bytes_be(numbers.modulus),
        BigUint::from_bytes_be(numbers.public_exponent),
        BigUint::from_bytes_be(numbers.private_exponent),
        vec![BigUint::from_bytes_be(p), BigUint::from_bytes_be(q)],
    )
    .map_err(|_| KeyBuildError::Mismatch)?;
    // Without it the two numbers share a factor, so they are not primes.
    let coefficient = Zeroizing::new(key.crt_coefficient().ok_or(KeyBuildError::Mismatch)?);
    let coefficient = Zeroizing::new(coefficient.to_bytes_be());

    let number = |bytes: &[u8]| Mpint::from_positive_bytes(bytes).map_err(|_| KeyBuildError::Mismatch);
    Ok(KeypairData::Rsa(RsaKeypair {
        public: RsaPublicKey { n: number(numbers.modulus)?, e: number(numbers.public_exponent)? },
        private: RsaSecret {
            d: number(numbers.private_exponent)?,
            iqmp: number(&coefficient)?,
            p: number(p)?,
            q: number(q)?,
        },
    }))
}
