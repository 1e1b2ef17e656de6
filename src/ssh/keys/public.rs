//! Public keys: the line for `authorized_keys`, the fingerprint, and a readable key type.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ssh_key::EcdsaCurve;
use ssh_key::public::KeyData;

use crate::ssh::wire::fingerprint;
use crate::text::is_disruptive;

/// The longest key takes a third of it.
const MAX_LINE_BYTES: usize = 16 * 1024;
const MAX_COMMENT_CHARS: usize = 200;

/// Why a line is not a usable public key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum PublicKeyError {
    /// Not one line of the form `ssh-ed25519 AAAA… comment`.
    #[error("This isn't a public SSH key. A public key is one line that starts with ssh- or ecdsa-.")]
    NotAKey,
    /// A key, but of an unsupported type.
    #[error("Use an Ed25519, RSA or ECDSA key.")]
    OtherKind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PublicKey {
    data: KeyData,
    blob: Vec<u8>,
    comment: String,
}

impl PublicKey {
    /// Parses a line as in a `.pub` file: type, body and an optional comment.
    pub fn parse(line: &str) -> Result<Self, PublicKeyError> {
        let line = line.trim();
        if line.len() > MAX_LINE_BYTES || line.contains(['\n', '\r']) {
            return Err(PublicKeyError::NotAKey);
        }
        let (kind, rest) = line.split_once([' ', '\t']).ok_or(PublicKeyError::NotAKey)?;
        let rest = rest.trim_start();
        let (body, comment) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
        let blob = STANDARD.decode(body).map_err(|_| PublicKeyError::NotAKey)?;
        let key = ssh_key::PublicKey::from_bytes(&blob).map_err(|_| PublicKeyError::NotAKey)?;
        if key.algorithm().as_str() != kind {
            return Err(PublicKeyError::NotAKey);
        }
        Self::from_data(key.key_data().clone(), comment)
    }

    pub(super) fn from_data(data: KeyData, comment: &str) -> Result<Self, PublicKeyError> {
        if !matches!(data, KeyData::Ed25519(_) | KeyData::Ecdsa(_) | KeyData::Rsa(_)) {
            return Err(PublicKeyError::OtherKind);
        }
        let key = ssh_key::PublicKey::from(data);
        let blob = key.to_bytes().map_err(|_| PublicKeyError::NotAKey)?;
        Ok(Self { data: key.key_data().clone(), blob, comment: clean_comment(comment) })
    }

    /// The line for `authorized_keys`: type, body, and the comment if there is one.
    pub fn to_line(&self) -> String {
        let (name, body) = (self.data.algorithm(), STANDARD.encode(&self.blob));
        format!("{name} {body} {}", self.comment).trim_end().to_owned()
    }

    /// `SHA256:…`, as `ssh-keygen -l` shows it.
    pub fn fingerprint(&self) -> String {
        fingerprint(&self.blob)
    }

    /// The key type for display: `Ed25519`, `RSA 4096 bits`, `ECDSA P-256`.
    pub fn kind(&self) -> String {
        match &self.data {
            KeyData::Rsa(key) => {
                format!("RSA {} bits", bit_length(key.n.as_positive_bytes().unwrap_or_default()))
            }
            KeyData::Ecdsa(key) => {
                let curve = match key.curve() {
                    EcdsaCurve::NistP256 => "P-256",
                    EcdsaCurve::NistP384 => "P-384",
                    EcdsaCurve::NistP521 => "P-521",
                };
                format!("ECDSA {curve}")
            }
            _ => "Ed25519".to_owned(),
        }
    }

    /// The key in SSH's wire format.
    pub fn blob(&self) -> &[u8] {
        &self.blob
    }

    /// The owner's comment; one line without control characters.
    pub fn comment(&self) -> &str {
        &self.comment
    }
}

/// Bits of an integer written without leading zero bytes.
pub(super) fn bit_length(number: &[u8]) -> usize {
    number.first().map_or(0, |first| number.len() * 8 - first.leading_zeros() as usize)
}

/// A comment comes from a file that anyone may have made, and goes into a line of `authorized_keys`: a line break in
/// it would add a second key, and marks that change the writing direction would disguise it.
pub(super) fn clean_comment(comment: &str) -> String {
    let plain: String =
        comment.chars().map(|c| if is_disruptive(c) { ' ' } else { c }).take(MAX_COMMENT_CHARS).collect();
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
