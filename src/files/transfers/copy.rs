//! Copies items to another folder, on the same cluster or another one. Bytes pass through the portal, which keeps none.
//! What is at the target stays: a copy whose name is taken gets a number. Each file appears under its name only when it is
//! whole, so whatever has its name is done when a copy goes on after an interruption.

mod file;
mod tree;
mod verify;

use serde::{Deserialize, Serialize};

use self::tree::TreeCopy;
use super::TransferError;
use super::count::{CountLimits, count_items};
use super::free_name::find_free_path;
use super::partial_file::PartialFile;
use super::worker::TransferRun;
use crate::domain::RemotePath;
use crate::format;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteFileKind, SftpError};

/// Counting is only for the progress bar.
const COUNT_LIMITS: CountLimits = CountLimits { time: std::time::Duration::from_mins(2), files: 1_000_000 };

/// Where a copy goes on from.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(super) struct CopyCheckpoint {
    /// How many items are finished, and what that was.
    finished: usize,
    files: u64,
    bytes: u64,
    /// The folder that copies go to, without links in it, encoded.
    folder: Option<String>,
    /// The path of the copy of the next item, encoded, once it is chosen.
    target: Option<String>,
    /// A large file that was left half-way.
    partial: Option<PartialFile>,
    notes: CopyNotes,
}

/// What to know about the result.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
struct CopyNotes {
    /// What couldn't be read: how many items, and the first with the reason.
    left_out: u64,
    first_left_out: String,
    /// Pipes, sockets and devices.
    special: u64,
    /// Files that changed while they were copied.
    changed: u64,
    /// Whether checksums couldn't be compared between clusters.
    is_unverified: bool,
}

impl CopyNotes {
    fn leave_out(&mut self, path: &RemotePath, reason: &SftpError) {
        self.left_out += 1;
        if self.first_left_out.is_empty() {
            self.first_left_out = format!("{path}: {reason}");
        }
    }

    fn sentences(&self) -> String {
        let mut sentences = Vec::new();
        if self.left_out > 0 {
            let count = format::count(self.left_out, "item");
            sentences.push(format!("Left out because of read errors: {count}. The first: {}", self.first_left_out));
        }
        if self.special > 0 {
            let count = format::count(self.special, "special file");
            sentences.push(format!("Left out: {count}, such as pipes, sockets and devices."));
        }
        if self.changed > 0 {
            let count = format::count(self.changed, "file");
            sentences.push(format!("Changed while being copied: {count}. Copy again if you need the latest contents."));
        }
        if self.is_unverified {
            sentences.push("Only sizes were compared, because one of the clusters has no checksum program.".to_owned());
        }
        sentences.join(" ")
    }
}

/// Copies the transfer's items. Returns what to know about the result.
pub(super) async fn run(run: &TransferRun) -> Result<String, TransferError> {
    let source = TransferSession::open(&run.connection).await?;
    let target = TransferSession::open(&run.target).await?;
    let folder = run.transfer.folder();
    let items: Vec<RemotePath> = run.transfer.names().iter().map(|name| folder.join(name)).collect();
    let target_folder = check_target(run, &source, &target).await?;
    let mut checkpoint: CopyCheckpoint = serde_json::from_str(&run.transfer.checkpoint).unwrap_or_default();
    let known_folder = checkpoint.folder.get_or_insert_with(|| target_folder.to_encoded());
    if *known_folder != target_folder.to_encoded() {
        return Err(TransferError::Failed(TARGET_REPLACED.to_owned()));
    }
    if run.transfer.files_total == 0 {
        let count = count_items(&source, &items, COUNT_LIMITS).await?;
        if !count.is_partial {
            run.progress.set_totals(count.files, count.bytes);
        }
    }
    run.progress.set_done(checkpoint.files, checkpoint.bytes);
    let mut tree = TreeCopy::new(run, source, target, checkpoint);
    for item in items.iter().skip(tree.checkpoint.finished) {
        let Some(name) = item.name() else { continue };
        let chosen = tree.checkpoint.target.as_deref().and_then(|path| RemotePath::from_encoded(path).ok());
        let copy = match chosen.and_then(|path| path.name()) {
            Some(name) => target_folder.join(&name),
            None => find_free_path(&tree.target, &target_folder, &name).await?,
        };
        // Saved before anything has this name: after an interruption, what has it is ours.
        tree.checkpoint.target = Some(copy.to_encoded());
        tree.save().await?;
        tree.copy_item(item, &copy).await?;
        let (files, bytes) = run.progress.done();
        let done = &mut tree.checkpoint;
        (done.finished, done.files, done.bytes, done.target) = (done.finished + 1, files, bytes, None);
        // If this isn't saved in time, the copy is found under its name and skipped.
        run.progress.set_checkpoint(&tree.checkpoint);
    }
    if let Some(left) = tree.checkpoint.partial.take() {
        left.remove(&run.target).await?;
    }
    Ok(tree.checkpoint.notes.sentences())
}

const TARGET_REPLACED: &str =
    "The target folder was replaced after the copy started. Check who can write to it, then copy again.";

/// The target folder without links in it, if items can be copied there: it exists, and lies in none of them.
async fn check_target(
    run: &TransferRun,
    source: &TransferSession,
    target: &TransferSession,
) -> Result<RemotePath, TransferError> {
    let missing = || TransferError::Failed("The target folder doesn't exist. Create it, then try again.".to_owned());
    let folder = run.transfer.target_folder().ok_or_else(missing)?;
    match target.stat(&folder).await {
        Ok(attrs) if attrs.kind == RemoteFileKind::Folder => {}
        Ok(_) => return Err(TransferError::Failed("The target isn't a folder.".to_owned())),
        Err(SftpError::NotFound) => return Err(missing()),
        Err(error) => return Err(error.into()),
    }
    let from = source.real_path(&run.transfer.folder()).await?;
    let to = target.real_path(&folder).await?;
    if let Some(name) = run.transfer.names().iter().find(|name| to.is_within(&from.join(name)))
        && is_shared(run, source, &to).await?
    {
        return Err(TransferError::Failed(format!("{name} can't be copied into itself. Choose another folder.")));
    }
    Ok(to)
}

/// Whether a folder of the target is also where items are copied from. Clusters of one centre often share file systems.
async fn is_shared(run: &TransferRun, source: &TransferSession, folder: &RemotePath) -> Result<bool, TransferError> {
    if run.transfer.target_cluster_id.is_none() {
        return Ok(true);
    }
    match source.stat(folder).await {
        Ok(_) => Ok(true),
        Err(SftpError::NotFound) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpoints_of_older_versions_can_be_read() {
        let read: CopyCheckpoint = serde_json::from_str(r#"{"finished": 3, "unknown": 1}"#).unwrap();
        assert_eq!((read.finished, read.target, read.partial), (3, None, None));
        let whole = CopyCheckpoint { finished: 1, target: Some("/a%FF".to_owned()), ..CopyCheckpoint::default() };
        let text = serde_json::to_string(&whole).unwrap();
        assert_eq!(serde_json::from_str::<CopyCheckpoint>(&text).unwrap(), whole);
    }

    #[test]
    fn notes_are_sentences() {
        let mut notes = CopyNotes::default();
        assert_eq!(notes.sentences(), "");
        notes.leave_out(&RemotePath::parse(b"/a/b").unwrap(), &SftpError::NotAllowed);
        notes.leave_out(&RemotePath::parse(b"/a/c").unwrap(), &SftpError::NotAllowed);
        notes.is_unverified = true;
        let text = notes.sentences();
        assert!(text.starts_with("Left out because of read errors: 2 items. The first: /a/b: You don't"), "{text}");
        assert!(text.ends_with("no checksum program."), "{text}");
    }
}
