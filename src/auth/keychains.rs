//! Keychains: a person's password unlocks theirs at sign-in, and it stays open in memory while they are signed in
//! anywhere. Each browser's cookie unlocks it too, so that nobody has to enter a password after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use secrecy::SecretString;

use super::{AuthError, AuthService, Result, person_seal_context, token};
use crate::domain::PersonId;
use crate::entropy;
use crate::store::{self, keys::KeychainRow};
use crate::vault::{PasswordDerivedKey, PersonKeychainKey, derive_password_key};

pub(super) type ArcKeychainKey = Arc<PersonKeychainKey>;

/// The keychains that are currently unlocked.
#[derive(Default)]
pub(super) struct OpenKeychainCache(Mutex<HashMap<PersonId, ArcKeychainKey>>);

/// A stretched password, ready to unlock a keychain. Stretching is slow, so do it before a transaction begins.
pub(super) struct StretchedPassword {
    salt: [u8; 16],
    stretched: PasswordDerivedKey,
}

impl OpenKeychainCache {
    pub(super) fn get(&self, person: PersonId) -> Option<ArcKeychainKey> {
        self.lock().get(&person).cloned()
    }

    pub(super) fn insert(&self, person: PersonId, keychain: ArcKeychainKey) {
        self.lock().insert(person, keychain);
    }

    pub(super) fn remove(&self, person: PersonId) {
        self.lock().remove(&person);
    }

    fn people(&self) -> Vec<PersonId> {
        self.lock().keys().copied().collect()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<PersonId, ArcKeychainKey>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl AuthService {
    /// Stretches a password for a person's keychain, or for the one they will get.
    pub(super) async fn stretch_password(
        &self,
        person: Option<PersonId>,
        password: &SecretString,
    ) -> Result<StretchedPassword> {
        let row = match person {
            Some(person) => store::keys::find_keychain(&mut *self.store.read().await?, person).await?,
            None => None,
        };
        let salt = match row.and_then(|keychain| keychain.salt.try_into().ok()) {
            Some(salt) => salt,
            None => entropy::random_bytes()?,
        };
        let password = password.clone();
        let stretched = self.run_hashing(move || derive_password_key(&password, &salt)).await??;
        Ok(StretchedPassword { salt, stretched })
    }

    /// Unlocks a person's keychain inside a transaction, creating it if they have none. `None` if it doesn't open:
    /// they are signed in anyway, but their keys stay locked.
    pub(super) async fn open_or_create_keychain(
        &self,
        db: &mut store::DbConnection,
        person: PersonId,
        password: &StretchedPassword,
    ) -> Result<Option<ArcKeychainKey>> {
        if let Some(row) = store::keys::find_keychain(db, person).await? {
            return match self.vault.unlock_keychain(&person_seal_context(person), &password.stretched, &row.by_password)
            {
                Ok(keychain) => Ok(Some(Arc::new(keychain))),
                Err(error) => {
                    tracing::warn!(%error, person = person.0, "A keychain could not be unlocked although the password was correct");
                    Ok(None)
                }
            };
        }
        let keychain = PersonKeychainKey::generate()?;
        self.save_keychain(db, person, password, &keychain).await?;
        Ok(Some(Arc::new(keychain)))
    }

    /// Locks an open keychain with a new password.
    pub(super) async fn save_keychain(
        &self,
        db: &mut store::DbConnection,
        person: PersonId,
        password: &StretchedPassword,
        keychain: &PersonKeychainKey,
    ) -> Result<()> {
        let by_password = self.vault.lock_keychain(&person_seal_context(person), &password.stretched, keychain)?;
        let keychain = KeychainRow { salt: password.salt.to_vec(), by_password };
        Ok(store::keys::save_keychain(db, person, &keychain, self.clock.now()).await?)
    }

    /// Uses a new salt for every new password.
    pub(super) async fn stretch_new_password(&self, password: &SecretString) -> Result<StretchedPassword> {
        self.stretch_password(None, password).await
    }

    /// Locks an open keychain with a browser's session token.
    pub(super) fn seal_keychain_for_token(&self, token: &str, keychain: &PersonKeychainKey) -> Result<Vec<u8>> {
        Ok(self.vault.lock_keychain_for_session(&token_seal_context(token), token, keychain)?)
    }

    /// Unlocks a keychain with a browser's session token.
    pub(super) fn open_keychain_with_token(&self, token: &str, sealed: &[u8]) -> Option<ArcKeychainKey> {
        self.vault.unlock_keychain_for_session(&token_seal_context(token), token, sealed).ok().map(Arc::new)
    }

    /// A person's open keychain, if they are signed in.
    pub(super) async fn require_open_keychain(&self, person: PersonId) -> Result<ArcKeychainKey> {
        if !self.is_signed_in(person).await? {
            self.keychains.remove(person);
            return Err(AuthError::KeychainLocked);
        }
        self.keychains.get(person).ok_or(AuthError::KeychainLocked)
    }

    /// Whether a person is signed in anywhere.
    pub async fn is_signed_in(&self, person: PersonId) -> Result<bool> {
        let now = self.clock.now();
        let idle_since = now.plus(-i64::from(self.session_settings.idle_hours) * 3600);
        Ok(store::sessions::is_signed_in(&mut *self.store.read().await?, person, idle_since, now).await?)
    }

    /// Whether the portal may use a person's connections on its own: they are signed in, or have allowed unattended
    /// use of their key.
    pub async fn can_act_for(&self, person: PersonId) -> Result<bool> {
        if self.is_signed_in(person).await? {
            return Ok(true);
        }
        Ok(store::keys::has_unattended(&mut *self.store.read().await?, person).await?)
    }

    /// Closes the keychains of people who are no longer signed in anywhere.
    pub async fn close_unused_keychains(&self) -> Result<()> {
        for person in self.keychains.people() {
            self.close_keychain_if_signed_out(person).await?;
        }
        Ok(())
    }

    /// Closes a person's keychain if they are no longer signed in anywhere.
    pub(super) async fn close_keychain_if_signed_out(&self, person: PersonId) -> Result<()> {
        if !self.is_signed_in(person).await? {
            self.keychains.remove(person);
        }
        Ok(())
    }

    /// Deletes a person's keychain and keys inside a transaction, because nobody knows the password that opened them.
    /// Also closes their connections.
    pub(super) async fn delete_keychain_and_keys(&self, db: &mut store::DbConnection, person: PersonId) -> Result<u64> {
        store::connections::clear_wanted(db, person).await?;
        self.keychains.remove(person);
        Ok(store::keys::delete_all(db, person).await?)
    }
}

/// The context for a keychain that a session token unlocks. The token itself is never stored.
fn token_seal_context(token: &str) -> String {
    session_seal_context(&token::hash(token))
}

/// The same context, from the stored hash of the token.
pub(super) fn session_seal_context(hash: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut context = String::from("session:");
    for byte in hash {
        let _ = write!(context, "{byte:02x}");
    }
    context
}
