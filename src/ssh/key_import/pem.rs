//! The text around a key: `-----BEGIN …-----`, base64, `-----END …-----`. Tolerates extra white space, because keys
//! come through clipboards and web forms.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use zeroize::Zeroizing;

use super::KeyImportError;

const BEGIN: &str = "-----BEGIN ";
const DASHES: &str = "-----";

/// One block, with the text between its two marker lines.
pub(super) struct PemBlock<'a> {
    pub(super) label: &'a str,
    body: &'a str,
}

/// All blocks of a text, in order. Skips anything between them, as other programs do.
pub(super) fn parse_blocks(text: &str) -> Result<Vec<PemBlock<'_>>, KeyImportError> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some((_, after)) = rest.split_once(BEGIN) {
        let (label, after) = after.split_once(DASHES).ok_or(KeyImportError::Damaged)?;
        let end = format!("-----END {label}{DASHES}");
        let (body, after) = after.split_once(&end).ok_or(KeyImportError::Damaged)?;
        found.push(PemBlock { label, body });
        rest = after;
    }
    Ok(found)
}

impl PemBlock<'_> {
    /// Whether it uses the PEM encryption from before PKCS#8, which its headers announce.
    pub(super) fn has_legacy_encryption(&self) -> bool {
        self.body.contains("Proc-Type:") || self.body.contains("DEK-Info:")
    }

    pub(super) fn decode(&self) -> Result<Zeroizing<Vec<u8>>, KeyImportError> {
        let mut base64 = Zeroizing::new(String::with_capacity(self.body.len()));
        base64.extend(self.body.chars().filter(|c| !c.is_whitespace()));
        STANDARD.decode(base64.as_bytes()).map(Zeroizing::new).map_err(|_| KeyImportError::Damaged)
    }
}
