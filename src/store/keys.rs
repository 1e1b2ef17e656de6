//! Tables `keychains` and `ssh_keys`. Everything secret in them is sealed.

use super::{DbConnection, Result};
use crate::clock::UnixTime;
use crate::domain::{ConnectionRole, PersonId, SshKeyId};

#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct KeychainRow {
    /// Salt for the password.
    pub salt: Vec<u8>,
    /// The keychain's key, sealed under the password.
    pub by_password: Vec<u8>,
}

/// An SSH key, as pages show it.
#[derive(Debug, Clone, PartialEq, Eq, sqlx::FromRow)]
pub struct SshKey {
    pub id: SshKeyId,
    pub person_id: PersonId,
    role: String,
    state: String,
    pub is_imported: bool,
    /// The key type, for people to read.
    pub kind: String,
    /// The public key, one line.
    pub public_line: String,
    /// `SHA256:…`.
    pub fingerprint: String,
    /// Whether it may be used while its owner is not signed in.
    pub is_unattended: bool,
    pub created_at: UnixTime,
}

impl SshKey {
    /// Which connections it is for.
    pub fn role(&self) -> ConnectionRole {
        self.role.parse().unwrap_or(ConnectionRole::Login)
    }

    /// Whether it must still be proven before it replaces the current key.
    pub fn is_next(&self) -> bool {
        self.state == "next"
    }
}

/// The sealed parts of a key.
#[derive(Debug, Clone, sqlx::FromRow)]
pub struct SealedSshKey {
    /// The private key, sealed under a key of its own.
    pub body: Vec<u8>,
    /// That key, sealed under the keychain.
    pub own_key: Vec<u8>,
    /// That key, sealed under the master key.
    pub unattended: Option<Vec<u8>>,
}

/// A new key without its sealed parts, which are bound to the id that it gets.
pub struct NewSshKey<'a> {
    pub person: PersonId,
    pub role: ConnectionRole,
    /// `current` or `next`.
    pub state: &'a str,
    /// `made` or `imported`.
    pub origin: &'a str,
    /// The key type, for people to read.
    pub kind: &'a str,
    pub public_line: &'a str,
    /// `SHA256:…`.
    pub fingerprint: &'a str,
}

macro_rules! columns {
    () => {
        "SELECT id, person_id, role, state, origin = 'imported' AS is_imported, kind, public_line, fingerprint,
                unattended IS NOT NULL AS is_unattended, created_at FROM ssh_keys "
    };
}

pub async fn find_keychain(db: &mut DbConnection, person: PersonId) -> Result<Option<KeychainRow>> {
    fetch_optional!(db, "SELECT salt, by_password FROM keychains WHERE person_id = $1", [person])
}

pub async fn save_keychain(
    db: &mut DbConnection,
    person: PersonId,
    keychain: &KeychainRow,
    now: UnixTime,
) -> Result<()> {
    execute!(
        db,
        "INSERT INTO keychains (person_id, salt, by_password, created_at) VALUES ($1, $2, $3, $4)
         ON CONFLICT (person_id) DO UPDATE SET salt = $2, by_password = $3",
        [person, &keychain.salt, &keychain.by_password, now]
    )
}

/// Deletes a person's keychain and keys, and returns how many keys there were.
pub async fn delete_all(db: &mut DbConnection, person: PersonId) -> Result<u64> {
    execute!(db, "DELETE FROM keychains WHERE person_id = $1", [person])?;
    execute!(db, "UPDATE sessions SET keychain = NULL WHERE person_id = $1", [person])?;
    affected_rows!(db, "DELETE FROM ssh_keys WHERE person_id = $1", [person])
}

/// Adds a key and returns its id; [`save_sealed`] must follow in the same transaction.
pub async fn add(db: &mut DbConnection, key: &NewSshKey<'_>, now: UnixTime) -> Result<SshKeyId> {
    scalar_one!(
        db,
        "INSERT INTO ssh_keys (person_id, role, state, origin, kind, public_line, fingerprint, body, own_key, created_at)
         VALUES ($1, $2, $3, $4, $5, $6, $7, x'', x'', $8) RETURNING id",
        [key.person, key.role.as_str(), key.state, key.origin, key.kind, key.public_line, key.fingerprint, now]
    )
}

pub async fn save_sealed(db: &mut DbConnection, id: SshKeyId, body: &[u8], own_key: &[u8]) -> Result<()> {
    execute!(db, "UPDATE ssh_keys SET body = $2, own_key = $3 WHERE id = $1", [id, body, own_key])
}

/// A person's keys, current ones first.
pub async fn list_for_person(db: &mut DbConnection, person: PersonId) -> Result<Vec<SshKey>> {
    fetch_all!(db, concat!(columns!(), "WHERE person_id = $1 ORDER BY role, state, id"), [person])
}

pub async fn get(db: &mut DbConnection, person: PersonId, id: SshKeyId) -> Result<Option<SshKey>> {
    fetch_optional!(db, concat!(columns!(), "WHERE person_id = $1 AND id = $2"), [person, id])
}

pub async fn load_sealed(db: &mut DbConnection, id: SshKeyId) -> Result<Option<SealedSshKey>> {
    fetch_optional!(db, "SELECT body, own_key, unattended FROM ssh_keys WHERE id = $1", [id])
}

/// Allows or forbids the use of a key while its owner is away.
pub async fn set_unattended(db: &mut DbConnection, id: SshKeyId, sealed: Option<&[u8]>) -> Result<()> {
    execute!(db, "UPDATE ssh_keys SET unattended = $2 WHERE id = $1", [id, sealed])
}

/// Makes a proven key the current one.
pub async fn promote(db: &mut DbConnection, id: SshKeyId) -> Result<()> {
    execute!(db, "UPDATE ssh_keys SET state = 'current' WHERE id = $1", [id])
}

pub async fn remove(db: &mut DbConnection, id: SshKeyId) -> Result<()> {
    execute!(db, "DELETE FROM ssh_keys WHERE id = $1", [id])
}

/// Whether a person allows any of their keys to be used while they are away.
pub async fn has_unattended(db: &mut DbConnection, person: PersonId) -> Result<bool> {
    scalar_one!(db, "SELECT EXISTS (SELECT 1 FROM ssh_keys WHERE person_id = $1 AND unattended IS NOT NULL)", [person])
}
