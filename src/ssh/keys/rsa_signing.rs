//! RSA signatures, made with the `rsa` crate and blinded: that crate does not run in constant time, and blinding
//! keeps timing from revealing the key.

use rsa::rand_core::{CryptoRng, Error, RngCore};
use rsa::sha2::{Digest as _, Sha256, Sha512};
use rsa::{BigUint, Pkcs1v15Sign};
use ssh_key::private::RsaKeypair;
use ssh_key::{Algorithm, HashAlg, Mpint, Signature};
use zeroize::Zeroizing;

use super::{RSA_SHA2_256, RSA_SHA2_512, SshSignError};
use crate::entropy;

pub(super) fn sign(pair: &RsaKeypair, data: &[u8], flags: u32) -> Result<Signature, SshSignError> {
    let (hash, padding, digest) = if flags & RSA_SHA2_256 != 0 {
        let digest = Sha256::digest(data).to_vec();
        (HashAlg::Sha256, Pkcs1v15Sign::new::<Sha256>(), digest)
    } else if flags & RSA_SHA2_512 != 0 {
        let digest = Sha512::digest(data).to_vec();
        (HashAlg::Sha512, Pkcs1v15Sign::new::<Sha512>(), digest)
    } else {
        return Err(SshSignError::Sha1Refused);
    };
    let signature = private_key(pair)?
        .sign_with_rng(&mut BlindingRng::new()?, padding, &digest)
        .map_err(|_| SshSignError::Damaged)?;
    Signature::new(Algorithm::Rsa { hash: Some(hash) }, signature).map_err(|_| SshSignError::Damaged)
}

fn private_key(pair: &RsaKeypair) -> Result<rsa::RsaPrivateKey, SshSignError> {
    let number = |number: &Mpint| number.as_positive_bytes().map(BigUint::from_bytes_be).ok_or(SshSignError::Damaged);
    rsa::RsaPrivateKey::from_components(
        number(&pair.public.n)?,
        number(&pair.public.e)?,
        number(&pair.private.d)?,
        vec![number(&pair.private.p)?, number(&pair.private.q)?],
    )
    .map_err(|_| SshSignError::Damaged)
}

/// Random numbers for blinding: hashes of a secret seed and a counter. The trait cannot report a failure, so the seed
/// is read from the operating system once, beforehand.
struct BlindingRng {
    seed: Zeroizing<[u8; 32]>,
    counter: u64,
}

impl BlindingRng {
    fn new() -> std::io::Result<Self> {
        Ok(Self { seed: Zeroizing::new(entropy::random_bytes()?), counter: 0 })
    }
}

impl RngCore for BlindingRng {
    fn next_u32(&mut self) -> u32 {
        let mut bytes = [0; 4];
        self.fill_bytes(&mut bytes);
        u32::from_be_bytes(bytes)
    }

    fn next_u64(&mut self) -> u64 {
        let mut bytes = [0; 8];
        self.fill_bytes(&mut bytes);
        u64::from_be_bytes(bytes)
    }

    fn fill_bytes(&mut self, dest: &mut [u8]) {
        for chunk in dest.chunks_mut(64) {
            let mut hash = Sha512::new_with_prefix(self.seed.as_slice());
            hash.update(self.counter.to_be_bytes());
            self.counter += 1;
            chunk.copy_from_slice(&hash.finalize()[..chunk.len()]);
        }
    }

    fn try_fill_bytes(&mut self, dest: &mut [u8]) -> Result<(), Error> {
        self.fill_bytes(dest);
        Ok(())
    }
}

impl CryptoRng for BlindingRng {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blinding_never_repeats_itself() {
        let (mut a, mut b) = (BlindingRng::new().unwrap(), BlindingRng::new().unwrap());
        let mut draws = std::collections::BTreeSet::new();
        for _ in 0..100 {
            assert!(draws.insert(a.next_u64()));
            assert!(draws.insert(b.next_u64()));
        }
        let mut long = [0; 200];
        a.fill_bytes(&mut long);
        assert_ne!(long[..64], long[64..128]);
        assert_ne!(long[128..], [0; 72]);
    }
}
