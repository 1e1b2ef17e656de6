//! Measures folders in the background, at most one at a time for each person, and keeps the results. A measurement goes
//! on when the page is closed; it ends with the portal.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::clock::UnixTime;
use crate::cluster::folder_sizes::{FolderSizeReport, measure};
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::{Core, lock};
use crate::domain::RemotePath;
use crate::ssh::{ClusterConnection, RunCommandError, sftp};
use crate::store::folder_sizes::NewFolderSizes;
use crate::store::{self, StoreError};

/// In seconds. A folder that was measured this recently is measured again only if someone asks for exactly that.
pub const MEASURED_RECENTLY: i64 = 6 * 3600;
/// Fewer sessions would leave none for the person while a folder is being measured.
const MIN_SESSIONS: usize = 2;
/// The most folders whose last attempt is remembered.
const MAX_STATES: usize = 1000;

/// What is going on with a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FolderMeasurementState {
    Running {
        since: UnixTime,
    },
    /// The last attempt failed; why, as a sentence.
    Failed {
        at: UnixTime,
        reason: String,
    },
}

/// Why a measurement was not started.
#[derive(Debug, thiserror::Error)]
pub enum FolderMeasurementError {
    /// One at a time for each person.
    #[error("another folder is being measured")]
    AnotherRunning,
    #[error(transparent)]
    Run(#[from] RunCommandError),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The last measurement of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFolderSizes {
    pub report: FolderSizeReport,
    pub measured_at: UnixTime,
}

/// The file system that a measured folder is on: the whole of it, whoever uses it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MeasuredDisk {
    pub folder: RemotePath,
    pub bytes: u64,
    pub free_bytes: u64,
    pub measured_at: UnixTime,
}

type FolderMeasurements = HashMap<(ClusterAccountId, RemotePath), FolderMeasurementState>;

#[derive(Clone)]
pub struct FolderSizeService(Arc<FolderSizeServiceInner>);

struct FolderSizeServiceInner {
    core: Core,
    connections: ConnectionPool,
    states: Mutex<FolderMeasurements>,
}

impl FolderSizeService {
    pub fn new(core: Core, connections: ConnectionPool) -> Self {
        Self(Arc::new(FolderSizeServiceInner { core, connections, states: Mutex::default() }))
    }

    /// What is going on with a folder, if anything is or was.
    pub fn state(&self, account: ClusterAccountId, folder: &RemotePath) -> Option<FolderMeasurementState> {
        lock(&self.0.states).get(&(account, folder.clone())).cloned()
    }

    /// The last measurement of a folder.
    pub async fn load(
        &self,
        account: ClusterAccountId,
        folder: &RemotePath,
    ) -> Result<Option<StoredFolderSizes>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let row = store::folder_sizes::get_report(&mut db, account.person, account.cluster, folder).await?;
        // What cannot be read was not measured.
        let parse = |(json, measured_at): (String, UnixTime)| {
            Some(StoredFolderSizes { report: serde_json::from_str(&json).ok()?, measured_at })
        };
        Ok(row.and_then(parse))
    }

    /// The file systems of the folders that were measured.
    pub async fn list_disks(&self, account: ClusterAccountId) -> Result<Vec<MeasuredDisk>, StoreError> {
        let mut db = self.0.core.store.read().await?;
        let rows = store::folder_sizes::list(&mut db, account.person, account.cluster).await?;
        let disk = |row: &store::folder_sizes::FolderSizesSummaryRow| {
            Some(MeasuredDisk {
                folder: row.path()?,
                bytes: u64::try_from(row.disk_bytes?).ok()?,
                free_bytes: u64::try_from(row.disk_free_bytes?).ok()?,
                measured_at: row.measured_at,
            })
        };
        Ok(rows.iter().filter_map(disk).collect())
    }

    /// Starts to measure a folder, unless it is being measured. `purge_days`: after how many days without use the centre
    /// deletes files there. `again`: even if it was measured a short while ago.
    pub async fn start(
        &self,
        account: ClusterAccountId,
        folder: &RemotePath,
        purge_days: Option<u16>,
        again: bool,
    ) -> Result<(), FolderMeasurementError> {
        let now = self.0.core.clock.now();
        if !again
            && let Some(stored) = self.load(account, folder).await?
            && now.since(stored.measured_at) < MEASURED_RECENTLY
        {
            return Ok(());
        }
        let connection = self.0.connections.connection(account.connection_key())?;
        if connection.session_limit() < MIN_SESSIONS {
            return Err(RunCommandError::Busy.into());
        }
        let key = (account, folder.clone());
        if !begin(&mut lock(&self.0.states), &key, now)? {
            return Ok(());
        }
        let this = self.clone();
        self.0.core.tasks.spawn(async move {
            let (account, folder) = &key;
            let result = tokio::select! {
                () = this.0.core.stop.cancelled() => return,
                result = this.measure_and_save(&connection, *account, folder, purge_days) => result,
            };
            let mut states = lock(&this.0.states);
            match result {
                Ok(()) => states.remove(&key),
                Err(reason) => {
                    let at = this.0.core.clock.now();
                    states.insert(key, FolderMeasurementState::Failed { at, reason })
                }
            };
        });
        Ok(())
    }

    /// Fails with a sentence.
    async fn measure_and_save(
        &self,
        connection: &Arc<ClusterConnection>,
        account: ClusterAccountId,
        folder: &RemotePath,
        purge_days: Option<u16>,
    ) -> Result<(), String> {
        let report = measure(connection, folder, purge_days).await.map_err(|error| error.to_string())?;
        // Servers without this extension of SFTP don't say.
        let disk = sftp::disk_space(connection, folder).await.ok().flatten();
        let saved = self.save(account, folder, &report, disk).await;
        saved.map_err(|error| {
            tracing::warn!(%error, "Could not save the sizes of folders");
            "The portal couldn't save the result. Try again later.".to_owned()
        })
    }

    async fn save(
        &self,
        account: ClusterAccountId,
        folder: &RemotePath,
        report: &FolderSizeReport,
        disk: Option<sftp::DiskSpace>,
    ) -> Result<(), StoreError> {
        let report = serde_json::to_string(report).map_err(|_| StoreError::Malformed("folder_sizes.report"))?;
        let column = |bytes: u64| i64::try_from(bytes).ok();
        let new = NewFolderSizes {
            path: folder,
            measured_at: self.0.core.clock.now(),
            disk_bytes: disk.and_then(|disk| column(disk.bytes)),
            disk_free_bytes: disk.and_then(|disk| column(disk.free_bytes)),
            report: &report,
        };
        let mut tx = self.0.core.store.write().await?;
        store::folder_sizes::save(&mut tx, account.person, account.cluster, &new).await?;
        store::commit(tx).await
    }
}

/// Notes that a measurement begins. False if the same one is running.
fn begin(
    states: &mut FolderMeasurements,
    key: &(ClusterAccountId, RemotePath),
    now: UnixTime,
) -> Result<bool, FolderMeasurementError> {
    let is_running = |state: &FolderMeasurementState| matches!(state, FolderMeasurementState::Running { .. });
    if states.get(key).is_some_and(is_running) {
        return Ok(false);
    }
    if states.iter().any(|((account, _), state)| account.person == key.0.person && is_running(state)) {
        return Err(FolderMeasurementError::AnotherRunning);
    }
    if states.len() >= MAX_STATES {
        states.retain(|_, state| is_running(state));
    }
    states.insert(key.clone(), FolderMeasurementState::Running { since: now });
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::{ClusterId, PersonId, RemoteName};

    #[test]
    fn one_measurement_at_a_time_for_each_person() {
        let mut states = FolderMeasurements::default();
        let key = |person, cluster, name: &str| {
            let account = ClusterAccountId { person: PersonId(person), cluster: ClusterId(cluster) };
            (account, RemotePath::root().join(&RemoteName::parse(name.as_bytes()).unwrap()))
        };
        let now = UnixTime(7);
        assert!(begin(&mut states, &key(1, 1, "a"), now).unwrap());
        assert!(!begin(&mut states, &key(1, 1, "a"), now).unwrap(), "the same is not started twice");
        for other in [key(1, 1, "b"), key(1, 2, "a")] {
            let refused = begin(&mut states, &other, now);
            assert!(matches!(refused, Err(FolderMeasurementError::AnotherRunning)), "{refused:?}");
        }
        assert!(begin(&mut states, &key(2, 1, "a"), now).unwrap(), "someone else");
        states.insert(key(1, 1, "a"), FolderMeasurementState::Failed { at: now, reason: String::new() });
        assert!(begin(&mut states, &key(1, 1, "b"), now).unwrap());
        for number in 0..2 * MAX_STATES {
            let failed = FolderMeasurementState::Failed { at: now, reason: String::new() };
            states.insert(key(3, 1, &number.to_string()), failed);
        }
        assert!(begin(&mut states, &key(4, 1, "a"), now).unwrap());
        assert_eq!(states.len(), 3, "what failed is forgotten first");
    }
}
