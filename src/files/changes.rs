//! Creating, renaming and moving files and folders. Nothing is ever overwritten: if a name is taken, the answer proposes
//! a free one. Links are renamed and moved as links.

use std::sync::Arc;

use futures_util::StreamExt as _;
use futures_util::stream;

use super::run_to_end;
use crate::domain::{RemoteName, RemotePath};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{self, RemoteFileKind, RenameMode, SftpError};

/// How many entries one change can name.
pub const MAX_NAMES: usize = 2000;
/// How many entries are moved at the same time.
const MOVES_AT_ONCE: usize = 16;
/// How many names are tried before no name is proposed.
const MAX_PROPOSALS: u32 = 20;
const MAX_NAME_BYTES: usize = 255;

/// Why something was not created, renamed or moved: a sentence that names it and says what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FileChangeError {
    #[error("“{name}” already exists here.{}", proposal.as_ref().map_or_else(
        || " Choose another name.".to_owned(),
        |free| format!(" You could use “{free}” instead.")
    ))]
    Taken { name: RemoteName, proposal: Option<RemoteName> },
    #[error("“{0}” can't be moved into itself. Choose another folder.")]
    IntoItself(RemoteName),
    #[error("“{0}” is already in this folder. Choose another one.")]
    SameFolder(RemoteName),
    #[error("“{0}” couldn't be moved. If the folder is on another disk, use Copy, then delete the original.")]
    OtherDisk(RemoteName),
    #[error("“{0}” no longer exists. Reload the folder to see what's there.")]
    Gone(RemoteName),
    #[error("The folder {0} doesn't exist. Check the path.")]
    NoFolder(RemotePath),
    #[error("{0} is a file, not a folder. Choose a folder.")]
    NotAFolder(RemotePath),
    #[error("You don't have permission to create anything in {0}. Choose another folder, or ask its owner.")]
    FolderClosed(RemotePath),
    #[error("You don't have permission to rename “{0}”. Ask the owner of the folder.")]
    NotRenamable(RemoteName),
    #[error("You don't have permission to move “{0}”. You need to be able to change both folders; ask their owners.")]
    NotMovable(RemoteName),
    #[error("“{name}”: {error}")]
    Failed { name: RemoteName, error: SftpError },
}

/// What became of entries that were to be moved.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct MoveReport {
    pub moved: Vec<RemoteName>,
    pub failed: Vec<FileChangeError>,
}

pub async fn create_folder(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    name: &RemoteName,
) -> Result<RemotePath, FileChangeError> {
    let path = folder.join(name);
    match sftp::make_folder(connection, &path).await {
        Ok(()) => Ok(path),
        Err(error) => Err(explain_not_created(connection, folder, name, error).await),
    }
}

/// Creates a file with this content; the account's default permissions apply if `mode` is `None`.
pub async fn create_file(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    name: &RemoteName,
    bytes: Vec<u8>,
    mode: Option<u32>,
) -> Result<RemotePath, FileChangeError> {
    let path = folder.join(name);
    match sftp::write_new(connection, &path, bytes, mode).await {
        Ok(()) => Ok(path),
        Err(error) => Err(explain_not_created(connection, folder, name, error).await),
    }
}

async fn explain_not_created(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    name: &RemoteName,
    error: SftpError,
) -> FileChangeError {
    match error {
        SftpError::AlreadyExists => {
            let proposal = match TransferSession::open(connection).await {
                Ok(session) => find_free_name(&session, folder, name).await,
                Err(_) => None,
            };
            FileChangeError::Taken { name: name.clone(), proposal }
        }
        SftpError::NotFound => FileChangeError::NoFolder(folder.clone()),
        SftpError::NotAllowed => FileChangeError::FolderClosed(folder.clone()),
        error => FileChangeError::Failed { name: name.clone(), error },
    }
}

/// Gives an entry another name in the same folder.
pub async fn rename(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    from: &RemoteName,
    to: &RemoteName,
) -> Result<(), FileChangeError> {
    if from == to {
        return Ok(());
    }
    let failed = |error| FileChangeError::Failed { name: from.clone(), error };
    let session = TransferSession::open(connection).await.map_err(failed)?;
    let work = {
        let (folder, from, to) = (folder.clone(), from.clone(), to.clone());
        async move { rename_entry(&session, (&folder, &from), (&folder, &to)).await }
    };
    match run_to_end(work).await.map_err(failed)? {
        Err(FileChangeError::Failed { error: SftpError::NotAllowed, name }) => Err(FileChangeError::NotRenamable(name)),
        result => result,
    }
}

/// Moves entries of a folder into another one. Each is moved or not; the report says which.
pub async fn move_entries(
    connection: &Arc<ClusterConnection>,
    folder: &RemotePath,
    names: Vec<RemoteName>,
    target: &RemotePath,
) -> Result<MoveReport, FileChangeError> {
    let target_name = || target.name().or_else(|| names.first().cloned());
    let failed = |error| match target_name() {
        Some(name) => FileChangeError::Failed { name, error },
        None => FileChangeError::NoFolder(target.clone()),
    };
    let session = TransferSession::open(connection).await.map_err(failed)?;
    match session.stat(target).await {
        Ok(attrs) if attrs.kind == RemoteFileKind::Folder => {}
        Ok(_) => return Err(FileChangeError::NotAFolder(target.clone())),
        Err(SftpError::NotFound) => return Err(FileChangeError::NoFolder(target.clone())),
        Err(SftpError::NotAllowed) => return Err(FileChangeError::FolderClosed(target.clone())),
        Err(error) => return Err(failed(error)),
    }
    let work = {
        let (folder, names, target) = (folder.clone(), names.clone(), target.clone());
        async move {
            let moves = stream::iter(names).map(|name| {
                let (session, folder, target) = (&session, &folder, &target);
                async move {
                    let result = move_entry(session, folder, &name, target).await;
                    (name, result)
                }
            });
            moves.buffered(MOVES_AT_ONCE).collect::<Vec<_>>().await
        }
    };
    let mut report = MoveReport::default();
    for (name, result) in run_to_end(work).await.map_err(failed)? {
        match result {
            Ok(()) => report.moved.push(name),
            Err(error) => report.failed.push(error),
        }
    }
    Ok(report)
}

async fn move_entry(
    session: &TransferSession,
    folder: &RemotePath,
    name: &RemoteName,
    target: &RemotePath,
) -> Result<(), FileChangeError> {
    if folder == target {
        return Err(FileChangeError::SameFolder(name.clone()));
    }
    if target.is_within(&folder.join(name)) {
        return Err(FileChangeError::IntoItself(name.clone()));
    }
    match rename_entry(session, (folder, name), (target, name)).await {
        Err(FileChangeError::Failed { error: SftpError::NotAllowed, name }) => Err(FileChangeError::NotMovable(name)),
        // A rename needs no space: where the server gives no other reason, it is another file system.
        Err(FileChangeError::Failed { error: SftpError::NotWritten, name }) => Err(FileChangeError::OtherDisk(name)),
        result => result,
    }
}

/// Renames unless the new name is taken. Servers only look whether it leads somewhere, and would overwrite a broken
/// link: so this looks first.
async fn rename_entry(
    session: &TransferSession,
    from: (&RemotePath, &RemoteName),
    to: (&RemotePath, &RemoteName),
) -> Result<(), FileChangeError> {
    let (old, new) = (from.0.join(from.1), to.0.join(to.1));
    let renamed = match session.lstat(&new).await {
        Ok(_) => Err(SftpError::AlreadyExists),
        Err(SftpError::NotFound) => session.rename(&old, &new, RenameMode::KeepExisting).await,
        Err(error) => Err(error),
    };
    match renamed {
        Ok(()) => Ok(()),
        Err(SftpError::AlreadyExists) => {
            let proposal = find_free_name(session, to.0, to.1).await;
            Err(FileChangeError::Taken { name: to.1.clone(), proposal })
        }
        Err(SftpError::NotFound) => Err(FileChangeError::Gone(from.1.clone())),
        Err(error) => Err(FileChangeError::Failed { name: from.1.clone(), error }),
    }
}

/// A name like this one that nothing in the folder has.
async fn find_free_name(session: &TransferSession, folder: &RemotePath, name: &RemoteName) -> Option<RemoteName> {
    for number in 2..2 + MAX_PROPOSALS {
        let candidate = numbered_name(name, number)?;
        match session.lstat(&folder.join(&candidate)).await {
            Err(SftpError::NotFound) => return Some(candidate),
            Ok(_) => {}
            Err(_) => return None,
        }
    }
    None
}

/// `train.py` becomes `train-2.py`. Long names are shortened to make room.
pub fn numbered_name(name: &RemoteName, number: u32) -> Option<RemoteName> {
    let bytes = name.as_bytes();
    let dot = bytes.iter().rposition(|byte| *byte == b'.').filter(|at| *at > 0).unwrap_or(bytes.len());
    let (mut stem, mut ending) = bytes.split_at(dot);
    if let Some(before) = stem.strip_suffix(b".tar").filter(|before| !before.is_empty()) {
        (stem, ending) = bytes.split_at(before.len());
    }
    let number = format!("-{number}");
    let room = MAX_NAME_BYTES.checked_sub(number.len() + ending.len())?;
    let mut cut = stem.len().min(room);
    // Never through the middle of a character.
    while cut < stem.len() && cut > 0 && stem[cut] & 0xC0 == 0x80 {
        cut -= 1;
    }
    RemoteName::parse(&[&stem[..cut], number.as_bytes(), ending].concat()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn proposed_names_keep_their_ending_and_fit() {
        for (name, expected) in [
            (&b"train.py"[..], &b"train-2.py"[..]),
            (b"data", b"data-2"),
            (b"set.tar.gz", b"set-2.tar.gz"),
            (b".bashrc", b".bashrc-2"),
            (b".tar.gz", b".tar-2.gz"),
            (b"bad\xff.txt", b"bad\xff-2.txt"),
            (b"-rf", b"-rf-2"),
        ] {
            let name = RemoteName::parse(name).unwrap();
            assert_eq!(numbered_name(&name, 2).unwrap().as_bytes(), expected, "{name}");
        }
        let long = RemoteName::parse("ü".repeat(127).as_bytes()).unwrap();
        let proposed = numbered_name(&long, 10).unwrap();
        assert!(proposed.as_bytes().len() <= 255 && proposed.as_text().unwrap().ends_with("ü-10"), "{proposed}");
        let all_ending = RemoteName::parse(format!("a.{}", "x".repeat(253)).as_bytes()).unwrap();
        assert_eq!(numbered_name(&all_ending, 2), None);
    }

    #[test]
    fn errors_name_the_file_and_what_to_do() {
        let name = RemoteName::parse(b"run.sh").unwrap();
        let free = RemoteName::parse(b"run-2.sh").unwrap();
        let taken = FileChangeError::Taken { name: name.clone(), proposal: Some(free) };
        assert_eq!(taken.to_string(), "“run.sh” already exists here. You could use “run-2.sh” instead.");
        let taken = FileChangeError::Taken { name: name.clone(), proposal: None };
        assert_eq!(taken.to_string(), "“run.sh” already exists here. Choose another name.");
        assert!(FileChangeError::OtherDisk(name).to_string().contains("use Copy, then delete"));
    }
}
