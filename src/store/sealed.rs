//! Every value that is sealed under the master key, wherever it lies: for the day that key is changed.

use super::{DbConnection, Result};
use crate::domain::PersonId;

/// A column of sealed values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SealedColumn {
    PasswordHash,
    /// Secrets of one-time-code apps.
    OneTimeCodeSecret,
    /// Keychains, locked by passwords.
    KeychainByPassword,
    /// Keychains, locked by browsers' cookies.
    KeychainBySession,
    /// The same of sign-ins that wait for a code.
    KeychainByPendingSignIn,
    /// Keys of SSH keys that may be used without their owner.
    UnattendedKey,
    /// Addresses that notices are sent to.
    WebhookAddress,
    /// What those messages are signed with.
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

/// One sealed value and what its place is made of.
#[derive(Debug, sqlx::FromRow)]
pub struct SealedValue {
    pub row: i64,
    pub person: PersonId,
    /// The number of an SSH key.
    pub key: i64,
    /// The hash of a cookie.
    pub token_hash: Vec<u8>,
    pub value: Vec<u8>,
}

/// All values of a column.
pub async fn list(db: &mut DbConnection, column: SealedColumn) -> Result<Vec<SealedValue>> {
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
    Ok(sqlx::query_as(sql).fetch_all(db).await?)
}

pub async fn put(
    db: &mut DbConnection,
    column: SealedColumn,
    row: i64,
    value: &[u8],
) -> Result<()> {
    let sql = match column {
        SealedColumn::PasswordHash => "UPDATE people SET password_sealed = $2 WHERE id = $1",
        SealedColumn::OneTimeCodeSecret => "UPDATE people SET totp_sealed = $2 WHERE id = $1",
        SealedColumn::KeychainByPassword => {
            "UPDATE keychains SET by_password = $2 WHERE person_id = $1"
        }
        SealedColumn::KeychainBySession => "UPDATE sessions SET keychain = $2 WHERE id = $1",
        SealedColumn::KeychainByPendingSignIn => {
            "UPDATE pending_sign_ins SET keychain = $2 WHERE rowid = $1"
        }
        SealedColumn::UnattendedKey => "UPDATE ssh_keys SET unattended = $2 WHERE id = $1",
        SealedColumn::WebhookAddress => "UPDATE webhooks SET url = $2 WHERE person_id = $1",
        SealedColumn::WebhookSecret => "UPDATE webhooks SET secret = $2 WHERE person_id = $1",
    };
    sqlx::query(sql).bind(row).bind(value).execute(db).await?;
    Ok(())
}
