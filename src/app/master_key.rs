//! Where the master key comes from, and whether it belongs to this database.

use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::files;
use crate::store::{self, Store};
use crate::vault::{MasterKey, Vault, VaultPurpose};

#[derive(Debug, PartialEq, Eq)]
pub enum MasterKeySource {
    /// `PORTOLAN_MASTER_KEY`.
    Environment,
    /// A systemd credential or the key file.
    File(PathBuf),
}

pub fn master_key_source(data_dir: &Path) -> MasterKeySource {
    if std::env::var_os("PORTOLAN_MASTER_KEY").is_some() {
        return MasterKeySource::Environment;
    }
    let credential = std::env::var_os("CREDENTIALS_DIRECTORY")
        .map(|dir| PathBuf::from(dir).join("portolan-master-key"))
        .filter(|path| path.exists());
    MasterKeySource::File(credential.unwrap_or_else(|| data_dir.join(files::MASTER_KEY)))
}

/// Reads the master key; creates one if there is neither a key nor a database.
pub fn load_or_create_master_key(data_dir: &Path) -> anyhow::Result<MasterKey> {
    let path = match master_key_source(data_dir) {
        MasterKeySource::Environment => {
            let text = zeroize::Zeroizing::new(std::env::var("PORTOLAN_MASTER_KEY").unwrap_or_default());
            return MasterKey::parse(&text).context("PORTOLAN_MASTER_KEY isn't a valid master key");
        }
        MasterKeySource::File(path) => path,
    };
    if !path.exists() {
        if data_dir.join(files::DATABASE).exists() {
            bail!(
                "There is a database, but no master key at {}. Restore the key from your copy: without it, the secrets in the database can't be decrypted.",
                path.display()
            );
        }
        return create_master_key(&path);
    }
    check_key_permissions(&path, data_dir)?;
    read_key_file(&path)
}

fn read_key_file(path: &Path) -> anyhow::Result<MasterKey> {
    let text = zeroize::Zeroizing::new(
        std::fs::read_to_string(path).with_context(|| format!("{} couldn't be read", path.display()))?,
    );
    MasterKey::parse(&text).with_context(|| format!("{} doesn't hold a valid master key", path.display()))
}

/// A key file must be private to this user. A systemd credential is protected by its folder; newer versions of
/// systemd also let the service's own group read it.
fn check_key_permissions(path: &Path, data_dir: &Path) -> anyhow::Result<()> {
    let mode = std::fs::metadata(path)?.mode() & 0o777;
    let forbidden = if path.starts_with(data_dir) { 0o077 } else { 0o027 };
    if mode & forbidden != 0 {
        bail!(
            "The master key {} can be read by other users of this machine (mode {mode:03o}). Fix it with: chmod 600 {}",
            path.display(),
            path.display()
        );
    }
    Ok(())
}

/// Written under a temporary name first, so that a key file is either complete or absent.
fn create_master_key(path: &Path) -> anyhow::Result<MasterKey> {
    let key = MasterKey::generate()?;
    let draft = path.with_extension("key.draft");
    write_key_file(&draft, &key)?;
    std::fs::rename(&draft, path)?;
    tracing::info!(path = %path.display(), "Created a new master key. Keep a copy somewhere safe, separate from the backups");
    Ok(key)
}

/// Writes a key to a new file that only this user can read.
pub(super) fn write_key_file(path: &Path, key: &MasterKey) -> anyhow::Result<()> {
    let _ = std::fs::remove_file(path);
    let mut file = std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(key.to_text().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    // Sync the folder too: after a power cut the database may already depend on this key.
    if let Some(folder) = path.parent() {
        std::fs::File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// The setting that records which master key a database belongs to.
pub const KEY_CHECK_SETTING: &str = "key-check";

/// The value by which a database recognises its master key.
pub fn compute_key_check(vault: &Vault) -> [u8; 32] {
    vault.sign(VaultPurpose::KeyCheck, b"this database")
}

/// Opens this database's vault; refuses a database that was sealed under another master key. Also finishes a key
/// rotation that was interrupted after the database had been changed.
pub(super) async fn open_vault(master: MasterKey, data_dir: &Path, store: &Store) -> anyhow::Result<Vault> {
    let vault = Vault::new(master);
    let check = compute_key_check(&vault);
    let mut tx = store.write().await?;
    match store::settings::get(&mut tx, KEY_CHECK_SETTING).await? {
        None => {
            store::settings::set(&mut tx, KEY_CHECK_SETTING, &check).await?;
            store::commit(tx).await?;
            Ok(vault)
        }
        Some(stored) if stored == check => Ok(vault),
        Some(stored) => {
            drop(tx);
            finish_rotation(data_dir, &stored)
        }
    }
}

/// The database already belongs to the next key: installs that key if we may.
fn finish_rotation(data_dir: &Path, stored: &[u8]) -> anyhow::Result<Vault> {
    let next = data_dir.join(files::NEXT_MASTER_KEY);
    let vault = read_key_file(&next).ok().map(Vault::new).filter(|vault| compute_key_check(vault) == *stored);
    let Some(vault) = vault else {
        bail!("This master key doesn't belong to this database. Restore the right key. Nothing was changed.");
    };
    let MasterKeySource::File(path) = master_key_source(data_dir) else {
        bail!(
            "The master key was changed, and the new one is in {}. Put it where the portal reads its key from.",
            next.display()
        );
    };
    if !path.starts_with(data_dir) {
        bail!("The master key was changed, and the new one is in {}. Copy it to {}.", next.display(), path.display());
    }
    std::fs::rename(&next, &path)?;
    tracing::info!("Completed a master key change that had been interrupted");
    Ok(vault)
}
