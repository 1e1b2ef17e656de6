//! Packs items into an archive beside them. Bytes pass through the portal, which keeps none; the archive has a hidden name
//! until it is whole. Links are packed as links and never followed.

use std::io::Write as _;

use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::count::{CountLimits, count_items};
use super::hidden_result::{HiddenResultStart, clean_up, publish, start};
use super::partial_file::PartialFileWriter;
use super::worker::TransferRun;
use super::{TransferError, login_key};
use crate::domain::{RemoteName, RemotePath};
use crate::files::archive::{ArchiveFormat, ArchiveSelection, ArchiveStream, LeftOutSummary};
use crate::files::downloads::{ConnectionSource, DownloadError};
use crate::format;
use crate::ssh::sftp::transfer::TransferSession;

/// Counting is only for the progress bar.
const COUNT_LIMITS: CountLimits = CountLimits { time: std::time::Duration::from_mins(1), files: 1_000_000 };

/// What someone can choose.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CompressFormat {
    TarGz,
    Zip,
    Tar,
}

impl CompressFormat {
    pub const ALL: [Self; 3] = [Self::TarGz, Self::Zip, Self::Tar];

    pub const fn extension(self) -> &'static str {
        match self {
            Self::TarGz => "tar.gz",
            Self::Zip => "zip",
            Self::Tar => "tar",
        }
    }

    pub fn parse(extension: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.extension() == extension)
    }

    /// From the archive's name, which ends with it.
    fn from_name(name: &RemoteName) -> Option<Self> {
        let ends_with = |format: &Self| name.as_bytes().ends_with(format!(".{}", format.extension()).as_bytes());
        Self::ALL.into_iter().find(ends_with)
    }
}

impl From<DownloadError> for TransferError {
    fn from(error: DownloadError) -> Self {
        match error {
            DownloadError::Sftp(error) => error.into(),
            // The next try reads what is there then.
            DownloadError::Shrunk | DownloadError::Changed | DownloadError::Stopped => {
                Self::Interrupted(error.to_string())
            }
        }
    }
}

/// Packs the transfer's items. Returns what to know about the result.
pub(super) async fn run(run: &TransferRun) -> Result<String, TransferError> {
    let session = TransferSession::open(&run.connection).await?;
    let folder = run.transfer.folder();
    let unknown = || {
        TransferError::Failed(
            "The archive's name isn't valid. Compress the files again and enter another name.".to_owned(),
        )
    };
    let name = run.transfer.archive_path().and_then(|path| path.name()).ok_or_else(unknown)?;
    let format = CompressFormat::from_name(&name).ok_or_else(unknown)?;
    let hidden = match start(run, &session, &folder, "compress").await? {
        HiddenResultStart::Begin(hidden) => hidden,
        HiddenResultStart::Finished(message) => return Ok(message),
    };
    let items: Vec<RemotePath> = run.transfer.names().iter().map(|name| folder.join(name)).collect();
    let count = count_items(&session, &items, COUNT_LIMITS).await?;
    if !count.is_partial {
        run.progress.set_totals(count.files, count.bytes);
    }
    let written = write_archive(run, format, ArchiveSelection::Inside(folder.clone(), items), &hidden).await;
    let (size, left_out) = clean_up(run, &hidden, written).await?;
    let describe = |path: &RemotePath| {
        let saved_name = path.name().map(|name| name.to_string()).unwrap_or_default();
        let saved = format!("Saved as {saved_name} ({}).", format::bytes(size));
        format!("{saved} {}", describe_left_out(&left_out)).trim_end().to_owned()
    };
    let published = publish(run, &session, &hidden, (&folder, &name), describe).await;
    clean_up(run, &hidden, published).await
}

/// Writes the archive; returns its size and what isn't in it.
async fn write_archive(
    run: &TransferRun,
    format: CompressFormat,
    selection: ArchiveSelection,
    hidden: &RemotePath,
) -> Result<(u64, LeftOutSummary), TransferError> {
    let key = login_key(run.transfer.person_id, run.transfer.cluster_id);
    let source = ConnectionSource::new(run.connections.clone(), key, run.core.stop.clone());
    let container = if format == CompressFormat::Zip { ArchiveFormat::Zip } else { ArchiveFormat::Tar };
    let mut stream = ArchiveStream::start(source, container, selection, run.core.clock.now());
    let mut gzip = (format == CompressFormat::TarGz).then(|| GzEncoder::new(Vec::new(), Compression::default()));
    let mut writer = PartialFileWriter::open(&run.connection, hidden.clone(), String::new(), u64::MAX, None).await?;
    let mut files = 0;
    while let Some(piece) = stream.next_piece().await? {
        run.progress.add_bytes(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        let packed = match gzip.take() {
            None => piece,
            Some(encoder) => {
                let (encoder, packed) = deflate(encoder, piece).await?;
                gzip = Some(encoder);
                packed
            }
        };
        writer.write(packed).await?;
        while files < stream.files_written() {
            files += 1;
            run.progress.add_file();
        }
    }
    if let Some(encoder) = gzip {
        let rest = encoder.finish().map_err(|error| TransferError::Failed(error.to_string()))?;
        writer.write(rest.into()).await?;
    }
    // It stays readable for its owner alone: there may be private files in it.
    let size = writer.finish_hidden().await?;
    Ok((size, stream.left_out().clone()))
}

/// Compresses a piece away from the threads that serve pages.
async fn deflate(mut encoder: GzEncoder<Vec<u8>>, piece: Bytes) -> Result<(GzEncoder<Vec<u8>>, Bytes), TransferError> {
    let work = move || {
        encoder.write_all(&piece)?;
        let packed = std::mem::take(encoder.get_mut());
        Ok::<_, std::io::Error>((encoder, packed.into()))
    };
    let done = tokio::task::spawn_blocking(work).await;
    let broken = || TransferError::Failed("The portal had an internal error. Try again.".to_owned());
    done.map_err(|_| broken())?.map_err(|_| broken())
}

fn describe_left_out(left_out: &LeftOutSummary) -> String {
    let mut sentences = Vec::new();
    if left_out.count > 0 {
        let count = format::count(left_out.count, "item");
        sentences.push(format!(
            "Left out: {count}, listed in NOT INCLUDED.txt in the archive. The first: {}",
            left_out.first
        ));
    }
    if left_out.is_truncated {
        sentences.push("Only the first 100,000 items are in the archive. Compress fewer at a time.".to_owned());
    }
    sentences.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archives_are_told_by_their_name() {
        let format = |name: &[u8]| CompressFormat::from_name(&RemoteName::parse(name).unwrap());
        assert_eq!(format(b"a.tar.gz"), Some(CompressFormat::TarGz));
        assert_eq!(format(b"a.gz.tar"), Some(CompressFormat::Tar));
        assert_eq!(format(b"bad\xff.zip"), Some(CompressFormat::Zip));
        assert_eq!(format(b"zip"), None);
        assert_eq!(CompressFormat::parse("tar.gz"), Some(CompressFormat::TarGz));
        assert_eq!(CompressFormat::parse("rar"), None);
    }

    #[test]
    fn what_is_missing_is_said() {
        assert_eq!(describe_left_out(&LeftOutSummary::default()), "");
        let left_out = LeftOutSummary { count: 2, first: "a: Why.".to_owned(), is_truncated: true };
        let text = describe_left_out(&left_out);
        assert!(
            text.starts_with("Left out: 2 items, listed in NOT INCLUDED.txt") && text.contains("100,000"),
            "{text}"
        );
    }
}
