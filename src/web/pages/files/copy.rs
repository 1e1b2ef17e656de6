//! Copying ticked rows: a form that asks where to, then a transfer.

use askama::Template;
use axum::http::StatusCode;

use super::transfer_selection::{SelectionView, TransferFields, TransferSelection, field, show_problem};
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::auth::ActivityEventKind;
use crate::cluster::ClusterAccountId;
use crate::cluster::folders::FolderVariables;
use crate::domain::{ClusterId, RemotePath, RemotePathError};
use crate::error::AppError;
use crate::files::changes::FileChangeError;
use crate::files::transfers::StartTransferError;
use crate::ssh::sftp::{self, SftpError};
use crate::store;
use crate::store::transfers::{NewTransfer, TransferKind};
use crate::web::HandlerResult;
use crate::web::http::assets;
use crate::web::http::extractors::FormBody;
use crate::web::http::flash::see_other;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};

const TITLE: &str = "Copy files";
/// Longer paths aren't accepted.
const MAX_ECHO_CHARS: usize = 4096;

#[derive(Template)]
#[template(path = "files/copy.html")]
struct CopyPage {
    page: PageFrame,
    picker_js: &'static str,
    view: CopyView,
}

struct CopyView {
    title: String,
    selection: SelectionView,
    targets: Vec<CopyTargetCluster>,
    /// What was typed.
    target: String,
    problem: String,
}

/// A cluster that copies can go to.
struct CopyTargetCluster {
    slug: String,
    title: String,
    is_chosen: bool,
    id: ClusterId,
}

/// Asks where to, then starts the transfer.
pub async fn post(unchecked: UncheckedFilesRequest, FormBody(fields): FormBody<TransferFields>) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let selection = TransferSelection::parse(&fields)?;
    if let Some(problem) = selection.problem() {
        return show_problem(&request, &selection.folder, TITLE, problem);
    }
    if field(&fields, "step") != "confirm" {
        let start = selection.folder.to_encoded();
        return show_form(&request, &selection, request.slug(), &start, "").await;
    }
    let (slug, typed) = (field(&fields, "cluster"), field(&fields, "target"));
    let targets = list_targets(&request, slug).await?;
    let Some(target) = targets.iter().find(|target| target.slug == slug) else {
        let problem = "You're not connected to this cluster. Connect first, or choose another one.";
        return show_form(&request, &selection, slug, typed, problem).await;
    };
    let folder = match read_target(&request, target.id, typed).await? {
        Ok(folder) => folder,
        Err(error) => return show_form(&request, &selection, slug, typed, &error.to_string()).await,
    };
    if is_missing(&request, target.id, &folder).await {
        let problem = FileChangeError::NoFolder(folder).to_string();
        return show_form(&request, &selection, slug, typed, &problem).await;
    }
    let new = NewTransfer {
        person: request.request.me.0.person.id,
        kind: TransferKind::Copy,
        cluster: request.request.cluster.row.id,
        folder: selection.folder.clone(),
        names: selection.names.clone(),
        url: String::new(),
        target: Some((target.id, folder.clone())),
    };
    match request.request.context.app.transfers.start(&new).await {
        Ok(_) => {
            let from = format!("{} in {}", selection.title(), selection.folder);
            let detail = format!("{from}, to {folder} on {}", target.title);
            request.record(ActivityEventKind::FilesCopied, &detail).await?;
            Ok(see_other(&files_url(&target.slug, &folder)))
        }
        Err(StartTransferError::Store(error)) => Err(error.into()),
        Err(error) => show_problem(&request, &selection.folder, TITLE, error.to_string()),
    }
}

/// Whether the cluster says that a folder doesn't exist. Whatever else is wrong shows when the copy begins.
async fn is_missing(request: &FilesRequest, cluster: ClusterId, folder: &RemotePath) -> bool {
    let id = ClusterAccountId { cluster, ..request.request.account_id() };
    match request.request.context.app.connections.connection(id.connection_key()) {
        Ok(connection) => sftp::stat(&connection, folder).await == Err(SftpError::NotFound),
        Err(_) => false,
    }
}

/// A path that someone typed, with the variables of the cluster that it is on.
async fn read_target(
    request: &FilesRequest,
    cluster: ClusterId,
    typed: &str,
) -> Result<Result<RemotePath, RemotePathError>, AppError> {
    let id = ClusterAccountId { cluster, ..request.request.account_id() };
    let account = request.request.context.app.cluster_accounts.get(id).await?;
    let variables = account.map(|account| FolderVariables::from_facts(&account.discovered)).unwrap_or_default();
    let full = variables.expand(typed).ok_or(RemotePathError::NotAbsolute);
    Ok(full.and_then(|full| RemotePath::from_encoded(&full)))
}

/// The clusters that the person is connected to, and the one that the files are on.
async fn list_targets(request: &FilesRequest, chosen: &str) -> Result<Vec<CopyTargetCluster>, AppError> {
    let (app, own) = (&request.request.context.app, request.request.account_id());
    let connected = app.connections.connected_keys();
    let mut db = app.store.read().await?;
    let clusters = store::clusters::list(&mut db).await?;
    drop(db);
    let mut targets = Vec::new();
    for cluster in clusters {
        let id = ClusterAccountId { cluster: cluster.id, ..own };
        let is_connected = connected.contains(&id.connection_key());
        if !is_connected && cluster.id != own.cluster {
            continue;
        }
        targets.push(CopyTargetCluster {
            is_chosen: cluster.slug == chosen,
            id: cluster.id,
            slug: cluster.slug,
            title: cluster.title,
        });
    }
    Ok(targets)
}

async fn show_form(
    request: &FilesRequest,
    selection: &TransferSelection,
    chosen: &str,
    typed: &str,
    problem: &str,
) -> HandlerResult {
    let cluster = &request.request;
    let view = CopyView {
        title: format!("Copy {}", selection.title()),
        selection: SelectionView::new(request, selection),
        targets: list_targets(request, chosen).await?,
        target: typed.chars().take(MAX_ECHO_CHARS).collect(),
        problem: problem.to_owned(),
    };
    let status = if problem.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
    let page = PageFrame::for_person(&cluster.context, &cluster.me.0, TITLE, NavSection::Files);
    respond_with(status, &CopyPage { page, picker_js: assets::asset_url("picker.js"), view })
}
