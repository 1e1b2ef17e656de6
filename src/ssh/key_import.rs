//! Imports an existing private key: OpenSSH's own format, PEM (PKCS#1 and SEC1) and PKCS#8, encrypted or not.
//! Everything else is refused with a message that says what to do. No message ever quotes the key.

use secrecy::SecretString;

use super::keys::build::{KeyBuildError, RSA_MAX_BITS, RSA_MIN_BITS};
use super::keys::{PrivateKey, RSA_SHA2_256, SshKeyError};
use super::wipe::with_wiped_stack;

mod der;
mod openssh;
mod pem;

/// An RSA key of 8192 bits has 7 kB.
pub const MAX_KEY_FILE_BYTES: usize = 16 * 1024;

/// Why a key was not accepted. Each variant is a message for the person who provided the key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyImportError {
    /// Longer than [`MAX_KEY_FILE_BYTES`].
    #[error("This is too long to be a private key. Paste only the contents of the key file.")]
    TooLong,
    /// The public half.
    #[error(
        "This is a public key. The private key is in the file of the same name without .pub, and starts with -----BEGIN."
    )]
    PublicKey,
    /// `PuTTY`'s own format.
    #[error(
        "This key is in PuTTY format. Open it in PuTTYgen, choose Conversions, then Export OpenSSH key, and import the exported file."
    )]
    Putty,
    /// A certificate of any kind.
    #[error("This is a certificate, not a private key. Import the private key it was issued for.")]
    Certificate,
    /// A key whose secret is inside a hardware device.
    #[error(
        "This key is stored on a security key (FIDO). The portal can't use it because the device would have to be plugged into the portal's server. Use another key."
    )]
    SecurityKey,
    #[error(
        "This is a DSA key. DSA is no longer secure, and clusters reject it. Create a new key in the portal, or with: ssh-keygen -t ed25519"
    )]
    Dsa,
    #[error(
        "This RSA key has {bits} bits, but needs at least {RSA_MIN_BITS}. Create a new key in the portal, or with: ssh-keygen -t ed25519"
    )]
    RsaTooShort {
        /// The length of its modulus.
        bits: usize,
    },
    #[error("This RSA key has {bits} bits. The portal supports up to {RSA_MAX_BITS} bits.")]
    RsaTooLong {
        /// The length of its modulus.
        bits: usize,
    },
    /// Another key type, or another curve.
    #[error("This type of key isn't supported. Use an Ed25519, RSA or ECDSA (P-256, P-384, P-521) key.")]
    OtherKind,
    /// Encrypted, and no passphrase was given.
    #[error("This key is protected by a passphrase. Enter the passphrase too.")]
    PassphraseNeeded,
    /// Encrypted, and this passphrase does not open it.
    #[error("Wrong passphrase for this key.")]
    WrongPassphrase,
    /// The encryption of old PEM files.
    #[error(
        "This key uses old, weak encryption. Convert the file with ssh-keygen -p -f FILE (you can keep the passphrase), then import it again."
    )]
    LegacyEncryption,
    #[error(
        "This key uses encryption that the portal doesn't support. Convert the file with ssh-keygen -p -f FILE (you can keep the passphrase), then import it again."
    )]
    OtherEncryption,
    #[error(
        "Decrypting this key would take too long, because it uses too many key derivation rounds. Convert the file with ssh-keygen -p -a 24 -f FILE, then import it again."
    )]
    TooManyRounds,
    #[error("This contains more than one private key. Import them one at a time.")]
    SeveralKeys,
    /// Looks like a key, but is incomplete or was changed.
    #[error("This private key is incomplete or damaged. Copy the whole file, from the BEGIN line to the END line.")]
    Damaged,
    #[error("This isn't a private SSH key. A key file starts with a line such as -----BEGIN OPENSSH PRIVATE KEY-----.")]
    NotAKey,
}

impl From<KeyBuildError> for KeyImportError {
    fn from(error: KeyBuildError) -> Self {
        match error {
            KeyBuildError::Mismatch => Self::Damaged,
            KeyBuildError::RsaTooShort(bits) => Self::RsaTooShort { bits },
            KeyBuildError::RsaTooLong(bits) => Self::RsaTooLong { bits },
        }
    }
}

impl From<SshKeyError> for KeyImportError {
    fn from(_: SshKeyError) -> Self {
        Self::Damaged
    }
}

/// Reads a private key from the text of its file. With a passphrase this can take several seconds of computation, so
/// run it on a blocking thread.
pub fn import(text: &str, passphrase: Option<&SecretString>) -> Result<PrivateKey, KeyImportError> {
    with_wiped_stack(|| read_key(text, passphrase))
}

fn read_key(text: &str, passphrase: Option<&SecretString>) -> Result<PrivateKey, KeyImportError> {
    if text.len() > MAX_KEY_FILE_BYTES {
        return Err(KeyImportError::TooLong);
    }
    let blocks = pem::parse_blocks(text)?;
    let mut private = blocks.iter().filter(|block| block.label.ends_with("PRIVATE KEY"));
    let block = private.next().ok_or_else(|| explain_non_key(text))?;
    if private.next().is_some() {
        return Err(KeyImportError::SeveralKeys);
    }
    if block.label == "DSA PRIVATE KEY" {
        return Err(KeyImportError::Dsa);
    }
    if block.has_legacy_encryption() {
        return Err(KeyImportError::LegacyEncryption);
    }
    let body = block.decode()?;
    let key = match block.label {
        "OPENSSH PRIVATE KEY" => openssh::read(&body, passphrase)?,
        "RSA PRIVATE KEY" => der::pkcs1(&body)?,
        "EC PRIVATE KEY" => der::sec1(&body, None)?,
        "PRIVATE KEY" => der::pkcs8(&body)?,
        "ENCRYPTED PRIVATE KEY" => der::encrypted_pkcs8(&body, passphrase)?,
        _ => return Err(KeyImportError::OtherKind),
    };
    // Only signing shows whether the two factors of an RSA key are really primes.
    key.sign(b"", RSA_SHA2_256).map_err(|_| KeyImportError::Damaged)?;
    Ok(key)
}

/// Explains, where that helps, what a text without a private key is.
fn explain_non_key(text: &str) -> KeyImportError {
    if text.trim_start_matches(['\u{feff}', ' ', '\n', '\r']).starts_with("PuTTY-User-Key-File-") {
        return KeyImportError::Putty;
    }
    // A key type, followed by what every key of that type begins with.
    let kinds = || {
        let words = text.split_whitespace();
        words.clone().zip(words.skip(1)).filter(|(_, body)| body.starts_with("AAAA")).map(|pair| pair.0)
    };
    let of_kind = |prefix: &str| kinds().any(|kind| kind.starts_with(prefix));
    if text.contains("BEGIN CERTIFICATE") || kinds().any(|kind| kind.contains("-cert-v01@")) {
        KeyImportError::Certificate
    } else if of_kind("sk-") {
        KeyImportError::SecurityKey
    } else if text.contains("PUBLIC KEY--") || text.contains("SSH2 PUBLIC KEY") || of_kind("ssh-") || of_kind("ecdsa-")
    {
        KeyImportError::PublicKey
    } else {
        KeyImportError::NotAKey
    }
}

#[cfg(test)]
mod tests;
