//! Creating, renaming and moving files and folders. A form that is sent without its answer is shown first, so that the
//! buttons of the folder page need no script.

use askama::Template;
use askama::filters::HtmlSafe;
use axum::http::StatusCode;
use serde::Deserialize;

use super::change_form::{
    ChangeResultPart, ChangeSelection, FileFormFields, FolderLink, NothingSelectedPart, field, respond_part,
};
use super::edit::editor_url;
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::domain::{RemoteName, RemotePath};
use crate::error::AppError;
use crate::files::changes::{self, FileChangeError, MoveReport};
use crate::format;
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::{self, FlashMessage, name_in_message};
use crate::web::http::form_errors::echo_input;
use crate::web::http::page_frame::FORM_ERROR_STATUS;

#[derive(Deserialize)]
pub struct NewEntryForm {
    /// The folder, encoded.
    path: String,
    new_name: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NewEntryKind {
    Folder,
    File,
}

#[derive(Template)]
#[template(path = "files/new_entry.html")]
struct NewEntryPart<'a> {
    slug: &'a str,
    folder: FolderLink,
    kind: NewEntryKind,
    typed: String,
    error: String,
}

#[derive(Template)]
#[template(path = "files/rename.html")]
struct RenamePart<'a> {
    slug: &'a str,
    folder: FolderLink,
    /// The entry, encoded and as it is shown.
    from: String,
    from_shown: String,
    to: String,
    error: String,
}

#[derive(Template)]
#[template(path = "files/move.html")]
struct MovePart<'a> {
    slug: &'a str,
    folder: FolderLink,
    names: Vec<String>,
    /// What is moved, in words.
    what: String,
    to: String,
    error: String,
}

impl HtmlSafe for NewEntryPart<'_> {}
impl HtmlSafe for RenamePart<'_> {}
impl HtmlSafe for MovePart<'_> {}

pub async fn create_folder(unchecked: UncheckedFilesRequest, FormBody(form): FormBody<NewEntryForm>) -> HandlerResult {
    create(unchecked.authorize().await?, form, NewEntryKind::Folder).await
}

/// Creates an empty file and opens it in the editor.
pub async fn create_file(unchecked: UncheckedFilesRequest, FormBody(form): FormBody<NewEntryForm>) -> HandlerResult {
    create(unchecked.authorize().await?, form, NewEntryKind::File).await
}

async fn create(files: FilesRequest, form: NewEntryForm, kind: NewEntryKind) -> HandlerResult {
    let folder = RemotePath::from_encoded(&form.path).map_err(|error| AppError::BadRequest(error.to_string()))?;
    let created = match (RemoteName::from_typed(&form.new_name), &files.connection) {
        (Err(error), _) => Err(error.to_string()),
        (Ok(_), Err(error)) => Err(error.to_string()),
        (Ok(name), Ok(connection)) => {
            let created = match kind {
                NewEntryKind::Folder => changes::create_folder(connection, &folder, &name).await,
                NewEntryKind::File => changes::create_file(connection, &folder, &name, Vec::new(), None).await,
            };
            created.map_err(|error| error.to_string())
        }
    };
    match (created, kind) {
        (Ok(path), NewEntryKind::Folder) => {
            files.record(ActivityEventKind::FolderCreated, &path.to_string()).await?;
            let url = files_url(files.slug(), &folder);
            let name = path.name().map(name_in_message).unwrap_or_default();
            let text = format!("Created the folder {name}.");
            Ok(flash::redirect_with_text(files.request.context, &url, FlashMessage::FolderCreated, &text))
        }
        (Ok(path), NewEntryKind::File) => {
            files.record(ActivityEventKind::FileCreated, &path.to_string()).await?;
            Ok(flash::see_other(&editor_url(files.slug(), &path)))
        }
        (Err(error), _) => {
            let title = match kind {
                NewEntryKind::Folder => "New folder",
                NewEntryKind::File => "New file",
            };
            let typed = echo_input(&form.new_name);
            let slug = files.slug();
            let part = NewEntryPart { slug, folder: FolderLink::new(slug, &folder), kind, typed, error };
            respond_part(&files, FORM_ERROR_STATUS, title, &folder, part).await
        }
    }
}

/// Renames one entry. Without a new name, asks for it.
pub async fn rename(unchecked: UncheckedFilesRequest, FormBody(fields): FormBody<FileFormFields>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let selection = ChangeSelection::parse(&fields)?;
    let [from] = &selection.names[..] else {
        if selection.names.is_empty() {
            return respond_nothing(&files, "Rename", &selection.folder, "Select the item to rename.").await;
        }
        let folder = FolderLink::new(files.slug(), &selection.folder);
        let (title, text) = ("Several items selected", "Rename one item at a time.");
        let part = NothingSelectedPart { title, text, folder };
        return respond_part(&files, FORM_ERROR_STATUS, "Rename", &selection.folder, part).await;
    };
    let is_answered = fields.iter().any(|(key, _)| key == "to");
    let typed = field(&fields, "to");
    let error = if is_answered {
        match rename_to(&files, &selection.folder, from, typed).await {
            Ok(to) => {
                let detail = format!("{from} to {to} in {}", selection.folder);
                files.record(ActivityEventKind::FilesMoved, &detail).await?;
                let url = files_url(files.slug(), &selection.folder);
                let text = format!("Renamed {} to {}.", name_in_message(from), name_in_message(&to));
                let context = files.request.context;
                return Ok(flash::redirect_with_text(context, &url, FlashMessage::FileRenamed, &text));
            }
            Err(error) => error,
        }
    } else {
        String::new()
    };
    let part = RenamePart {
        slug: files.slug(),
        folder: FolderLink::new(files.slug(), &selection.folder),
        from: from.to_encoded(),
        from_shown: from.to_string(),
        to: if is_answered { echo_input(typed) } else { typable_name(from) },
        error,
    };
    let status = if part.error.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    respond_part(&files, status, "Rename", &selection.folder, part).await
}

/// Returns the new name.
async fn rename_to(
    files: &FilesRequest,
    folder: &RemotePath,
    from: &RemoteName,
    typed: &str,
) -> Result<RemoteName, String> {
    let to = RemoteName::from_typed(typed).map_err(|error| error.to_string())?;
    let connection = files.connection.as_ref().map_err(ToString::to_string)?;
    changes::rename(connection, folder, from, &to).await.map_err(|error| error.to_string())?;
    Ok(to)
}

/// A name to start from: what nobody can type is replaced.
fn typable_name(name: &RemoteName) -> String {
    name.to_string().replace(char::REPLACEMENT_CHARACTER, "_")
}

/// Moves entries into another folder. Without one, asks for it.
pub async fn move_entries(
    unchecked: UncheckedFilesRequest,
    FormBody(fields): FormBody<FileFormFields>,
) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let selection = ChangeSelection::parse(&fields)?;
    if selection.names.is_empty() {
        return respond_nothing(&files, "Move", &selection.folder, "Select the items to move.").await;
    }
    let typed = field(&fields, "to");
    let is_answered = fields.iter().any(|(key, _)| key == "to");
    let error = if is_answered {
        let moved = move_to(&files, &selection, typed).await;
        if let Ok(report) = &moved {
            record_move(&files, &selection.folder, &report.moved, typed).await?;
        }
        match moved {
            Ok(report) if report.failed.is_empty() => {
                let url = files_url(files.slug(), &selection.folder);
                let what = name_entries(&report.moved);
                let text = format!("Moved {what} to {}.", name_in_message(typed.trim()));
                let context = files.request.context;
                return Ok(flash::redirect_with_text(context, &url, FlashMessage::FilesMoved, &text));
            }
            // With a single one, the form is still the best place to go on.
            Ok(report) if selection.names.len() == 1 => {
                report.failed.first().map(FileChangeError::to_string).unwrap_or_default()
            }
            Ok(report) => return respond_moved(&files, &selection.folder, &report).await,
            Err(error) => error,
        }
    } else {
        String::new()
    };
    let part = MovePart {
        slug: files.slug(),
        folder: FolderLink::new(files.slug(), &selection.folder),
        names: selection.encoded_names(),
        what: selection.words(),
        to: if is_answered { echo_input(typed) } else { String::new() },
        error,
    };
    let status = if part.error.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    respond_part(&files, status, "Move", &selection.folder, part).await
}

async fn move_to(files: &FilesRequest, selection: &ChangeSelection, typed: &str) -> Result<MoveReport, String> {
    let target = files.typed_path(typed).map_err(|error| error.to_string())?;
    let connection = files.connection.as_ref().map_err(ToString::to_string)?;
    let moved = changes::move_entries(connection, &selection.folder, selection.names.clone(), &target).await;
    moved.map_err(|error| error.to_string())
}

async fn record_move(files: &FilesRequest, from: &RemotePath, moved: &[RemoteName], to: &str) -> Result<(), AppError> {
    let what = match moved {
        [] => return Ok(()),
        [name] => name.to_string(),
        names => format::count(u64::try_from(names.len()).unwrap_or(u64::MAX), "item"),
    };
    files.record(ActivityEventKind::FilesMoved, &format!("{what} in {from} to {}", echo_input(to))).await
}

/// One entry by its name, several by their number.
fn name_entries(names: &[RemoteName]) -> String {
    match names {
        [name] => name_in_message(name),
        names => format::count(u64::try_from(names.len()).unwrap_or(u64::MAX), "item"),
    }
}

/// Says what was moved and what wasn't.
async fn respond_moved(files: &FilesRequest, folder: &RemotePath, report: &MoveReport) -> HandlerResult {
    let count = |entries: usize| format::count(u64::try_from(entries).unwrap_or(u64::MAX), "item");
    let part = ChangeResultPart {
        kind: "warning",
        title: format!("Couldn't move {}", count(report.failed.len())),
        text: match report.moved.len() {
            0 => "Nothing was moved.".to_owned(),
            moved => format!("Moved {}.", count(moved)),
        },
        failures: report.failed.iter().map(FileChangeError::to_string).collect(),
        warning: String::new(),
        folder: FolderLink::new(files.slug(), folder),
    };
    respond_part(files, FORM_ERROR_STATUS, "Move", folder, part).await
}

pub(super) async fn respond_nothing(
    files: &FilesRequest,
    title: &str,
    folder: &RemotePath,
    text: &'static str,
) -> HandlerResult {
    let link = FolderLink::new(files.slug(), folder);
    let part = NothingSelectedPart { title: "Nothing selected", text, folder: link };
    respond_part(files, FORM_ERROR_STATUS, title, folder, part).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_nobody_can_type_become_typable() {
        for (name, expected) in [(&b"train.py"[..], "train.py"), (b"bad\xff\n.txt", "bad__.txt"), (b"-rf", "-rf")] {
            let typable = typable_name(&RemoteName::parse(name).unwrap());
            assert_eq!(typable, expected);
            assert!(RemoteName::from_typed(&typable).is_ok());
        }
    }
}
