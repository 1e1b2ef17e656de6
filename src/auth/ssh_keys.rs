//! People's SSH keys: stored sealed, opened only for their owner, or unattended if the owner allowed it.

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::keychains::ArcKeychainKey;
use super::sessions::SignedInPerson;
use super::{AuthError, AuthService, RequestClient, Result};
use crate::domain::{ConnectionRole, PersonId, SshKeyId};
use crate::store::keys::{NewSshKey, SshKey};
use crate::store::{self, StoreError};
use crate::vault::SealedPrivateKeyRef;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyOrigin {
    /// Generated here; the private key has never been anywhere else.
    Generated,
    Imported,
}

pub struct KeyToSave {
    pub role: ConnectionRole,
    pub origin: KeyOrigin,
    /// The key type, as shown to people.
    pub kind: String,
    /// The public key, on one line.
    pub public_line: String,
    /// `SHA256:…`.
    pub fingerprint: String,
    pub private: Zeroizing<Vec<u8>>,
}

/// A key opened for signing.
pub struct UnsealedKey {
    pub id: SshKeyId,
    pub private: Zeroizing<Vec<u8>>,
}

impl AuthService {
    /// Stores a key. If there already is one for the same role, the new one waits until it is proven.
    pub async fn save_key(&self, who: &SignedInPerson, key: &KeyToSave, client: &RequestClient) -> Result<SshKeyId> {
        let person = who.person.id;
        let keychain = self.require_open_keychain(person).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let has_one = store::keys::list_for_person(&mut tx, person).await?.iter().any(|have| have.role() == key.role);
        let new = NewSshKey {
            person,
            role: key.role,
            state: if has_one { "next" } else { "current" },
            origin: if key.origin == KeyOrigin::Generated { "made" } else { "imported" },
            kind: &key.kind,
            public_line: &key.public_line,
            fingerprint: &key.fingerprint,
        };
        let id = match store::keys::add(&mut tx, &new, now).await {
            Err(StoreError::AlreadyExists) => return Err(AuthError::NewKeyPending),
            other => other?,
        };
        let sealed = keychain.seal_private(&key_seal_context(person, id), &key.private)?;
        store::keys::save_sealed(&mut tx, id, &sealed.body, &sealed.own_key).await?;
        let event = if key.origin == KeyOrigin::Generated {
            ActivityEventKind::KeyMade
        } else {
            ActivityEventKind::KeyImported
        };
        self.record_key_event(&mut tx, who, event, &key.fingerprint, client).await?;
        store::commit(tx).await?;
        Ok(id)
    }

    /// Replaces the old key with the waiting one, once that has opened a connection. Deletes the old one.
    pub async fn promote_new_key(
        &self,
        who: &SignedInPerson,
        role: ConnectionRole,
        client: &RequestClient,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        let keys = store::keys::list_for_person(&mut tx, who.person.id).await?;
        let find = |next: bool| keys.iter().find(|key| key.role() == role && key.is_next() == next);
        let next = find(true).ok_or(AuthError::NotFound)?;
        if !store::connections::has_connected(&mut tx, next.id).await? {
            return Err(AuthError::KeyUnproven);
        }
        if let Some(old) = find(false) {
            store::keys::remove(&mut tx, old.id).await?;
        }
        store::keys::promote(&mut tx, next.id).await?;
        self.record_key_event(&mut tx, who, ActivityEventKind::KeyReplaced, &next.fingerprint, client).await?;
        store::commit(tx).await?;
        Ok(self.store.truncate_wal().await?)
    }

    pub async fn delete_key(&self, who: &SignedInPerson, id: SshKeyId, client: &RequestClient) -> Result<SshKey> {
        let mut tx = self.store.write().await?;
        let key = store::keys::get(&mut tx, who.person.id, id).await?.ok_or(AuthError::NotFound)?;
        store::keys::remove(&mut tx, id).await?;
        if !key.is_next() {
            // The waiting key is now the only one.
            let rest = store::keys::list_for_person(&mut tx, who.person.id).await?;
            if let Some(next) = rest.iter().find(|other| other.role() == key.role()) {
                store::keys::promote(&mut tx, next.id).await?;
            }
        }
        self.record_key_event(&mut tx, who, ActivityEventKind::KeyDeleted, &key.fingerprint, client).await?;
        store::commit(tx).await?;
        self.store.truncate_wal().await?;
        Ok(key)
    }

    /// Lets the portal use a key while its owner isn't signed in. Needs the password, because this adds a second way
    /// to open the key.
    pub async fn allow_unattended(
        &self,
        who: &SignedInPerson,
        id: SshKeyId,
        password: &SecretString,
        client: &RequestClient,
    ) -> Result<()> {
        let person = who.person.id;
        self.confirm_password(person, password).await?;
        let keychain = self.require_open_keychain(person).await?;
        let mut tx = self.store.write().await?;
        let key = store::keys::get(&mut tx, person, id).await?.ok_or(AuthError::NotFound)?;
        let sealed = store::keys::load_sealed(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        let unattended = self.vault.allow_unattended(&keychain, &key_seal_context(person, id), &sealed.own_key)?;
        store::keys::set_unattended(&mut tx, id, Some(&unattended)).await?;
        self.record_key_event(&mut tx, who, ActivityEventKind::KeyUnattendedOn, &key.fingerprint, client).await?;
        Ok(store::commit(tx).await?)
    }

    pub async fn forbid_unattended(&self, who: &SignedInPerson, id: SshKeyId, client: &RequestClient) -> Result<()> {
        let mut tx = self.store.write().await?;
        let key = store::keys::get(&mut tx, who.person.id, id).await?.ok_or(AuthError::NotFound)?;
        store::keys::set_unattended(&mut tx, id, None).await?;
        self.record_key_event(&mut tx, who, ActivityEventKind::KeyUnattendedOff, &key.fingerprint, client).await?;
        store::commit(tx).await?;
        Ok(self.store.truncate_wal().await?)
    }

    /// How many of a person's keys for a role could be opened now, without opening any.
    pub async fn count_usable_keys(&self, person: PersonId, role: ConnectionRole) -> Result<usize> {
        Ok(self.list_usable_keys(person, role).await?.0.len())
    }

    /// Opens a person's keys for a role, the waiting one first.
    pub async fn unseal_keys(&self, person: PersonId, role: ConnectionRole) -> Result<Vec<UnsealedKey>> {
        let (keys, keychain) = self.list_usable_keys(person, role).await?;
        let mut db = self.store.read().await?;
        let mut open = Vec::new();
        for key in keys {
            let sealed = store::keys::load_sealed(&mut db, key.id).await?.ok_or(AuthError::NotFound)?;
            let context = key_seal_context(person, key.id);
            let private = match (&keychain, &sealed.unattended) {
                (Some(keychain), _) => keychain
                    .open_private(&context, SealedPrivateKeyRef { body: &sealed.body, own_key: &sealed.own_key })?,
                (None, Some(unattended)) => self.vault.open_private_unattended(&context, &sealed.body, unattended)?,
                // The owner has just withdrawn unattended use.
                (None, None) => continue,
            };
            open.push(UnsealedKey { id: key.id, private });
        }
        Ok(open)
    }

    /// A person's keys for a role that could be opened now, the waiting one first, and the keychain that opens them.
    /// While the person is away, only keys with unattended use. The account must be enabled.
    async fn list_usable_keys(
        &self,
        person: PersonId,
        role: ConnectionRole,
    ) -> Result<(Vec<SshKey>, Option<ArcKeychainKey>)> {
        let keychain = self.require_open_keychain(person).await;
        let mut db = self.store.read().await?;
        let account = store::people::get(&mut db, person).await?.ok_or(AuthError::NotFound)?;
        if account.is_disabled {
            return Err(AuthError::Denied);
        }
        let mut keys = store::keys::list_for_person(&mut db, person).await?;
        keys.retain(|key| key.role() == role);
        keys.sort_by_key(|key| !key.is_next());
        let error = match keychain {
            Ok(keychain) => return Ok((keys, Some(keychain))),
            Err(error) => error,
        };
        let has_any = !keys.is_empty();
        keys.retain(|key| key.is_unattended);
        if has_any && keys.is_empty() { Err(error) } else { Ok((keys, None)) }
    }

    async fn record_key_event(
        &self,
        db: &mut store::DbConnection,
        who: &SignedInPerson,
        event: ActivityEventKind,
        fingerprint: &str,
        client: &RequestClient,
    ) -> Result<()> {
        let about = ActivityDetails { subject: fingerprint, ..ActivityDetails::default() };
        Ok(record(db, &Actor::from_person(&who.person, client), event, about, self.clock.now()).await?)
    }
}

/// The context that binds a sealed key to its owner and row.
pub(super) fn key_seal_context(person: PersonId, key: SshKeyId) -> String {
    format!("person:{person}/key:{key}")
}
