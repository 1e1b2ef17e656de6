//! The data folder and the run folder: created if missing, private to this user, used by one portal at a time.

use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use anyhow::{Context as _, bail};

use super::files;

/// Creates the data folder if it is missing and makes sure that nobody else can read it.
pub fn prepare_data_dir(dir: &Path) -> anyhow::Result<()> {
    prepare_dir(dir, "data folder")
}

/// The same for the folder of the connections' sockets: anyone who can reach a socket can use its connection.
pub fn prepare_run_dir(dir: &Path) -> anyhow::Result<()> {
    prepare_dir(dir, "run folder")
}

fn prepare_dir(dir: &Path, what: &str) -> anyhow::Result<()> {
    if !dir.exists() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .with_context(|| format!("The {what} {} couldn't be created", dir.display()))?;
    }
    let meta = std::fs::metadata(dir).with_context(|| format!("The {what} {} couldn't be read", dir.display()))?;
    if !meta.is_dir() {
        bail!("The {what} {} isn't a folder.", dir.display());
    }
    if meta.mode() & 0o077 != 0 {
        bail!(
            "The {what} {} is open to other users of this machine (mode {:03o}). Fix it with: chmod 700 {}",
            dir.display(),
            meta.mode() & 0o777,
            dir.display()
        );
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        bail!(
            "The {what} {} belongs to another user (uid {}). Run the portal as that user, or change the owner with chown.",
            dir.display(),
            meta.uid()
        );
    }
    Ok(())
}

/// Takes the lock that marks the folder as in use; held until the value is dropped.
pub fn lock_data_dir(dir: &Path) -> anyhow::Result<std::fs::File> {
    let path = dir.join(files::LOCK);
    let file = std::fs::OpenOptions::new().create(true).truncate(false).write(true).mode(0o600).open(&path)?;
    if file.try_lock().is_err() {
        bail!("Another portal is already using the data folder {}. Stop it first.", dir.display());
    }
    Ok(file)
}
