//! Consistent copies of the whole database, taken while it is in use.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection as _};

use super::{APPLICATION_ID, DbConnection, Result, Store, StoreError};

/// Writes a consistent copy of the database to `target`, which must not exist.
pub async fn copy_to(store: &Store, target: &Path) -> Result<()> {
    let mut db = store.read().await?;
    sqlx::query("VACUUM INTO $1").bind(target.to_string_lossy().as_ref()).execute(&mut *db).await?;
    Ok(())
}

/// What a backup file says about itself.
#[derive(Debug)]
pub struct BackupInspection {
    /// Whether `SQLite` finds the file intact.
    pub is_intact: bool,
    /// The check value of the master key it was made under.
    pub key_check: Option<Vec<u8>>,
    pub people: i64,
}

/// Opens a database (ours, or a backup) read-only: nothing is created or migrated.
pub async fn open_read_only(path: &Path) -> Result<DbConnection> {
    let mut db = SqliteConnectOptions::new().filename(path).read_only(true).connect().await?;
    let id: i64 = sqlx::query_scalar("PRAGMA application_id")
        .fetch_one(&mut db)
        .await
        .map_err(|_| StoreError::ForeignFile(path.to_owned()))?;
    if id != APPLICATION_ID {
        return Err(StoreError::ForeignFile(path.to_owned()));
    }
    Ok(db)
}

/// Inspects a database file without changing it.
pub async fn inspect(path: &Path) -> Result<BackupInspection> {
    let mut db = open_read_only(path).await?;
    refuse_newer(&mut db).await?;
    let verdict: String = sqlx::query_scalar("PRAGMA integrity_check").fetch_one(&mut db).await?;
    let inspection = BackupInspection {
        is_intact: verdict == "ok",
        key_check: key_check(&mut db).await?,
        people: super::people::count(&mut db).await?,
    };
    db.close().await?;
    Ok(inspection)
}

/// Refuses a file that a newer program has migrated: this one can't read it, before or after it is restored.
async fn refuse_newer(db: &mut DbConnection) -> Result<()> {
    let last: Option<i64> = sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(db).await?;
    let known = super::MIGRATOR.iter().map(|migration| migration.version).max();
    if last > known { Err(StoreError::NewerDatabase) } else { Ok(()) }
}

/// The check value, also from a backup made by 0.1.0, which is migrated only once it is in place.
async fn key_check(db: &mut DbConnection) -> Result<Option<Vec<u8>>> {
    let is_old: bool = sqlx::query_scalar("SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'facts')")
        .fetch_one(&mut *db)
        .await?;
    if !is_old {
        return super::settings::get(db, "key-check").await;
    }
    Ok(sqlx::query_scalar("SELECT value FROM facts WHERE name = 'key-check'").fetch_optional(db).await?)
}

/// After a restore: drops the sessions and invitations that the copy still contains.
pub async fn delete_sign_ins(db: &mut DbConnection) -> Result<()> {
    sqlx::query("DELETE FROM sessions").execute(&mut *db).await?;
    sqlx::query("DELETE FROM pending_sign_ins").execute(&mut *db).await?;
    sqlx::query("DELETE FROM one_time_links WHERE used_at IS NULL").execute(&mut *db).await?;
    Ok(())
}
