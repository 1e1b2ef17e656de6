//! Extracts an archive into a new folder beside it, which is named after it. The folder has a hidden name until all is in
//! it: an archive that turns out to be damaged or hostile leaves nothing behind.

mod tree;

use self::tree::ExtractedTree;
use super::hidden_result::{HiddenResultStart, clean_up, publish, start};
use super::worker::TransferRun;
use super::{TransferError, check_space};
use crate::domain::{RemoteName, RemotePath};
use crate::files::unpack::{ArchiveUnpacker, HEAD_BYTES, PackedFormat, UnpackError, ZipContents, ZipEnd};
use crate::ssh::sftp::transfer::{RemoteFileReader, TransferSession};

/// Endings that the folder's name doesn't have.
const ENDINGS: [&[u8]; 4] = [b".tar.gz", b".tgz", b".tar", b".zip"];

impl From<UnpackError> for TransferError {
    fn from(error: UnpackError) -> Self {
        Self::Failed(format!("{error} Nothing was extracted."))
    }
}

/// Whether a file with this name is probably an archive that can be extracted.
pub fn is_archive_name(name: &RemoteName) -> bool {
    strip_ending(name.as_bytes()).is_some()
}

/// Extracts the transfer's archive. Returns what to know about the result.
pub(super) async fn run(run: &TransferRun) -> Result<String, TransferError> {
    let session = TransferSession::open(&run.connection).await?;
    let folder = run.transfer.folder();
    let missing = || TransferError::Failed("No archive is selected.".to_owned());
    let name = run.transfer.names().into_iter().next().ok_or_else(missing)?;
    let hidden = match start(run, &session, &folder, "extract").await? {
        HiddenResultStart::Begin(hidden) => hidden,
        HiddenResultStart::Finished(message) => return Ok(message),
    };
    let notes = extract(run, &session, &folder.join(&name), &hidden).await?;
    let describe = |path: &RemotePath| {
        let saved_name = path.name().map(|name| name.to_string()).unwrap_or_default();
        format!("The files are in {saved_name}. {notes}").trim_end().to_owned()
    };
    let published = publish(run, &session, &hidden, (&folder, &folder_name(&name)), describe).await;
    clean_up(run, &hidden, published).await
}

async fn extract(
    run: &TransferRun,
    session: &TransferSession,
    archive: &RemotePath,
    hidden: &RemotePath,
) -> Result<String, TransferError> {
    let mut reader = RemoteFileReader::open(&run.connection, archive).await?;
    let size = reader.attrs().size;
    let head = read_range(&mut reader, 0, size.min(u64::try_from(HEAD_BYTES).unwrap_or_default())).await?;
    let (mut unpacker, end) = match PackedFormat::detect(&head)? {
        PackedFormat::Zip => {
            let (end, contents) = read_zip_contents(&mut reader, size).await?;
            check_space(run, &run.transfer.folder(), contents.bytes()).await?;
            run.progress.set_totals(contents.count(), contents.bytes());
            (ArchiveUnpacker::zip(contents), end.offset)
        }
        PackedFormat::Tar => {
            check_space(run, &run.transfer.folder(), size).await?;
            run.progress.set_totals(0, size);
            (ArchiveUnpacker::tar(), size)
        }
        PackedFormat::TarGz => (ArchiveUnpacker::tar_gz(), size),
    };
    let tree = ExtractedTree::create(run, session, hidden).await?;
    let filled = fill(tree, &mut reader, &mut unpacker, end).await;
    clean_up(run, hidden, filled).await
}

/// Writes everything that is in the archive, whose members end at `end`.
async fn fill(
    mut tree: ExtractedTree<'_>,
    reader: &mut RemoteFileReader,
    unpacker: &mut ArchiveUnpacker,
    end: u64,
) -> Result<String, TransferError> {
    reader.seek(0..end);
    let mut read = 0;
    while let Some(mut chunk) = reader.next_chunk().await? {
        read += u64::try_from(chunk.len()).unwrap_or(u64::MAX);
        while let Some(event) = unpacker.next_event(&mut chunk)? {
            tree.apply(event).await?;
        }
    }
    if read < end {
        return Err(UnpackError::Truncated.into());
    }
    while let Some(event) = unpacker.finish()? {
        tree.apply(event).await?;
    }
    tree.finish().await
}

async fn read_zip_contents(reader: &mut RemoteFileReader, size: u64) -> Result<(ZipEnd, ZipContents), TransferError> {
    let tail = read_range(reader, size.saturating_sub(ZipEnd::TAIL_BYTES), size).await?;
    let end = ZipEnd::find(&tail, size)?;
    let table = read_range(reader, end.offset, end.offset.saturating_add(end.bytes)).await?;
    Ok((end, ZipContents::parse(&table, &end, size)?))
}

/// A part of the archive that fits into memory.
async fn read_range(reader: &mut RemoteFileReader, from: u64, to: u64) -> Result<Vec<u8>, TransferError> {
    let mut bytes = Vec::new();
    reader.seek(from..to);
    while let Some(chunk) = reader.next_chunk().await? {
        bytes.extend_from_slice(&chunk);
    }
    if u64::try_from(bytes.len()).ok() == to.checked_sub(from) { Ok(bytes) } else { Err(UnpackError::Truncated.into()) }
}

/// The archive's name without its ending.
fn folder_name(archive: &RemoteName) -> RemoteName {
    let stem = strip_ending(archive.as_bytes()).unwrap_or_default();
    let longer = || RemoteName::parse(&[archive.as_bytes(), b" (extracted)"].concat());
    RemoteName::parse(stem).or_else(|_| longer()).unwrap_or_else(|_| archive.clone())
}

fn strip_ending(name: &[u8]) -> Option<&[u8]> {
    let has =
        |ending: &&&[u8]| name.len() > ending.len() && name[name.len() - ending.len()..].eq_ignore_ascii_case(ending);
    let ending = ENDINGS.iter().find(has)?;
    Some(&name[..name.len() - ending.len()])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_named_after_their_archive() {
        for (archive, folder) in [
            (&b"data.zip"[..], &b"data"[..]),
            (b"data.TAR.GZ", b"data"),
            (b"run 7.tgz", b"run 7"),
            (b"bad\xff.tar", b"bad\xff"),
            (b".zip", b".zip (extracted)"),
            (b"..zip", b"..zip (extracted)"),
            (b"model", b"model (extracted)"),
        ] {
            let archive = RemoteName::parse(archive).unwrap();
            assert_eq!(folder_name(&archive).as_bytes(), folder, "{archive}");
        }
        let is = |name: &[u8]| is_archive_name(&RemoteName::parse(name).unwrap());
        assert!(is(b"a.zip") && is(b"a.tar.gz") && !is(b"a.gz") && !is(b"zip") && !is(b"a.tar.xz"));
    }
}
