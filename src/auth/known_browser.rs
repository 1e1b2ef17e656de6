//! The mark that a browser keeps after a sign-in, so that its next sign-in isn't counted with those of strangers.
//! It grants nothing: it only decides which rate limit applies.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::{AuthError, AuthService, Result};
use crate::domain::PersonId;
use crate::entropy;
use crate::store::{self, people::PersonCredentials};
use crate::vault::VaultPurpose;

impl AuthService {
    /// A new mark for a browser in which this person has just signed in. It is valid until the password or the second
    /// factor changes, so that it is useless to someone who knew the old password.
    pub(super) fn issue_browser_mark(&self, credentials: &PersonCredentials) -> std::io::Result<String> {
        let id = URL_SAFE_NO_PAD.encode(entropy::random_bytes::<12>()?);
        let signature = self.vault.sign(VaultPurpose::KnownBrowser, &mark_message(credentials, &id));
        Ok(format!("{id}.{}", URL_SAFE_NO_PAD.encode(signature)))
    }

    /// A new mark after the owner changed their password or second factor in this browser.
    pub async fn renew_browser_mark(&self, person: PersonId) -> Result<String> {
        let credentials = store::people::load_credentials(&mut *self.store.read().await?, person).await?;
        Ok(self.issue_browser_mark(&credentials.ok_or(AuthError::NotFound)?)?)
    }

    /// The browser's id, if the mark is ours and matches this person's current credentials.
    pub(super) fn verify_browser_mark<'a>(
        &self,
        credentials: &PersonCredentials,
        mark: Option<&'a str>,
    ) -> Option<&'a str> {
        let (id, signature) = mark?.split_once('.')?;
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.vault.verify(VaultPurpose::KnownBrowser, &mark_message(credentials, id), &signature).then_some(id)
    }
}

fn mark_message(credentials: &PersonCredentials, id: &str) -> Vec<u8> {
    // The sealed hash changes with every password change, even to the same password.
    let state = format!("{} {} {id} ", credentials.person.id, credentials.person.has_totp);
    [state.as_bytes(), &credentials.password_sealed].concat()
}
