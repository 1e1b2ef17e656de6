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
    /// What ended up to this moment was dismissed.
    dismissed: i64,
}

#[derive(Template)]
#[template(path = "files/folder_transfers.html")]
struct FolderTransfersFragment {
    transfers: FolderTransfersView,
}

#[derive(Default)]
pub struct FolderTransfersView {
    /// Where the page gets the notes again.
    pub href: String,
    /// The same without those that have ended.
    pub dismiss_href: String,
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
    pub async fn load(files: &FilesRequest, folder: &RemotePath, dismissed: i64) -> Result<Self, AppError> {
        let now = files.request.context.app.clock.now();
        let transfers = list_in_folder(files, folder, now, dismissed).await?;
        let open: Vec<String> =
            transfers.iter().filter(|one| !one.state.is_over()).map(|one| one.id.to_string()).take(MAX_KNOWN).collect();
        let has_ended = transfers.len() > open.len();
        let open = open.join(",");
        let href = |dismissed: i64| {
            let mut query = form_urlencoded::Serializer::new(String::new());
            query.append_pair("path", &folder.to_encoded()).append_pair("open", &open);
            query.append_pair("dismissed", &dismissed.to_string());
            format!("/files/{}/transfers?{}", files.slug(), query.finish())
        };
        Ok(Self {
            href: href(dismissed),
            dismiss_href: href(now.0),
            has_ended,
            more: transfers.len().saturating_sub(MAX_SHOWN),
            notes: transfers.iter().take(MAX_SHOWN).map(FolderTransferNote::new).collect(),
            open,
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
    let transfers = FolderTransfersView::load(&files, &folder, query.dismissed).await?;
    let has_ended = {
        let open: Vec<&str> = transfers.open.split(',').collect();
        query.open.split(',').filter(|id| !id.is_empty()).take(MAX_KNOWN).any(|id| !open.contains(&id))
    };
    let page = respond(&FolderTransfersFragment { transfers })?;
    Ok(if has_ended { ([("hx-trigger", "files-changed")], page).into_response() } else { page })
}

/// The person's own transfers whose result is in this folder, open ones first.
async fn list_in_folder(
    files: &FilesRequest,
    folder: &RemotePath,
    now: UnixTime,
    dismissed: i64,
) -> Result<Vec<Transfer>, AppError> {
    let (app, id) = (&files.request.context.app, files.request.account_id());
    let all = app.transfers.list(id.person).await?.into_iter().map(|(transfer, _)| transfer);
    Ok(all
        .filter(|transfer| {
            let (cluster, changed) = changed_folder(transfer);
            cluster == id.cluster && changed == *folder && is_worth_telling(transfer, now, dismissed)
        })
        .collect())
}

fn changed_folder(transfer: &Transfer) -> (ClusterId, RemotePath) {
    match (transfer.kind(), transfer.target_folder()) {
        (Some(TransferKind::Copy), Some(target)) => (transfer.target_cluster(), target),
        _ => (transfer.cluster_id, transfer.folder()),
    }
}

fn is_worth_telling(transfer: &Transfer, now: UnixTime, dismissed: i64) -> bool {
    match (transfer.state, transfer.ended_at) {
        (TransferState::Cancelled, _) => false,
        (state, _) if !state.is_over() => true,
        (_, Some(ended)) => ended.0 > dismissed && now.since(ended) <= RECENT_SECS,
        (_, None) => false,
    }
}
