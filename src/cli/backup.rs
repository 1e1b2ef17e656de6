//! `portolan backup` and `portolan restore`.

use std::fs::{self, File};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;

use super::{open_app, open_existing_app};
use crate::app::{self, files};
use crate::auth::ActivityEventKind;
use crate::auth::activity::{ActivityDetails, Actor, record};
use crate::clock::Clock;
use crate::config::Config;
use crate::format;
use crate::store;
use crate::store::backup::BackupInspection;
use crate::vault::Vault;

#[derive(Debug, Args)]
pub(super) struct BackupArgs {
    /// Where to write the backup. The file must not exist.
    file: PathBuf,
}

#[derive(Debug, Args)]
pub(super) struct RestoreArgs {
    /// The backup file.
    file: PathBuf,
    /// Replace the existing database. The old one is kept next to the new one.
    #[arg(long)]
    replace: bool,
}

const KEY_REMINDER: &str = "The backup doesn't include the master key, because anyone with both could decrypt everything. Keep a copy of the key elsewhere.";

pub(super) async fn backup(config: Config, args: BackupArgs) -> anyhow::Result<()> {
    if args.file.exists() {
        bail!("{} already exists. Choose another name. Nothing was written.", args.file.display());
    }
    let app = open_existing_app(config).await?;
    let draft = sibling_path(&args.file, "partial");
    let _ = fs::remove_file(&draft);
    // Create the file ourselves: in a folder that others can write to, someone could have put a file there.
    fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&draft)
        .with_context(|| format!("{} couldn't be created. Nothing was written", draft.display()))?;
    let written = async {
        store::backup::copy_to(&app.store, &draft).await?;
        File::open(&draft)?.sync_all()?;
        fs::rename(&draft, &args.file)?;
        anyhow::Ok(())
    };
    if let Err(error) = written.await {
        let _ = fs::remove_file(&draft);
        return Err(error.context("The backup couldn't be written, and was removed"));
    }
    say!("Copied the database to {}.", args.file.display());
    say!("{KEY_REMINDER}");
    Ok(())
}

pub(super) async fn restore(config: Config, args: RestoreArgs) -> anyhow::Result<()> {
    app::prepare_data_dir(&config.data_dir)?;
    let _lock = app::lock_data_dir(&config.data_dir)?;
    if !args.file.exists() {
        bail!("The file {} doesn't exist. Nothing was changed.", args.file.display());
    }
    let found = inspect_backup(&args.file).await?;
    let key_file = config.data_dir.join(files::MASTER_KEY);
    if !key_file.exists() && app::master_key_source(&config.data_dir) == app::MasterKeySource::File(key_file.clone()) {
        bail!(
            "The master key is missing. Copy the key that belongs to this backup to {} (mode 600) and run the command again. Nothing was changed.",
            key_file.display()
        );
    }
    let vault = Vault::new(app::master_key::load_or_create_master_key(&config.data_dir)?);
    if found.key_check.is_none_or(|check| check != app::compute_key_check(&vault)) {
        bail!(
            "The current master key doesn't belong to this backup. Restore the right key first. Nothing was changed."
        );
    }
    let target = config.data_dir.join(files::DATABASE);
    if target.exists() && !args.replace {
        bail!(
            "There is already a database at {}. Use --replace to replace it with the backup; the current database is kept next to it.",
            target.display()
        );
    }
    replace_database(&args.file, &target)?;
    let app = open_app(config).await?;
    let mut tx = app.store.write().await?;
    store::backup::delete_sign_ins(&mut tx).await?;
    record(&mut tx, &Actor::command_line(), ActivityEventKind::Restored, ActivityDetails::default(), app.clock.now())
        .await?;
    store::commit(tx).await?;
    app.store.close().await;
    let accounts = format::count(u64::try_from(found.people).unwrap_or(0), "account");
    say!("Restored {accounts} from {}.", args.file.display());
    say!("Everyone has to sign in again. Open invitations and reset links no longer work.");
    Ok(())
}

async fn inspect_backup(file: &Path) -> anyhow::Result<BackupInspection> {
    let found = store::backup::inspect(file)
        .await
        .with_context(|| format!("{} couldn't be read as a backup. Nothing was changed", file.display()))?;
    if !found.is_intact {
        bail!("{} is damaged. Use another backup. Nothing was changed.", file.display());
    }
    Ok(found)
}

/// Copied under a temporary name first: the current database stays in place until the copy is complete.
fn replace_database(backup: &Path, target: &Path) -> anyhow::Result<()> {
    let draft = sibling_path(target, "restoring");
    let copied = fs::copy(backup, &draft).and_then(|_| File::open(&draft)?.sync_all());
    if let Err(error) = copied {
        let _ = fs::remove_file(&draft);
        return Err(error).context("The backup couldn't be copied to the data folder. Nothing was changed");
    }
    if target.exists() {
        move_database_aside(target)?;
    }
    fs::rename(&draft, target)?;
    Ok(())
}

/// Keeps the current database, including its write-ahead log, under another name.
fn move_database_aside(target: &Path) -> anyhow::Result<()> {
    let kept = sibling_path(target, &format!("before-{}", Clock::system().now().0));
    for suffix in ["", "-wal", "-shm"] {
        let (from, to) = (with_suffix(target, suffix), with_suffix(&kept, suffix));
        if from.exists() {
            fs::rename(&from, &to)?;
        }
    }
    say!("Kept the previous database as {}.", kept.display());
    Ok(())
}

fn sibling_path(path: &Path, word: &str) -> PathBuf {
    with_suffix(path, &format!(".{word}"))
}

fn with_suffix(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}
