//! Copies one file.

use super::tree::{FileToCopy, SMALL_FILE_BYTES, TreeCopy, explain, kept_attrs, require_folder_of};
use crate::files::transfers::TransferError;
use crate::files::transfers::partial_file::{PartialFileWriter, temporary_name};
use crate::files::transfers::worker::TransferRun;
use crate::ssh::sftp::transfer::{RemoteFileReader, TransferSession};
use crate::ssh::sftp::{RenameMode, SetAttrs, SftpError};

/// What became of a small file.
pub(super) enum SmallFileOutcome {
    /// It has so many bytes.
    Copied(u64),
    /// It can't be read.
    LeftOut(SftpError),
    /// It isn't small any more.
    Grown,
}

/// Copies a file that fits into memory. `number` tells its hidden name from those of others.
pub(super) async fn copy_small_file(
    run: &TransferRun,
    source: &TransferSession,
    target: &TransferSession,
    file: &FileToCopy,
    number: u64,
) -> Result<SmallFileOutcome, TransferError> {
    let most = usize::try_from(SMALL_FILE_BYTES).unwrap_or(usize::MAX);
    let data = match source.read(&file.source, most).await {
        Ok(data) if data.len() > most => return Ok(SmallFileOutcome::Grown),
        Ok(data) => data,
        Err(error @ SftpError::Run(_)) => return Err(error.into()),
        Err(error) => return Ok(SmallFileOutcome::LeftOut(error)),
    };
    let Some(folder) = file.target.parent() else { return Ok(SmallFileOutcome::LeftOut(SftpError::NotAFile)) };
    let temporary = folder.join(&temporary_name(&run.transfer, &number.to_string())?);
    let failed = |error: SftpError| explain(&file.target, &error);
    let kept = kept_attrs(&file.attrs);
    let times = SetAttrs { times: kept.times, ..SetAttrs::default() };
    require_folder_of(target, &file.target).await?;
    run.progress.begin_temporary(&temporary);
    let mut written = target.write_new_with(&temporary, &data, kept.mode, times).await;
    if written == Err(SftpError::AlreadyExists) {
        // An earlier try left it.
        target.remove_file(&temporary).await.map_err(failed)?;
        written = target.write_new_with(&temporary, &data, kept.mode, times).await;
    }
    written.map_err(failed)?;
    if let Err(error) = target.rename(&temporary, &file.target, RenameMode::KeepExisting).await {
        let _ = target.remove_file(&temporary).await;
        return Err(failed(error));
    }
    run.progress.end_temporary(&temporary);
    Ok(SmallFileOutcome::Copied(u64::try_from(data.len()).unwrap_or(u64::MAX)))
}

impl TreeCopy<'_> {
    /// Copies a file of any size; goes on with what an earlier try left.
    pub(super) async fn copy_large_file(&mut self, file: &FileToCopy) -> Result<(), TransferError> {
        let progress = &self.run.progress;
        progress.set_current(file.source.to_string());
        let mut reader = match RemoteFileReader::open(&self.run.connection, &file.source).await {
            Ok(reader) => reader,
            Err(error @ SftpError::Run(_)) => return Err(error.into()),
            Err(error) => {
                self.checkpoint.notes.leave_out(&file.source, &error);
                return Ok(());
            }
        };
        let attrs = *reader.attrs();
        let Some(folder) = file.target.parent() else { return Ok(()) };
        let temporary = folder.join(&temporary_name(&self.run.transfer, "large")?);
        let version = attrs.modified.map_or(0, |at| at.0);
        let source = format!("{} {} {version}", file.source.to_encoded(), attrs.size);
        require_folder_of(&self.target, &file.target).await?;
        let left = self.checkpoint.partial.take();
        if let Some(other) = left.as_ref().filter(|left| !left.is_at(&temporary)) {
            // Its source is gone, or has moved.
            other.remove(&self.run.target).await?;
        }
        // Until the checkpoint names it.
        progress.begin_temporary(&temporary);
        let opened =
            PartialFileWriter::open(&self.run.target, temporary.clone(), source, attrs.size, left.as_ref()).await;
        let mut writer = opened?;
        reader.seek(writer.confirmed()..attrs.size);
        let mut counted = writer.confirmed();
        progress.add_bytes(counted);
        while let Some(data) = reader.next_chunk().await? {
            writer.write(data).await.map_err(|error| explain(&file.target, &error))?;
            let confirmed = writer.confirmed();
            if confirmed > counted {
                progress.add_bytes(confirmed - counted);
                counted = confirmed;
                self.checkpoint.partial = Some(writer.to_partial());
                progress.set_checkpoint(&self.checkpoint);
                progress.end_temporary(&temporary);
            }
        }
        let finished = writer.finish(&file.target, kept_attrs(&attrs)).await;
        let size = finished.map_err(|error| explain(&file.target, &error))?;
        self.checkpoint.partial = None;
        progress.set_checkpoint(&self.checkpoint);
        progress.end_temporary(&temporary);
        let is_same =
            self.source.stat(&file.source).await.is_ok_and(|now| (now.size, now.modified) == (size, attrs.modified));
        if !is_same {
            self.checkpoint.notes.changed += 1;
        }
        let copied = FileToCopy { attrs, ..file.clone() };
        self.count(&copied, size.saturating_sub(counted));
        Ok(())
    }
}
