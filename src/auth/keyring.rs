//! Keychains: a person's password opens theirs when they sign in; it stays open in memory while they are signed in
//! anywhere. Each browser's cookie opens it too, so that a restart of the portal asks nobody for a password.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::SecretString;

use super::{Auth, AuthError, Result, place_of, token};
use crate::domain::PersonId;
use crate::entropy;
use crate::store::{self, keys::Keychain};
use crate::vault::{KeychainKey, PasswordDerivedKey, derive_password_key};

/// An open keychain.
pub(super) type Chain = Arc<KeychainKey>;

/// The keychains that are open now.
#[derive(Default)]
pub(super) struct Keyring(Mutex<HashMap<PersonId, Chain>>);

/// A password made ready to open a keychain. Takes a moment of work, so it is done before a transaction begins.
pub(super) struct ReadyPassword {
    salt: [u8; 16],
    stretched: PasswordDerivedKey,
}

impl Keyring {
    pub(super) fn get(&self, person: PersonId) -> Option<Chain> {
        self.lock().get(&person).cloned()
    }

    pub(super) fn hold(&self, person: PersonId, chain: Chain) {
        self.lock().insert(person, chain);
    }

    pub(super) fn forget(&self, person: PersonId) {
        self.lock().remove(&person);
    }

    fn holders(&self) -> Vec<PersonId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PersonId, Chain>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Auth {
    /// Makes a password ready for a person's keychain, or for the one they will get.
    pub(super) async fn ready_password(
        &self,
        person: Option<PersonId>,
        password: &SecretString,
    ) -> Result<ReadyPassword> {
        let known = match person {
            Some(person) => store::keys::chain(&mut *self.store.read().await?, person).await?,
            None => None,
        };
        let salt = match known.and_then(|chain| chain.salt.try_into().ok()) {
            Some(salt) => salt,
            None => entropy::bytes()?,
        };
        let password = password.clone();
        let stretched = self.hashing(move || derive_password_key(&password, &salt)).await??;
        Ok(ReadyPassword { salt, stretched })
    }

    /// Opens a person's keychain inside a transaction, making it if they have none. None if it does not open: then
    /// they are signed in all the same, but their keys stay closed.
    pub(super) async fn open_chain(
        &self,
        db: &mut store::Connection,
        person: PersonId,
        password: &ReadyPassword,
    ) -> Result<Option<Chain>> {
        if let Some(known) = store::keys::chain(db, person).await? {
            return match self.vault.unlock_keychain(
                &place_of(person),
                &password.stretched,
                &known.by_password,
            ) {
                Ok(chain) => Ok(Some(Arc::new(chain))),
                Err(error) => {
                    tracing::warn!(%error, person = person.0, "A keychain did not open although the password was right");
                    Ok(None)
                }
            };
        }
        let chain = KeychainKey::generate()?;
        self.store_chain(db, person, password, &chain).await?;
        Ok(Some(Arc::new(chain)))
    }

    /// Locks an open keychain with a new password.
    pub(super) async fn store_chain(
        &self,
        db: &mut store::Connection,
        person: PersonId,
        password: &ReadyPassword,
        chain: &KeychainKey,
    ) -> Result<()> {
        let by_password =
            self.vault.lock_keychain(&place_of(person), &password.stretched, chain)?;
        let chain = Keychain { salt: password.salt.to_vec(), by_password };
        Ok(store::keys::put_chain(db, person, &chain, self.clock.now()).await?)
    }

    /// A new salt with every new password.
    pub(super) async fn ready_new_password(
        &self,
        password: &SecretString,
    ) -> Result<ReadyPassword> {
        self.ready_password(None, password).await
    }

    /// Locks an open keychain with a browser's token.
    pub(super) fn chain_for_token(&self, token: &str, chain: &KeychainKey) -> Result<Vec<u8>> {
        Ok(self.vault.lock_keychain_for_session(&place_of_token(token), token, chain)?)
    }

    /// Opens a keychain with a browser's token.
    pub(super) fn chain_from_token(&self, token: &str, sealed: &[u8]) -> Option<Chain> {
        self.vault
            .unlock_keychain_for_session(&place_of_token(token), token, sealed)
            .ok()
            .map(Arc::new)
    }

    /// A person's open keychain, if they are signed in.
    pub(super) async fn chain_of(&self, person: PersonId) -> Result<Chain> {
        if !self.is_present(person).await? {
            self.keyring.forget(person);
            return Err(AuthError::Locked);
        }
        self.keyring.get(person).ok_or(AuthError::Locked)
    }

    /// Whether a person is signed in anywhere.
    pub async fn is_present(&self, person: PersonId) -> Result<bool> {
        let now = self.clock.now();
        let idle_since = now.plus(-i64::from(self.lifetimes.idle_hours) * 3600);
        Ok(store::sessions::is_present(&mut *self.store.read().await?, person, idle_since, now)
            .await?)
    }

    /// Whether the portal may do something over a person's connections by itself: they are signed in, or have allowed
    /// their key to be used while they are away.
    pub async fn may_work_for(&self, person: PersonId) -> Result<bool> {
        if self.is_present(person).await? {
            return Ok(true);
        }
        Ok(store::keys::any_unattended(&mut *self.store.read().await?, person).await?)
    }

    /// Closes the keychains of people who are no longer signed in anywhere.
    pub async fn close_keychains(&self) -> Result<()> {
        for person in self.keyring.holders() {
            self.close_keychain_if_gone(person).await?;
        }
        Ok(())
    }

    /// Closes a person's keychain if they are no longer signed in anywhere.
    pub(super) async fn close_keychain_if_gone(&self, person: PersonId) -> Result<()> {
        if !self.is_present(person).await? {
            self.keyring.forget(person);
        }
        Ok(())
    }

    /// Throws a person's keychain and keys away inside a transaction: nobody knows the password that opened them.
    /// Their connections close with them.
    pub(super) async fn lose_keys(
        &self,
        db: &mut store::Connection,
        person: PersonId,
    ) -> Result<u64> {
        store::lines::want_none(db, person).await?;
        self.keyring.forget(person);
        Ok(store::keys::lose_all(db, person).await?)
    }
}

/// The place of a chain that a browser's token opens. The token itself is never stored.
fn place_of_token(token: &str) -> String {
    place_of_hash(&token::hash(token))
}

/// The same, from what is stored of the token.
pub(super) fn place_of_hash(hash: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut place = String::from("session:");
    for byte in hash {
        let _ = write!(place, "{byte:02x}");
    }
    place
}
