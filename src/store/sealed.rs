//! Every value that is sealed under the master key, in any table: needed to change that key.

use super::{DbConnection, Result};
use crate::domain::PersonId;

/// A column of sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedColumn {
    PasswordHash,
    /// TOTP secrets.
    OneTimeCodeSecret,
    /// Keychain keys, sealed under passwords.
    KeychainByPassword,
    /// Keychain keys, sealed under session cookies.
    KeychainBySession,
    /// Keychain keys of sign-ins that wait for a code.
    KeychainByPendingSignIn,
    /// Keys of SSH keys that may be used while their owner is away.
    UnattendedKey,
    /// Webhook addresses.
    WebhookAddress,
    /// Secrets that sign webhook messages.
    WebhookSecret,
}

impl SealedColumn {
    pub const ALL: &'static [Self] = &[
        Self::PasswordHash,
        Self::OneTimeCodeSecret,
        Self::KeychainByPassword,
        Self::KeychainBySession,
        Self::KeychainByPendingSignIn,
        Self::UnattendedKey,
        Self::WebhookAddress,
        Self::WebhookSecret,
    ];
}

/// A sealed value, with what identifies its place.
#[derive(Debug, sqlx::FromRow)]
pub struct SealedColumnValue {
    pub row: i64,
    pub person: PersonId,
    /// The SSH key's id.
    pub key: i64,
    /// The hash of the cookie.
    pub token_hash: Vec<u8>,
    pub value: Vec<u8>,
}

pub async fn list(db: &mut DbConnection, column: SealedColumn) -> Result<Vec<SealedColumnValue>> {
    let sql = match column {
        SealedColumn::PasswordHash => {
            "SELECT id AS row, id AS person, 0 AS key, x'' AS token_hash, password_sealed AS value FROM people"
        }
        SealedColumn::OneTimeCodeSecret => {
            "SELECT id AS row, id AS person, 0 AS key, x'' AS token_hash, totp_sealed AS value FROM people WHERE totp_sealed IS NOT NULL"
        }
        SealedColumn::KeychainByPassword => {
            "SELECT person_id AS row, person_id AS person, 0 AS key, x'' AS token_hash, by_password AS value FROM keychains"
        }
        SealedColumn::KeychainBySession => {
            "SELECT id AS row, person_id AS person, 0 AS key, token_hash, keychain AS value FROM sessions WHERE keychain IS NOT NULL"
        }
        SealedColumn::KeychainByPendingSignIn => {
            "SELECT rowid AS row, person_id AS person, 0 AS key, token_hash, keychain AS value FROM pending_sign_ins WHERE keychain IS NOT NULL"
        }
        SealedColumn::UnattendedKey => {
            "SELECT id AS row, person_id AS person, id AS key, x'' AS token_hash, unattended AS value FROM ssh_keys WHERE unattended IS NOT NULL"
        }
        SealedColumn::WebhookAddress => {
            "SELECT person_id AS row, person_id AS person, 0 AS key, x'' AS token_hash, url AS value FROM webhooks"
        }
        SealedColumn::WebhookSecret => {
            "SELECT person_id AS row, person_id AS person, 0 AS key, x'' AS token_hash, secret AS value FROM webhooks"
        }
    };
    fetch_all!(db, sql)
}

pub async fn put(db: &mut DbConnection, column: SealedColumn, row: i64, value: &[u8]) -> Result<()> {
    let sql = match column {
        SealedColumn::PasswordHash => "UPDATE people SET password_sealed = $2 WHERE id = $1",
        SealedColumn::OneTimeCodeSecret => "UPDATE people SET totp_sealed = $2 WHERE id = $1",
        SealedColumn::KeychainByPassword => "UPDATE keychains SET by_password = $2 WHERE person_id = $1",
        SealedColumn::KeychainBySession => "UPDATE sessions SET keychain = $2 WHERE id = $1",
        SealedColumn::KeychainByPendingSignIn => "UPDATE pending_sign_ins SET keychain = $2 WHERE rowid = $1",
        SealedColumn::UnattendedKey => "UPDATE ssh_keys SET unattended = $2 WHERE id = $1",
        SealedColumn::WebhookAddress => "UPDATE webhooks SET url = $2 WHERE person_id = $1",
        SealedColumn::WebhookSecret => "UPDATE webhooks SET secret = $2 WHERE person_id = $1",
    };
    execute!(db, sql, [row, value])
}
