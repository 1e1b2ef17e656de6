//! Transfers in words: what each does, where, and how it ended.

use crate::domain::{RemoteName, RemotePath};
use crate::format;
use crate::store::transfers::{Transfer, TransferKind, TransferState};

/// Longer names are cut in sentences.
const MAX_NAME_CHARS: usize = 60;

/// A transfer in words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransferWords {
    /// What it does: `Delete results`.
    pub title: String,
    /// The folder that it takes from; `None` for a download.
    pub from: Option<RemotePath>,
    /// The folder that it puts something into.
    pub to: Option<RemotePath>,
}

pub fn describe(transfer: &Transfer) -> TransferWords {
    let items = name_items(transfer);
    let folder = transfer.folder();
    match transfer.kind() {
        Some(TransferKind::Delete) => TransferWords { title: format!("Delete {items}"), from: Some(folder), to: None },
        Some(TransferKind::Copy) => {
            TransferWords { title: format!("Copy {items}"), from: Some(folder), to: transfer.target_folder() }
        }
        Some(TransferKind::Compress) => {
            let archive = transfer.archive_path().and_then(|path| path.name());
            let archive = archive.map(|name| format!(" into {}", shorten_name(&name))).unwrap_or_default();
            TransferWords { title: format!("Compress {items}{archive}"), from: Some(folder), to: None }
        }
        Some(TransferKind::Extract) => {
            TransferWords { title: format!("Extract {items}"), from: Some(folder), to: None }
        }
        Some(TransferKind::Fetch) | None => {
            TransferWords { title: format!("Download {items}"), from: None, to: Some(folder) }
        }
    }
}

/// What is going on, as a sentence: `Copying results to /scratch/ada.`
pub fn describe_ongoing(transfer: &Transfer) -> String {
    let items = name_items(transfer);
    let words = match transfer.kind() {
        Some(TransferKind::Delete) => format!("Deleting {items}"),
        Some(TransferKind::Copy) => {
            let to = transfer.target_folder().map(|folder| format!(" to {}", shorten(&folder.to_string())));
            format!("Copying {items}{}", to.unwrap_or_default())
        }
        Some(TransferKind::Compress) => {
            let archive = transfer.archive_path().and_then(|path| path.name());
            let archive = archive.map(|name| format!(" into {}", shorten_name(&name))).unwrap_or_default();
            format!("Compressing {items}{archive}")
        }
        Some(TransferKind::Extract) => format!("Extracting {items}"),
        Some(TransferKind::Fetch) | None => format!("Downloading {items}"),
    };
    if transfer.state == TransferState::Paused { format!("Paused: {words}.") } else { format!("{words}.") }
}

/// How it ended, as a sentence: `Copied results.`
pub fn describe_ended(transfer: &Transfer) -> String {
    let text = notification_text(transfer, transfer.state, &transfer.message);
    if text.ends_with(['.', '?']) { text } else { format!("{text}.") }
}

/// What a notification says when it ended.
pub(super) fn notification_text(transfer: &Transfer, state: TransferState, message: &str) -> String {
    let items = name_items(transfer);
    let (done, failed) = match transfer.kind() {
        Some(TransferKind::Delete) => ("Deleted", "Couldn't delete all of"),
        Some(TransferKind::Copy) => ("Copied", "Couldn't copy"),
        Some(TransferKind::Compress) => ("Compressed", "Couldn't compress"),
        Some(TransferKind::Extract) => ("Extracted", "Couldn't extract"),
        Some(TransferKind::Fetch) | None => ("Downloaded", "Couldn't download"),
    };
    match (state, message) {
        (TransferState::Failed, message) => format!("{failed} {items}: {message}"),
        (_, "") => format!("{done} {items}"),
        (_, message) => format!("{done} {items}. {message}"),
    }
}

/// One item by its name, several by their number.
fn name_items(transfer: &Transfer) -> String {
    if transfer.kind() == Some(TransferKind::Fetch) {
        return shorten(&transfer.url);
    }
    match transfer.names().as_slice() {
        [name] => shorten_name(name),
        names => format::count(u64::try_from(names.len()).unwrap_or(0), "item"),
    }
}

fn shorten_name(name: &RemoteName) -> String {
    shorten(&name.to_string())
}

fn shorten(text: &str) -> String {
    format::shorten(text, MAX_NAME_CHARS)
}
