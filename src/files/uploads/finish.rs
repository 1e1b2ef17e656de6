//! The end of an upload: what has arrived is checked, then gets its name.

use std::sync::Arc;
use std::time::Duration;

use super::drop_box::require_folder;
use super::metadata::chosen_name;
use super::{
    ActiveUpload, UploadError, UploadOwner, UploadService, kept_times, random_token, remove_temporary,
    running_checksum, stored_path,
};
use crate::auth::activity::{ActivityDetails, ActivityEventKind, Actor, record};
use crate::clock::UnixTime;
use crate::cluster::checksums::{self, FileChecksum, RunningChecksum};
use crate::domain::{RemoteName, RemotePath};
use crate::format;
use crate::ssh::sftp::transfer::{RemoteFileReader, TransferSession};
use crate::ssh::sftp::{RemoteFileKind, RenameMode, SetAttrs, SftpError};
use crate::ssh::{CallUrgency, ClusterConnection, RunCommandError};
use crate::store;
use crate::store::uploads::{StoredUpload, UploadState};

/// Files up to this size are read back to be checked: that is cheaper than a command on the cluster.
const READ_BACK_BYTES: u64 = 8 * 1024 * 1024;
/// The same for guests, who have few commands.
const GUEST_READ_BACK_BYTES: u64 = 64 * 1024 * 1024;
/// How often the checksum is tried while the connection's budget of commands is used up.
const CHECKSUM_TRIES: u32 = 30;
const CHECKSUM_PAUSE: Duration = Duration::from_secs(3);
/// How many names are tried for a second copy.
const MAX_COPIES: u32 = 100;
/// What a file system takes.
const MAX_NAME_BYTES: usize = 255;
/// What comes after a name's last dot is its ending only if it isn't longer.
const MAX_ENDING_BYTES: usize = 32;

/// What to do about a name that is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NameDecision {
    /// Nothing was decided: try as before.
    TryAgain,
    Replace,
    /// The new file gets another name: `name (2).txt`.
    KeepBoth,
}

impl UploadService {
    /// Finishes an upload all of whose bytes have arrived, as its owner decided.
    pub async fn finish(self, owner: UploadOwner, id: String, decision: NameDecision) -> Result<(), UploadError> {
        self.find(owner, &id).await?;
        let active = self.acquire(owner, &id).await?;
        let upload = self.find(owner, &id).await?;
        if upload.state == UploadState::Finished {
            return Ok(());
        }
        if !upload.is_received() {
            return Err(UploadError::WrongOffset);
        }
        let connection = self.connection_for(owner, upload.cluster_id).await?;
        self.finish_as(&connection, upload, decision, active).await
    }

    /// The same for one that has just been received.
    pub(super) async fn finish_received(
        self,
        connection: Arc<ClusterConnection>,
        upload: StoredUpload,
        active: ActiveUpload,
    ) -> Result<(), UploadError> {
        self.finish_as(&connection, upload, NameDecision::TryAgain, active).await
    }

    /// An empty file has nothing to receive.
    pub async fn finish_empty(&self, owner: UploadOwner, upload: &StoredUpload) -> Result<(), UploadError> {
        let connection = self.connection_for(owner, upload.cluster_id).await?;
        let active = self.acquire(owner, &upload.id).await?;
        require_folder(&connection, upload).await?;
        let session = TransferSession::open(&connection).await?;
        let attrs = SetAttrs { times: kept_times(upload), ..SetAttrs::default() };
        session.write_new_with(&stored_path(&upload.temporary)?, b"", None, attrs).await?;
        self.finish_as(&connection, upload.clone(), NameDecision::TryAgain, active).await
    }

    async fn finish_as(
        &self,
        connection: &Arc<ClusterConnection>,
        mut upload: StoredUpload,
        decision: NameDecision,
        _active: ActiveUpload,
    ) -> Result<(), UploadError> {
        let session = TransferSession::open(connection).await?;
        let temporary = stored_path(&upload.temporary)?;
        let checked = match upload.state {
            UploadState::Receiving => check(connection, &session, &temporary, &upload).await,
            // Its content was checked before.
            _ => require_whole(&session, &temporary, &upload).await,
        };
        let checked = match checked {
            Err(UploadError::Damaged) if session.lstat(&temporary).await == Err(SftpError::NotFound) => {
                // The portal may have been killed after it had given the file its name.
                let target = stored_path(&upload.target)?;
                match check(connection, &session, &target, &upload).await {
                    Ok(()) => return self.settle(&upload, UploadState::Finished, None).await,
                    checked => checked,
                }
            }
            checked => checked,
        };
        match checked {
            Ok(()) => {}
            Err(UploadError::Damaged) => {
                remove_temporary(connection, &upload).await?;
                self.delete(&upload.id).await?;
                return Err(UploadError::Damaged);
            }
            Err(error) => return self.settle(&upload, upload.state, Some(error)).await,
        }
        self.require_open(connection, &upload).await?;
        require_folder(connection, &upload).await?;
        let named = match self.give_name(&session, &mut upload, decision).await {
            // Guests replace nothing, and nobody is asked.
            Err(UploadError::NameTaken | UploadError::FolderInTheWay) if upload.drop_box_id.is_some() => {
                self.give_name(&session, &mut upload, NameDecision::KeepBoth).await
            }
            named => named,
        };
        let (state, error) = match named {
            Ok(()) => (UploadState::Finished, None),
            Err(error @ (UploadError::NameTaken | UploadError::FolderInTheWay)) => {
                (UploadState::NameTaken, Some(error))
            }
            Err(error) => (upload.state, Some(error)),
        };
        self.settle(&upload, state, error).await
    }

    /// Gives the file its name. Each name is stored before it is tried: if the portal is killed then, it finds the file.
    async fn give_name(
        &self,
        session: &TransferSession,
        upload: &mut StoredUpload,
        decision: NameDecision,
    ) -> Result<(), UploadError> {
        let (from, chosen) = (stored_path(&upload.temporary)?, chosen_target(upload)?);
        if decision == NameDecision::KeepBoth {
            let mut labels: Vec<String> = (2..=MAX_COPIES).map(|number| number.to_string()).collect();
            if upload.drop_box_id.is_some() {
                // A guest is never told that a name is taken, however many files have it.
                labels.push(random_token()?);
            }
            for copy in labels.iter().filter_map(|label| labelled(&chosen, label)) {
                match session.lstat(&copy).await {
                    Err(SftpError::NotFound) => {}
                    found => {
                        found?;
                        continue;
                    }
                }
                self.set_target(upload, &copy).await?;
                match session.rename(&from, &copy, RenameMode::KeepExisting).await {
                    Err(SftpError::AlreadyExists) => {}
                    renamed => return Ok(renamed?),
                }
            }
            self.set_target(upload, &chosen).await?;
            return Err(UploadError::NameTaken);
        }
        self.set_target(upload, &chosen).await?;
        let is_replacing = upload.replaces || decision == NameDecision::Replace;
        let mode = if is_replacing { RenameMode::Replace } else { RenameMode::KeepExisting };
        match session.rename(&from, &chosen, mode).await {
            Ok(()) => Ok(()),
            Err(SftpError::AlreadyExists) => Err(UploadError::NameTaken),
            Err(error) => match session.lstat(&chosen).await {
                Ok(attrs) if attrs.kind == RemoteFileKind::Folder => Err(UploadError::FolderInTheWay),
                _ => Err(error.into()),
            },
        }
    }

    async fn set_target(&self, upload: &mut StoredUpload, target: &RemotePath) -> Result<(), UploadError> {
        let target = target.to_encoded();
        if upload.target != target {
            let mut tx = self.core.store.write().await?;
            store::uploads::set_target(&mut tx, &upload.id, &target).await?;
            store::commit(tx).await?;
            upload.target = target;
        }
        Ok(())
    }

    /// Stores how it stands, and gives the error back.
    async fn settle(
        &self,
        upload: &StoredUpload,
        state: UploadState,
        error: Option<UploadError>,
    ) -> Result<(), UploadError> {
        let problem = error.as_ref().map(ToString::to_string).unwrap_or_default();
        let mut tx = self.core.store.write().await?;
        store::uploads::set_state(&mut tx, &upload.id, state, &problem).await?;
        if state == UploadState::Finished {
            record_upload(&mut tx, upload, self.core.clock.now()).await?;
        }
        store::commit(tx).await?;
        if let (UploadState::Finished, Some(drop_box)) = (state, upload.drop_box_id) {
            self.notify_owner(upload.person_id, drop_box).await;
        }
        error.map_or(Ok(()), Err)
    }
}

/// The activity log says who uploaded what, and from where.
async fn record_upload(db: &mut store::DbConnection, upload: &StoredUpload, now: UnixTime) -> Result<(), UploadError> {
    let cluster = store::clusters::get(db, upload.cluster_id).await?;
    let target = stored_path(&upload.target)?;
    let address = upload.address.clone();
    let (actor, event) = if upload.drop_box_id.is_some() {
        (Actor { id: None, name: String::new(), address }, ActivityEventKind::DropBoxFilled)
    } else {
        let Some(person) = store::people::get(db, upload.person_id).await? else { return Ok(()) };
        (Actor { id: Some(person.id), name: person.name, address }, ActivityEventKind::FilesUploaded)
    };
    let detail = format!("{target} ({})", format::bytes(u64::try_from(upload.size).unwrap_or_default()));
    let subject = cluster.map(|cluster| cluster.title).unwrap_or_default();
    let about = ActivityDetails { person: Some(upload.person_id), subject: &subject, detail: &detail };
    Ok(record(db, &actor, event, about, now).await?)
}

/// Compares the size and the content on the cluster with what was sent.
async fn check(
    connection: &Arc<ClusterConnection>,
    session: &TransferSession,
    path: &RemotePath,
    upload: &StoredUpload,
) -> Result<(), UploadError> {
    require_whole(session, path, upload).await?;
    let size = u64::try_from(upload.size).unwrap_or_default();
    let sent = running_checksum(upload).finish();
    let (most_read, urgency) = match upload.drop_box_id {
        Some(_) => (GUEST_READ_BACK_BYTES, CallUrgency::Guest),
        None => (READ_BACK_BYTES, CallUrgency::Background),
    };
    let arrived = if size <= most_read {
        Some(read_back(connection, path).await?)
    } else {
        compute(connection, path, size, urgency).await?
    };
    match arrived {
        Some(arrived) if arrived != sent => Err(UploadError::Damaged),
        Some(_) => Ok(()),
        None => {
            tracing::info!("An upload was checked by its size only, because the cluster has no cksum");
            Ok(())
        }
    }
}

/// Compares the size alone.
async fn require_whole(session: &TransferSession, path: &RemotePath, upload: &StoredUpload) -> Result<(), UploadError> {
    let attrs = match session.lstat(path).await {
        Err(SftpError::NotFound) => return Err(explain_missing(session, path).await),
        found => found?,
    };
    let is_whole = attrs.kind == RemoteFileKind::File && i64::try_from(attrs.size) == Ok(upload.size);
    if is_whole { Ok(()) } else { Err(UploadError::Damaged) }
}

/// A file that isn't there is lost only if its folder is there: a disk may be away for a while.
pub(super) async fn explain_missing(session: &TransferSession, path: &RemotePath) -> UploadError {
    let Some(folder) = path.parent() else { return UploadError::NoFolder };
    match session.stat(&folder).await {
        Ok(_) => UploadError::Damaged,
        Err(SftpError::NotFound) => UploadError::NoFolder,
        Err(error) => error.into(),
    }
}

async fn read_back(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<FileChecksum, UploadError> {
    let mut reader = RemoteFileReader::open(connection, path).await?;
    let mut running = RunningChecksum::new();
    while let Some(piece) = reader.next_chunk().await? {
        running.update(&piece);
    }
    Ok(running.finish())
}

/// The checksum that the cluster computes; waits while it has had enough commands from us. `None` if it can't.
async fn compute(
    connection: &Arc<ClusterConnection>,
    path: &RemotePath,
    size: u64,
    urgency: CallUrgency,
) -> Result<Option<FileChecksum>, UploadError> {
    let mut tries = 0;
    loop {
        match checksums::compute_for(connection, std::slice::from_ref(path), size, urgency).await {
            Err(RunCommandError::OverBudget | RunCommandError::Busy) if tries < CHECKSUM_TRIES => {
                tries += 1;
                tokio::time::sleep(CHECKSUM_PAUSE).await;
            }
            Ok(Some(mut found)) => {
                // Without a checksum nothing is known to be wrong: the command may have been killed.
                return found.remove(path).map(Some).ok_or_else(|| RunCommandError::IncompleteReply.into());
            }
            result => return result.map(|_| None).map_err(Into::into),
        }
    }
}

/// The path that the uploader chose, whichever was tried since.
fn chosen_target(upload: &StoredUpload) -> Result<RemotePath, UploadError> {
    let target = stored_path(&upload.target)?;
    let name = chosen_name(&upload.metadata, upload.drop_box_id.is_some());
    Ok(name.zip(target.parent()).map_or(target, |(name, folder)| folder.join(&name)))
}

/// `results (2).csv` for `results.csv`. The name is shortened if it would be too long.
fn labelled(path: &RemotePath, label: &str) -> Option<RemotePath> {
    let (folder, name) = (path.parent()?, path.name()?);
    let name = name.as_bytes();
    let dot = name.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0 && name.len() - at <= MAX_ENDING_BYTES);
    let (stem, ending) = name.split_at(dot.unwrap_or(name.len()));
    let label = format!(" ({label})");
    let mut len = stem.len().min(MAX_NAME_BYTES.saturating_sub(label.len() + ending.len()));
    // Not in the middle of a character.
    while len < stem.len() && len > 0 && stem[len] & 0xC0 == 0x80 {
        len -= 1;
    }
    let name = RemoteName::parse(&[&stem[..len], label.as_bytes(), ending].concat()).ok()?;
    Some(folder.join(&name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_are_numbered_before_the_ending() {
        let path = |bytes: &[u8]| RemotePath::parse(bytes).unwrap();
        for (name, expected) in [
            (&b"/a/results.csv"[..], &b"/a/results (2).csv"[..]),
            (b"/a/Makefile", b"/a/Makefile (2)"),
            (b"/a/.bashrc", b"/a/.bashrc (2)"),
            (b"/a/x.tar.gz", b"/a/x.tar (2).gz"),
            (b"/bad\xff.txt", b"/bad\xff (2).txt"),
        ] {
            assert_eq!(labelled(&path(name), "2").unwrap().as_bytes(), expected);
        }
        for (long, end) in [
            ("x".repeat(255), "x (2)"),
            (format!("{}.csv", "x".repeat(251)), "x (2).csv"),
            (format!("{}x", "é".repeat(127)), "é (2)"),
            (format!("x.{}", "y".repeat(253)), "y (2)"),
        ] {
            let copy = labelled(&path(format!("/{long}").as_bytes()), "2").unwrap().name().unwrap();
            let name = std::str::from_utf8(copy.as_bytes()).unwrap();
            assert!(name.ends_with(end) && (250..=255).contains(&name.len()), "{name}");
        }
    }
}
