//! The mark a browser keeps after a sign-in, by which a later sign-in from it is told apart from a stranger's.
//! It opens nothing: it only decides which limit a try counts against.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{Auth, AuthError, Result};
use crate::domain::PersonId;
use crate::entropy;
use crate::store::{self, people::Credentials};
use crate::vault::VaultPurpose;

impl Auth {
    /// A new mark for a browser from which this person has just signed in. It holds until the password or the second
    /// factor changes: whoever once knew the old password has no use for it afterwards.
    pub(super) fn mark_browser(&self, whose: &Credentials) -> std::io::Result<String> {
        let id = URL_SAFE_NO_PAD.encode(entropy::bytes::<12>()?);
        let signature = self.vault.sign(VaultPurpose::KnownBrowser, &message(whose, &id));
        Ok(format!("{id}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// A new mark for the browser in which its owner has just changed what the old one stood for.
    pub async fn renew_mark(&self, person: PersonId) -> Result<String> {
        let whose = store::people::credentials(&mut *self.store.read().await?, person).await?;
        Ok(self.mark_browser(&whose.ok_or(AuthError::NotFound)?)?)
    }

    /// The browser's id, if the mark is ours and was made for this person as they are now.
    pub(super) fn known_browser<'a>(
        &self,
        whose: &Credentials,
        mark: Option<&'a str>,
    ) -> Option<&'a str> {
        let (id, signature) = mark?.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.vault.verify(VaultPurpose::KnownBrowser, &message(whose, id), &signature).then_some(id)
    }
}

fn message(whose: &Credentials, id: &str) -> Vec<u8> {
    // The sealed hash is another one after each change, even to the same password.
    let state = format!("{} {} {id} ", whose.person.id, whose.person.has_totp);
    [state.as_bytes(), &whose.password_sealed].concat()
}
