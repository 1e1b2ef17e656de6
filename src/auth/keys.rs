//! SSH keys of people: kept sealed, opened only for their owner, or without them where they allowed it.

use secrecy::SecretString;
use zeroize::Zeroizing;

use super::activity::{About, Actor, Event, record};
use super::sessions::SignedIn;
use super::{Auth, AuthError, Result, Visitor};
use crate::domain::{KeyId, LineRole, PersonId};
use crate::store::keys::{NewKey, SshKey};
use crate::store::{self, StoreError};
use crate::vault::SealedPrivateKeyRef;

/// Where a key comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// Made here; its private half has never been anywhere else.
    Made,
    /// Brought along.
    Imported,
}

/// A key to be kept.
pub struct KeyToKeep {
    /// What for.
    pub role: LineRole,
    /// Where from.
    pub origin: Origin,
    /// Its kind, for people.
    pub kind: String,
    /// The public half, one line.
    pub public_line: String,
    /// `SHA256:…`.
    pub fingerprint: String,
    /// The private half.
    pub private: Zeroizing<Vec<u8>>,
}

/// A key that was opened to sign with.
pub struct OpenKey {
    /// Which.
    pub id: KeyId,
    /// The private half.
    pub private: Zeroizing<Vec<u8>>,
}

impl Auth {
    /// Keeps a key. If there is one for the same purpose, the new one waits until it is proven.
    pub async fn keep_key(
        &self,
        who: &SignedIn,
        key: &KeyToKeep,
        visitor: &Visitor,
    ) -> Result<KeyId> {
        let person = who.person.id;
        let chain = self.chain_of(person).await?;
        let now = self.clock.now();
        let mut tx = self.store.write().await?;
        let has_one = store::keys::of_person(&mut tx, person)
            .await?
            .iter()
            .any(|have| have.role() == key.role);
        let new = NewKey {
            person,
            role: key.role,
            state: if has_one { "next" } else { "current" },
            origin: if key.origin == Origin::Made { "made" } else { "imported" },
            kind: &key.kind,
            public_line: &key.public_line,
            fingerprint: &key.fingerprint,
        };
        let id = match store::keys::add(&mut tx, &new, now).await {
            Err(StoreError::Taken) => return Err(AuthError::KeyWaiting),
            other => other?,
        };
        let sealed = chain.seal_private(&place_of_key(person, id), &key.private)?;
        store::keys::seal(&mut tx, id, &sealed.body, &sealed.own_key).await?;
        let event = if key.origin == Origin::Made { Event::KeyMade } else { Event::KeyImported };
        self.record_key(&mut tx, who, event, &key.fingerprint, visitor).await?;
        store::commit(tx).await?;
        Ok(id)
    }

    /// Puts the waiting key into the old one's place, once it has opened a connection; the old one is deleted.
    pub async fn replace_key(
        &self,
        who: &SignedIn,
        role: LineRole,
        visitor: &Visitor,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        let keys = store::keys::of_person(&mut tx, who.person.id).await?;
        let find = |next: bool| keys.iter().find(|key| key.role() == role && key.is_next() == next);
        let next = find(true).ok_or(AuthError::NotFound)?;
        if !store::lines::is_proven(&mut tx, next.id).await? {
            return Err(AuthError::KeyUnproven);
        }
        if let Some(old) = find(false) {
            store::keys::remove(&mut tx, old.id).await?;
        }
        store::keys::promote(&mut tx, next.id).await?;
        self.record_key(&mut tx, who, Event::KeyReplaced, &next.fingerprint, visitor).await?;
        store::commit(tx).await?;
        Ok(self.store.scrub().await?)
    }

    /// Deletes a key.
    pub async fn delete_key(&self, who: &SignedIn, id: KeyId, visitor: &Visitor) -> Result<SshKey> {
        let mut tx = self.store.write().await?;
        let key = store::keys::get(&mut tx, who.person.id, id).await?.ok_or(AuthError::NotFound)?;
        store::keys::remove(&mut tx, id).await?;
        if !key.is_next() {
            // The one that waited is all there is now.
            let rest = store::keys::of_person(&mut tx, who.person.id).await?;
            if let Some(next) = rest.iter().find(|other| other.role() == key.role()) {
                store::keys::promote(&mut tx, next.id).await?;
            }
        }
        self.record_key(&mut tx, who, Event::KeyDeleted, &key.fingerprint, visitor).await?;
        store::commit(tx).await?;
        self.store.scrub().await?;
        Ok(key)
    }

    /// Lets the portal use a key while its owner is not signed in. Asks for the password: it opens a second way
    /// to the key.
    pub async fn allow_unattended(
        &self,
        who: &SignedIn,
        id: KeyId,
        password: &SecretString,
        visitor: &Visitor,
    ) -> Result<()> {
        let person = who.person.id;
        self.confirm_password(person, password).await?;
        let chain = self.chain_of(person).await?;
        let mut tx = self.store.write().await?;
        let key = store::keys::get(&mut tx, person, id).await?.ok_or(AuthError::NotFound)?;
        let sealed = store::keys::sealed(&mut tx, id).await?.ok_or(AuthError::NotFound)?;
        let unattended =
            self.vault.allow_unattended(&chain, &place_of_key(person, id), &sealed.own_key)?;
        store::keys::set_unattended(&mut tx, id, Some(&unattended)).await?;
        self.record_key(&mut tx, who, Event::KeyUnattendedOn, &key.fingerprint, visitor).await?;
        Ok(store::commit(tx).await?)
    }

    /// Forbids it again.
    pub async fn forbid_unattended(
        &self,
        who: &SignedIn,
        id: KeyId,
        visitor: &Visitor,
    ) -> Result<()> {
        let mut tx = self.store.write().await?;
        let key = store::keys::get(&mut tx, who.person.id, id).await?.ok_or(AuthError::NotFound)?;
        store::keys::set_unattended(&mut tx, id, None).await?;
        self.record_key(&mut tx, who, Event::KeyUnattendedOff, &key.fingerprint, visitor).await?;
        store::commit(tx).await?;
        Ok(self.store.scrub().await?)
    }

    /// Opens a person's keys of one kind, the waiting one first. Without the person, only those they allowed it for.
    /// The account must be on.
    pub async fn open_keys(&self, person: PersonId, role: LineRole) -> Result<Vec<OpenKey>> {
        let chain = self.chain_of(person).await;
        let mut db = self.store.read().await?;
        let whose = store::people::get(&mut db, person).await?.ok_or(AuthError::NotFound)?;
        if whose.is_disabled {
            return Err(AuthError::Denied);
        }
        let mut keys: Vec<SshKey> = store::keys::of_person(&mut db, person)
            .await?
            .into_iter()
            .filter(|key| key.role() == role)
            .collect();
        keys.sort_by_key(|key| !key.is_next());
        let mut open = Vec::new();
        for key in &keys {
            let sealed = store::keys::sealed(&mut db, key.id).await?.ok_or(AuthError::NotFound)?;
            let place = place_of_key(person, key.id);
            let private = match (&chain, &sealed.unattended) {
                (Ok(chain), _) => chain.open_private(
                    &place,
                    SealedPrivateKeyRef { body: &sealed.body, own_key: &sealed.own_key },
                )?,
                (Err(_), Some(unattended)) => {
                    self.vault.open_private_unattended(&place, &sealed.body, unattended)?
                }
                (Err(_), None) => continue,
            };
            open.push(OpenKey { id: key.id, private });
        }
        match chain {
            Err(error) if open.is_empty() && !keys.is_empty() => Err(error),
            _ => Ok(open),
        }
    }

    async fn record_key(
        &self,
        db: &mut store::Connection,
        who: &SignedIn,
        event: Event,
        fingerprint: &str,
        visitor: &Visitor,
    ) -> Result<()> {
        let about = About { subject: fingerprint, ..About::default() };
        Ok(record(db, &Actor::person(&who.person, visitor), event, about, self.clock.now()).await?)
    }
}

/// The place a sealed key belongs to.
pub(super) fn place_of_key(person: PersonId, key: KeyId) -> String {
    format!("person:{person}/key:{key}")
}
