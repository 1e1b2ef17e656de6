//! The mark a browser keeps after a sign-in, by which a later sign-in from it is told apart from a stranger's.
//! It opens nothing: it only decides which limit a try counts against.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::Auth;
use crate::domain::SignInName;
use crate::entropy;
use crate::vault::Purpose;

impl Auth {
    /// A new mark for a browser from which `name` has just signed in.
    pub fn mark_browser(&self, name: &str) -> std::io::Result<String> {
        let id = URL_SAFE_NO_PAD.encode(entropy::bytes::<12>()?);
        let signature = self.vault.sign(Purpose::KnownBrowser, &message(name, &id));
        Ok(format!("{id}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// The browser's id, if the mark is ours and was made for `name`.
    pub(super) fn known_browser<'a>(
        &self,
        name: &SignInName,
        mark: Option<&'a str>,
    ) -> Option<&'a str> {
        let (id, signature) = mark?.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.vault
            .verify(Purpose::KnownBrowser, &message(name.as_str(), id), &signature)
            .then_some(id)
    }
}

fn message(name: &str, id: &str) -> Vec<u8> {
    // A name holds no zero byte, so the two parts cannot run into each other.
    [name.as_bytes(), &[0], id.as_bytes()].concat()
}
