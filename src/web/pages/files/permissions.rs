//! Who on the cluster can use files and folders: shown and changed in words.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::StatusCode;

use super::change_form::{ChangeResultPart, ChangeSelection, FileFormFields, FolderLink, field, respond_part};
use super::changes::respond_nothing;
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::files::sharing::{self, AccessChange, AccessReport, AccessScope, FileAccess, MAX_DESCRIBED};
use crate::format;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage, name_in_message};
use crate::web::http::page_frame::FORM_ERROR_STATUS;

const TITLE: &str = "Permissions";

#[derive(Template)]
#[template(path = "files/permissions.html")]
struct PermissionsPart<'a> {
    slug: &'a str,
    folder: FolderLink,
    names: Vec<String>,
    /// What is changed, in words.
    what: String,
    /// The present permissions; `None` if nobody has looked yet.
    report: Option<AccessReport>,
    chosen: Option<FileAccess>,
    warning: String,
    error: String,
}

impl HtmlSafe for PermissionsPart<'_> {}

impl PermissionsPart<'_> {
    /// Whether there may be a folder among them.
    fn has_folder(&self) -> bool {
        let Some(report) = &self.report else { return true };
        report.entries.iter().any(|entry| entry.is_folder) || self.more() > 0
    }

    /// How many entries aren't described.
    fn more(&self) -> usize {
        self.names.len().saturating_sub(MAX_DESCRIBED)
    }

    /// Says which group is meant.
    fn group_hint(&self) -> String {
        match self.report.as_ref().and_then(|report| report.group.as_deref()) {
            Some(group) => format!("Your group here: {group}."),
            None => "“Your group” means the group that owns the file on the cluster.".to_owned(),
        }
    }
}

/// Sets the permissions. Without a choice, asks for it.
pub async fn post(unchecked: UncheckedFilesRequest, FormBody(fields): FormBody<FileFormFields>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let selection = ChangeSelection::parse(&fields)?;
    if selection.names.is_empty() {
        return respond_nothing(
            &files,
            TITLE,
            &selection.folder,
            "Select the items whose permissions you want to change.",
        )
        .await;
    }
    let chosen = FileAccess::parse(field(&fields, "access"));
    let is_answered = !field(&fields, "set").is_empty();
    let scope = if field(&fields, "inside").is_empty() { AccessScope::Itself } else { AccessScope::EverythingInside };
    let error = match (is_answered, chosen) {
        (false, _) => String::new(),
        (true, None) => "Choose who can use it.".to_owned(),
        (true, Some(access)) => match set_access(&files, &selection, access, scope).await {
            Ok(change) => return respond_changed(files, &selection, access, scope, change).await,
            Err(error) => error,
        },
    };
    // A page of its own doesn't wait for the cluster unless it is asked to.
    let is_awaited = files.request.context.is_fragment || !field(&fields, "wait").is_empty();
    let (report, error) = match (is_awaited, error) {
        (false, error) => (None, error),
        (true, error) => match read_report(&files, &selection).await {
            Ok(report) => (Some(report), error),
            Err(problem) if error.is_empty() => (None, problem),
            Err(_) => (None, error),
        },
    };
    let warning = report.as_ref().map(|report| closed_warning(&files, report, FileAccess::GroupReads));
    let present = report.as_ref().and_then(|report| match &report.entries[..] {
        [one] => one.access,
        _ => None,
    });
    let status = if error.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let part = PermissionsPart {
        slug: files.slug(),
        folder: FolderLink::new(files.slug(), &selection.folder),
        names: selection.encoded_names(),
        what: selection.words(),
        chosen: chosen.or(present),
        warning: warning.unwrap_or_default(),
        report,
        error,
    };
    respond_part(&files, status, TITLE, &selection.folder, part).await
}

async fn set_access(
    files: &FilesRequest,
    selection: &ChangeSelection,
    access: FileAccess,
    scope: AccessScope,
) -> Result<AccessChange, String> {
    let connection = files.connection.as_ref().map_err(ToString::to_string)?;
    let set = sharing::set_access(connection, &selection.folder, &selection.names, access, scope).await;
    set.map_err(|error| error.to_string())
}

async fn read_report(files: &FilesRequest, selection: &ChangeSelection) -> Result<AccessReport, String> {
    let connection = files.connection.as_ref().map_err(ToString::to_string)?;
    let read = sharing::read_access(connection, &selection.folder, &selection.names, &files.discovered).await;
    read.map_err(|error| error.to_string())
}

/// Goes back to the folder, or says what a short message can't.
async fn respond_changed(
    files: FilesRequest,
    selection: &ChangeSelection,
    access: FileAccess,
    scope: AccessScope,
    change: AccessChange,
) -> HandlerResult {
    if change.changed > 0 {
        let whole = if scope == AccessScope::EverythingInside { " and everything inside" } else { "" };
        let detail = format!("{} in {}{whole}: {}", selection.words(), selection.folder, access.words());
        files.record(ActivityEventKind::FilePermissionsChanged, &detail).await?;
    }
    let warning = match read_report(&files, selection).await {
        Ok(report) => closed_warning(&files, &report, access),
        Err(_) => String::new(),
    };
    if change.failed == 0 && warning.is_empty() && scope == AccessScope::Itself {
        let url = files_url(files.slug(), &selection.folder);
        let text = format!("Changed the permissions of {}: {}.", name_in_message(selection.words()), access.words());
        let context = files.request.context;
        return Ok(flash::redirect_with_text(context, &url, FlashMessage::PermissionsChanged, &text));
    }
    let is_fine = change.failed == 0;
    let part = ChangeResultPart {
        kind: if is_fine { "ok" } else { "warning" },
        title: match (is_fine, change.changed) {
            (true, _) => "Permissions changed".to_owned(),
            (false, 0) => "Permissions not changed".to_owned(),
            (false, _) => "Some permissions weren't changed".to_owned(),
        },
        text: change_words(&change),
        failures: listed_failures(&change),
        warning,
        folder: FolderLink::new(files.slug(), &selection.folder),
    };
    let status = if is_fine { StatusCode::OK } else { FORM_ERROR_STATUS };
    respond_part(&files, status, TITLE, &selection.folder, part).await
}

fn item_count(count: usize) -> String {
    format::count(u64::try_from(count).unwrap_or(u64::MAX), "item")
}

fn change_words(change: &AccessChange) -> String {
    let changed = format!("Changed {}.", item_count(change.changed));
    match change.unchanged {
        0 => changed,
        same => format!("{changed} Already set that way: {}.", item_count(same)),
    }
}

fn listed_failures(change: &AccessChange) -> Vec<String> {
    let more = change.failed.saturating_sub(change.failures.len());
    let rest = (more > 0).then(|| format!("And {} more.", format::number(u64::try_from(more).unwrap_or(u64::MAX))));
    change.failures.iter().cloned().chain(rest).collect()
}

/// Says which folder on the way keeps others out; empty if none does.
fn closed_warning(files: &FilesRequest, report: &AccessReport, access: FileAccess) -> String {
    let (closed, whom) = match access {
        FileAccess::OnlyYou => (None, ""),
        FileAccess::GroupReads | FileAccess::GroupChanges => (report.closed.to_group.as_ref(), "your group"),
        FileAccess::EveryoneReads => (report.closed.to_everyone.as_ref(), "others"),
    };
    let home = files.discovered.home.as_deref().unwrap_or_default();
    match closed {
        None => String::new(),
        Some(path) if path.as_bytes() == home.as_bytes() => {
            format!(
                "Your home folder is closed to {whom}, so they can't reach anything in it. Move what you want to share to a project folder."
            )
        }
        Some(path) => format!(
            "The folder {path} is closed to {whom}, so they can't reach anything in it. Change its permissions too, or move what you want to share to a project folder."
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_counted() {
        let change = AccessChange { changed: 1, unchanged: 0, failed: 0, failures: Vec::new() };
        assert_eq!(change_words(&change), "Changed 1 item.");
        let failures = vec!["/a: No.".to_owned()];
        let change = AccessChange { changed: 12, unchanged: 3, failed: 4, failures };
        assert_eq!(change_words(&change), "Changed 12 items. Already set that way: 3 items.");
        assert_eq!(listed_failures(&change), ["/a: No.", "And 3 more."]);
    }
}
