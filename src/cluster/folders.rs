//! Lists folders on a cluster and creates new ones, over the person's own connection: they see what their own account
//! may see, and nothing else. Names are shown as the cluster returns them, but only unambiguous ones can be chosen.

mod path_variables;

use std::sync::Arc;

use crate::clock::UnixTime;
use crate::domain::RemotePath;
use crate::ssh::sftp::{self, SftpError};
use crate::ssh::{ClusterConnection, RunCommandError};
use crate::text::is_hidden;

pub use self::path_variables::FolderVariables;

/// How many names of a folder are read: nobody reads on, and no page should be that long.
pub const MAX_ENTRIES: usize = 2000;
/// The longest name that common file systems accept, in bytes.
const MAX_NAME_LEN: usize = 255;

/// The contents of a folder.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderListing {
    /// Absolute, without a trailing slash.
    pub path: String,
    /// `None` for the root.
    pub parent: Option<String>,
    /// Folders first, then by name.
    pub entries: Vec<FolderEntry>,
    /// Whether there are more names than are shown.
    pub is_cut: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FolderEntry {
    /// The name for display: invalid and invisible characters are replaced.
    pub name: String,
    /// Links are followed.
    pub kind: FolderEntryKind,
    /// In bytes.
    pub size: u64,
    pub modified: Option<UnixTime>,
    /// Whether its name begins with a dot.
    pub is_hidden: bool,
    /// Whether it can be opened or chosen: its name is exactly what is shown.
    pub is_choosable: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum FolderEntryKind {
    Folder,
    File,
    /// A device, a pipe, or a broken link.
    Other,
}

/// Why a folder could not be listed or created.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FolderError {
    /// A path that is not absolute, contains `..`, or cannot be sent.
    #[error("Enter the full path of a folder. It starts with a slash (/).")]
    NotAPath,
    #[error("This folder doesn't exist.")]
    NotFound,
    #[error("You don't have permission to do this here.")]
    PermissionDenied,
    /// A file where a folder was expected.
    #[error("This is a file, not a folder.")]
    NotAFolder,
    #[error("A file or folder with this name already exists.")]
    AlreadyExists,
    /// The cluster did not create it, and does not say why.
    #[error("The folder couldn't be created. The disk may be full, or you may have reached your quota.")]
    NotCreated,
    /// A name that no folder should have.
    #[error("{0}")]
    BadName(&'static str),
    #[error("You're not connected to the cluster.")]
    NotConnected,
    /// Anything else, as a sentence.
    #[error("{0}")]
    Other(String),
}

impl From<RunCommandError> for FolderError {
    fn from(error: RunCommandError) -> Self {
        match error {
            RunCommandError::NotConnected | RunCommandError::ConnectionLost => Self::NotConnected,
            error => Self::Other(error.to_string()),
        }
    }
}

impl From<SftpError> for FolderError {
    fn from(error: SftpError) -> Self {
        match error {
            SftpError::Run(error) => error.into(),
            SftpError::NotFound => Self::NotFound,
            SftpError::NotAllowed => Self::PermissionDenied,
            SftpError::NotAFolder => Self::NotAFolder,
            SftpError::AlreadyExists => Self::AlreadyExists,
            error @ (SftpError::NoService
            | SftpError::NotAFile
            | SftpError::SpecialFile
            | SftpError::NotWritten
            | SftpError::Replaced
            | SftpError::NotReplaced(_)
            | SftpError::Refused(_)) => Self::Other(error.to_string()),
        }
    }
}

pub async fn list(connection: &Arc<ClusterConnection>, path: &str) -> Result<FolderListing, FolderError> {
    let path = normalize_path(path)?;
    let contents = sftp::list(connection, &remote_path(&path)?, MAX_ENTRIES).await?;
    let mut entries: Vec<FolderEntry> = contents.entries.iter().map(entry_from_sftp).collect();
    entries.sort_by_cached_key(|entry| (entry.kind, entry.name.to_lowercase(), entry.name.clone()));
    Ok(FolderListing { parent: parent_path(&path), path, entries, is_cut: contents.is_truncated })
}

/// Creates a folder inside another one, and returns its path.
pub async fn create(connection: &Arc<ClusterConnection>, inside: &str, name: &str) -> Result<String, FolderError> {
    let inside = normalize_path(inside)?;
    let path = join_path(&inside, check_folder_name(name)?);
    match sftp::make_folder(connection, &remote_path(&path)?).await {
        Ok(()) => Ok(path),
        Err(SftpError::NotWritten) => Err(FolderError::NotCreated),
        Err(error) => Err(error.into()),
    }
}

fn remote_path(path: &str) -> Result<RemotePath, FolderError> {
    RemotePath::parse(path.as_bytes()).map_err(|_| FolderError::NotAPath)
}

pub fn join_path(folder: &str, name: &str) -> String {
    format!("{}/{name}", folder.trim_end_matches('/'))
}

/// The parent folder of a path; `None` for the root.
pub fn parent_path(path: &str) -> Option<String> {
    let (before, last) = path.rsplit_once('/')?;
    (!last.is_empty()).then(|| if before.is_empty() { "/".to_owned() } else { before.to_owned() })
}

/// An absolute path without `..`, in normalized form. Where `..` leads depends on links, so nobody can tell from the
/// path: it is refused.
fn normalize_path(path: &str) -> Result<String, FolderError> {
    if path.contains(|c: char| c.is_control() || c == char::REPLACEMENT_CHARACTER) {
        return Err(FolderError::NotAPath);
    }
    Ok(String::from_utf8_lossy(remote_path(path)?.as_bytes()).into_owned())
}

/// A name for a new folder: one that needs no quoting wherever it is typed.
fn check_folder_name(name: &str) -> Result<&str, FolderError> {
    let name = name.trim();
    let problem = match name {
        "" => "Enter a name.",
        "." | ".." => "Choose another name. This one is reserved.",
        _ if name.contains('/') => "Leave out slashes. You can create one folder at a time.",
        _ if name.chars().any(|c| is_hidden(c) || c == char::REPLACEMENT_CHARACTER) => {
            "Remove line breaks and invisible control characters."
        }
        _ if name.starts_with(['-', '~']) => "Start the name with a letter or a digit.",
        _ if name.len() > MAX_NAME_LEN => "Use a shorter name.",
        _ => return Ok(name),
    };
    Err(FolderError::BadName(problem))
}

fn entry_from_sftp(entry: &sftp::RemoteDirEntry) -> FolderEntry {
    let kind = match entry.attrs.kind {
        sftp::RemoteFileKind::Folder => FolderEntryKind::Folder,
        sftp::RemoteFileKind::File => FolderEntryKind::File,
        sftp::RemoteFileKind::Link | sftp::RemoteFileKind::Other => FolderEntryKind::Other,
    };
    let is_plain = entry.name.as_text().is_some_and(|name| name.trim() == name);
    FolderEntry {
        name: entry.name.to_string(),
        kind,
        size: entry.attrs.size,
        modified: entry.attrs.modified,
        is_hidden: entry.name.is_dot_name(),
        is_choosable: is_plain && kind != FolderEntryKind::Other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn paths_are_written_in_one_way_or_refused() {
        for (path, expected) in [
            ("/", Some("/")),
            ("//", Some("/")),
            ("/home/alice", Some("/home/alice")),
            ("/home//alice/./", Some("/home/alice")),
            ("/home/..alice/...", Some("/home/..alice/...")),
            ("/it's $(a) `b` \\ *", Some("/it's $(a) `b` \\ *")),
            ("/home/../etc", None),
            ("/..", None),
            ("home/alice", None),
            ("", None),
            ("~", None),
            ("$HOME", None),
            ("/a\nb", None),
            ("/a\0b", None),
            ("/a\u{FFFD}b", None),
        ] {
            assert_eq!(normalize_path(path).ok().as_deref(), expected, "{path}");
        }
        assert!(normalize_path(&"/x".repeat(3000)).is_err());
        assert_eq!(parent_path("/a/b").as_deref(), Some("/a"));
        assert_eq!(parent_path("/a").as_deref(), Some("/"));
        assert_eq!(parent_path("/"), None);
        assert_eq!((join_path("/", "a"), join_path("/a", "b")), ("/a".into(), "/a/b".into()));
    }

    #[test]
    fn new_folders_have_names_that_need_no_care() {
        for good in ["data", "my data", "Ünï", "a-b", "2026.01", "<b>", ".config"] {
            assert_eq!(check_folder_name(good), Ok(good));
        }
        assert_eq!(check_folder_name("  data "), Ok("data"));
        for bad in ["", " ", ".", "..", "a/b", "/", "a\nb", "a\u{202E}b", "-rf", "~x"] {
            assert!(matches!(check_folder_name(bad), Err(FolderError::BadName(_))), "{bad:?}");
        }
        assert!(check_folder_name(&"x".repeat(256)).is_err());
    }

    fn named(name: &[u8], kind: sftp::RemoteFileKind) -> sftp::RemoteDirEntry {
        let attrs = sftp::RemoteFileAttrs { kind, size: 1, modified: None, mode: None, owner: None };
        sftp::RemoteDirEntry { name: crate::domain::RemoteName::parse(name).unwrap(), is_link: false, attrs }
    }

    #[test]
    fn only_names_that_are_what_they_look_like_can_be_chosen() {
        use sftp::RemoteFileKind::{File, Folder, Link, Other};
        for (name, kind, shown, choosable) in [
            (&b"set.tar"[..], File, "set.tar", true),
            (b"<img src=x>", Folder, "<img src=x>", true),
            (b"a\nb", File, "a\u{FFFD}b", false),
            (b"bad\xff", File, "bad\u{FFFD}", false),
            ("gpj\u{202E}exe".as_bytes(), File, "gpj\u{FFFD}exe", false),
            (b" a", File, " a", false),
            (b"socket", Other, "socket", false),
            (b"nowhere", Link, "nowhere", false),
        ] {
            let entry = entry_from_sftp(&named(name, kind));
            assert_eq!((entry.name.as_str(), entry.is_choosable), (shown, choosable), "{name:?}");
        }
        assert!(entry_from_sftp(&named(b".bashrc", File)).is_hidden);
    }

    proptest! {
        #[test]
        fn a_path_that_is_taken_is_absolute_and_goes_down(path in "[/.a~ ]{0,12}") {
            if let Ok(path) = normalize_path(&path) {
                prop_assert!(path.starts_with('/'));
                prop_assert_eq!(normalize_path(&path), Ok(path.clone()));
                prop_assert!(!path.split('/').any(|part| part == ".." || part == "."));
            }
        }
    }
}
