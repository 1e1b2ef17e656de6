//! Uploads: files that go from a browser or a tus client to a cluster. Bytes pass through to a temporary file beside the
//! target, over the person's own connection; nothing is kept here but how far it got. Once everything is there and
//! checked, the file gets its name, so nobody ever sees half of it.

mod active;
pub mod batch;
mod batch_places;
mod checksum;
mod drop_box;
mod finish;
mod metadata;
mod receive;
mod sweeper;

use std::sync::Arc;

pub use self::checksum::{CHECKSUM_ALGORITHMS, RequestChecksum};
pub use self::finish::NameDecision;
pub use self::metadata::{UploadMetadata, UploadMetadataError};
pub use self::receive::UploadPart;

use self::active::{AcquireUploadError, ActiveUpload, ActiveUploads};
use self::batch_places::BatchPlaces;
use crate::auth::RequestClient;
use crate::clock::{SECONDS_PER_DAY, UnixTime};
use crate::cluster::checksums::RunningChecksum;
use crate::cluster::{ClusterAccountId, ConnectionPool};
use crate::core::Core;
use crate::domain::{ClusterId, PersonId, RemoteName, RemotePath, SharedPathId};
use crate::entropy;
use crate::jobs::notifications::NotificationHub;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteFileKind, SftpError};
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::store::uploads::{StoredUpload, UploadState};
use crate::store::{self, StoreError};

/// An upload that nothing arrives for is given up after this time.
const EXPIRY_SECS: i64 = 7 * SECONDS_PER_DAY;
/// How many uploads one person may have at the same time, finished or not.
const MAX_UPLOADS: i64 = 10_000;
/// How many unfinished uploads a page lists.
const MAX_LISTED: i64 = 200;

/// Why an upload does not go on. Sentences are for the person who uploads.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    #[error("This upload doesn't exist. It may have been cancelled. Start it again.")]
    NotFound,
    #[error("This upload has expired because nothing arrived for a week. Start it again.")]
    Expired,
    #[error(transparent)]
    Metadata(#[from] UploadMetadataError),
    #[error("This cluster doesn't exist.")]
    NoCluster,
    #[error("You have too many uploads. Finish or cancel some of them first.")]
    TooManyUploads,
    #[error(
        "This file doesn't fit: it would exceed the drop-box's limit on total size or number of files. Ask the person who sent you the link for a new one."
    )]
    DropBoxFull,
    /// The upload was removed.
    #[error(
        "This drop-box was closed while the file was being sent, so the file wasn't saved. Ask the person who sent you the link for a new one."
    )]
    DropBoxClosed,
    /// It may be open again later: what has arrived is kept.
    #[error("This drop-box doesn't accept files right now. The upload can continue when it does.")]
    DropBoxPaused,
    #[error("Too many of your uploads are running at the same time. This one continues when others have finished.")]
    TooManyAtOnce,
    #[error("Many files are being uploaded right now. Yours continue in a moment.")]
    NoBatchPlace,
    #[error("Another request is writing to this upload. Try again in a moment.")]
    InUse,
    /// The client's idea of how far the upload got is wrong.
    #[error("The offset doesn't match the upload. Request the current offset, then continue from there.")]
    WrongOffset,
    #[error("More data arrived than was declared for this upload. Start it again.")]
    TooMuchData,
    /// What arrived with this request doesn't count.
    #[error("The data was damaged on the way. Send it again.")]
    ChecksumMismatch,
    /// The sender stopped in the middle.
    #[error("The upload was interrupted. It can be resumed from where it stopped.")]
    Interrupted,
    #[error("The portal is restarting. The upload continues in a moment.")]
    Stopping,
    #[error("A file or folder with this name already exists.")]
    NameTaken,
    #[error("A folder with this name already exists. Rename it, or choose another name for the file.")]
    FolderInTheWay,
    #[error("The folder that you're uploading to no longer exists, or isn't a folder. Choose another folder.")]
    NoFolder,
    /// The upload was removed.
    #[error("The file on the cluster differs from the one that was sent, so it was deleted. Upload the file again.")]
    Damaged,
    #[error(transparent)]
    Sftp(#[from] SftpError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("no random numbers: {0}")]
    Entropy(#[from] std::io::Error),
}

impl From<RunCommandError> for UploadError {
    fn from(error: RunCommandError) -> Self {
        Self::Sftp(error.into())
    }
}

impl UploadError {
    /// Whether the same upload may go on later without anyone changing anything.
    pub const fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::Sftp(SftpError::Run(_))
                | Self::Stopping
                | Self::Interrupted
                | Self::TooManyAtOnce
                | Self::NoBatchPlace
        )
    }
}

/// Whom an upload belongs to: a person, or a drop-box of theirs. Bytes pass over the person's connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UploadOwner {
    pub person: PersonId,
    pub drop_box: Option<SharedPathId>,
}

impl From<PersonId> for UploadOwner {
    fn from(person: PersonId) -> Self {
        Self { person, drop_box: None }
    }
}

/// Everyone's uploads.
#[derive(Clone)]
pub struct UploadService {
    core: Core,
    connections: ConnectionPool,
    notifications: NotificationHub,
    active: ActiveUploads,
    batches: BatchPlaces,
}

impl UploadService {
    pub fn new(core: Core, connections: ConnectionPool, notifications: NotificationHub) -> Self {
        let (active, batches) = (ActiveUploads::default(), BatchPlaces::default());
        Self { core, connections, notifications, active, batches }
    }

    /// Begins an upload of `size` bytes. An empty file is there at once.
    pub async fn create(
        &self,
        owner: UploadOwner,
        metadata: &UploadMetadata,
        header: &str,
        (size, client): (u64, &RequestClient),
    ) -> Result<StoredUpload, UploadError> {
        let mut db = self.core.store.read().await?;
        let cluster = store::clusters::find_by_slug(&mut db, &metadata.cluster).await?.ok_or(UploadError::NoCluster)?;
        drop(db);
        let connection = self.connection_for(owner, cluster.id).await?;
        let target = metadata.target();
        if owner.drop_box.is_some() {
            drop_box::require_in_place(&connection, &metadata.folder).await?;
        }
        match prepare_target(&connection, metadata, &target).await {
            // A guest doesn't learn which names there are: the file gets another one.
            Err(UploadError::NameTaken | UploadError::FolderInTheWay) if owner.drop_box.is_some() => {}
            prepared => prepared?,
        }
        let now = self.core.clock.now();
        let upload = StoredUpload {
            id: random_token()?,
            person_id: owner.person,
            cluster_id: cluster.id,
            drop_box_id: owner.drop_box,
            temporary: temporary_path(&target)?.to_encoded(),
            target: target.to_encoded(),
            metadata: metadata.to_stored(header),
            size: i64::try_from(size).map_err(|_| UploadError::TooMuchData)?,
            confirmed: 0,
            checksum_state: RunningChecksum::new().state(),
            replaces: metadata.replaces,
            modified_at: metadata.modified_at,
            state: UploadState::Receiving,
            problem: String::new(),
            address: client.address.to_string(),
            created_at: now,
            touched_at: now,
        };
        let mut tx = self.core.store.write().await?;
        match owner.drop_box {
            Some(drop_box) if !store::shared_paths::reserve(&mut tx, drop_box, upload.size).await? => {
                return Err(UploadError::DropBoxFull);
            }
            Some(_) => {}
            None => make_room(&mut tx, owner.person).await?,
        }
        store::uploads::add(&mut tx, &upload).await?;
        store::commit(tx).await?;
        Ok(upload)
    }

    /// Someone's upload, as stored.
    pub async fn find(&self, owner: UploadOwner, id: &str) -> Result<StoredUpload, UploadError> {
        let mut db = self.core.store.read().await?;
        let upload = store::uploads::find(&mut db, owner.person, owner.drop_box, id).await?;
        let upload = upload.ok_or(UploadError::NotFound)?;
        let is_over = upload.state != UploadState::Finished && expires_at(&upload) <= self.core.clock.now();
        if is_over { Err(UploadError::Expired) } else { Ok(upload) }
    }

    /// The same once an earlier request that may still be writing has stopped.
    pub async fn find_settled(&self, owner: UploadOwner, id: &str) -> Result<StoredUpload, UploadError> {
        let upload = self.find(owner, id).await?;
        if upload.is_received() {
            return Ok(upload);
        }
        let held = self.active.acquire(owner, id).await;
        let upload = self.find(owner, id).await;
        drop(held);
        upload
    }

    /// A person's unfinished uploads to a cluster, the newest first.
    pub async fn list_unfinished(
        &self,
        person: PersonId,
        cluster: ClusterId,
    ) -> Result<Vec<StoredUpload>, UploadError> {
        let mut db = self.core.store.read().await?;
        let uploads = store::uploads::list_unfinished(&mut db, person, cluster, MAX_LISTED).await?;
        let now = self.core.clock.now();
        Ok(uploads.into_iter().filter(|upload| expires_at(upload) > now).collect())
    }

    /// Ends an upload. What has arrived of an unfinished one is removed from the cluster.
    pub async fn cancel(&self, owner: UploadOwner, id: &str) -> Result<(), UploadError> {
        self.find(owner, id).await?;
        let _held = self.acquire(owner, id).await?;
        let upload = self.find(owner, id).await?;
        if upload.state != UploadState::Finished {
            let connection = self.connection_for(owner, upload.cluster_id).await?;
            remove_temporary(&connection, &upload).await?;
        }
        self.delete(&upload.id).await
    }

    /// Ends the unfinished uploads to an account, those of guests included, as far as that is possible now.
    pub async fn cancel_for_account(&self, account: ClusterAccountId) {
        if self.connection(account.person, account.cluster).is_err() {
            return;
        }
        let listed = async {
            let mut db = self.core.store.read().await?;
            store::uploads::list_for_account(&mut db, account.person, account.cluster, MAX_UPLOADS).await
        };
        for upload in listed.await.unwrap_or_default() {
            let owner = UploadOwner { person: account.person, drop_box: upload.drop_box_id };
            if let Err(error) = self.cancel(owner, &upload.id).await {
                tracing::debug!(%error, "Could not remove an upload from a cluster that is forgotten");
            }
        }
    }

    fn connection(&self, person: PersonId, cluster: ClusterId) -> Result<Arc<ClusterConnection>, UploadError> {
        Ok(self.connections.connection(ClusterAccountId { person, cluster }.connection_key())?)
    }

    /// The connection that an upload goes over. For guests, a session is opened at their own cost: what follows uses it.
    async fn connection_for(
        &self,
        owner: UploadOwner,
        cluster: ClusterId,
    ) -> Result<Arc<ClusterConnection>, UploadError> {
        let connection = self.connection(owner.person, cluster)?;
        if owner.drop_box.is_some() {
            TransferSession::open_for_guest(&connection).await?;
        }
        Ok(connection)
    }

    async fn acquire(&self, owner: UploadOwner, id: &str) -> Result<ActiveUpload, UploadError> {
        self.active.acquire(owner, id).await.map_err(|error| match error {
            AcquireUploadError::InUse => UploadError::InUse,
            AcquireUploadError::TooMany => UploadError::TooManyAtOnce,
        })
    }

    async fn delete(&self, id: &str) -> Result<(), UploadError> {
        let mut tx = self.core.store.write().await?;
        store::uploads::delete(&mut tx, id).await?;
        Ok(store::commit(tx).await?)
    }
}

/// Forgets finished uploads of someone who has too many.
async fn make_room(db: &mut store::DbConnection, person: PersonId) -> Result<(), UploadError> {
    if store::uploads::count(db, person).await? >= MAX_UPLOADS {
        store::uploads::delete_finished(db, person).await?;
        if store::uploads::count(db, person).await? >= MAX_UPLOADS {
            return Err(UploadError::TooManyUploads);
        }
    }
    Ok(())
}

/// When an upload that nothing more arrives for is given up.
pub const fn expires_at(upload: &StoredUpload) -> UnixTime {
    upload.touched_at.plus(EXPIRY_SECS)
}

/// The checksum of what is on the cluster, to go on with.
fn running_checksum(upload: &StoredUpload) -> RunningChecksum {
    RunningChecksum::from_state(upload.checksum_state, u64::try_from(upload.confirmed).unwrap_or_default())
}

/// When the file was last used and changed, as its sender says.
fn kept_times(upload: &StoredUpload) -> Option<(u32, u32)> {
    upload.modified_at.and_then(|at| u32::try_from(at.0).ok()).map(|at| (at, at))
}

/// A path as it was stored.
pub fn stored_path(encoded: &str) -> Result<RemotePath, UploadError> {
    RemotePath::from_encoded(encoded).map_err(|_| StoreError::Malformed("uploads").into())
}

/// Checks the folder and the name before anything is sent, and makes the folders that lead to the file.
async fn prepare_target(
    connection: &Arc<ClusterConnection>,
    metadata: &UploadMetadata,
    target: &RemotePath,
) -> Result<(), UploadError> {
    let session = TransferSession::open(connection).await?;
    match session.stat(&metadata.folder).await {
        Ok(attrs) if attrs.kind == RemoteFileKind::Folder => {}
        Ok(_) | Err(SftpError::NotFound) => return Err(UploadError::NoFolder),
        Err(error) => return Err(error.into()),
    }
    for folder in metadata.folders() {
        match session.make_folder(&folder).await {
            Ok(()) | Err(SftpError::AlreadyExists) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match session.lstat(target).await {
        Err(SftpError::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
        Ok(attrs) if attrs.kind == RemoteFileKind::Folder => Err(UploadError::FolderInTheWay),
        Ok(_) if metadata.replaces => Ok(()),
        Ok(_) => Err(UploadError::NameTaken),
    }
}

async fn remove_temporary(connection: &Arc<ClusterConnection>, upload: &StoredUpload) -> Result<(), UploadError> {
    let session = TransferSession::open(connection).await?;
    match session.remove_file(&stored_path(&upload.temporary)?).await {
        Ok(()) | Err(SftpError::NotFound) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn random_token() -> std::io::Result<String> {
    let bytes: [u8; 16] = entropy::random_bytes()?;
    Ok(bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")))
}

/// A hidden name beside the target: on the same file system, so that the file can be renamed.
fn temporary_path(target: &RemotePath) -> Result<RemotePath, UploadError> {
    let folder = target.parent().ok_or(UploadError::NoFolder)?;
    let name = RemoteName::parse(format!(".portolan-upload-{}", random_token()?).as_bytes());
    Ok(folder.join(&name.map_err(UploadMetadataError::from)?))
}
