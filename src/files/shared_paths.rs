//! What is shared with guests: which paths may be, and what a guest can reach. Every request asks the cluster where a path
//! really leads, so that no link leads out of what was shared.

use std::sync::Arc;

use super::FolderContents;
use crate::clock::UnixTime;
use crate::domain::RemotePath;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{self, RemoteFileAttrs, RemoteFileKind, SftpError};
use crate::ssh::{ClusterConnection, RunCommandError};

/// How many names of a folder a guest sees.
const MAX_ENTRIES: usize = 2000;

/// Why a path can't be shared, as a sentence for its owner.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SharePathError {
    #[error(
        "Your home folder, and folders that contain it, can't be shared by link. Share a folder inside it instead."
    )]
    ContainsHome,
    #[error("Hidden files and folders (their names begin with a dot) can't be shared by link.")]
    Hidden,
    #[error("This is neither a file nor a folder, so it can't be shared.")]
    NotAFile,
    #[error("Only a folder can be a drop-box. Choose a folder instead of a file.")]
    NotAFolder,
    #[error(transparent)]
    Sftp(#[from] SftpError),
}

/// A path that can be shared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ShareablePath {
    /// Without links in it.
    pub path: RemotePath,
    pub is_folder: bool,
}

/// What a guest finds at a path.
pub enum GuestFileContent {
    Folder(FolderContents),
    File(RemoteFileAttrs),
}

/// Looks at a path that someone wants to share. Without a known home folder, the cluster is asked for it.
pub async fn inspect(
    connection: &Arc<ClusterConnection>,
    home: Option<&RemotePath>,
    path: &RemotePath,
) -> Result<ShareablePath, SharePathError> {
    let real = sftp::real_path(connection, path).await?;
    let real_home = match home {
        Some(home) => sftp::real_path(connection, home).await?,
        None => sftp::start_folder(connection).await?,
    };
    check_place(&real, &real_home)?;
    let is_folder = match sftp::stat(connection, &real).await?.kind {
        RemoteFileKind::Folder => true,
        RemoteFileKind::File => false,
        RemoteFileKind::Link | RemoteFileKind::Other => return Err(SharePathError::NotAFile),
    };
    Ok(ShareablePath { path: real, is_folder })
}

/// Refuses what nobody means to share: keys and settings.
fn check_place(path: &RemotePath, home: &RemotePath) -> Result<(), SharePathError> {
    if path.parent().is_none() || home.is_within(path) {
        return Err(SharePathError::ContainsHome);
    }
    let is_hidden = |path: &RemotePath| path.name().is_some_and(|name| name.is_dot_name());
    if path.ancestors_and_self().iter().any(is_hidden) { Err(SharePathError::Hidden) } else { Ok(()) }
}

/// Where a guest's path leads. `inside` is seen from the shared folder, which is its root.
pub async fn resolve(
    session: &TransferSession,
    root: &RemotePath,
    inside: &RemotePath,
) -> Result<RemotePath, SftpError> {
    let wanted = below(root, inside).ok_or(SftpError::NotFound)?;
    let real_root = session.real_path(root).await?;
    let real = if wanted == *root { real_root.clone() } else { session.real_path(&wanted).await? };
    // What was shared may have been replaced by a link since.
    if real_root == *root && real.is_within(root) { Ok(real) } else { Err(SftpError::NotFound) }
}

/// The path below a folder; `None` if it is too long.
fn below(root: &RemotePath, inside: &RemotePath) -> Option<RemotePath> {
    RemotePath::parse(&[root.as_bytes(), inside.as_bytes()].concat()).ok()
}

/// What is at a path that was resolved. Links in a folder aren't followed: nothing is told about where they lead.
pub async fn load(session: &TransferSession, path: RemotePath, now: UnixTime) -> Result<GuestFileContent, SftpError> {
    let attrs = session.stat(&path).await?;
    match attrs.kind {
        RemoteFileKind::Folder => {
            let (session, folder) = (session.clone(), path.clone());
            // In a task of its own: the folder is closed on the server even if the guest goes away.
            let listing = tokio::spawn(async move { session.list(&folder, MAX_ENTRIES).await }).await;
            let listing = listing.unwrap_or(Err(RunCommandError::ConnectionLost.into()))?;
            Ok(GuestFileContent::Folder(FolderContents::new(path, listing, now)))
        }
        RemoteFileKind::File => Ok(GuestFileContent::File(attrs)),
        RemoteFileKind::Link | RemoteFileKind::Other => Err(SftpError::SpecialFile),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn path(text: &str) -> RemotePath {
        RemotePath::parse(text.as_bytes()).unwrap()
    }

    #[test]
    fn home_and_hidden_folders_are_not_shared() {
        let home = path("/home/alice");
        for (refused, reason) in [
            ("/", SharePathError::ContainsHome),
            ("/home", SharePathError::ContainsHome),
            ("/home/alice", SharePathError::ContainsHome),
            ("/home/alice/.ssh", SharePathError::Hidden),
            ("/home/alice/.ssh/id_ed25519", SharePathError::Hidden),
            ("/home/alice/.config/x/y", SharePathError::Hidden),
        ] {
            assert_eq!(check_place(&path(refused), &home), Err(reason), "{refused}");
        }
        for allowed in ["/home/alice/results", "/home/alice2", "/scratch/alice", "/scratch/a.b/c."] {
            assert_eq!(check_place(&path(allowed), &home), Ok(()), "{allowed}");
        }
    }

    proptest! {
        #[test]
        fn no_path_leads_above_the_shared_folder(text in "(/|\\.|%2[eEfF]|[a-z%]){0,30}") {
            let root = path("/scratch/alice/shared");
            if let Ok(inside) = RemotePath::from_encoded(&format!("/{text}")) {
                let wanted = below(&root, &inside).unwrap();
                prop_assert!(wanted.is_within(&root));
                prop_assert!(!wanted.as_bytes().split(|byte| *byte == b'/').any(|part| part == b".."));
            }
        }
    }
}
