//! What links to dashboards need of passwords and limits: guessing is counted, passphrases are hashed.

use secrecy::SecretString;

use super::limits::{Bucket, network};
use super::{Auth, AuthError, Result, Visitor};
use crate::domain::ShareId;

impl Auth {
    /// Counts a wrong guess at a link. Guessing is hopeless, but it need not be free.
    pub fn count_wrong_link(&self, visitor: &Visitor) -> Result<()> {
        let bucket = [Bucket::Link(network(visitor.address))];
        self.limits.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// Counts an opening of a link that exists: each leaves a line in the activity log.
    pub fn count_opening(&self, share: ShareId, visitor: &Visitor) -> Result<()> {
        let bucket = [Bucket::Opening(share.0, network(visitor.address))];
        self.limits.take(&bucket, self.clock.now()).map_err(AuthError::TooManyTries)
    }

    /// The hash of a passphrase, to be kept.
    pub async fn hash_passphrase(&self, passphrase: &SecretString) -> Result<String> {
        self.hash_password(passphrase).await
    }

    /// Whether a passphrase is the one behind a link's hash. Wrong ones are counted, by link and by address.
    pub async fn check_passphrase(
        &self,
        share: ShareId,
        hash: &str,
        passphrase: &SecretString,
        visitor: &Visitor,
    ) -> Result<bool> {
        let buckets = [
            Bucket::PassphraseFrom(share.0, network(visitor.address)),
            Bucket::Passphrase(share.0),
        ];
        self.limits.take(&buckets, self.clock.now()).map_err(AuthError::TooManyTries)?;
        let is_right = self.verify_hash(Some(hash.as_bytes().to_vec()), passphrase).await?;
        if is_right {
            self.limits.give_back(&buckets, self.clock.now());
        }
        Ok(is_right)
    }
}
