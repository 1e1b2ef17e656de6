//! What a session can be asked to do with files, one function each. They say what went wrong in the terms of
//! [`SftpError`] where the protocol's few status codes leave it open.

use std::sync::Arc;

use tokio::task::JoinSet;

use super::packet::{SetAttrs, SftpOpenMode, SftpReply, SftpRequest, SftpStatus};
use super::session::{SftpFault, SftpSession};
use super::{
    DiskSpace, FOLLOW_LINKS_TIMEOUT, RawSftpError, RemoteDirEntry, RemoteDirListing, RemoteFileAttrs, RemoteFileKind,
    RenameMode, SftpError, parse_attrs,
};
use crate::domain::{RemoteName, RemotePath};
use crate::entropy;

const POSIX_RENAME: &str = "posix-rename@openssh.com";
const STATVFS: &str = "statvfs@openssh.com";
/// How many links of one folder are followed; the others stay links.
const MAX_FOLLOWED_LINKS: usize = 5000;
/// How many replies of one folder are asked for ahead.
const FOLDER_REQUESTS_AHEAD: usize = 4;

pub(super) async fn stat(session: &SftpSession, path: &RemotePath) -> Result<RemoteFileAttrs, SftpFault> {
    Ok(parse_attrs(&session.attrs(SftpRequest::Stat { path: path.as_bytes() }).await?))
}

pub(super) async fn lstat(session: &SftpSession, path: &RemotePath) -> Result<RemoteFileAttrs, SftpFault> {
    Ok(parse_attrs(&session.attrs(SftpRequest::Lstat { path: path.as_bytes() }).await?))
}

pub(super) async fn handle_stat(session: &SftpSession, handle: &[u8]) -> Result<RemoteFileAttrs, SftpFault> {
    Ok(parse_attrs(&session.attrs(SftpRequest::HandleStat { handle }).await?))
}

/// Fails unless it is a plain file: opening a pipe would wait for someone to write to it.
pub(super) async fn require_file(session: &SftpSession, path: &RemotePath) -> Result<RemoteFileAttrs, RawSftpError> {
    let attrs = stat(session, path).await?;
    match attrs.kind {
        RemoteFileKind::File => Ok(attrs),
        RemoteFileKind::Folder => Err(RawSftpError::Classified(SftpError::NotAFile)),
        RemoteFileKind::Link | RemoteFileKind::Other => Err(RawSftpError::Classified(SftpError::SpecialFile)),
    }
}

pub(super) async fn read(session: &SftpSession, path: &RemotePath, most: usize) -> Result<Vec<u8>, RawSftpError> {
    require_file(session, path).await?;
    let handle = session.open_file(path.as_bytes(), SftpOpenMode::Read, SetAttrs::default()).await?;
    let mut bytes = Vec::new();
    let read = loop {
        let left = u32::try_from((most + 1).saturating_sub(bytes.len())).unwrap_or(u32::MAX);
        if left == 0 {
            break Ok(());
        }
        let offset = u64::try_from(bytes.len()).unwrap_or(u64::MAX);
        let len = left.min(session.read_chunk());
        match session.request(SftpRequest::Read { handle: &handle, offset, len }).await {
            Ok(SftpReply::Data(data)) if data.is_empty() => break Ok(()),
            Ok(SftpReply::Data(data)) => bytes.extend_from_slice(&data),
            Ok(_) => break Err(SftpFault::Unexpected),
            Err(fault) if fault.is_status(SftpStatus::EOF) => break Ok(()),
            Err(fault) => break Err(fault),
        }
    };
    let _ = session.close_handle(&handle).await;
    read?;
    bytes.truncate(most + 1);
    Ok(bytes)
}

/// Reads the first `len` bytes of a plain file. The reads and the closing go out together; only if less comes back than
/// was asked for is the file read again, step by step.
pub(super) async fn read_listed(session: &SftpSession, path: &RemotePath, len: u32) -> Result<Vec<u8>, RawSftpError> {
    let handle = session.open_file(path.as_bytes(), SftpOpenMode::Read, SetAttrs::default()).await?;
    let mut asked = Vec::new();
    let mut offset = 0;
    while offset < len {
        let part = (len - offset).min(session.read_chunk());
        asked.push(session.send(SftpRequest::Read { handle: &handle, offset: offset.into(), len: part }).await?);
        offset += part;
    }
    let closing = session.send(SftpRequest::Close { handle: &handle }).await?;
    let mut bytes = Vec::new();
    for reply in asked {
        match reply.wait().await {
            Ok(SftpReply::Data(data)) => bytes.extend_from_slice(&data),
            Ok(_) => return Err(SftpFault::Unexpected.into()),
            Err(fault) if fault.is_status(SftpStatus::EOF) => break,
            Err(fault) => return Err(fault.into()),
        }
    }
    let _ = closing.wait().await;
    let wanted = usize::try_from(len).unwrap_or(usize::MAX);
    if bytes.len() != wanted {
        bytes = read(session, path, wanted).await?;
        bytes.truncate(wanted);
    }
    Ok(bytes)
}

/// Writes a new file; fails if the name is taken. `later` is set once it is written, before anything else can have its
/// name.
pub(super) async fn write_new(
    session: &SftpSession,
    path: &RemotePath,
    bytes: &[u8],
    mode: Option<u32>,
    later: SetAttrs,
) -> Result<(), RawSftpError> {
    let attrs = SetAttrs { mode, ..SetAttrs::default() };
    let handle = match session.open_file(path.as_bytes(), SftpOpenMode::CreateNew, attrs).await {
        Ok(handle) => handle,
        Err(fault) => return Err(explain_taken(session, path, fault).await),
    };
    let mut written = Ok(());
    let chunk_len = usize::try_from(session.write_chunk()).unwrap_or(usize::MAX);
    let mut offset = 0;
    for data in bytes.chunks(chunk_len) {
        written = session.run(SftpRequest::Write { handle: &handle, offset, data }).await;
        if written.is_err() {
            break;
        }
        offset += u64::try_from(data.len()).unwrap_or(u64::MAX);
    }
    if written.is_ok() && later != SetAttrs::default() {
        written = session.run(SftpRequest::SetHandleStat { handle: &handle, attrs: later }).await;
    }
    let closed = session.close_handle(&handle).await;
    if let Err(fault) = written.and(closed) {
        // Never half a file under this name.
        let _ = session.run(SftpRequest::Remove { path: path.as_bytes() }).await;
        return Err(explain_unwritten(fault));
    }
    Ok(())
}

pub(super) async fn make_folder(session: &SftpSession, path: &RemotePath) -> Result<(), RawSftpError> {
    match session.run(SftpRequest::MakeDir { path: path.as_bytes() }).await {
        Ok(()) => Ok(()),
        Err(fault) => Err(explain_taken(session, path, fault).await),
    }
}

pub(super) async fn rename(
    session: &SftpSession,
    from: &RemotePath,
    to: &RemotePath,
    mode: RenameMode,
) -> Result<(), RawSftpError> {
    let (from_bytes, to_bytes) = (from.as_bytes(), to.as_bytes());
    let renamed = match mode {
        RenameMode::KeepExisting => session.run(SftpRequest::Rename { from: from_bytes, to: to_bytes }).await,
        RenameMode::Replace if session.has_extension(POSIX_RENAME) => {
            session.run(SftpRequest::ExtendedPair { name: POSIX_RENAME, first: from_bytes, second: to_bytes }).await
        }
        RenameMode::Replace => return replace_in_steps(session, from, to).await,
    };
    match renamed {
        Ok(()) => Ok(()),
        Err(fault) if mode == RenameMode::KeepExisting => Err(explain_taken(session, to, fault).await),
        Err(fault) => Err(fault.into()),
    }
}

/// Without the extension nothing replaces a file in one step: the old one moves aside, and back if the new one can't take
/// its place.
async fn replace_in_steps(session: &SftpSession, from: &RemotePath, to: &RemotePath) -> Result<(), RawSftpError> {
    let rename = |from: &RemotePath, to: &RemotePath| {
        let (from, to) = (from.as_bytes().to_vec(), to.as_bytes().to_vec());
        async move { session.run(SftpRequest::Rename { from: &from, to: &to }).await }
    };
    match lstat(session, to).await {
        Ok(attrs) if attrs.kind == RemoteFileKind::Folder => return Err(RawSftpError::Classified(SftpError::NotAFile)),
        Ok(_) => {}
        Err(fault) if fault.is_status(SftpStatus::NO_SUCH_FILE) => return Ok(rename(from, to).await?),
        Err(fault) => return Err(fault.into()),
    }
    let aside = path_aside(to).map_err(RawSftpError::Classified)?;
    rename(to, &aside).await?;
    let Err(fault) = rename(from, to).await else {
        // What is left then is hidden, and the new one is in place.
        let _ = session.run(SftpRequest::Remove { path: aside.as_bytes() }).await;
        return Ok(());
    };
    if rename(&aside, to).await.is_ok() {
        return Err(fault.into());
    }
    if !matches!(fault, SftpFault::Status(_)) {
        session.invalidate();
    }
    Err(RawSftpError::Classified(SftpError::NotReplaced(aside.to_string())))
}

/// A hidden name beside a file, which nothing else has.
fn path_aside(path: &RemotePath) -> Result<RemotePath, SftpError> {
    let refused = |error: &dyn std::fmt::Display| SftpError::Refused(error.to_string());
    let random = entropy::random_bytes::<8>().map_err(|error| refused(&error))?;
    let name = format!(".portolan-old-{:016x}", u64::from_be_bytes(random));
    let name = RemoteName::parse(name.as_bytes()).map_err(|error| refused(&error))?;
    Ok(path.parent().ok_or(SftpError::NotAFile)?.join(&name))
}

pub(super) async fn set_mode(session: &SftpSession, path: &RemotePath, mode: u32) -> Result<(), SftpFault> {
    let attrs = SetAttrs { mode: Some(mode), ..SetAttrs::default() };
    session.run(SftpRequest::SetStat { path: path.as_bytes(), attrs }).await
}

/// The target of a link, as it is written in it.
pub(super) async fn read_link(session: &SftpSession, path: &RemotePath) -> Result<Vec<u8>, SftpFault> {
    let names = session.names(SftpRequest::ReadLink { path: path.as_bytes() }).await?;
    names.first().map(|named| named.name.to_vec()).ok_or(SftpFault::Unexpected)
}

/// Where a path leads once all links are followed.
pub(super) async fn real_path(session: &SftpSession, path: &RemotePath) -> Result<RemotePath, SftpFault> {
    let names = session.names(SftpRequest::RealPath { path: path.as_bytes() }).await?;
    let path = names.first().and_then(|named| RemotePath::parse(&named.name).ok());
    path.ok_or(SftpFault::Unexpected)
}

/// `None` if the server can't tell.
pub(super) async fn disk_space(session: &SftpSession, path: &RemotePath) -> Result<Option<DiskSpace>, SftpFault> {
    if !session.has_extension(STATVFS) {
        return Ok(None);
    }
    let request = SftpRequest::Extended { name: STATVFS, argument: Some(path.as_bytes()) };
    let SftpReply::Extended(reply) = session.request(request).await? else { return Err(SftpFault::Unexpected) };
    let [_, unit, blocks, _, free_blocks, files, _, free_files] = super::packet::decode_numbers(reply)?;
    Ok(Some(DiskSpace {
        bytes: unit.saturating_mul(blocks),
        free_bytes: unit.saturating_mul(free_blocks),
        files,
        free_files,
    }))
}

pub(super) async fn list(
    session: &Arc<SftpSession>,
    path: &RemotePath,
    most: usize,
) -> Result<RemoteDirListing, RawSftpError> {
    let mut listing = match read_folder(session, path, most).await {
        Err(fault) => return Err(explain_missing_folder(session, path, fault).await),
        Ok(listing) => listing,
    };
    follow_links(session, path, &mut listing.entries).await;
    Ok(listing)
}

/// Reads a folder, without following links.
pub(super) async fn read_folder(
    session: &SftpSession,
    path: &RemotePath,
    most: usize,
) -> Result<RemoteDirListing, SftpFault> {
    let handle = session.open_dir(path.as_bytes()).await?;
    let mut listing = RemoteDirListing::default();
    let mut ahead = std::collections::VecDeque::new();
    let read = loop {
        while ahead.len() < FOLDER_REQUESTS_AHEAD {
            ahead.push_back(session.send(SftpRequest::ReadDir { handle: &handle }).await?);
        }
        let Some(next) = ahead.pop_front() else { break Ok(()) };
        match next.wait().await {
            // If a server never reports the end, the deadline stops it.
            Ok(SftpReply::Names(names)) => listing.entries.extend(names.iter().filter_map(|named| {
                let name = RemoteName::parse(&named.name).ok()?;
                let attrs = parse_attrs(&named.attrs);
                Some(RemoteDirEntry { name, is_link: attrs.kind == RemoteFileKind::Link, attrs })
            })),
            Ok(_) => break Err(SftpFault::Unexpected),
            Err(fault) if fault.is_status(SftpStatus::EOF) => break Ok(()),
            Err(fault) => break Err(fault),
        }
        if listing.entries.len() > most {
            listing.entries.truncate(most);
            listing.is_truncated = true;
            break Ok(());
        }
    };
    let _ = session.close_handle(&handle).await;
    read.map(|()| listing)
}

/// Resolves all links at the same time. One of them may point to a disk that does not answer; then the server hangs,
/// but what is known by then is returned.
async fn follow_links(session: &Arc<SftpSession>, folder: &RemotePath, entries: &mut [RemoteDirEntry]) {
    let mut lookups = JoinSet::new();
    for (index, entry) in entries.iter().enumerate().filter(|(_, entry)| entry.is_link).take(MAX_FOLLOWED_LINKS) {
        let path = folder.join(&entry.name);
        let session = session.clone();
        lookups.spawn(async move { (index, stat(&session, &path).await) });
    }
    let until = tokio::time::Instant::now() + FOLLOW_LINKS_TIMEOUT;
    loop {
        match tokio::time::timeout_at(until, lookups.join_next()).await {
            Ok(Some(Ok((index, Ok(target))))) => {
                if let Some(entry) = entries.get_mut(index) {
                    entry.attrs = target;
                }
            }
            Ok(Some(_)) => {}
            Ok(None) => return,
            Err(_) => return session.invalidate(),
        }
    }
}

/// For a file, servers report that there is no such folder.
async fn explain_missing_folder(session: &SftpSession, path: &RemotePath, fault: SftpFault) -> RawSftpError {
    let is_unclear = fault.is_status(SftpStatus::NO_SUCH_FILE) || fault.is_status(SftpStatus::FAILURE);
    if is_unclear
        && let Ok(target) = stat(session, path).await
        && target.kind != RemoteFileKind::Folder
    {
        return RawSftpError::Classified(SftpError::NotAFolder);
    }
    fault.into()
}

/// This protocol has no status for a name that already exists.
pub(super) async fn explain_taken(session: &SftpSession, path: &RemotePath, fault: SftpFault) -> RawSftpError {
    if !fault.is_status(SftpStatus::FAILURE) {
        return fault.into();
    }
    if lstat(session, path).await.is_ok() {
        return RawSftpError::Classified(SftpError::AlreadyExists);
    }
    explain_unwritten(fault)
}

/// Nor one for a full disk.
pub(super) fn explain_unwritten(fault: SftpFault) -> RawSftpError {
    if fault.is_status(SftpStatus::FAILURE) { RawSftpError::Classified(SftpError::NotWritten) } else { fault.into() }
}
