//! Changing the master key: everything that is sealed under the old one is sealed again under the new one, in one
//! transaction. What was only signed cannot be signed again, so the old signing key is kept, sealed.

use super::activity::{About, Actor, Event, record};
use super::keyring::place_of_hash;
use super::keys::place_of_key;
use super::{Auth, Result, place_of};
use crate::domain::KeyId;
use crate::store;
use crate::store::sealed::{Column, Value};
use crate::vault::{SigningKey, Vault, VaultPurpose};

/// Fact that holds the signing keys of recovery codes from before.
const RETIRED: &str = "retired-recovery-keys";
/// Bytes of one of them.
const LENGTH: usize = 64;

impl Auth {
    /// Moves everything to another master key inside a transaction. How many values were moved.
    pub async fn move_to(&self, db: &mut store::Connection, to: &Vault) -> Result<usize> {
        let mut moved = 0;
        for column in Column::ALL {
            for value in store::sealed::list(db, *column).await? {
                let (purpose, place) = address(*column, &value);
                let sealed = self.vault.reseal(to, purpose, &place, &value.value)?;
                store::sealed::put(db, *column, value.row, &sealed).await?;
                moved += 1;
            }
        }
        let mut keys = zeroize::Zeroizing::new(Vec::new());
        for key in self.retired_signing_keys(db).await? {
            keys.extend_from_slice(key.as_bytes());
        }
        keys.extend_from_slice(self.vault.signing_key(VaultPurpose::RecoveryCode).as_bytes());
        store::facts::set(db, RETIRED, &to.seal(VaultPurpose::FormerSigningKey, RETIRED, &keys)?)
            .await?;
        record(
            db,
            &Actor::command_line(),
            Event::MasterKeyRotated,
            About::default(),
            self.clock.now(),
        )
        .await?;
        Ok(moved)
    }

    /// The signing keys under which older recovery codes were written down.
    pub(super) async fn retired_signing_keys(
        &self,
        db: &mut store::Connection,
    ) -> Result<Vec<SigningKey>> {
        let Some(sealed) = store::facts::get(db, RETIRED).await? else { return Ok(Vec::new()) };
        let keys = self.vault.open(VaultPurpose::FormerSigningKey, RETIRED, &sealed)?;
        Ok(keys
            .chunks_exact(LENGTH)
            .map(SigningKey::from_bytes)
            .collect::<std::result::Result<_, _>>()?)
    }
}

fn address(column: Column, value: &Value) -> (VaultPurpose, String) {
    match column {
        Column::PasswordHash => (VaultPurpose::PasswordHash, place_of(value.person)),
        Column::OneTimeCodeSecret => (VaultPurpose::OneTimeCodeSecret, place_of(value.person)),
        Column::ChainByPassword => (VaultPurpose::ChainByPassword, place_of(value.person)),
        Column::ChainBySession | Column::ChainByPending => {
            (VaultPurpose::ChainBySession, place_of_hash(&value.token_hash))
        }
        Column::UnattendedKey => {
            (VaultPurpose::UnattendedKey, place_of_key(value.person, KeyId(value.key)))
        }
        Column::WebhookAddress => (VaultPurpose::WebhookAddress, place_of(value.person)),
        Column::WebhookSecret => (VaultPurpose::WebhookSecret, place_of(value.person)),
    }
}
