//! Transfers: work on files that goes on in the background, in one place. Each is a row in the database, so it survives
//! the page that began it and a restart of the portal; it runs only while its owner is connected to the cluster.

mod clean_up;
mod compress;
mod copy;
mod count;
mod delete;
mod extract;
mod fetch;
mod free_name;
mod hidden_result;
mod partial_file;
mod progress;
mod protected;
mod words;
mod worker;

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::{Notify, broadcast};
use tokio_util::sync::CancellationToken;

pub use self::compress::CompressFormat;
pub use self::count::{CountLimits, ItemCount, count_items};
pub use self::delete::{DeleteAtOnceError, delete_single};
pub use self::extract::is_archive_name;
pub use self::fetch::{FetchAddress, FetchAddressError};
use self::progress::TransferProgress;
pub use self::progress::TransferSnapshot;
pub use self::protected::{ProtectedPlaceError, ProtectedPlaces};
pub use self::words::{TransferWords, describe, describe_ended, describe_ongoing};
use self::worker::{TransferRetry, TransferRun};
use crate::cluster::ConnectionPool;
use crate::core::{Core, lock};
use crate::domain::{ClusterId, ConnectionRole, PersonId, RemotePath, TransferId};
use crate::entropy;
use crate::format;
use crate::jobs::notifications::NotificationHub;
use crate::ssh::sftp::{self, SftpError};
use crate::store::connections::ConnectionKey;
use crate::store::transfers::{NewTransfer, Transfer, TransferKind};
use crate::store::{self, StoreError};

/// How many transfers of one person may be open.
const MAX_OPEN: i64 = 100;
/// How many transfers the page shows.
const MAX_LISTED: i64 = 200;

/// Why a transfer wasn't started.
#[derive(Debug, thiserror::Error)]
pub enum StartTransferError {
    #[error("You already have {MAX_OPEN} unfinished transfers. Wait until some are done, or cancel some.")]
    TooMany,
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Why a running transfer stopped.
#[derive(Debug)]
enum TransferError {
    /// The cluster or the web server can't be reached now, and why: it goes on later.
    Interrupted(String),
    /// It can't be done; says why, as a sentence.
    Failed(String),
    /// It pauses until its owner has looked; says why.
    NeedsOwner(String),
    Store(StoreError),
}

impl From<SftpError> for TransferError {
    fn from(error: SftpError) -> Self {
        match error {
            SftpError::Run(error) => Self::Interrupted(error.to_string()),
            error => Self::Failed(error.to_string()),
        }
    }
}

impl From<StoreError> for TransferError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// Everyone's transfers, and the worker that runs them.
#[derive(Clone)]
pub struct TransferWorker(Arc<TransferWorkerInner>);

struct TransferWorkerInner {
    core: Core,
    connections: ConnectionPool,
    notifications: NotificationHub,
    /// What runs now.
    active: Mutex<HashMap<TransferId, ActiveTransfer>>,
    /// When what was interrupted goes on.
    retries: Mutex<HashMap<TransferId, TransferRetry>>,
    /// Those whose leftovers are being removed now.
    cleaning: Mutex<HashMap<TransferId, PersonId>>,
    /// When that is tried again where it wasn't possible.
    clean_up_retries: Mutex<HashMap<TransferId, Instant>>,
    /// How many open transfers each person has: every page shows it.
    open_counts: Mutex<HashMap<PersonId, u64>>,
    wake: Notify,
    changes: broadcast::Sender<PersonId>,
}

struct ActiveTransfer {
    person: PersonId,
    stop: CancellationToken,
    progress: Arc<TransferProgress>,
}

impl TransferWorker {
    /// Nothing runs before [`TransferWorker::run`].
    pub fn new(core: Core, connections: ConnectionPool, notifications: NotificationHub) -> Self {
        Self(Arc::new(TransferWorkerInner {
            core,
            connections,
            notifications,
            active: Mutex::default(),
            retries: Mutex::default(),
            cleaning: Mutex::default(),
            clean_up_retries: Mutex::default(),
            open_counts: Mutex::default(),
            wake: Notify::new(),
            changes: broadcast::channel(256).0,
        }))
    }

    /// Receives the ID of each person whose transfers changed.
    pub fn subscribe(&self) -> broadcast::Receiver<PersonId> {
        self.0.changes.subscribe()
    }

    /// How many open transfers someone has.
    pub fn open_count(&self, person: PersonId) -> u64 {
        lock(&self.0.open_counts).get(&person).copied().unwrap_or(0)
    }

    /// Adds a transfer; it runs as soon as it is its turn.
    pub async fn start(&self, new: &NewTransfer) -> Result<TransferId, StartTransferError> {
        let token = random_token()?;
        let mut tx = self.0.core.store.write().await?;
        if store::transfers::count_open_of(&mut tx, new.person).await? >= MAX_OPEN {
            return Err(StartTransferError::TooMany);
        }
        let id = store::transfers::add(&mut tx, new, &token, self.0.core.clock.now()).await?;
        store::commit(tx).await?;
        self.changed(new.person).await;
        Ok(id)
    }

    /// A person's transfers, open ones first. Those that run are as they are at this moment.
    pub async fn list(&self, person: PersonId) -> Result<Vec<(Transfer, TransferSnapshot)>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let rows = store::transfers::list(&mut db, person, MAX_LISTED).await?;
        drop(db);
        let active = lock(&self.0.active);
        let with_progress = |row: Transfer| {
            let snapshot = active.get(&row.id).map(|active| active.progress.snapshot());
            let snapshot = snapshot.unwrap_or_else(|| TransferSnapshot::from_row(&row));
            (row, snapshot)
        };
        Ok(rows.into_iter().map(with_progress).collect())
    }

    /// The person's own transfer.
    pub async fn get(&self, person: PersonId, id: TransferId) -> Result<Option<Transfer>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let found = store::transfers::get(&mut db, id).await?;
        Ok(found.filter(|transfer| transfer.person_id == person && !transfer.is_dismissed))
    }

    /// Pauses a transfer. Returns whether there was anything to pause.
    pub async fn pause(&self, person: PersonId, id: TransferId) -> Result<bool, StoreError> {
        let mut tx = self.0.core.store.write().await?;
        let is_done = store::transfers::pause(&mut tx, person, id).await?;
        store::commit(tx).await?;
        self.stop_active(person, id);
        self.changed(person).await;
        Ok(is_done)
    }

    /// Goes on with a paused transfer, or tries a failed one again.
    pub async fn resume(&self, person: PersonId, id: TransferId) -> Result<bool, StoreError> {
        let mut tx = self.0.core.store.write().await?;
        let is_done = store::transfers::resume(&mut tx, person, id).await?;
        let row = store::transfers::get(&mut tx, id).await?;
        if let Some(row) = row.filter(|row| is_done && row.kind() == Some(TransferKind::Delete)) {
            store::transfers::set_checkpoint(&mut tx, id, &delete::confirm(&row.checkpoint)).await?;
        }
        store::commit(tx).await?;
        lock(&self.0.retries).remove(&id);
        self.changed(person).await;
        Ok(is_done)
    }

    /// Ends a transfer. What it has done stays done.
    pub async fn cancel(&self, person: PersonId, id: TransferId) -> Result<bool, StoreError> {
        let now = self.0.core.clock.now();
        let mut tx = self.0.core.store.write().await?;
        let is_done = store::transfers::cancel(&mut tx, person, id, now).await?;
        store::commit(tx).await?;
        self.stop_active(person, id);
        self.changed(person).await;
        Ok(is_done)
    }

    /// Removes a transfer that is over from the list.
    pub async fn dismiss(&self, person: PersonId, id: TransferId) -> Result<bool, StoreError> {
        let mut tx = self.0.core.store.write().await?;
        let is_done = store::transfers::dismiss(&mut tx, person, id).await?;
        store::commit(tx).await?;
        self.changed(person).await;
        Ok(is_done)
    }

    /// Removes all that went well or were cancelled from the list.
    pub async fn clear(&self, person: PersonId) -> Result<(), StoreError> {
        let mut tx = self.0.core.store.write().await?;
        store::transfers::clear(&mut tx, person).await?;
        store::commit(tx).await?;
        self.changed(person).await;
        Ok(())
    }

    /// Whether the person is connected to a cluster.
    pub fn is_connected(&self, person: PersonId, cluster: ClusterId) -> bool {
        self.0.connections.connection(login_key(person, cluster)).is_ok()
    }

    /// Stops the work on a transfer, if there is any.
    fn stop_active(&self, person: PersonId, id: TransferId) {
        let active = lock(&self.0.active);
        if let Some(own) = active.get(&id).filter(|active| active.person == person) {
            own.stop.cancel();
        }
    }

    /// Counts a person's open transfers again, tells their pages, and lets the worker look for work.
    async fn changed(&self, person: PersonId) {
        let count = async {
            let mut db = self.0.core.store.read().await?;
            store::transfers::count_open_of(&mut db, person).await
        };
        if let Ok(count) = count.await {
            lock(&self.0.open_counts).insert(person, u64::try_from(count).unwrap_or(0));
        }
        self.notify(person);
        self.0.wake.notify_one();
    }

    fn notify(&self, person: PersonId) {
        // There may be no subscribers.
        let _ = self.0.changes.send(person);
    }
}

/// What tells the hidden names of one transfer from all others.
fn random_token() -> Result<String, StoreError> {
    let bytes = entropy::random_bytes::<8>().map_err(|_| StoreError::Busy)?;
    Ok(format!("{:016x}", u64::from_be_bytes(bytes)))
}

/// Refuses what certainly doesn't fit.
async fn check_space(run: &TransferRun, folder: &RemotePath, length: u64) -> Result<(), TransferError> {
    match sftp::disk_space(&run.connection, folder).await {
        Ok(Some(space)) if space.free_bytes < length => Err(TransferError::Failed(format!(
            "There isn't enough space: {} needed, {} free. Free some space, then try again.",
            format::bytes(length),
            format::bytes(space.free_bytes)
        ))),
        Err(error @ SftpError::Run(_)) => Err(error.into()),
        _ => Ok(()),
    }
}

const fn login_key(person: PersonId, cluster: ClusterId) -> ConnectionKey {
    ConnectionKey { person, cluster, role: ConnectionRole::Login }
}
