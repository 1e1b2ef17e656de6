//! SQL and nothing else: the only module that uses `sqlx`. One file per table; free functions that take a
//! connection, so that callers decide what belongs in one transaction.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{Sqlite, SqlitePool};

#[macro_use]
mod queries;

pub mod activity;
pub mod allocations;
pub mod backup;
mod cache;
pub mod cluster_preferences;
pub mod clusters;
pub mod connections;
pub mod dashboards;
pub mod fair_share_history;
pub mod file_folders;
pub mod folder_sizes;
pub mod groups;
pub mod guest_links;
pub mod job_sharing;
pub mod jobs;
pub mod keys;
pub mod notifications;
pub mod one_time_links;
pub mod people;
pub mod queues;
pub mod recipes;
pub mod recovery_codes;
pub mod reports;
pub mod sealed;
pub mod sessions;
pub mod settings;
pub mod shared_paths;
mod sql_types;
pub mod submissions;
pub mod transfers;
pub mod uploads;
pub mod usage;
pub mod usage_alerts;
pub mod usage_user_names;
pub mod webhooks;

use cache::DbRevisionTracker;

pub use cache::StoreCache;

/// The connection that this module's functions take; a transaction derefs to it.
pub type DbConnection = sqlx::SqliteConnection;

/// A transaction that holds the write lock; dropping it rolls back.
pub struct Transaction {
    inner: sqlx::Transaction<'static, Sqlite>,
    revisions: Arc<DbRevisionTracker>,
}

impl std::ops::Deref for Transaction {
    type Target = DbConnection;

    fn deref(&self) -> &DbConnection {
        &self.inner
    }
}

impl std::ops::DerefMut for Transaction {
    fn deref_mut(&mut self) -> &mut DbConnection {
        &mut self.inner
    }
}

/// Marks the file as ours (`PRAGMA application_id`): "Port" in ASCII.
pub const APPLICATION_ID: i64 = 0x506F_7274;

/// How long a writer waits for another process (a backup, the command line) to finish.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Takes the write lock at once.
const BEGIN: &str = "BEGIN IMMEDIATE";

/// Reads are short and come from the page cache, so a few connections are enough.
const MAX_READERS: u32 = 4;

static MIGRATOR: sqlx::migrate::Migrator = sqlx::migrate!();

/// What can go wrong with the database, as far as callers care.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The disk is full; nothing was written.
    #[error("the disk is full")]
    DiskFull,
    /// Another process held the write lock for too long; nothing was written.
    #[error("the database is locked by another program")]
    Busy,
    /// A unique constraint failed.
    #[error("it already exists")]
    AlreadyExists,
    #[error("database: {0}")]
    Other(sqlx::Error),
    /// The schema could not be migrated.
    #[error("the database could not be upgraded")]
    Migration(sqlx::migrate::MigrateError),
    /// A newer version of the program has migrated the schema. There is no way back but a backup.
    #[error(
        "it was written by a newer version of Portolan. Install that version again, or restore the backup from before the upgrade: portolan restore FILE --replace"
    )]
    NewerDatabase,
    /// A column contains an invalid value.
    #[error("the database contains an invalid value in {0}")]
    Malformed(&'static str),
    #[error("{0} is not a Portolan database")]
    ForeignFile(PathBuf),
}

impl From<sqlx::migrate::MigrateError> for StoreError {
    fn from(error: sqlx::migrate::MigrateError) -> Self {
        match error {
            sqlx::migrate::MigrateError::VersionMissing(_) => Self::NewerDatabase,
            other => Self::Migration(other),
        }
    }
}

impl From<sqlx::Error> for StoreError {
    fn from(error: sqlx::Error) -> Self {
        // Primary SQLite result codes; the extended ones keep them in the low byte.
        const BUSY: i32 = 5;
        const FULL: i32 = 13;
        if matches!(error, sqlx::Error::PoolTimedOut) {
            return Self::Busy;
        }
        let Some(database) = error.as_database_error() else {
            return Self::Other(error);
        };
        if database.is_unique_violation() {
            return Self::AlreadyExists;
        }
        let code = database.code().and_then(|code| code.parse::<i32>().ok()).unwrap_or(0) & 0xFF;
        match code {
            BUSY => Self::Busy,
            FULL => Self::DiskFull,
            _ => Self::Other(error),
        }
    }
}

pub type Result<T> = std::result::Result<T, StoreError>;

/// The open database: many readers, one writer.
#[derive(Clone, Debug)]
pub struct Store {
    read: SqlitePool,
    write: SqlitePool,
    path: PathBuf,
    revisions: Arc<DbRevisionTracker>,
}

impl Store {
    /// Opens the database, creating it if it is missing, and migrates the schema.
    pub async fn open(path: &Path) -> Result<Self> {
        let options = SqliteConnectOptions::new()
            .filename(path)
            .create_if_missing(true)
            .journal_mode(SqliteJournalMode::Wal)
            // Commits survive a killed process and a power cut.
            .synchronous(SqliteSynchronous::Full)
            .busy_timeout(BUSY_TIMEOUT)
            .foreign_keys(true)
            // Overwrite deleted data: old keys must not be found on a stolen disk.
            .pragma("secure_delete", "ON")
            .optimize_on_close(true, None);
        // Connections to a file need no renewal. Without either limit the pool starts no task of its own: in sqlx 0.9 that
        // task can read a count of idle connections below zero, and then keeps a core busy for ever.
        let pool = || SqlitePoolOptions::new().idle_timeout(None).max_lifetime(None);
        let write = pool().max_connections(1).connect_with(options.clone()).await?;
        let store = Self {
            read: pool()
                .max_connections(MAX_READERS)
                .connect_lazy_with(options.read_only(true).create_if_missing(false)),
            write,
            path: path.to_owned(),
            revisions: Arc::new(DbRevisionTracker::new(path)),
        };
        store.refuse_foreign_file().await?;
        MIGRATOR.run(&store.write).await?;
        Ok(store)
    }

    /// A connection for reading.
    pub async fn read(&self) -> Result<sqlx::pool::PoolConnection<Sqlite>> {
        Ok(self.read.acquire().await?)
    }

    /// A transaction for writing. It takes the write lock at once, so that what it reads stays true until the commit.
    pub async fn write(&self) -> Result<Transaction> {
        let inner = match self.write.begin_with(BEGIN).await {
            // On a full disk SQLite ends a transaction by itself, which the connection doesn't notice.
            Err(sqlx::Error::InvalidSavePointStatement) => {
                self.write.acquire().await?.close().await?;
                self.write.begin_with(BEGIN).await?
            }
            other => other?,
        };
        Ok(Transaction { inner, revisions: self.revisions.clone() })
    }

    /// Removes deleted data from the write-ahead log, unless a reader still holds it.
    pub async fn truncate_wal(&self) -> Result<()> {
        let mut db = self.write.acquire().await?;
        sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut *db).await?;
        Ok(())
    }

    /// Rewrites the whole file, so that nothing that was replaced stays in it.
    pub async fn vacuum(&self) -> Result<()> {
        let mut db = self.write.acquire().await?;
        sqlx::query("VACUUM").execute(&mut *db).await?;
        drop(db);
        self.truncate_wal().await
    }

    /// Closes all connections, folding the write-ahead log into the file.
    pub async fn close(&self) {
        self.read.close().await;
        self.write.close().await;
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    async fn refuse_foreign_file(&self) -> Result<()> {
        let mut db = self.write.acquire().await?;
        let id: i64 = sqlx::query_scalar("PRAGMA application_id").fetch_one(&mut *db).await?;
        if id == APPLICATION_ID {
            return Ok(());
        }
        let tables: i64 = sqlx::query_scalar("SELECT count(*) FROM sqlite_schema").fetch_one(&mut *db).await?;
        if id != 0 || tables != 0 {
            return Err(StoreError::ForeignFile(self.path.clone()));
        }
        // PRAGMA takes no parameters; 1349481076 is APPLICATION_ID.
        sqlx::query("PRAGMA application_id = 1349481076").execute(&mut *db).await?;
        Ok(())
    }
}

/// Commits a transaction; before this, nothing is stored.
pub async fn commit(tx: Transaction) -> Result<()> {
    tx.inner.commit().await?;
    tx.revisions.count_commit();
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_application_id_in_the_pragma_is_the_constant() {
        assert_eq!(APPLICATION_ID, 1_349_481_076);
    }

    #[tokio::test]
    async fn a_foreign_database_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.db");
        let options = SqliteConnectOptions::new().filename(&path).create_if_missing(true);
        let pool = SqlitePool::connect_with(options).await.unwrap();
        sqlx::query("CREATE TABLE theirs (x)").execute(&pool).await.unwrap();
        pool.close().await;
        assert!(matches!(Store::open(&path).await, Err(StoreError::ForeignFile(_))));
    }

    #[tokio::test]
    async fn a_dropped_transaction_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let store = Store::open(&dir.path().join("p.db")).await.unwrap();
        let mut tx = store.write().await.unwrap();
        settings::set(&mut tx, "x", b"1").await.unwrap();
        drop(tx);
        let mut tx = store.write().await.unwrap();
        assert_eq!(settings::get(&mut tx, "x").await.unwrap(), None);
    }
}
