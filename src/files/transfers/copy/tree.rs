//! Walks through an item and copies what is in it: folders as they are met, small files many at once, large ones one
//! after the other.

use std::collections::HashSet;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::file::{SmallFileOutcome, copy_small_file};
use super::verify::CopyVerifier;
use super::{CopyCheckpoint, TransferError};
use crate::domain::{RemoteName, RemotePath};
use crate::files::archive::MAX_DEPTH;
use crate::files::transfers::partial_file::temporary_prefix;
use crate::files::transfers::worker::TransferRun;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteFileAttrs, RemoteFileKind, SetAttrs, SftpError};

/// How many small files are copied at once.
const FILES_AT_ONCE: usize = 16;
/// Up to this size, a file is read as a whole.
pub(super) const SMALL_FILE_BYTES: u64 = 256 * 1024;
/// A folder with more entries isn't copied.
const MAX_ENTRIES: usize = 1_000_000;
/// What a copy keeps of the permissions: not the bits that lend rights.
const KEPT_MODE: u32 = 0o777;
/// The owner must be able to write into a folder that is being filled.
const OWN_FOLDER_MODE: u32 = 0o700;

/// A copy under way.
pub(super) struct TreeCopy<'a> {
    pub(super) run: &'a TransferRun,
    pub(super) source: TransferSession,
    pub(super) target: TransferSession,
    pub(super) checkpoint: CopyCheckpoint,
    pub(super) verifier: CopyVerifier,
    /// Tells the hidden names of small files apart.
    next_temporary: u64,
}

/// One file to copy.
#[derive(Debug, Clone)]
pub(super) struct FileToCopy {
    pub source: RemotePath,
    pub target: RemotePath,
    pub attrs: RemoteFileAttrs,
}

/// A folder to copy; `mode` are its permissions, `depth` how many folders of the item it is in.
struct FolderToCopy {
    source: RemotePath,
    target: RemotePath,
    mode: Option<u32>,
    depth: usize,
}

impl<'a> TreeCopy<'a> {
    pub(super) fn new(
        run: &'a TransferRun,
        source: TransferSession,
        target: TransferSession,
        checkpoint: CopyCheckpoint,
    ) -> Self {
        let verifier = CopyVerifier::new(run.transfer.target_cluster_id.is_some());
        Self { run, source, target, checkpoint, verifier, next_temporary: 0 }
    }

    /// Saves where to go on from.
    pub(super) async fn save(&self) -> Result<(), TransferError> {
        self.run.progress.set_checkpoint(&self.checkpoint);
        Ok(self.run.save().await?)
    }

    pub(super) async fn copy_item(&mut self, item: &RemotePath, copy: &RemotePath) -> Result<(), TransferError> {
        let attrs = match self.source.lstat(item).await {
            Ok(attrs) => attrs,
            Err(error @ SftpError::Run(_)) => return Err(error.into()),
            Err(error) => {
                self.checkpoint.notes.leave_out(item, &error);
                return Ok(());
            }
        };
        let mut folders = Vec::new();
        let mut files = Vec::new();
        // If it has its name, it is whole.
        let is_done = attrs.kind != RemoteFileKind::Folder && self.target.lstat(copy).await.is_ok();
        let file = FileToCopy { source: item.clone(), target: copy.clone(), attrs };
        match attrs.kind {
            _ if is_done => self.skip(&file),
            RemoteFileKind::Folder => {
                let (source, target) = (item.clone(), copy.clone());
                folders.push(FolderToCopy { source, target, mode: attrs.mode, depth: 0 });
            }
            RemoteFileKind::File => files.push(file),
            RemoteFileKind::Link => self.copy_link(&file).await?,
            RemoteFileKind::Other => self.checkpoint.notes.special += 1,
        }
        self.copy_all(folders, files).await?;
        self.verify().await
    }

    async fn copy_all(
        &mut self,
        mut folders: Vec<FolderToCopy>,
        mut files: Vec<FileToCopy>,
    ) -> Result<(), TransferError> {
        let (run, source, target) = (self.run, self.source.clone(), self.target.clone());
        let copy = |file: FileToCopy, number: u64| {
            let (source, target) = (&source, &target);
            async move { (copy_small_file(run, source, target, &file, number).await, file) }
        };
        let mut under_way = FuturesUnordered::new();
        loop {
            let (small, large): (Vec<_>, Vec<_>) =
                files.drain(..).partition(|file| file.attrs.size <= SMALL_FILE_BYTES);
            for file in small {
                self.next_temporary += 1;
                under_way.push(copy(file, self.next_temporary));
                while under_way.len() >= FILES_AT_ONCE {
                    if let Some((outcome, file)) = under_way.next().await {
                        self.settle_small(file, outcome?, &mut files);
                    }
                }
            }
            // A reply isn't waited for while another file takes minutes.
            while let Some((outcome, file)) = under_way.next().await {
                self.settle_small(file, outcome?, &mut files);
            }
            for file in large {
                self.copy_large_file(&file).await?;
            }
            if self.verifier.is_due() {
                self.verify().await?;
            }
            if !files.is_empty() {
                continue;
            }
            let Some(folder) = folders.pop() else { return Ok(()) };
            self.enter(folder, &mut folders, &mut files).await?;
        }
    }

    fn settle_small(&mut self, file: FileToCopy, outcome: SmallFileOutcome, files: &mut Vec<FileToCopy>) {
        match outcome {
            SmallFileOutcome::Copied(bytes) => self.count(&file, bytes),
            SmallFileOutcome::LeftOut(reason) => self.checkpoint.notes.leave_out(&file.source, &reason),
            SmallFileOutcome::Grown => {
                let attrs = RemoteFileAttrs { size: SMALL_FILE_BYTES + 1, ..file.attrs };
                files.push(FileToCopy { attrs, ..file });
            }
        }
    }

    /// A file is copied.
    pub(super) fn count(&mut self, file: &FileToCopy, bytes: u64) {
        self.run.progress.add_bytes(bytes);
        self.run.progress.add_file();
        self.verifier.add(&file.source, &file.target, file.attrs.size);
    }

    /// It was copied before an interruption.
    fn skip(&mut self, file: &FileToCopy) {
        self.run.progress.add_file();
        if file.attrs.kind == RemoteFileKind::File {
            self.run.progress.add_bytes(file.attrs.size);
            self.verifier.add(&file.source, &file.target, file.attrs.size);
        }
    }

    /// Creates the copy of a folder and looks what is to be copied into it.
    async fn enter(
        &mut self,
        folder: FolderToCopy,
        folders: &mut Vec<FolderToCopy>,
        files: &mut Vec<FileToCopy>,
    ) -> Result<(), TransferError> {
        self.run.progress.set_current(folder.source.to_string());
        if folder.depth >= MAX_DEPTH {
            // Or a copy into itself that couldn't be told from its path.
            return Err(TransferError::Failed(format!(
                "{} is nested more than {MAX_DEPTH} folders deep. Copy it in a job or a terminal.",
                folder.source
            )));
        }
        let listing = match self.source.list(&folder.source, MAX_ENTRIES).await {
            Ok(listing) if listing.is_truncated => {
                return Err(TransferError::Failed(format!(
                    "{} has too many items to be copied here. Copy it in a job or a terminal.",
                    folder.source
                )));
            }
            Ok(listing) => listing,
            Err(error @ SftpError::Run(_)) => return Err(error.into()),
            Err(error) => {
                self.checkpoint.notes.leave_out(&folder.source, &error);
                return Ok(());
            }
        };
        let present = self.make_folder(&folder).await?;
        for entry in listing.entries {
            let file = FileToCopy {
                source: folder.source.join(&entry.name),
                target: folder.target.join(&entry.name),
                attrs: entry.attrs,
            };
            match entry.attrs.kind {
                RemoteFileKind::Folder => {
                    let (source, target, mode) = (file.source, file.target, entry.attrs.mode);
                    folders.push(FolderToCopy { source, target, mode, depth: folder.depth + 1 });
                }
                RemoteFileKind::File | RemoteFileKind::Link if present.contains(&entry.name) => self.skip(&file),
                RemoteFileKind::File => files.push(file),
                RemoteFileKind::Link => self.copy_link(&file).await?,
                RemoteFileKind::Other => self.checkpoint.notes.special += 1,
            }
        }
        Ok(())
    }

    /// Creates a folder. If an earlier try did, returns what is in it, without what that left half-way.
    async fn make_folder(&self, folder: &FolderToCopy) -> Result<HashSet<RemoteName>, TransferError> {
        require_folder_of(&self.target, &folder.target).await?;
        let created = self.target.make_folder(&folder.target).await;
        let failed = |error| explain(&folder.target, &error);
        let there = self.target.lstat_in_place(&folder.target).await.map_err(failed)?;
        if there.kind != RemoteFileKind::Folder {
            return Err(failed(SftpError::NotAFolder));
        }
        match created {
            Ok(()) => {
                if let Some(mode) = folder.mode {
                    let mode = Some(mode & KEPT_MODE | OWN_FOLDER_MODE);
                    self.target.set_attrs(&folder.target, SetAttrs { mode, ..SetAttrs::default() }).await?;
                }
                Ok(HashSet::new())
            }
            Err(error @ SftpError::Run(_)) => Err(error.into()),
            Err(error) => {
                let listing = self.target.list(&folder.target, MAX_ENTRIES).await;
                let Ok(listing) = listing else { return Err(explain(&folder.target, &error)) };
                let prefix = temporary_prefix(&self.run.transfer);
                let is_left = |name: &RemoteName| name.as_bytes().starts_with(prefix.as_bytes());
                let large = self.checkpoint.partial.as_ref();
                for entry in listing.entries.iter().filter(|entry| is_left(&entry.name)) {
                    let path = folder.target.join(&entry.name);
                    if large.is_none_or(|partial| !partial.is_at(&path)) {
                        self.target.remove_file(&path).await?;
                    }
                }
                Ok(listing.entries.into_iter().map(|entry| entry.name).filter(|name| !is_left(name)).collect())
            }
        }
    }

    /// Copies a link as a link, to the same target.
    async fn copy_link(&mut self, file: &FileToCopy) -> Result<(), TransferError> {
        match self.source.read_link(&file.source).await {
            Ok(target) => {
                require_folder_of(&self.target, &file.target).await?;
                let made = self.target.make_link(&target, &file.target).await;
                made.map_err(|error| explain(&file.target, &error))?;
                self.run.progress.add_file();
            }
            Err(error @ SftpError::Run(_)) => return Err(error.into()),
            Err(error) => self.checkpoint.notes.leave_out(&file.source, &error),
        }
        Ok(())
    }

    async fn verify(&mut self) -> Result<(), TransferError> {
        self.checkpoint.notes.is_unverified |= self.verifier.verify(self.run).await?;
        Ok(())
    }
}

/// Fails unless the folder that something is about to be written to is where it was. Whoever may write to the folder that
/// it is in could have put a link in its place: copies would go wherever that leads.
pub(super) async fn require_folder_of(target: &TransferSession, path: &RemotePath) -> Result<(), TransferError> {
    let Some(folder) = path.parent() else { return Ok(()) };
    let found = target.lstat_in_place(&folder).await.and_then(|attrs| match attrs.kind {
        RemoteFileKind::Folder => Ok(()),
        _ => Err(SftpError::Replaced),
    });
    found.map_err(|error| explain(path, &error))
}

/// A failure at the target ends the copy: the next file would fail, too.
pub(super) fn explain(path: &RemotePath, error: &SftpError) -> TransferError {
    match error {
        SftpError::Run(error) => TransferError::Interrupted(error.to_string()),
        error => TransferError::Failed(format!("{path} couldn't be written: {error}")),
    }
}

/// The permissions and the time that a copy keeps.
pub(super) fn kept_attrs(attrs: &RemoteFileAttrs) -> SetAttrs {
    let modified = attrs.modified.and_then(|at| u32::try_from(at.0).ok());
    SetAttrs {
        size: None,
        mode: attrs.mode.map(|mode| mode & KEPT_MODE),
        times: modified.map(|modified| (modified, modified)),
        ..SetAttrs::default()
    }
}
