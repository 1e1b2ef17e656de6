//! Opening and saving text files for the editor. A file is replaced in one step, keeps its permissions, group and line
//! endings, and isn't touched if it is not what the person opened.

use std::fmt::Write as _;
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::run_to_end;
use crate::clock::UnixTime;
use crate::domain::{RemoteName, RemotePath};
use crate::entropy;
use crate::format;
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::{RemoteFileWriter, TransferSession};
use crate::ssh::sftp::{self, RemoteFileAttrs, RemoteFileKind, RenameMode, SetAttrs, SftpError};

/// The largest file that can be edited.
pub const MAX_TEXT_BYTES: usize = 1024 * 1024;
/// Only its owner sees a file that is being written.
const PRIVATE_MODE: u32 = 0o600;

/// Which content of a file was seen: its SHA-256. Times don't tell, since SFTP counts them in whole seconds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextFileVersion(String);

/// How the lines of a file end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LineEndings {
    Unix,
    Windows,
    /// Browsers can't keep a mixture: it is saved with Unix line endings.
    Mixed,
}

/// A file as the editor shows it.
#[derive(Debug, PartialEq, Eq)]
pub struct OpenedTextFile {
    /// With Unix line endings.
    pub text: String,
    pub endings: LineEndings,
    pub version: TextFileVersion,
    pub modified: Option<UnixTime>,
    /// Whether this person may write to it.
    pub is_writable: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenTextFileError {
    #[error("Only files up to {} can be edited here. You can view or download this one.", format::bytes(MAX_TEXT_BYTES as u64))]
    TooLarge,
    #[error("This isn't a text file (UTF-8), so it can't be edited here. You can view or download it.")]
    NotText,
    #[error(transparent)]
    Sftp(#[from] SftpError),
}

/// What someone wants to save.
pub struct TextFileSave {
    pub path: RemotePath,
    pub text: String,
    pub endings: LineEndings,
    /// What they know to be in the file.
    pub seen: TextFileVersion,
}

/// Why a file was not saved. It is as it was before.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum SaveTextFileError {
    #[error("The file was changed while you were editing it.")]
    Changed(ChangedTextFile),
    #[error("This file was deleted or moved while you were editing it. Use “Save as” to keep your text.")]
    Gone,
    #[error("This file is read-only. Use “Save as”, or change its permissions first.")]
    ReadOnly,
    #[error("You can't create files in {0}, so the file can't be replaced safely. Use “Save as” with another folder.")]
    FolderClosed(RemotePath),
    #[error(
        "The file belongs to a group that you aren't a member of, and saving would change its group. Use “Save as” instead."
    )]
    GroupNotKept,
    #[error("This text is too long. Files up to {} can be saved here.", format::bytes(MAX_TEXT_BYTES as u64))]
    TooLong,
    #[error(transparent)]
    Sftp(#[from] SftpError),
}

/// What is in a file that someone else changed.
#[derive(Debug, PartialEq, Eq)]
pub struct ChangedTextFile {
    pub version: TextFileVersion,
    pub modified: Option<UnixTime>,
    /// Its text, if it can be shown.
    pub text: Option<String>,
}

impl TextFileVersion {
    pub fn from_bytes(bytes: &[u8]) -> Self {
        let digest = Sha256::digest(bytes);
        Self(digest.iter().fold(String::with_capacity(64), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        }))
    }

    /// As a form sends it back. One that isn't ours matches no file.
    pub fn from_form(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl LineEndings {
    fn detect(text: &str) -> Self {
        let count = |what: &str| text.matches(what).count();
        match (count("\r"), count("\r\n"), count("\n")) {
            (0, _, _) => Self::Unix,
            (returns, pairs, feeds) if returns == pairs && pairs == feeds => Self::Windows,
            _ => Self::Mixed,
        }
    }

    pub fn parse(word: &str) -> Self {
        match word {
            "windows" => Self::Windows,
            "mixed" => Self::Mixed,
            _ => Self::Unix,
        }
    }

    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Unix => "unix",
            Self::Windows => "windows",
            Self::Mixed => "mixed",
        }
    }

    /// The bytes of a text that came from a form, where every line ends as in Windows.
    pub fn encode(self, text: &str) -> Vec<u8> {
        let plain = to_unix(text);
        match self {
            Self::Unix | Self::Mixed => plain.into_bytes(),
            Self::Windows => plain.replace('\n', "\r\n").into_bytes(),
        }
    }
}

fn to_unix(text: &str) -> String {
    text.replace("\r\n", "\n").replace('\r', "\n")
}

/// Text that a browser's form returns as it was sent. It would replace a NUL.
fn decode_text(bytes: Vec<u8>) -> Option<String> {
    String::from_utf8(bytes).ok().filter(|text| !text.contains('\0'))
}

/// Reads a file for the editor; follows links.
pub async fn open(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<OpenedTextFile, OpenTextFileError> {
    let session = TransferSession::open(connection).await?;
    let attrs = session.stat(path).await?;
    let most = u64::try_from(MAX_TEXT_BYTES).unwrap_or(u64::MAX);
    if attrs.kind == RemoteFileKind::File && attrs.size > most {
        return Err(OpenTextFileError::TooLarge);
    }
    let bytes = session.read(path, MAX_TEXT_BYTES).await?;
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(OpenTextFileError::TooLarge);
    }
    let version = TextFileVersion::from_bytes(&bytes);
    let text = decode_text(bytes).ok_or(OpenTextFileError::NotText)?;
    let is_writable = can_write(connection, path).await?;
    let endings = LineEndings::detect(&text);
    Ok(OpenedTextFile { text: to_unix(&text), endings, version, modified: attrs.modified, is_writable })
}

/// Asks the cluster whether a file can be written; mode bits alone don't tell.
async fn can_write(connection: &Arc<ClusterConnection>, path: &RemotePath) -> Result<bool, SftpError> {
    match RemoteFileWriter::check_writable(connection, path).await {
        Ok(()) => Ok(true),
        Err(SftpError::Run(error)) => Err(error.into()),
        Err(_) => Ok(false),
    }
}

/// Replaces a file, and says which version it has now.
pub async fn save(
    connection: &Arc<ClusterConnection>,
    wanted: TextFileSave,
) -> Result<TextFileVersion, SaveTextFileError> {
    let connection = connection.clone();
    run_to_end(async move { replace(&connection, wanted).await }).await?
}

async fn replace(
    connection: &Arc<ClusterConnection>,
    wanted: TextFileSave,
) -> Result<TextFileVersion, SaveTextFileError> {
    let bytes = wanted.endings.encode(&wanted.text);
    if bytes.len() > MAX_TEXT_BYTES {
        return Err(SaveTextFileError::TooLong);
    }
    // A link stays: what it leads to is replaced.
    let path = sftp::real_path(connection, &wanted.path).await.map_err(gone_if_missing)?;
    let session = TransferSession::open(connection).await?;
    let before = session.stat(&path).await.map_err(gone_if_missing)?;
    let current = session.read(&path, MAX_TEXT_BYTES).await.map_err(gone_if_missing)?;
    if TextFileVersion::from_bytes(&current) != wanted.seen {
        return Err(SaveTextFileError::Changed(ChangedTextFile::new(current, &before)));
    }
    if !can_write(connection, &path).await? {
        return Err(SaveTextFileError::ReadOnly);
    }
    let folder = path.parent().ok_or(SftpError::NotAFile)?;
    let draft = folder.join(&draft_name()?);
    match session.write_new(&draft, &bytes, Some(PRIVATE_MODE)).await {
        Err(SftpError::NotAllowed) => return Err(SaveTextFileError::FolderClosed(folder)),
        written => written?,
    }
    let replaced = put_in_place(&session, &draft, &path, &before).await;
    let is_draft_needed = matches!(replaced, Ok(()) | Err(SaveTextFileError::Sftp(SftpError::NotReplaced(_))));
    if !is_draft_needed {
        let _ = session.remove_file(&draft).await;
    }
    replaced.map(|()| TextFileVersion::from_bytes(&bytes))
}

/// Gives the new file the old one's group and permissions, and its name.
async fn put_in_place(
    session: &TransferSession,
    draft: &RemotePath,
    path: &RemotePath,
    before: &RemoteFileAttrs,
) -> Result<(), SaveTextFileError> {
    let own = session.lstat(draft).await?;
    if let (Some((user, group)), Some((_, wanted))) = (own.owner, before.owner)
        && group != wanted
    {
        let attrs = SetAttrs { owner: Some((user, wanted)), ..SetAttrs::default() };
        session.set_attrs(draft, attrs).await.map_err(|_| SaveTextFileError::GroupNotKept)?;
    }
    session.set_attrs(draft, SetAttrs { mode: before.mode, ..SetAttrs::default() }).await?;
    // Someone may have written to it while the new text was sent.
    let now = session.stat(path).await.map_err(gone_if_missing)?;
    if (now.size, now.modified) != (before.size, before.modified) {
        let current = session.read(path, MAX_TEXT_BYTES).await.map_err(gone_if_missing)?;
        return Err(SaveTextFileError::Changed(ChangedTextFile::new(current, &now)));
    }
    Ok(session.rename(draft, path, RenameMode::Replace).await?)
}

impl ChangedTextFile {
    fn new(bytes: Vec<u8>, attrs: &RemoteFileAttrs) -> Self {
        let version = TextFileVersion::from_bytes(&bytes);
        let is_whole = bytes.len() <= MAX_TEXT_BYTES;
        let text = decode_text(bytes).filter(|_| is_whole).map(|text| to_unix(&text));
        Self { version, modified: attrs.modified, text }
    }
}

fn gone_if_missing(error: SftpError) -> SaveTextFileError {
    if error == SftpError::NotFound { SaveTextFileError::Gone } else { error.into() }
}

/// A hidden name that nothing else has.
fn draft_name() -> Result<RemoteName, SftpError> {
    let random = entropy::random_bytes::<8>().map_err(|error| SftpError::Refused(error.to_string()))?;
    let name = format!(".portolan-{:016x}", u64::from_be_bytes(random));
    RemoteName::parse(name.as_bytes()).map_err(|error| SftpError::Refused(error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn line_endings_come_back_as_they_were() {
        for (text, endings) in [
            ("", LineEndings::Unix),
            ("a", LineEndings::Unix),
            ("a\nb\n", LineEndings::Unix),
            ("a\r\nb\r\n", LineEndings::Windows),
            ("a\r\nb", LineEndings::Windows),
        ] {
            assert_eq!(LineEndings::detect(text), endings, "{text:?}");
            assert_eq!(LineEndings::parse(endings.as_str()), endings);
            // Every browser sends lines that end as in Windows.
            let sent = to_unix(text).replace('\n', "\r\n");
            assert_eq!(endings.encode(&sent), text.as_bytes(), "{text:?}");
        }
        for mixed in ["a\r\nb\n", "a\rb", "a\r\r\n"] {
            assert_eq!(LineEndings::detect(mixed), LineEndings::Mixed, "{mixed:?}");
        }
        assert_eq!(LineEndings::Mixed.encode("a\r\nb\rc\n"), b"a\nb\nc\n");
    }

    #[test]
    fn only_text_is_edited() {
        assert_eq!(decode_text("Ünï\t\u{FEFF}".into()).as_deref(), Some("Ünï\t\u{FEFF}"));
        assert_eq!(decode_text(b"bad\xff".to_vec()), None);
        assert_eq!(decode_text(b"a\0b".to_vec()), None);
    }

    #[test]
    fn versions_tell_contents_apart() {
        let version = TextFileVersion::from_bytes(b"abc");
        assert_eq!(version.as_str(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!(TextFileVersion::from_form(version.as_str()), version);
        assert_ne!(TextFileVersion::from_bytes(b"abd"), version);
        assert_ne!(TextFileVersion::from_form(""), TextFileVersion::from_bytes(b""));
    }

    #[test]
    fn a_changed_file_is_shown_if_it_is_text() {
        let attrs = RemoteFileAttrs { kind: RemoteFileKind::File, size: 2, modified: None, mode: None, owner: None };
        assert_eq!(ChangedTextFile::new(b"a\r\n".to_vec(), &attrs).text.as_deref(), Some("a\n"));
        assert_eq!(ChangedTextFile::new(b"\xff".to_vec(), &attrs).text, None);
        assert_eq!(ChangedTextFile::new(vec![b'a'; MAX_TEXT_BYTES + 1], &attrs).text, None);
        assert!(draft_name().unwrap().is_dot_name());
    }
}
