//! Counts what is in folders, for as long as it may take. Links count as themselves and are never followed.

use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::stream::{self, FuturesUnordered};
use tokio::time::Instant;

use crate::domain::RemotePath;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteDirListing, RemoteFileKind, SftpError};

/// How many folders are read at once.
const FOLDERS_AT_ONCE: usize = 16;
/// How many items are looked at at once.
const LOOKS_AT_ONCE: usize = 32;

/// When counting stops.
#[derive(Debug, Clone, Copy)]
pub struct CountLimits {
    pub time: Duration,
    pub files: u64,
}

/// What is in some items.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ItemCount {
    /// Everything that isn't a folder.
    pub files: u64,
    pub folders: u64,
    pub bytes: u64,
    /// Whether there is more than was counted.
    pub is_partial: bool,
}

/// Counts some items and everything in them. Folders that can't be read count as empty.
pub async fn count_items(
    session: &TransferSession,
    items: &[RemotePath],
    limits: CountLimits,
) -> Result<ItemCount, SftpError> {
    let until = Instant::now() + limits.time;
    let mut count = ItemCount::default();
    let mut folders = Vec::new();
    let look = |item: RemotePath| async move { (session.lstat(&item).await, item) };
    let mut looked = stream::iter(items.iter().cloned().map(look)).buffered(LOOKS_AT_ONCE);
    while let Some((attrs, item)) = looked.next().await {
        match attrs {
            Ok(attrs) if attrs.kind == RemoteFileKind::Folder => folders.push(item),
            Ok(attrs) => {
                count.files += 1;
                count.bytes = count.bytes.saturating_add(attrs.size);
            }
            // It is gone already.
            Err(SftpError::NotFound) => {}
            Err(error) => return Err(error),
        }
    }
    drop(looked);
    let list = |path: RemotePath| async move {
        let listing = session.list(&path, usize::try_from(limits.files).unwrap_or(usize::MAX)).await;
        (path, listing)
    };
    let mut reading = FuturesUnordered::new();
    loop {
        if count.files > limits.files || Instant::now() >= until {
            count.is_partial |= !folders.is_empty() || !reading.is_empty();
            return Ok(count);
        }
        while reading.len() < FOLDERS_AT_ONCE
            && let Some(path) = folders.pop()
        {
            reading.push(list(path));
        }
        let Ok(next) = tokio::time::timeout_at(until, reading.next()).await else {
            count.is_partial = true;
            return Ok(count);
        };
        let Some((path, listing)) = next else { return Ok(count) };
        count.folders += 1;
        match listing {
            Ok(listing) => add_listing(&mut count, &mut folders, &path, listing),
            Err(error @ SftpError::Run(_)) => return Err(error),
            Err(_) => count.is_partial = true,
        }
    }
}

fn add_listing(count: &mut ItemCount, folders: &mut Vec<RemotePath>, path: &RemotePath, listing: RemoteDirListing) {
    count.is_partial |= listing.is_truncated;
    for entry in listing.entries {
        if entry.attrs.kind == RemoteFileKind::Folder {
            folders.push(path.join(&entry.name));
        } else {
            count.files += 1;
            count.bytes = count.bytes.saturating_add(entry.attrs.size);
        }
    }
}
