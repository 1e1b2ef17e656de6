//! Many small files in one request: written side by side over one session, each under a temporary name first.

use std::collections::BTreeSet;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt as _;
use futures_util::stream;

use super::batch_places::BatchPlace;
use super::metadata::{parent_folders, parse_relative_path};
use super::{UploadError, UploadService, temporary_path};
use crate::domain::{PersonId, RemoteName, RemotePath};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteFileKind, RenameMode, SftpError};

/// The largest request: [`MAX_FILES`] paths and their data.
pub const MAX_BATCH_BYTES: usize = 8 * 1024 * 1024;
/// The largest file that may be part of one.
pub const MAX_FILE_BYTES: u64 = 1024 * 1024;
const MAX_FILES: usize = 2000;
/// Longer than any path inside a folder can be.
const MAX_PATH_BYTES: u32 = 4096;
/// How many files are written at the same time.
const FILES_AT_ONCE: usize = 64;

/// Why a request with small files can't be read, as a sentence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BatchFormatError {
    #[error("The request ends in the middle of a file.")]
    Truncated,
    #[error("The request contains too many files.")]
    TooManyFiles,
    #[error("The request contains a file that is too large for it.")]
    FileTooLarge,
    #[error("The request contains a path that is too long.")]
    PathTooLong,
}

/// One file of a request, or an empty folder if its path ends with a slash. Its path may be unusable: then only this one
/// is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchFile {
    pub path: Bytes,
    pub data: Bytes,
}

/// What became of one file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BatchOutcome {
    Done,
    /// Another file has this name.
    Exists,
    /// A sentence.
    Failed(String),
}

/// Reads a request: for each file the length of its path (32 bits, big-endian), the path, the length of its data
/// (64 bits), the data.
pub fn parse_batch(mut body: Bytes) -> Result<Vec<BatchFile>, BatchFormatError> {
    let mut files = Vec::new();
    while !body.is_empty() {
        if files.len() == MAX_FILES {
            return Err(BatchFormatError::TooManyFiles);
        }
        let path_len = u32::from_be_bytes(take_array(&mut body)?);
        if path_len > MAX_PATH_BYTES {
            return Err(BatchFormatError::PathTooLong);
        }
        let path = take(&mut body, u64::from(path_len))?;
        let len = u64::from_be_bytes(take_array(&mut body)?);
        if len > MAX_FILE_BYTES {
            return Err(BatchFormatError::FileTooLarge);
        }
        files.push(BatchFile { path, data: take(&mut body, len)? });
    }
    Ok(files)
}

fn take(body: &mut Bytes, len: u64) -> Result<Bytes, BatchFormatError> {
    let len = usize::try_from(len).ok().filter(|len| *len <= body.len()).ok_or(BatchFormatError::Truncated)?;
    Ok(body.split_to(len))
}

fn take_array<const N: usize>(body: &mut Bytes) -> Result<[u8; N], BatchFormatError> {
    let taken = take(body, u64::try_from(N).unwrap_or(u64::MAX))?;
    taken[..].try_into().map_err(|_| BatchFormatError::Truncated)
}

impl UploadService {
    /// A place for one request with small files; waits a while for one. Bounds what is held in memory.
    pub async fn batch_place(&self, person: PersonId) -> Result<BatchPlace, UploadError> {
        self.batches.acquire(person).await.ok_or(UploadError::NoBatchPlace)
    }
}

/// Writes the files of a request, and says what became of each, in their order. Sending them once more does no harm: what
/// is there already is done. Must run in a task of its own, so that no temporary file is left if the client goes away.
pub async fn write_batch(
    connection: Arc<ClusterConnection>,
    folder: RemotePath,
    files: Vec<BatchFile>,
    mode: RenameMode,
) -> Result<Vec<BatchOutcome>, UploadError> {
    let session = TransferSession::open(&connection).await?;
    let entries: Vec<(Result<BatchEntry, String>, Bytes)> =
        files.into_iter().map(|file| (BatchEntry::parse(&file), file.data)).collect();
    let paths = entries.iter().filter_map(|(entry, _)| entry.as_ref().ok()).map(|entry| entry.relative.as_slice());
    make_folders(&session, &folder, paths).await;
    let writes = entries.into_iter().map(|(entry, data)| {
        let (session, folder) = (&session, &folder);
        async move {
            let entry = match entry {
                Ok(entry) => entry,
                Err(problem) => return Ok(BatchOutcome::Failed(problem)),
            };
            let target = entry.relative.iter().fold(folder.clone(), |path, name| path.join(name));
            if entry.is_folder {
                make_empty_folder(session, &target).await
            } else {
                write_file(session, &target, &data, mode).await
            }
        }
    });
    let outcomes: Vec<Result<BatchOutcome, UploadError>> = stream::iter(writes).buffered(FILES_AT_ONCE).collect().await;
    outcomes.into_iter().collect()
}

/// What a request asks to create.
#[derive(Debug, PartialEq, Eq)]
struct BatchEntry {
    relative: Vec<RemoteName>,
    is_folder: bool,
}

impl BatchEntry {
    fn parse(file: &BatchFile) -> Result<Self, String> {
        let folder = file.path.strip_suffix(b"/").filter(|_| file.data.is_empty());
        let relative = parse_relative_path(folder.unwrap_or(&file.path)).map_err(|error| error.to_string())?;
        Ok(Self { relative, is_folder: folder.is_some() })
    }
}

/// Creates a folder that nothing is in. One that is there already is fine.
async fn make_empty_folder(session: &TransferSession, target: &RemotePath) -> Result<BatchOutcome, UploadError> {
    match session.make_folder(target).await {
        Ok(()) => Ok(BatchOutcome::Done),
        Err(SftpError::AlreadyExists) => match session.stat(target).await {
            Ok(attrs) if attrs.kind == RemoteFileKind::Folder => Ok(BatchOutcome::Done),
            Ok(_) => Ok(BatchOutcome::Failed(
                "The folder couldn't be created, because a file with this name already exists.".to_owned(),
            )),
            Err(error) => describe(error),
        },
        Err(error) => describe(error),
    }
}

/// Makes the folders that the files are in, each once, those further out first. What fails shows at the files.
async fn make_folders<'a>(
    session: &TransferSession,
    folder: &RemotePath,
    files: impl Iterator<Item = &'a [RemoteName]>,
) {
    let folders: BTreeSet<(usize, RemotePath)> =
        files.flat_map(|relative| parent_folders(folder, relative).into_iter().enumerate()).collect();
    let deepest = folders.last().map_or(0, |(depth, _)| depth + 1);
    for depth in 0..deepest {
        let here: Vec<RemotePath> =
            folders.iter().filter(|(at, _)| *at == depth).map(|(_, path)| path.clone()).collect();
        let made = here.into_iter().map(|path| async move { session.make_folder(&path).await });
        let _: Vec<_> = stream::iter(made).buffer_unordered(FILES_AT_ONCE).collect().await;
    }
}

/// Writes one file. Fails only if the connection did; a problem with the file itself is an outcome.
async fn write_file(
    session: &TransferSession,
    target: &RemotePath,
    data: &[u8],
    mode: RenameMode,
) -> Result<BatchOutcome, UploadError> {
    let temporary = temporary_path(target)?;
    let written = match session.write_new(&temporary, data, None).await {
        Ok(()) => session.rename(&temporary, target, mode).await,
        Err(error) => return describe(error),
    };
    let Err(error) = written else { return Ok(BatchOutcome::Done) };
    if !matches!(error, SftpError::NotReplaced(_)) {
        let _ = session.remove_file(&temporary).await;
    }
    if error == SftpError::AlreadyExists {
        let most = data.len();
        let is_same = matches!(session.read(target, most).await, Ok(there) if there == data);
        return Ok(if is_same { BatchOutcome::Done } else { BatchOutcome::Exists });
    }
    describe(error)
}

fn describe(error: SftpError) -> Result<BatchOutcome, UploadError> {
    match error {
        SftpError::Run(error) => Err(error.into()),
        SftpError::NotFound => Ok(BatchOutcome::Failed("The folder couldn't be created.".to_owned())),
        other => Ok(BatchOutcome::Failed(other.to_string())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn encode(files: &[(Vec<u8>, Vec<u8>)]) -> Bytes {
        let mut body = Vec::new();
        for (path, data) in files {
            body.extend_from_slice(&u32::try_from(path.len()).unwrap().to_be_bytes());
            body.extend_from_slice(path);
            body.extend_from_slice(&u64::try_from(data.len()).unwrap().to_be_bytes());
            body.extend_from_slice(data);
        }
        body.into()
    }

    #[test]
    fn bounds_are_kept() {
        let path = |len: u32| [&len.to_be_bytes()[..], b"abc"].concat();
        assert_eq!(parse_batch(path(u32::MAX).into()), Err(BatchFormatError::PathTooLong));
        assert_eq!(parse_batch(path(4).into()), Err(BatchFormatError::Truncated));
        let large = [path(3), (MAX_FILE_BYTES + 1).to_be_bytes().to_vec()].concat();
        assert_eq!(parse_batch(large.into()), Err(BatchFormatError::FileTooLarge));
        let many = encode(&vec![(b"a".to_vec(), Vec::new()); MAX_FILES + 1]);
        assert_eq!(parse_batch(many), Err(BatchFormatError::TooManyFiles));
        assert_eq!(parse_batch(Bytes::new()), Ok(Vec::new()));
    }

    #[test]
    fn a_slash_at_the_end_means_an_empty_folder() {
        let parse = |path: &'static [u8], data: &'static [u8]| {
            let file = BatchFile { path: Bytes::from_static(path), data: Bytes::from_static(data) };
            BatchEntry::parse(&file).map(|entry| (entry.relative.len(), entry.is_folder))
        };
        assert_eq!(parse(b"set/empty/", b""), Ok((2, true)));
        assert_eq!(parse(b"set/empty", b""), Ok((2, false)));
        for (path, data) in [(&b"/"[..], &b""[..]), (b"set/../", b""), (b"a//", b""), (b"set/file/", b"x")] {
            assert!(parse(path, data).is_err(), "{path:?}");
        }
    }

    proptest! {
        #[test]
        fn files_come_back_as_they_were_written(
            files in proptest::collection::vec(
                (proptest::collection::vec(any::<u8>(), 0..20), proptest::collection::vec(any::<u8>(), 0..200)), 0..10),
        ) {
            let read = parse_batch(encode(&files)).unwrap();
            let read: Vec<_> = read.into_iter().map(|file| (file.path.to_vec(), file.data.to_vec())).collect();
            prop_assert_eq!(read, files);
        }

        #[test]
        fn no_body_breaks_the_reader(body in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Ok(files) = parse_batch(body.clone().into()) {
                let files: Vec<_> = files.iter().map(|file| (file.path.to_vec(), file.data.to_vec())).collect();
                prop_assert_eq!(encode(&files), Bytes::from(body));
            }
        }
    }
}
