//! Deleting ticked rows: first a page that counts what will go, then the deletion. One file or empty folder goes at once;
//! the rest is a transfer.

use std::time::Duration;

use askama::Template;

use super::transfer_selection::{SelectionView, TransferFields, TransferSelection, field, show_problem};
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::domain::RemotePath;
use crate::files::transfers::{
    CountLimits, DeleteAtOnceError, ItemCount, ProtectedPlaces, StartTransferError, count_items, delete_single,
};
use crate::format;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{self, SftpError};
use crate::store::transfers::{NewTransfer, TransferKind};
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::flash::{self, FlashMessage, name_in_message};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};

/// How long someone waits for the count.
const COUNT_LIMITS: CountLimits = CountLimits { time: Duration::from_secs(8), files: 50_000 };
const TITLE: &str = "Delete files";

#[derive(Template)]
#[template(path = "files/delete.html")]
struct DeletePage {
    page: PageFrame,
    view: DeleteView,
}

#[derive(Template)]
#[template(path = "files/delete_count_fragment.html")]
struct DeleteCountFragment {
    view: DeleteView,
}

struct DeleteView {
    title: String,
    selection: SelectionView,
    count: DeleteCountView,
}

enum DeleteCountView {
    /// It comes in a moment.
    Pending,
    Known(String),
    Problem(String),
}

/// Asks, from a link.
pub async fn get(unchecked: UncheckedFilesRequest, QueryParams(fields): QueryParams<TransferFields>) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let selection = TransferSelection::parse(&fields)?;
    show_question(&request, &selection, "").await
}

/// Asks, counts, or deletes.
pub async fn post(unchecked: UncheckedFilesRequest, FormBody(fields): FormBody<TransferFields>) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let selection = TransferSelection::parse(&fields)?;
    match field(&fields, "step") {
        "confirm" => delete(request, &selection).await,
        step => show_question(&request, &selection, step).await,
    }
}

async fn show_question(request: &FilesRequest, selection: &TransferSelection, step: &str) -> HandlerResult {
    if let Some(problem) = check(request, selection) {
        return show_problem(request, &selection.folder, TITLE, problem);
    }
    let count = match step {
        "count" => match count(request, selection).await {
            Ok(count) => DeleteCountView::Known(describe_count(&count)),
            Err(error) => DeleteCountView::Problem(error.to_string()),
        },
        _ => DeleteCountView::Pending,
    };
    let cluster = &request.request;
    let view = DeleteView {
        title: format!("Delete {}?", selection.title()),
        selection: SelectionView::new(request, selection),
        count,
    };
    if cluster.context.is_fragment {
        return respond(&DeleteCountFragment { view });
    }
    let page = PageFrame::for_person(&cluster.context, &cluster.me.0, TITLE, NavSection::Files);
    respond(&DeletePage { page, view })
}

/// Why this selection can't be deleted, as far as can be told without the cluster.
fn check(request: &FilesRequest, selection: &TransferSelection) -> Option<String> {
    let places = ProtectedPlaces::from_facts(&request.discovered);
    let protected = || selection.paths().iter().find_map(|path| places.check(path).err()).map(|e| e.to_string());
    selection.problem().or_else(protected)
}

async fn count(request: &FilesRequest, selection: &TransferSelection) -> Result<ItemCount, SftpError> {
    let connection = request.connection.as_ref().map_err(Clone::clone)?;
    let session = TransferSession::open(connection).await?;
    count_items(&session, &selection.paths(), COUNT_LIMITS).await
}

/// Folders count as items, as they do while the transfer runs.
fn describe_count(count: &ItemCount) -> String {
    let more = if count.is_partial { "More than " } else { "" };
    let files = if count.is_partial { count.files.min(COUNT_LIMITS.files) } else { count.files };
    let items = format::count(files.saturating_add(count.folders), "item");
    let folders = match count.folders {
        0 => String::new(),
        folders => format!(", including {}", format::count(folders, "folder")),
    };
    format!("{more}{items}{folders}: {}.", format::bytes(count.bytes))
}

async fn delete(request: FilesRequest, selection: &TransferSelection) -> HandlerResult {
    if let Some(problem) = check(&request, selection) {
        return show_problem(&request, &selection.folder, TITLE, problem);
    }
    let is_done = match delete_now(&request, selection).await {
        Ok(is_done) => is_done,
        Err(error) => return show_problem(&request, &selection.folder, TITLE, error.to_string()),
    };
    if !is_done {
        let new = NewTransfer {
            person: request.request.me.0.person.id,
            kind: TransferKind::Delete,
            cluster: request.request.cluster.row.id,
            folder: selection.folder.clone(),
            names: selection.names.clone(),
            url: String::new(),
            target: None,
        };
        match request.request.context.app.transfers.start(&new).await {
            Ok(_) => {}
            Err(StartTransferError::Store(error)) => return Err(error.into()),
            Err(error) => return show_problem(&request, &selection.folder, TITLE, error.to_string()),
        }
    }
    let detail = format!("{} in {}", selection.title(), selection.folder);
    request.record(ActivityEventKind::FilesDeleted, &detail).await?;
    let back = files_url(request.slug(), &selection.folder);
    let context = request.request.context;
    Ok(if is_done {
        let text = format!("Deleted {}.", name_in_message(selection.title()));
        flash::redirect_with_text(context, &back, FlashMessage::FileDeleted, &text)
    } else {
        flash::see_other(&back)
    })
}

/// Deletes a single item if that takes no time. Returns whether it did. Links in the folder's own path are followed
/// first: a place must not be deleted through one.
async fn delete_now(request: &FilesRequest, selection: &TransferSelection) -> Result<bool, DeleteAtOnceError> {
    let connection = request.connection.as_ref().map_err(|error| SftpError::from(error.clone()))?;
    let places = ProtectedPlaces::from_facts(&request.discovered);
    let real: RemotePath = sftp::real_path(connection, &selection.folder).await?;
    for name in &selection.names {
        places.check(&real.join(name))?;
    }
    match selection.paths().as_slice() {
        [path] => delete_single(connection, path).await,
        _ => Ok(false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_told_in_words() {
        let count = |files, folders, is_partial| ItemCount { files, folders, bytes: 2048, is_partial };
        assert_eq!(describe_count(&count(1, 0, false)), "1 item: 2 kB.");
        assert_eq!(describe_count(&count(3, 2, false)), "5 items, including 2 folders: 2 kB.");
        assert_eq!(describe_count(&count(50_001, 7, true)), "More than 50,007 items, including 7 folders: 2 kB.");
    }
}
