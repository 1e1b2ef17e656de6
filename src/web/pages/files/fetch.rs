//! Downloading a web address into a folder: a form for the address, then a transfer.

use askama::Template;
use axum::http::StatusCode;

use super::transfer_selection::{TransferFields, field, show_problem};
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::transfers::{FetchAddress, StartTransferError};
use crate::store::transfers::{NewTransfer, TransferKind};
use crate::web::HandlerResult;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::see_other;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};

const TITLE: &str = "Download from the web";
/// Longer addresses aren't accepted.
const MAX_ECHO_CHARS: usize = 2000;

#[derive(Template)]
#[template(path = "files/fetch.html")]
struct FetchPage {
    page: PageFrame,
    view: FetchView,
}

struct FetchView {
    slug: String,
    cluster: String,
    /// The folder, encoded.
    path: String,
    folder: String,
    back: String,
    url: String,
    problem: String,
}

/// Asks for the address, then starts the transfer.
pub async fn post(unchecked: UncheckedFilesRequest, FormBody(fields): FormBody<TransferFields>) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let folder = RemotePath::from_encoded(field(&fields, "path"));
    let folder = folder.map_err(|error| AppError::BadRequest(error.to_string()))?;
    if field(&fields, "step") != "confirm" {
        return show_form(&request, &folder, "", "");
    }
    let typed = field(&fields, "url");
    let allow_private = request.request.context.app.config.transfers.allow_private;
    let checked = match FetchAddress::parse(typed) {
        Ok(address) => address.resolve(allow_private).await.map(|_| address),
        Err(error) => Err(error),
    };
    let address = match checked {
        Ok(address) => address,
        Err(error) => return show_form(&request, &folder, typed, &error.to_string()),
    };
    let new = NewTransfer {
        person: request.request.me.0.person.id,
        kind: TransferKind::Fetch,
        cluster: request.request.cluster.row.id,
        folder: folder.clone(),
        names: Vec::new(),
        url: address.as_str().to_owned(),
        target: None,
    };
    match request.request.context.app.transfers.start(&new).await {
        Ok(_) => {
            // Addresses may contain passwords and keys.
            request.record(ActivityEventKind::FileFetched, &format!("from {} to {folder}", address.host())).await?;
            Ok(see_other(&files_url(request.slug(), &folder)))
        }
        Err(StartTransferError::Store(error)) => Err(error.into()),
        Err(error) => show_problem(&request, &folder, TITLE, error.to_string()),
    }
}

fn show_form(request: &FilesRequest, folder: &RemotePath, typed: &str, problem: &str) -> HandlerResult {
    let cluster = &request.request;
    let view = FetchView {
        slug: request.slug().to_owned(),
        cluster: cluster.cluster.row.title.clone(),
        path: folder.to_encoded(),
        folder: folder.to_string(),
        back: files_url(request.slug(), folder),
        url: typed.chars().take(MAX_ECHO_CHARS).collect(),
        problem: problem.to_owned(),
    };
    let status = if problem.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = PageFrame::for_person(&cluster.context, &cluster.me.0, TITLE, NavSection::Files);
    respond_with(status, &FetchPage { page, view })
}
