//! OpenSSH's own private key format (described in its file `PROTOCOL.key`).
//!
//! Parsed here and not by `ssh-key`, which refuses ECDSA keys whose scalar begins with zero bytes: on P-521 one key
//! in four.

use secrecy::{ExposeSecret, SecretString};
use ssh_key::{Cipher, EcdsaCurve, Kdf};
use zeroize::Zeroizing;

use super::KeyImportError;
use crate::ssh::keys::PrivateKey;
use crate::ssh::keys::build::{self, RsaKeyNumbers};
use crate::ssh::wire::WireReader;

const MAGIC: &[u8] = b"openssh-key-v1\0";

/// The most bcrypt rounds we compute: `ssh-keygen` uses 16 or 24, careful people 100 or 200,
/// and each takes about 10 ms.
const MAX_BCRYPT_ROUNDS: u32 = 256;

pub(super) fn read(bytes: &[u8], passphrase: Option<&SecretString>) -> Result<PrivateKey, KeyImportError> {
    let file = UnopenedOpensshKey::parse(bytes)?;
    file.check_kind()?;
    let (section, locked) = match file.cipher {
        "none" if file.kdf == "none" && file.tag.is_empty() => (Zeroizing::new(file.section.to_vec()), false),
        _ => (file.decrypt(passphrase)?, true),
    };
    let mut reader = WireReader::new(&section);
    if reader.number().ok_or(KeyImportError::Damaged)? != reader.number().ok_or(KeyImportError::Damaged)? {
        return Err(if locked { KeyImportError::WrongPassphrase } else { KeyImportError::Damaged });
    }
    let key = parse_private_key(&mut reader)?;
    let padding_fits = reader.rest().iter().zip(1..=u8::MAX).all(|(byte, place)| *byte == place);
    if key.public().blob() == file.public && padding_fits && reader.rest().len() < 16 {
        Ok(key)
    } else {
        Err(KeyImportError::Damaged)
    }
}

/// The file before decryption.
struct UnopenedOpensshKey<'a> {
    cipher: &'a str,
    kdf: &'a str,
    kdf_options: &'a [u8],
    public: &'a [u8],
    section: &'a [u8],
    tag: &'a [u8],
}

impl<'a> UnopenedOpensshKey<'a> {
    fn parse(bytes: &'a [u8]) -> Result<Self, KeyImportError> {
        let inside = bytes.strip_prefix(MAGIC).ok_or(KeyImportError::Damaged)?;
        let parse = |reader: &mut WireReader<'a>| {
            let (cipher, kdf, kdf_options) = (reader.text()?, reader.text()?, reader.string()?);
            let count = reader.number()?;
            Some((
                count,
                Self {
                    cipher,
                    kdf,
                    kdf_options,
                    public: reader.string()?,
                    section: reader.string()?,
                    tag: reader.rest(),
                },
            ))
        };
        match parse(&mut WireReader::new(inside)) {
            Some((1, file)) => Ok(file),
            Some((2.., _)) => Err(KeyImportError::SeveralKeys),
            _ => Err(KeyImportError::Damaged),
        }
    }

    /// The public half is never encrypted: unusable keys are refused before anybody types a passphrase.
    fn check_kind(&self) -> Result<(), KeyImportError> {
        let mut public = WireReader::new(self.public);
        match public.text().ok_or(KeyImportError::Damaged)? {
            "ssh-ed25519" => Ok(()),
            "ssh-rsa" => {
                let _exponent = public.positive();
                Ok(build::check_rsa_length(public.positive().ok_or(KeyImportError::Damaged)?)?)
            }
            kind if parse_curve(kind).is_some() => Ok(()),
            "ssh-dss" => Err(KeyImportError::Dsa),
            kind if kind.ends_with("-cert-v01@openssh.com") => Err(KeyImportError::Certificate),
            kind if kind.starts_with("sk-") => Err(KeyImportError::SecurityKey),
            _ => Err(KeyImportError::OtherKind),
        }
    }

    fn decrypt(&self, passphrase: Option<&SecretString>) -> Result<Zeroizing<Vec<u8>>, KeyImportError> {
        let cipher = match Cipher::new(self.cipher) {
            Ok(Cipher::None | Cipher::TDesCbc) | Err(_) => {
                return Err(KeyImportError::OtherEncryption);
            }
            Ok(cipher) => cipher,
        };
        if self.kdf != "bcrypt" {
            return Err(KeyImportError::OtherEncryption);
        }
        let mut options = WireReader::new(self.kdf_options);
        let (Some(salt), Some(rounds)) = (options.string(), options.number()) else {
            return Err(KeyImportError::Damaged);
        };
        if rounds > MAX_BCRYPT_ROUNDS {
            return Err(KeyImportError::TooManyRounds);
        }
        let tag = match (cipher.has_tag(), self.tag) {
            (true, tag) => Some(tag.try_into().map_err(|_| KeyImportError::Damaged)?),
            (false, []) => None,
            (false, _) => return Err(KeyImportError::Damaged),
        };
        let whole_blocks = self.section.len().is_multiple_of(cipher.block_size());
        if salt.is_empty() || rounds == 0 || !whole_blocks {
            return Err(KeyImportError::Damaged);
        }
        let passphrase = require_passphrase(passphrase)?;
        let (key, iv) = Kdf::Bcrypt { salt: salt.to_vec(), rounds }
            .derive_key_and_iv(cipher, passphrase.expose_secret())
            .map_err(|_| KeyImportError::Damaged)?;
        let mut section = Zeroizing::new(self.section.to_vec());
        cipher.decrypt(&key, &Zeroizing::new(iv), &mut section, tag).map_err(|_| KeyImportError::WrongPassphrase)?;
        Ok(section)
    }
}

pub(super) fn require_passphrase(passphrase: Option<&SecretString>) -> Result<&SecretString, KeyImportError> {
    passphrase.filter(|passphrase| !passphrase.expose_secret().is_empty()).ok_or(KeyImportError::PassphraseNeeded)
}

fn parse_curve(kind: &str) -> Option<EcdsaCurve> {
    kind.strip_prefix("ecdsa-sha2-").and_then(|name| EcdsaCurve::new(name).ok())
}

/// The private half and its comment, after the two check numbers.
fn parse_private_key(reader: &mut WireReader<'_>) -> Result<PrivateKey, KeyImportError> {
    let mut parse = || {
        let kind = reader.text()?;
        let pair = match kind {
            "ssh-ed25519" => {
                let public = reader.string()?;
                let (seed, again) = reader.string()?.split_at_checked(32)?;
                (public == again).then(|| build::ed25519(seed, Some(public)))?
            }
            "ssh-rsa" => {
                let (modulus, public_exponent) = (reader.positive()?, reader.positive()?);
                let private_exponent = reader.positive()?;
                let _coefficient = reader.positive()?;
                let primes = [reader.positive()?, reader.positive()?];
                build::rsa(RsaKeyNumbers { modulus, public_exponent, private_exponent, primes })
            }
            _ => {
                let curve = parse_curve(kind)?;
                let (_name, public) = (reader.string()?, reader.string()?);
                build::ecdsa(curve, reader.positive()?, Some(public))
            }
        };
        Some((pair, String::from_utf8_lossy(reader.string()?)))
    };
    let (pair, comment) = parse().ok_or(KeyImportError::Damaged)?;
    Ok(PrivateKey::from_pair(pair?, &comment)?)
}
