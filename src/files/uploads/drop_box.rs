//! What is different about uploads by guests: their file's name is all that they choose, they end with the link that they
//! came by, and the owner is notified.

use std::sync::Arc;
use std::time::Duration;

use super::{UploadError, UploadMetadata, UploadMetadataError, UploadService, remove_temporary, stored_path};
use crate::domain::{PersonId, RemotePath, SharedPathId};
use crate::files::shared_paths;
use crate::jobs::notification_digest::DROP_BOX_FILLED;
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::SftpError;
use crate::ssh::sftp::transfer::TransferSession;
use crate::store::guest_links::{GuestLink, GuestLinkTarget};
use crate::store::uploads::StoredUpload;
use crate::store::{self, StoreError};

/// How often a running upload looks whether its drop-box is still open.
const OPEN_CHECK_INTERVAL: Duration = Duration::from_secs(5);

impl UploadMetadata {
    /// Reads what a guest says about a file. Where it goes is the owner's choice: whatever else the guest says about that
    /// doesn't count.
    pub fn parse_for_drop_box(header: &str, cluster: &str, folder: RemotePath) -> Result<Self, UploadMetadataError> {
        let facts = Self::read_facts(header)?;
        let name = facts.name.ok_or(UploadMetadataError::NoName)?;
        // Many programs read settings from such files.
        if name.is_dot_name() {
            return Err(UploadMetadataError::HiddenName);
        }
        let metadata = Self {
            cluster: cluster.to_owned(),
            folder,
            relative: vec![name],
            replaces: false,
            modified_at: facts.modified_at,
        };
        metadata.check()
    }
}

impl UploadService {
    async fn list_links(&self, drop_box: SharedPathId) -> Result<Vec<GuestLink>, StoreError> {
        let mut db = self.core.store.read().await?;
        store::guest_links::list(&mut db, GuestLinkTarget::DropBox(drop_box), self.core.clock.now()).await
    }

    /// Resolves when no link lets guests into the drop-box that an upload goes to any more; never for a person's own
    /// upload.
    pub(super) async fn wait_until_closed(&self, drop_box: Option<SharedPathId>) {
        let Some(drop_box) = drop_box else { return std::future::pending().await };
        loop {
            tokio::time::sleep(OPEN_CHECK_INTERVAL).await;
            let now = self.core.clock.now();
            if self.list_links(drop_box).await.is_ok_and(|links| !links.iter().any(|link| link.is_usable(now))) {
                return;
            }
        }
    }

    /// Refuses to go on with an upload to a drop-box that was revoked or has expired, and removes what has arrived; keeps
    /// that if the link may work again.
    pub(super) async fn require_open(
        &self,
        connection: &Arc<ClusterConnection>,
        upload: &StoredUpload,
    ) -> Result<(), UploadError> {
        let Some(drop_box) = upload.drop_box_id else { return Ok(()) };
        let (links, now) = (self.list_links(drop_box).await?, self.core.clock.now());
        if links.iter().any(|link| link.is_usable(now)) {
            return Ok(());
        }
        if links.iter().any(|link| link.is_open(now)) {
            return Err(UploadError::DropBoxPaused);
        }
        remove_temporary(connection, upload).await?;
        self.delete(&upload.id).await?;
        Err(UploadError::DropBoxClosed)
    }

    /// Tells the owner of a drop-box that something has arrived. The file is there even if that fails.
    pub(super) async fn notify_owner(&self, person: PersonId, drop_box: SharedPathId) {
        match self.add_notification(person, drop_box).await {
            Ok(true) => self.notifications.notify(person),
            Ok(false) => {}
            Err(error) => tracing::warn!(%error, "Could not notify the owner of a drop-box"),
        }
    }

    async fn add_notification(&self, person: PersonId, drop_box: SharedPathId) -> Result<bool, StoreError> {
        let mut tx = self.core.store.write().await?;
        let Some(shared) = store::shared_paths::get(&mut tx, drop_box).await? else { return Ok(false) };
        let text = format!("Files arrived in your drop-box “{}” on {}", shared.title, shared.cluster);
        let now = self.core.clock.now();
        let is_new = store::notifications::add_drop_box(&mut tx, person, DROP_BOX_FILLED, &text, now).await?;
        store::commit(tx).await?;
        Ok(is_new)
    }
}

/// Fails unless an upload to a drop-box still goes to the folder that was shared.
pub(super) async fn require_folder(
    connection: &Arc<ClusterConnection>,
    upload: &StoredUpload,
) -> Result<(), UploadError> {
    if upload.drop_box_id.is_none() {
        return Ok(());
    }
    let folder = stored_path(&upload.temporary)?.parent().ok_or(UploadError::NoFolder)?;
    require_in_place(connection, &folder).await
}

/// Whoever may write to the folder that a drop-box is in can put a link in its place at any time: guests would write
/// wherever that leads.
pub(super) async fn require_in_place(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
) -> Result<(), UploadError> {
    let session = TransferSession::open_for_guest(connection).await?;
    match shared_paths::resolve(&session, folder, &RemotePath::root()).await {
        Ok(_) => Ok(()),
        Err(SftpError::NotFound) => Err(UploadError::NoFolder),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::*;

    #[test]
    fn guests_choose_a_name_and_nothing_else() {
        let folder = RemotePath::parse(b"/scratch/alice/inbox").unwrap();
        let parse = |pairs: &[(&str, &[u8])]| {
            let pairs: Vec<String> =
                pairs.iter().map(|(key, text)| format!("{key} {}", STANDARD.encode(text))).collect();
            UploadMetadata::parse_for_drop_box(&pairs.join(","), "key", folder.clone())
        };
        let elsewhere: [(&str, &[u8]); 5] = [
            ("filename", b"data \xff.csv"),
            ("cluster", b"other"),
            ("folder", b"/home/alice"),
            ("relativePath", b"sub/x"),
            ("replace", b"yes"),
        ];
        let read = parse(&elsewhere).unwrap();
        assert_eq!((read.cluster.as_str(), read.replaces, read.folders().len()), ("key", false, 0));
        assert_eq!(read.target().as_bytes(), b"/scratch/alice/inbox/data \xff.csv");
        for bad in ["", ".", "..", "../x", "a/b", "/etc/passwd", ".bashrc", ".portolan-upload-1", "a\0"] {
            assert!(parse(&[("filename", bad.as_bytes())]).is_err(), "{bad:?}");
        }
        assert!(parse(&[("relativePath", b"x")]).is_err(), "a name is needed");
    }
}
