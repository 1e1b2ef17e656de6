//! The page *Transfers*: what goes on with someone's files in the background, and how it ended.

use std::collections::HashMap;

use askama::Template;
use axum::extract::FromRequestParts;
use serde::Deserialize;

use super::files_url;
use crate::auth::Permission;
use crate::clock::UnixTime;
use crate::domain::{ClusterId, RemotePath, TransferId};
use crate::error::AppError;
use crate::files::transfers::{TransferSnapshot, describe};
use crate::format;
use crate::store;
use crate::store::clusters::Cluster;
use crate::store::transfers::{Transfer, TransferKind, TransferState};
use crate::web::HandlerResult;
use crate::web::http::extractors::{CurrentPerson, PathParams, QueryParams, RequestContext};
use crate::web::http::flash::see_other;
use crate::web::http::page_frame::{NavSection, NavigationItem, PageFrame, respond};
use crate::web::portal_state::PortalState;

/// A request about one transfer.
#[derive(FromRequestParts)]
#[from_request(state(PortalState), rejection(AppError))]
pub struct TransferRequest {
    context: RequestContext,
    me: CurrentPerson,
    #[from_request(via(PathParams))]
    id: TransferId,
}

#[derive(Template)]
#[template(path = "transfers/list.html")]
struct TransferListPage {
    page: PageFrame,
    list: TransferListView,
}

#[derive(Template)]
#[template(path = "transfers/rows_fragment.html")]
struct TransferRowsFragment {
    list: TransferListView,
}

struct TransferListView {
    rows: Vec<TransferRowView>,
    /// Whether figures change from second to second.
    is_moving: bool,
}

impl TransferListView {
    /// Whether several can be removed from the list together.
    fn can_clear(&self) -> bool {
        self.rows.iter().filter(|row| row.is_over && !row.is_failed).count() > 1
    }
}

#[expect(clippy::struct_excessive_bools, reason = "buttons that are there or not")]
struct TransferRowView {
    id: TransferId,
    icon: &'static str,
    title: String,
    /// The folders that it takes from and puts into: label, path and address.
    places: Vec<(&'static str, String, String)>,
    badge: (&'static str, &'static str),
    /// How far it is, in words.
    done: String,
    /// Done and all, if both are known.
    bar: Option<(u64, u64)>,
    is_running: bool,
    /// Speed and time left.
    pace: String,
    current: String,
    message: String,
    /// The cluster to connect to: its short name and title.
    connect: Option<(String, String)>,
    at: UnixTime,
    can_pause: bool,
    can_resume: bool,
    is_failed: bool,
    is_over: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct TransfersNavQuery {
    /// Whether the page is that of the transfers.
    current: bool,
}

#[derive(Template)]
#[template(path = "frame/nav_item_fragment.html")]
struct TransfersNavFragment {
    item: NavigationItem,
}

pub async fn list(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let list = load_list(&context, &me).await?;
    let page = PageFrame::for_person(&context, &me.0, "Transfers", NavSection::Transfers);
    respond(&TransferListPage { page, list })
}

/// The list, as it renews itself.
pub async fn get_rows(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    respond(&TransferRowsFragment { list: load_list(&context, &me).await? })
}

/// The item in the navigation, as open pages renew it.
pub async fn get_nav_item(
    context: RequestContext,
    me: CurrentPerson,
    QueryParams(query): QueryParams<TransfersNavQuery>,
) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    let open = context.app.transfers.open_count(me.0.person.id);
    respond(&TransfersNavFragment { item: NavigationItem::transfers(open, query.current) })
}

pub async fn pause(request: TransferRequest) -> HandlerResult {
    request.check().await?;
    request.context.app.transfers.pause(request.me.0.person.id, request.id).await?;
    request.show_list().await
}

pub async fn resume(request: TransferRequest) -> HandlerResult {
    request.check().await?;
    request.context.app.transfers.resume(request.me.0.person.id, request.id).await?;
    request.show_list().await
}

pub async fn cancel(request: TransferRequest) -> HandlerResult {
    request.check().await?;
    request.context.app.transfers.cancel(request.me.0.person.id, request.id).await?;
    request.show_list().await
}

/// Removes a transfer that is over from the list.
pub async fn dismiss(request: TransferRequest) -> HandlerResult {
    request.check().await?;
    request.context.app.transfers.dismiss(request.me.0.person.id, request.id).await?;
    request.show_list().await
}

/// Removes all that went well or were cancelled from the list.
pub async fn clear(context: RequestContext, me: CurrentPerson) -> HandlerResult {
    me.may(Permission::UseClusters)?;
    context.app.transfers.clear(me.0.person.id).await?;
    show_list(&context, &me).await
}

impl TransferRequest {
    /// Other people's transfers are treated as missing.
    async fn check(&self) -> Result<(), AppError> {
        self.me.may(Permission::UseClusters)?;
        let own = self.context.app.transfers.get(self.me.0.person.id, self.id).await?;
        own.map(|_| ()).ok_or(AppError::NotFound)
    }

    async fn show_list(&self) -> HandlerResult {
        show_list(&self.context, &self.me).await
    }
}

/// After a change: the list, or its page.
async fn show_list(context: &RequestContext, me: &CurrentPerson) -> HandlerResult {
    if !context.is_fragment {
        return Ok(see_other("/transfers"));
    }
    respond(&TransferRowsFragment { list: load_list(context, me).await? })
}

async fn load_list(context: &RequestContext, me: &CurrentPerson) -> Result<TransferListView, AppError> {
    let person = me.0.person.id;
    let transfers = context.app.transfers.list(person).await?;
    let mut db = context.app.store.read().await?;
    let clusters = store::clusters::list(&mut db).await?;
    drop(db);
    let clusters: HashMap<ClusterId, Cluster> = clusters.into_iter().map(|cluster| (cluster.id, cluster)).collect();
    let is_connected = |cluster| context.app.transfers.is_connected(person, cluster);
    let rows = transfers.iter().map(|(transfer, progress)| build_row(transfer, progress, &clusters, is_connected));
    let rows: Vec<TransferRowView> = rows.collect();
    Ok(TransferListView { is_moving: rows.iter().any(|row| row.is_running), rows })
}

fn build_row(
    transfer: &Transfer,
    progress: &TransferSnapshot,
    clusters: &HashMap<ClusterId, Cluster>,
    is_connected: impl Fn(ClusterId) -> bool,
) -> TransferRowView {
    let words = describe(transfer);
    let place = |label: &'static str, cluster: ClusterId, path: &RemotePath| {
        let cluster = clusters.get(&cluster)?;
        Some((label, format!("{path} on {}", cluster.title), files_url(&cluster.slug, path)))
    };
    let from = words.from.as_ref().and_then(|path| place("In", transfer.cluster_id, path));
    let to = words.to.as_ref().and_then(|path| place("To", transfer.target_cluster(), path));
    let needed = [transfer.cluster_id, transfer.target_cluster()];
    let missing = needed.into_iter().find(|cluster| !is_connected(*cluster));
    let waits = !transfer.state.is_over() && transfer.state != TransferState::Paused;
    let connect = missing.filter(|_| waits).and_then(|cluster| clusters.get(&cluster));
    let is_running = transfer.state == TransferState::Running && connect.is_none();
    TransferRowView {
        id: transfer.id,
        icon: match transfer.kind() {
            Some(TransferKind::Delete) => "trash",
            Some(TransferKind::Copy) => "copy",
            Some(TransferKind::Compress) => "file",
            Some(TransferKind::Extract) => "folder",
            Some(TransferKind::Fetch) | None => "download",
        },
        title: words.title,
        places: from.into_iter().chain(to).collect(),
        badge: match transfer.state {
            _ if connect.is_some() => ("waiting", "Waiting for your connection"),
            TransferState::Queued => ("waiting", "Queued"),
            TransferState::Running => ("running", "Running"),
            TransferState::Paused => ("neutral", "Paused"),
            TransferState::Done => ("ok", "Done"),
            TransferState::Failed => ("failed", "Failed"),
            TransferState::Cancelled => ("neutral", "Cancelled"),
        },
        done: describe_done(transfer, progress),
        bar: bar(progress).filter(|_| !transfer.state.is_over()),
        is_running,
        pace: if is_running { describe_pace(transfer.kind(), progress) } else { String::new() },
        current: if is_running { progress.current.clone() } else { String::new() },
        message: describe_message(transfer, &is_connected),
        connect: connect.map(|cluster| (cluster.slug.clone(), cluster.title.clone())),
        at: transfer.ended_at.or(transfer.started_at).unwrap_or(transfer.created_at),
        can_pause: waits,
        can_resume: matches!(transfer.state, TransferState::Paused | TransferState::Failed),
        is_failed: transfer.state == TransferState::Failed,
        is_over: transfer.state.is_over(),
    }
}

/// How it ended, and what is still to be done on the cluster.
fn describe_message(transfer: &Transfer, is_connected: impl Fn(ClusterId) -> bool) -> String {
    let waits = transfer.is_clean_up_due && !is_connected(transfer.target_cluster());
    let left = match transfer.kind() {
        _ if !waits => return transfer.message.clone(),
        Some(TransferKind::Delete) => "What wasn't deleted gets its old name back when you connect.",
        _ => "Its incomplete files will be removed when you connect.",
    };
    format!("{} {left}", transfer.message).trim_start().to_owned()
}

/// Bytes where they are known, otherwise items.
const fn bar(progress: &TransferSnapshot) -> Option<(u64, u64)> {
    match (progress.bytes_total, progress.files_total) {
        (0, 0) => None,
        (0, total) => Some((progress.files_done, total)),
        (total, _) => Some((progress.bytes_done, total)),
    }
}

/// What the progress counts: deletions count folders, too; the others only files.
const fn counted_noun(kind: Option<TransferKind>) -> &'static str {
    match kind {
        Some(TransferKind::Delete) => "item",
        _ => "file",
    }
}

fn describe_done(transfer: &Transfer, progress: &TransferSnapshot) -> String {
    let noun = counted_noun(transfer.kind());
    let verb = match transfer.kind() {
        Some(TransferKind::Delete) => "deleted",
        Some(TransferKind::Copy) => "copied",
        Some(TransferKind::Compress) => "compressed",
        Some(TransferKind::Extract) => "extracted",
        Some(TransferKind::Fetch) | None => "downloaded",
    };
    let files = match progress.files_total {
        total if total > progress.files_done && transfer.state != TransferState::Done => {
            format!("{} of {} {verb}", format::number(progress.files_done), format::count(total, noun))
        }
        _ => format!("{} {verb}", format::count(progress.files_done, noun)),
    };
    let bytes = match (progress.bytes_done, progress.bytes_total) {
        (0, 0) => return files,
        (done, total) if total > done && transfer.state != TransferState::Done => {
            format!("{} of {}", format::bytes(done), format::bytes(total))
        }
        (done, _) => format::bytes(done),
    };
    if transfer.kind() == Some(TransferKind::Fetch) { format!("{bytes} {verb}") } else { format!("{files}, {bytes}") }
}

/// `12 MB/s, about 3 min left`.
fn describe_pace(kind: Option<TransferKind>, progress: &TransferSnapshot) -> String {
    let speed = match (progress.bytes_per_second, progress.files_per_second) {
        (0, 0) => return String::new(),
        (0, files) => format!("{} per second", format::count(files, counted_noun(kind))),
        (bytes, _) => format!("{}/s", format::bytes(bytes)),
    };
    match progress.seconds_left() {
        Some(seconds) if seconds > 0 => format!("{speed}, {} left", format::rough_duration(seconds)),
        _ => speed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_show_bytes_or_items() {
        let progress = |files_total, bytes_total| TransferSnapshot {
            files_done: 1,
            files_total,
            bytes_done: 10,
            bytes_total,
            ..TransferSnapshot::default()
        };
        assert_eq!(bar(&progress(0, 0)), None);
        assert_eq!(bar(&progress(5, 0)), Some((1, 5)));
        assert_eq!(bar(&progress(5, 100)), Some((10, 100)));
    }

    #[test]
    fn speed_and_time_left_are_told_together() {
        let mut progress = TransferSnapshot { bytes_total: 1 << 20, ..TransferSnapshot::default() };
        assert_eq!(describe_pace(None, &progress), "");
        progress.bytes_per_second = 1 << 10;
        assert_eq!(describe_pace(None, &progress), "1 kB/s, about 17 min left");
        progress.bytes_done = 1 << 20;
        assert_eq!(describe_pace(None, &progress), "1 kB/s");
        let progress = TransferSnapshot { files_per_second: 7, ..TransferSnapshot::default() };
        assert_eq!(describe_pace(Some(TransferKind::Delete), &progress), "7 items per second");
        assert_eq!(describe_pace(Some(TransferKind::Copy), &progress), "7 files per second");
    }
}
