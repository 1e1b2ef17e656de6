//! The rows of a folder, or why there are none.

#[cfg(test)]
mod tests;

use std::sync::Arc;

use super::folder_location::{FolderLocation, PAGE_ROWS};
use super::{FilesRequest, tensorboard_url};
use crate::clock::UnixTime;
use crate::cluster::ConnectionStatus;
use crate::domain::ClusterId;
use crate::error::AppError;
use crate::files::transfers::is_archive_name;
use crate::files::{FolderContents, FolderSortColumn, ListingFreshness};
use crate::format;
use crate::ssh::RunCommandError;
use crate::ssh::sftp::{RemoteDirEntry, RemoteFileKind, SftpError};
use crate::store;

/// About how much HTML the rows of one answer may be: long names make fewer rows.
const MAX_ROWS_BYTES: usize = 72_000;
/// What a row takes beside its names.
const ROW_BYTES: usize = 430;

/// What stands where the rows are.
pub struct FolderRows {
    pub location: FolderLocation,
    pub cluster: ClusterId,
    pub cluster_title: String,
    pub content: FolderRowsContent,
}

pub enum FolderRowsContent {
    Listed(ListedFolder),
    NotConnected(ConnectHint),
    Trouble(FolderTrouble),
}

/// What someone who isn't connected can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConnectHint {
    /// They have no user name there yet.
    SetUp,
    Connect,
    /// The connection is being opened, and may have a question.
    Continue,
}

pub struct FolderTrouble {
    pub title: &'static str,
    pub text: String,
    /// The page of the folder above; empty at the root.
    pub up: String,
    /// Whether the path is a file's.
    pub is_file: bool,
}

pub struct ListedFolder {
    pub rows: Vec<FolderRow>,
    /// How many entries the filter leaves.
    pub shown_count: usize,
    pub total_count: usize,
    pub hidden_count: usize,
    pub is_truncated: bool,
    pub read_at: UnixTime,
    /// The number of the next row; `None` after the last.
    pub next: Option<usize>,
    pub headings: Vec<FolderHeading>,
    /// The form for a new TensorBoard; empty if it would have nothing to show.
    pub tensorboard: String,
    /// A name that was to be shown and isn't there; empty if it is.
    pub missing_name: String,
}

pub struct FolderHeading {
    pub label: &'static str,
    pub is_number: bool,
    /// For `aria-sort`; empty if the folder is sorted by another column.
    pub direction: &'static str,
    pub page_url: String,
    pub rows_url: String,
}

pub struct FolderRow {
    /// For people.
    pub name: String,
    pub encoded: String,
    /// folder, file or other.
    pub kind: &'static str,
    pub icon: &'static str,
    /// Where it leads; empty if it can't be opened.
    pub href: String,
    pub size: String,
    pub modified: Option<UnixTime>,
    /// What is special about it; empty if nothing is.
    pub note: &'static str,
    /// Whether it can be extracted.
    pub is_archive: bool,
    pub is_selected: bool,
}

impl FolderRows {
    /// Loads a folder's rows, and remembers that it was opened.
    pub async fn load(
        files: &FilesRequest,
        location: FolderLocation,
        from: usize,
        freshness: ListingFreshness,
    ) -> Result<Self, AppError> {
        let app = &files.request.context.app;
        let listed = match &files.connection {
            Ok(connection) => {
                let account = files.request.account_id();
                let now = app.clock.now();
                app.folder_listings.load(connection, account, &location.path, freshness, now).await
            }
            Err(error) => Err(error.clone().into()),
        };
        let content = match listed {
            Ok(contents) => {
                if from == 0 {
                    mark_opened(files, &location).await?;
                }
                FolderRowsContent::Listed(build_listed(contents, &location, from).await?)
            }
            Err(SftpError::Run(RunCommandError::NotConnected | RunCommandError::ConnectionLost)) => {
                FolderRowsContent::NotConnected(ConnectHint::find(files).await?)
            }
            Err(error) => FolderRowsContent::Trouble(FolderTrouble::new(&error, &location)),
        };
        Ok(Self::with_content(files, location, content))
    }

    /// The rows of a listing that is at hand.
    pub async fn from_contents(
        files: &FilesRequest,
        location: FolderLocation,
        contents: Arc<FolderContents>,
    ) -> Result<Self, AppError> {
        mark_opened(files, &location).await?;
        let listed = build_listed(contents, &location, 0).await?;
        Ok(Self::with_content(files, location, FolderRowsContent::Listed(listed)))
    }

    fn with_content(files: &FilesRequest, location: FolderLocation, content: FolderRowsContent) -> Self {
        let cluster = &files.request.cluster.row;
        Self { location, cluster: cluster.id, cluster_title: cluster.title.clone(), content }
    }

    /// Read aloud by screen readers when the rows change.
    pub fn announcement(&self) -> String {
        let name = self.location.path.name().map_or_else(|| "/".to_owned(), |name| name.to_string());
        match &self.content {
            FolderRowsContent::Listed(listed) => format!("{name}: {}", listed.sum()),
            FolderRowsContent::NotConnected(_) => format!("You're not connected to {}.", self.cluster_title),
            FolderRowsContent::Trouble(trouble) => format!("{}. {}", trouble.title, trouble.text),
        }
    }

    /// Whether new rows can come by themselves: as soon as the connection is open.
    pub const fn is_waiting_for_connection(&self) -> bool {
        matches!(self.content, FolderRowsContent::NotConnected(_))
    }
}

impl ConnectHint {
    pub async fn find(files: &FilesRequest) -> Result<Self, AppError> {
        let app = &files.request.context.app;
        let account = app.cluster_accounts.get(files.request.account_id()).await?;
        Ok(match account.map(|account| account.status(&app.connections)) {
            None => Self::SetUp,
            Some(ConnectionStatus::Connecting(_)) => Self::Continue,
            Some(_) => Self::Connect,
        })
    }
}

impl FolderTrouble {
    fn new(error: &SftpError, location: &FolderLocation) -> Self {
        let (title, text) = match error {
            SftpError::NotFound => (
                "This folder doesn't exist",
                "It may have been moved, renamed or deleted. Check the path, or go to the parent folder.".to_owned(),
            ),
            SftpError::NotAllowed => (
                "You don't have permission to see this folder",
                "The cluster decides who can read a folder. Ask the folder's owner for access.".to_owned(),
            ),
            SftpError::NotAFolder => ("This is a file, not a folder", "Go to the folder that contains it.".to_owned()),
            error => ("Couldn't load this folder", error.to_string()),
        };
        let up = location.path.parent().map(|parent| location.at(parent).page_url());
        Self { title, text, up: up.unwrap_or_default(), is_file: *error == SftpError::NotAFolder }
    }
}

impl ListedFolder {
    /// How many entries there are, in words.
    pub fn sum(&self) -> String {
        let count = |count: usize| format::number(u64::try_from(count).unwrap_or(u64::MAX));
        let total = match (self.total_count, self.is_truncated) {
            (0, _) => return "empty".to_owned(),
            (1, false) => "1 item".to_owned(),
            (total, false) => format!("{} items", count(total)),
            (total, true) => format!("the first {} items", count(total)),
        };
        match self.total_count - self.shown_count {
            0 => total,
            hidden if hidden == self.hidden_count => format!("{total}, {} hidden", count(hidden)),
            _ => format!("{} of {total}", count(self.shown_count)),
        }
    }

    /// The page that begins with the next row.
    pub fn next_page_url(&self, location: &FolderLocation) -> String {
        location.waiting_url(self.next.unwrap_or(self.shown_count))
    }

    /// The next rows, for the open page.
    pub fn next_rows_url(&self, location: &FolderLocation) -> String {
        location.rows_url(self.next.unwrap_or(self.shown_count))
    }

    /// How many rows follow, in words.
    pub fn rest(&self) -> String {
        let rest = self.shown_count.saturating_sub(self.next.unwrap_or(self.shown_count));
        format::number(u64::try_from(rest).unwrap_or(u64::MAX))
    }
}

/// Remembers a folder among those that were opened last, unless it is the latest already.
async fn mark_opened(files: &FilesRequest, location: &FolderLocation) -> Result<(), AppError> {
    let (app, id) = (&files.request.context.app, files.request.account_id());
    let recent = store::file_folders::list_recent(&mut *app.store.read().await?, id.person, id.cluster).await?;
    let last_cluster = store::file_folders::find_last_cluster(&mut *app.store.read().await?, id.person).await?;
    if recent.first() == Some(&location.path) && last_cluster == Some(id.cluster) {
        return Ok(());
    }
    let mut tx = app.store.write().await?;
    store::file_folders::mark_opened(&mut tx, id.person, id.cluster, &location.path, app.clock.now()).await?;
    Ok(store::commit(tx).await?)
}

async fn build_listed(
    contents: Arc<FolderContents>,
    location: &FolderLocation,
    from: usize,
) -> Result<ListedFolder, AppError> {
    let location = location.clone();
    // Sorting a hundred thousand names takes a moment; other requests go on meanwhile.
    let built = tokio::task::spawn_blocking(move || ListedFolder::new(&contents, &location, from)).await;
    built.map_err(|error| AppError::Internal(format!("sorting a folder: {error}")))
}

impl ListedFolder {
    fn new(contents: &FolderContents, location: &FolderLocation, from: usize) -> Self {
        let indices = contents.order(&location.order);
        let mut rows = Vec::new();
        let mut bytes = 0;
        for entry in indices.iter().skip(from).take(PAGE_ROWS).filter_map(|index| contents.entries.get(*index)) {
            let row = FolderRow::new(entry, location);
            bytes += row.html_bytes();
            if bytes > MAX_ROWS_BYTES && !rows.is_empty() {
                break;
            }
            rows.push(row);
        }
        let end = from.saturating_add(rows.len());
        let selected = location.order.selected.as_ref();
        let is_missing = selected.is_some_and(|name| !contents.entries.iter().any(|entry| entry.name == *name));
        let events = Some(&location.path).filter(|_| contents.has_event_files());
        Self {
            rows,
            shown_count: indices.len(),
            total_count: contents.entries.len(),
            hidden_count: contents.count_hidden(),
            is_truncated: contents.is_truncated,
            read_at: contents.read_at,
            next: (end < indices.len()).then_some(end),
            headings: build_headings(location),
            tensorboard: events.and_then(|folder| tensorboard_url(&location.slug, folder)).unwrap_or_default(),
            missing_name: selected.filter(|_| is_missing).map(ToString::to_string).unwrap_or_default(),
        }
    }
}

fn build_headings(location: &FolderLocation) -> Vec<FolderHeading> {
    let heading = |(label, column): (&'static str, FolderSortColumn)| {
        let sorted = location.sorted_by(column);
        let sort = location.order.sort;
        FolderHeading {
            label,
            is_number: column == FolderSortColumn::Size,
            direction: match (sort.column == column, sort.is_descending) {
                (false, _) => "",
                (true, false) => "ascending",
                (true, true) => "descending",
            },
            page_url: sorted.waiting_url(0),
            rows_url: sorted.rows_url(0),
        }
    };
    let columns =
        [("Name", FolderSortColumn::Name), ("Size", FolderSortColumn::Size), ("Modified", FolderSortColumn::Modified)];
    columns.into_iter().map(heading).collect()
}

impl FolderRow {
    fn new(entry: &RemoteDirEntry, location: &FolderLocation) -> Self {
        let path = location.path.join(&entry.name);
        let (kind, icon, href) = match entry.attrs.kind {
            RemoteFileKind::Folder => ("folder", "folder", location.at(path).page_url()),
            RemoteFileKind::File => ("file", "file", view_url(&location.slug, &path.to_encoded())),
            RemoteFileKind::Link | RemoteFileKind::Other => ("other", "neutral", String::new()),
        };
        let note = match (entry.attrs.kind, entry.is_link) {
            (RemoteFileKind::Folder, true) => "Link to a folder",
            (RemoteFileKind::File, true) => "Link to a file",
            (RemoteFileKind::Other, true) => "Link to a device or pipe",
            (RemoteFileKind::Link, _) => "Broken link",
            (RemoteFileKind::Other, false) => "Device or pipe",
            (RemoteFileKind::Folder | RemoteFileKind::File, false) => "",
        };
        let is_file = entry.attrs.kind == RemoteFileKind::File;
        Self {
            name: entry.name.to_string(),
            encoded: entry.name.to_encoded(),
            kind,
            icon,
            href,
            size: if is_file { format::bytes(entry.attrs.size) } else { String::new() },
            modified: entry.attrs.modified,
            note,
            is_archive: is_file && is_archive_name(&entry.name),
            is_selected: location.order.selected.as_ref() == Some(&entry.name),
        }
    }

    /// How much HTML it becomes, about.
    fn html_bytes(&self) -> usize {
        let escaped = |text: &str| -> usize {
            text.chars().map(|c| if matches!(c, '<' | '>' | '&' | '"' | '\'') { 5 } else { c.len_utf8() }).sum()
        };
        ROW_BYTES + 2 * escaped(&self.name) + 2 * escaped(&self.encoded) + escaped(&self.href)
    }
}

fn view_url(slug: &str, encoded: &str) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", encoded).finish();
    format!("/files/{slug}/view?{query}")
}
