//! Changing the master key. At any moment one of the two keys on disk belongs to the database, so a kill at any step
//! leaves a state that the next start can finish.

use std::path::Path;

use anyhow::Context as _;

use super::master_key::{self, KEY_CHECK_SETTING, MasterKeySource, compute_key_check, master_key_source};
use super::{App, files};
use crate::store;
use crate::vault::{MasterKey, Vault};

pub struct KeyRotationOutcome {
    /// How many sealed values were moved.
    pub resealed: usize,
    /// The new key's file, if it must be installed by hand.
    pub key_to_install: Option<std::path::PathBuf>,
}

/// Generates a new master key and moves everything to it. The portal must be stopped.
pub async fn rotate_master_key(app: &App, data_dir: &Path) -> anyhow::Result<KeyRotationOutcome> {
    let next = data_dir.join(files::NEXT_MASTER_KEY);
    let key = MasterKey::generate()?;
    // On disk before anything is sealed under it.
    master_key::write_key_file(&next, &key).context("The new key couldn't be written. Nothing was changed")?;
    let vault = Vault::new(key);
    let mut tx = app.store.write().await?;
    let moved = match app.auth.reseal_all(&mut tx, &vault).await {
        Ok(moved) => moved,
        Err(error) => {
            let _ = std::fs::remove_file(&next);
            return Err(error).context("Nothing was changed");
        }
    };
    store::settings::set(&mut tx, KEY_CHECK_SETTING, &compute_key_check(&vault)).await?;
    store::commit(tx).await.context("Nothing was changed")?;
    // Values sealed under the old key must not stay behind in the file.
    app.store.vacuum().await?;
    let by_hand = match master_key_source(data_dir) {
        MasterKeySource::File(path) if path.starts_with(data_dir) => {
            std::fs::rename(&next, &path)?;
            None
        }
        _ => Some(next),
    };
    Ok(KeyRotationOutcome { resealed: moved, key_to_install: by_hand })
}
