//! The transfers that change a folder, on its page: those under way and those that ended a moment ago. When one ends, the
//! page reads the folder again.

use askama::Template;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use super::{FilesRequest, UncheckedFilesRequest};
use crate::clock::UnixTime;
use crate::domain::{ClusterId, RemotePath};
use crate::error::AppError;
use crate::files::transfers::{describe_ended, describe_ongoing};
use crate::store::transfers::{Transfer, TransferKind, TransferState};
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::http::page_frame::respond;

/// How long a transfer that ended is still told of, in seconds.
const RECENT_SECS: i64 = 120;
/// How many are told of one by one.
const MAX_SHOWN: usize = 3;
/// An open page asks about no more than these.
const MAX_KNOWN: usize = 100;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FolderTransfersQuery {
    /// The folder, encoded.
    path: String,
    /// The transfers that the page knows to be under way: numbers, separated by commas.
    open: String,
}

#[derive(Template)]
#[template(path = "files/folder_transfers.html")]
struct FolderTransfersFragment {
    transfers: FolderTransfersView,
}

#[derive(Default)]
pub struct FolderTransfersView {
    pub slug: String,
    /// The folder, encoded.
    pub path: String,
    pub notes: Vec<FolderTransferNote>,
    /// How many aren't shown.
    pub more: usize,
    /// The numbers of those under way, separated by commas.
    pub open: String,
    /// Whether one ended a moment ago, so that a listing from before may be out of date.
    pub has_ended: bool,
}

pub struct FolderTransferNote {
    pub text: String,
    pub is_open: bool,
    pub is_failed: bool,
}

impl FolderTransfersView {
    pub async fn load(files: &FilesRequest, folder: &RemotePath) -> Result<Self, AppError> {
        let transfers = list_in_folder(files, folder).await?;
        let open: Vec<String> =
            transfers.iter().filter(|one| !one.state.is_over()).map(|one| one.id.to_string()).take(MAX_KNOWN).collect();
        Ok(Self {
            slug: files.slug().to_owned(),
            path: folder.to_encoded(),
            has_ended: transfers.len() > open.len(),
            open: open.join(","),
            more: transfers.len().saturating_sub(MAX_SHOWN),
            notes: transfers.iter().take(MAX_SHOWN).map(FolderTransferNote::new).collect(),
        })
    }
}

impl FolderTransferNote {
    fn new(transfer: &Transfer) -> Self {
        let is_open = !transfer.state.is_over();
        Self {
            text: if is_open { describe_ongoing(transfer) } else { describe_ended(transfer) },
            is_open,
            is_failed: transfer.state == TransferState::Failed,
        }
    }
}

/// The notes, as an open page renews them. If a transfer that it knew has ended, it reads its rows again.
pub async fn get(
    unchecked: UncheckedFilesRequest,
    QueryParams(query): QueryParams<FolderTransfersQuery>,
) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let folder = RemotePath::from_encoded(&query.path).map_err(|error| AppError::BadRequest(error.to_string()))?;
    let transfers = FolderTransfersView::load(&files, &folder).await?;
    let has_ended = {
        let open: Vec<&str> = transfers.open.split(',').collect();
        query.open.split(',').filter(|id| !id.is_empty()).take(MAX_KNOWN).any(|id| !open.contains(&id))
    };
    let page = respond(&FolderTransfersFragment { transfers })?;
    Ok(if has_ended { ([("hx-trigger", "files-changed")], page).into_response() } else { page })
}

/// The person's own transfers whose result is in this folder, open ones first.
async fn list_in_folder(files: &FilesRequest, folder: &RemotePath) -> Result<Vec<Transfer>, AppError> {
    let (app, id) = (&files.request.context.app, files.request.account_id());
    let now = app.clock.now();
    let all = app.transfers.list(id.person).await?.into_iter().map(|(transfer, _)| transfer);
    Ok(all
        .filter(|transfer| {
            let (cluster, changed) = changed_folder(transfer);
            cluster == id.cluster && changed == *folder && is_worth_telling(transfer, now)
        })
        .collect())
}

fn changed_folder(transfer: &Transfer) -> (ClusterId, RemotePath) {
    match (transfer.kind(), transfer.target_folder()) {
        (Some(TransferKind::Copy), Some(target)) => (transfer.target_cluster(), target),
        _ => (transfer.cluster_id, transfer.folder()),
    }
}

fn is_worth_telling(transfer: &Transfer, now: UnixTime) -> bool {
    match (transfer.state, transfer.ended_at) {
        (TransferState::Cancelled, _) => false,
        (state, _) if !state.is_over() => true,
        (_, ended) => ended.is_some_and(|ended| now.0.saturating_sub(ended.0) <= RECENT_SECS),
    }
}
