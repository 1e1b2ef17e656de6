//! Writes what comes out of an archive. Small files are written many at a time, so that thousands of them don't cost
//! several round trips each; a large one passes through as it comes.

use std::collections::HashSet;

use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;
use tokio::task::JoinHandle;

use crate::domain::RemotePath;
use crate::files::transfers::TransferError;
use crate::files::transfers::worker::TransferRun;
use crate::files::unpack::{MemberPath, SkippedKind, UnpackEvent, UnpackedMember};
use crate::format;
use crate::ssh::sftp::transfer::{RemoteFileWriter, TransferSession};
use crate::ssh::sftp::{RemoteFileKind, SetAttrs, SftpError};

/// Up to this size a file is collected before it is written.
const SMALL_FILE_BYTES: u64 = 256 * 1024;
const FILES_AT_ONCE: usize = 32;
/// What the owner needs to go on writing.
const OWN_FOLDER_MODE: u32 = 0o700;
const OWN_FILE_MODE: u32 = 0o600;

pub(super) struct ExtractedTree<'a> {
    run: &'a TransferRun,
    session: TransferSession,
    root: RemotePath,
    /// The root's user and group, if the server tells them.
    owner: Option<(u32, u32)>,
    /// Permissions that new files and folders don't get.
    umask: u32,
    folders: HashSet<MemberPath>,
    files: HashSet<MemberPath>,
    open: Option<OpenMember>,
    /// They run to their end even if the transfer is stopped, so that nothing stays open on the server.
    writes: FuturesUnordered<JoinHandle<Result<u64, TransferError>>>,
    notes: ExtractNotes,
}

struct OpenMember {
    member: UnpackedMember,
    path: RemotePath,
    sink: MemberSink,
}

enum MemberSink {
    Small(Vec<u8>),
    Large(Box<RemoteFileWriter>),
}

/// What to know about the result.
#[derive(Debug, Default, PartialEq, Eq)]
struct ExtractNotes {
    links: u64,
    special: u64,
    first_skipped: String,
}

impl<'a> ExtractedTree<'a> {
    /// Creates the folder that everything goes into. Nobody else can look into it before it is finished.
    pub(super) async fn create(
        run: &'a TransferRun,
        session: &TransferSession,
        root: &RemotePath,
    ) -> Result<Self, TransferError> {
        let (Some(folder), Some(name)) = (root.parent(), root.name()) else { return Err(SftpError::NotAFolder.into()) };
        let root = session.real_path(&folder).await?.join(&name);
        session.make_folder(&root).await?;
        let attrs = session.lstat_in_place(&root).await?;
        set_mode(session, &root, OWN_FOLDER_MODE).await?;
        Ok(Self {
            run,
            session: session.clone(),
            root,
            owner: attrs.owner,
            umask: 0o777 & !attrs.mode.unwrap_or(0o755),
            folders: HashSet::new(),
            files: HashSet::new(),
            open: None,
            writes: FuturesUnordered::new(),
            notes: ExtractNotes::default(),
        })
    }

    pub(super) async fn apply(&mut self, event: UnpackEvent) -> Result<(), TransferError> {
        match event {
            UnpackEvent::Folder(member) => {
                self.make_folders(&member.path).await?;
                if let Some(mode) = member.mode {
                    let path = member.path.below(&self.root)?;
                    self.require_root().await?;
                    set_mode(&self.session, &path, mode & 0o777 & !self.umask | OWN_FOLDER_MODE).await?;
                }
                self.run.progress.add_file();
            }
            UnpackEvent::File(member) => self.begin_file(member).await?,
            UnpackEvent::Data(data) => match self.open.as_mut() {
                Some(OpenMember { sink: MemberSink::Small(collected), .. }) => collected.extend_from_slice(&data),
                Some(OpenMember { sink: MemberSink::Large(writer), member, .. }) => {
                    let bytes = u64::try_from(data.len()).unwrap_or(u64::MAX);
                    writer.write(data).await.map_err(|error| explain(&member.path, error))?;
                    self.run.progress.add_bytes(bytes);
                }
                None => {}
            },
            UnpackEvent::FileEnd => self.end_file().await?,
            UnpackEvent::Skipped { name, kind } => self.notes.skip(name, kind),
        }
        Ok(())
    }

    /// Waits until everything is written. Returns what to know about the result.
    pub(super) async fn finish(mut self) -> Result<String, TransferError> {
        self.wait_for_writes(0).await?;
        self.require_root().await?;
        set_mode(&self.session, &self.root, 0o777 & !self.umask).await?;
        Ok(self.notes.sentences())
    }

    async fn begin_file(&mut self, member: UnpackedMember) -> Result<(), TransferError> {
        if let Some(parent) = member.path.parent() {
            self.make_folders(&parent).await?;
        }
        let path = member.path.below(&self.root)?;
        if !self.files.insert(member.path.clone()) {
            // Archives that were added to contain the newer version later.
            self.wait_for_writes(0).await?;
            self.require_root().await?;
            self.session.remove_file(&path).await.map_err(|error| explain(&member.path, error))?;
        }
        let sink = if member.size <= SMALL_FILE_BYTES {
            MemberSink::Small(Vec::with_capacity(usize::try_from(member.size).unwrap_or_default()))
        } else {
            self.run.progress.set_current(String::from_utf8_lossy(member.path.as_bytes()).into_owned());
            self.require_root().await?;
            let opened = RemoteFileWriter::open(&self.run.connection, &path, 0, member.size).await;
            MemberSink::Large(Box::new(opened.map_err(|error| explain(&member.path, error))?))
        };
        self.open = Some(OpenMember { member, path, sink });
        Ok(())
    }

    async fn end_file(&mut self) -> Result<(), TransferError> {
        let Some(OpenMember { member, path, sink }) = self.open.take() else { return Ok(()) };
        let mode = member.mode.map(|mode| mode & 0o777 & !self.umask | OWN_FILE_MODE);
        let modified = member.modified.and_then(|at| u32::try_from(at.0).ok());
        let attrs = SetAttrs { mode, times: modified.map(|at| (at, at)), ..SetAttrs::default() };
        match sink {
            MemberSink::Small(data) => {
                self.wait_for_writes(FILES_AT_ONCE - 1).await?;
                let (session, root, owner) = (self.session.clone(), self.root.clone(), self.owner);
                self.writes.push(tokio::spawn(async move {
                    let failed = |error| explain(&member.path, error);
                    require_own_folder(&session, &root, owner).await.map_err(failed)?;
                    session.write_new_with(&path, &data, mode, attrs).await.map_err(failed)?;
                    Ok(u64::try_from(data.len()).unwrap_or(u64::MAX))
                }));
            }
            MemberSink::Large(writer) => {
                let failed = |error| explain(&member.path, error);
                writer.finish_with(attrs).await.map_err(failed)?;
                self.run.progress.add_file();
            }
        }
        Ok(())
    }

    /// Waits until at most so many small files are still being written.
    async fn wait_for_writes(&mut self, most: usize) -> Result<(), TransferError> {
        while self.writes.len() > most {
            let Some(written) = self.writes.next().await else { return Ok(()) };
            let broken = |_| TransferError::Failed("The portal had an internal error. Try again.".to_owned());
            self.run.progress.add_bytes(written.map_err(broken)??);
            self.run.progress.add_file();
        }
        Ok(())
    }

    async fn require_root(&self) -> Result<(), SftpError> {
        require_own_folder(&self.session, &self.root, self.owner).await
    }

    /// Creates a folder and those that it is in, as far as they aren't there.
    async fn make_folders(&mut self, folder: &MemberPath) -> Result<(), TransferError> {
        let mut missing = Vec::new();
        let mut next = Some(folder.clone());
        while let Some(folder) = next.filter(|folder| !self.folders.contains(folder)) {
            next = folder.parent();
            missing.push(folder);
        }
        if !missing.is_empty() {
            self.require_root().await?;
        }
        for folder in missing.into_iter().rev() {
            let path = folder.below(&self.root)?;
            self.session.make_folder(&path).await.map_err(|error| explain(&folder, error))?;
            self.folders.insert(folder);
        }
        Ok(())
    }
}

impl ExtractNotes {
    fn skip(&mut self, name: String, kind: SkippedKind) {
        match kind {
            SkippedKind::Link => self.links += 1,
            SkippedKind::Special => self.special += 1,
        }
        if self.first_skipped.is_empty() {
            self.first_skipped = name;
        }
    }

    fn sentences(&self) -> String {
        let mut kinds = Vec::new();
        if self.links > 0 {
            kinds.push(format::count(self.links, "link"));
        }
        if self.special > 0 {
            kinds.push(format::count(self.special, "special file"));
        }
        if kinds.is_empty() {
            return String::new();
        }
        format!("Left out: {}. The first: {}", kinds.join(" and "), self.first_skipped)
    }
}

/// Fails unless the folder that everything goes into is where it was. Nobody else can change what is in it, but whoever may
/// write to the folder beside the archive can put something else in its place.
async fn require_own_folder(
    session: &TransferSession,
    root: &RemotePath,
    owner: Option<(u32, u32)>,
) -> Result<(), SftpError> {
    let attrs = session.lstat_in_place(root).await?;
    let is_own = attrs.kind == RemoteFileKind::Folder && attrs.owner == owner;
    if is_own { Ok(()) } else { Err(SftpError::Replaced) }
}

async fn set_mode(session: &TransferSession, path: &RemotePath, mode: u32) -> Result<(), SftpError> {
    session.set_attrs(path, SetAttrs { mode: Some(mode), ..SetAttrs::default() }).await
}

/// A file that can't be written ends the work: the next one couldn't either.
fn explain(member: &MemberPath, error: SftpError) -> TransferError {
    match error {
        SftpError::Run(_) => error.into(),
        error => {
            let name = String::from_utf8_lossy(member.as_bytes());
            TransferError::Failed(format!("{name} couldn't be written: {error} Nothing was extracted."))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_left_out_is_counted() {
        let mut notes = ExtractNotes::default();
        assert_eq!(notes.sentences(), "");
        notes.skip("a/link".to_owned(), SkippedKind::Link);
        notes.skip("b".to_owned(), SkippedKind::Link);
        notes.skip("pipe".to_owned(), SkippedKind::Special);
        assert_eq!(notes.sentences(), "Left out: 2 links and 1 special file. The first: a/link");
    }
}
