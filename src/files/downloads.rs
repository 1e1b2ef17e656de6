//! Downloading files: read over the person's connection as fast as their browser takes them. A download has exactly the
//! announced length or fails; it never ends early without saying so.

mod attachment_name;
mod byte_range;
mod connection_source;

use std::ops::Range;
use std::sync::Arc;

use bytes::Bytes;
use sha2::{Digest as _, Sha256};

pub use self::attachment_name::attachment_disposition;
pub use self::byte_range::{DownloadRange, parse_range};
pub use self::connection_source::{ConnectionSource, is_passing};
use crate::domain::RemotePath;
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::transfer::RemoteFileReader;
use crate::ssh::sftp::{RemoteFileAttrs, SftpError};

/// How often a file is opened again without a single byte read in between.
const MAX_REOPENS: u32 = 3;

/// Why a download ended before its end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DownloadError {
    #[error(transparent)]
    Sftp(#[from] SftpError),
    #[error("The file became shorter while it was being read.")]
    Shrunk,
    #[error("The connection was lost, and the file has changed since.")]
    Changed,
    #[error("The portal is shutting down.")]
    Stopped,
}

/// A file that is being downloaded. Holds at most a few megabytes.
pub struct FileDownload {
    source: ConnectionSource,
    path: RemotePath,
    /// As they were when the download began.
    attrs: RemoteFileAttrs,
    /// `None` while it has to be opened again.
    reader: Option<RemoteFileReader>,
    left: Range<u64>,
    reopens: u32,
}

impl FileDownload {
    /// Opens a plain file. Reading begins with [`Self::seek`], or with the whole file.
    pub async fn open(source: ConnectionSource, path: RemotePath) -> Result<Self, SftpError> {
        let reader = RemoteFileReader::open(&source.connection()?, &path).await?;
        let attrs = *reader.attrs();
        Ok(Self { source, path, attrs, reader: Some(reader), left: 0..attrs.size, reopens: 0 })
    }

    /// The same, waiting for a connection if there is none at the moment.
    pub async fn open_patiently(source: ConnectionSource, path: RemotePath) -> Result<Self, SftpError> {
        let reader = source.retry(|connection| open_reader(connection, path.clone())).await?;
        let attrs = *reader.attrs();
        Ok(Self { source, path, attrs, reader: Some(reader), left: 0..attrs.size, reopens: 0 })
    }

    pub const fn attrs(&self) -> &RemoteFileAttrs {
        &self.attrs
    }

    pub const fn path(&self) -> &RemotePath {
        &self.path
    }

    /// The first bytes, which tell what the file is; less than `count` if it is shorter. After that, [`Self::seek`].
    pub async fn read_head(&mut self, count: usize) -> Result<Vec<u8>, DownloadError> {
        let mut head = Vec::new();
        self.seek(0..self.attrs.size.min(u64::try_from(count).unwrap_or(u64::MAX)));
        while let Some(chunk) = self.next_chunk().await? {
            head.extend_from_slice(&chunk);
        }
        Ok(head)
    }

    /// Reads this range from now on.
    pub fn seek(&mut self, range: Range<u64>) {
        if let Some(reader) = &mut self.reader {
            reader.seek(range.clone());
        }
        self.left = range;
    }

    /// The next part; `None` once the whole range was read.
    pub async fn next_chunk(&mut self) -> Result<Option<Bytes>, DownloadError> {
        let stop = self.source.stop().clone();
        tokio::select! {
            biased;
            () = stop.cancelled() => Err(DownloadError::Stopped),
            next = self.read_next() => next,
        }
    }

    async fn read_next(&mut self) -> Result<Option<Bytes>, DownloadError> {
        while !self.left.is_empty() {
            let reader = match &mut self.reader {
                Some(reader) => reader,
                None => self.reader.insert(reopen(&self.source, &self.path, &self.attrs, self.left.clone()).await?),
            };
            match reader.next_chunk().await {
                Ok(Some(bytes)) => {
                    self.left.start += u64::try_from(bytes.len()).unwrap_or(u64::MAX);
                    self.reopens = 0;
                    return Ok(Some(bytes));
                }
                Ok(None) => return Err(DownloadError::Shrunk),
                Err(error) if is_passing(&error) && self.reopens < MAX_REOPENS => {
                    tracing::debug!(%error, "A download lost its connection and waits for the next");
                    self.reopens += 1;
                    self.reader = None;
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(None)
    }
}

async fn open_reader(connection: Arc<ClusterConnection>, path: RemotePath) -> Result<RemoteFileReader, SftpError> {
    RemoteFileReader::open(&connection, &path).await
}

/// Opens the file again where the download was, if it is still the same.
async fn reopen(
    source: &ConnectionSource,
    path: &RemotePath,
    attrs: &RemoteFileAttrs,
    left: Range<u64>,
) -> Result<RemoteFileReader, DownloadError> {
    let mut reader = source.retry(|connection| open_reader(connection, path.clone())).await?;
    let found = reader.attrs();
    if (found.size, found.modified) != (attrs.size, attrs.modified) {
        return Err(DownloadError::Changed);
    }
    reader.seek(left);
    Ok(reader)
}

/// A tag that changes with the file (`ETag`): resumed downloads continue only if it is the same.
pub fn entity_tag(path: &RemotePath, attrs: &RemoteFileAttrs) -> String {
    use std::fmt::Write as _;
    let digest = Sha256::digest(path.as_bytes());
    let mut tag = String::from("\"");
    for byte in digest.iter().take(8) {
        let _ = write!(tag, "{byte:02x}");
    }
    let modified = attrs.modified.map_or(0, |at| at.0);
    let _ = write!(tag, "-{:x}-{modified:x}\"", attrs.size);
    tag
}

/// When the file was last changed, as headers write it: `Wed, 18 Nov 2026 02:49:21 GMT`.
pub fn last_modified(attrs: &RemoteFileAttrs) -> Option<String> {
    let at = jiff::Timestamp::from_second(attrs.modified?.0).ok()?;
    Some(at.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::UnixTime;
    use crate::ssh::sftp::RemoteFileKind;

    #[test]
    fn tag_changes_with_path_size_and_time() {
        let path = |text: &str| RemotePath::parse(text.as_bytes()).unwrap();
        let attrs = RemoteFileAttrs {
            kind: RemoteFileKind::File,
            size: 10,
            modified: Some(UnixTime(1_794_970_161)),
            mode: None,
            owner: None,
        };
        let tag = entity_tag(&path("/a"), &attrs);
        assert!(tag.starts_with('"') && tag.ends_with('"') && tag.len() > 20, "{tag}");
        assert_eq!(tag, entity_tag(&path("/a"), &attrs));
        assert_ne!(tag, entity_tag(&path("/b"), &attrs));
        assert_ne!(tag, entity_tag(&path("/a"), &RemoteFileAttrs { size: 11, ..attrs }));
        assert_ne!(tag, entity_tag(&path("/a"), &RemoteFileAttrs { modified: None, ..attrs }));
        assert_eq!(last_modified(&attrs).unwrap(), "Wed, 18 Nov 2026 02:49:21 GMT");
    }
}
