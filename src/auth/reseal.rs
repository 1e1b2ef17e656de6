//! Changing the master key: everything sealed under the old one is sealed again under the new one, in one
//! transaction. Signatures can't be renewed that way, so the old signing key is kept, sealed.

use super::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use super::keychains::session_seal_context;
use super::ssh_keys::key_seal_context;
use super::{AuthService, Result, person_seal_context};
use crate::domain::SshKeyId;
use crate::store;
use crate::store::sealed::{SealedColumn, SealedColumnValue};
use crate::vault::{RetiredSigningKey, Vault, VaultPurpose};

/// The setting that holds earlier signing keys for recovery codes.
const RETIRED_KEYS_SETTING: &str = "retired-recovery-keys";
const SIGNING_KEY_LEN: usize = 64;

impl AuthService {
    /// Moves everything to another master key inside a transaction. Returns how many values were moved.
    pub async fn reseal_all(&self, db: &mut store::DbConnection, to: &Vault) -> Result<usize> {
        let mut moved = 0;
        for column in SealedColumn::ALL {
            for value in store::sealed::list(db, *column).await? {
                let (purpose, context) = seal_context(*column, &value);
                let sealed = self.vault.reseal(to, purpose, &context, &value.value)?;
                store::sealed::put(db, *column, value.row, &sealed).await?;
                moved += 1;
            }
        }
        let mut keys = zeroize::Zeroizing::new(Vec::new());
        for key in self.retired_signing_keys(db).await? {
            keys.extend_from_slice(key.as_bytes());
        }
        keys.extend_from_slice(self.vault.signing_key(VaultPurpose::RecoveryCode).as_bytes());
        store::settings::set(
            db,
            RETIRED_KEYS_SETTING,
            &to.seal(VaultPurpose::FormerSigningKey, RETIRED_KEYS_SETTING, &keys)?,
        )
        .await?;
        record(
            db,
            &Actor::command_line(),
            ActivityEventKind::MasterKeyRotated,
            ActivityDetails::default(),
            self.clock.now(),
        )
        .await?;
        Ok(moved)
    }

    /// The signing keys of older recovery codes.
    pub(super) async fn retired_signing_keys(&self, db: &mut store::DbConnection) -> Result<Vec<RetiredSigningKey>> {
        let Some(sealed) = store::settings::get(db, RETIRED_KEYS_SETTING).await? else {
            return Ok(Vec::new());
        };
        let keys = self.vault.open(VaultPurpose::FormerSigningKey, RETIRED_KEYS_SETTING, &sealed)?;
        Ok(keys
            .chunks_exact(SIGNING_KEY_LEN)
            .map(RetiredSigningKey::from_bytes)
            .collect::<std::result::Result<_, _>>()?)
    }
}

fn seal_context(column: SealedColumn, value: &SealedColumnValue) -> (VaultPurpose, String) {
    match column {
        SealedColumn::PasswordHash => (VaultPurpose::PasswordHash, person_seal_context(value.person)),
        SealedColumn::OneTimeCodeSecret => (VaultPurpose::OneTimeCodeSecret, person_seal_context(value.person)),
        SealedColumn::KeychainByPassword => (VaultPurpose::ChainByPassword, person_seal_context(value.person)),
        SealedColumn::KeychainBySession | SealedColumn::KeychainByPendingSignIn => {
            (VaultPurpose::ChainBySession, session_seal_context(&value.token_hash))
        }
        SealedColumn::UnattendedKey => {
            (VaultPurpose::UnattendedKey, key_seal_context(value.person, SshKeyId(value.key)))
        }
        SealedColumn::WebhookAddress => (VaultPurpose::WebhookAddress, person_seal_context(value.person)),
        SealedColumn::WebhookSecret => (VaultPurpose::WebhookSecret, person_seal_context(value.person)),
    }
}
