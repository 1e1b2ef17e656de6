//! A folder's page. Its frame comes at once; the rows follow from the cluster, sorted and filtered here.

use askama::Template;
use axum::response::IntoResponse as _;
use serde::Deserialize;

use super::folder_crumbs::{FolderStep, build_steps};
use super::folder_location::FolderLocation;
use super::folder_rows::{ConnectHint, FolderRows, FolderRowsContent, FolderTrouble, ListedFolder};
use super::folder_transfers::FolderTransfersView;
use super::places::{FilesClusterLink, PlacesPage, list_cluster_links, load_places, short_path};
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::domain::{RemoteName, RemotePath, RemotePathError};
use crate::error::AppError;
use crate::files::places::innermost_place;
use crate::files::{FolderSort, ListingFreshness, StoragePlace};
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::http::flash;
use crate::web::http::page_frame::{NavSection, PageFrame, respond};

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct FolderPageQuery {
    /// The folder, encoded; empty for the places.
    path: String,
    /// A path that someone typed: it may begin with `~`, a variable such as `$SCRATCH`, or be relative to the folder.
    go: String,
    sort: String,
    filter: String,
    hidden: bool,
    /// The first row.
    from: usize,
    /// The name of an entry to point out, encoded.
    select: String,
    /// Whether the page waits for the cluster, for browsers without JavaScript.
    wait: bool,
    /// Whether the folder is read again.
    refresh: bool,
}

#[derive(Template)]
#[template(path = "files/folder.html")]
struct FilesFolderPage {
    page: PageFrame,
    view: FolderPageView,
}

/// The rows alone, for an open page.
#[derive(Template)]
#[template(path = "files/rows.html")]
struct FolderRowsFragment {
    rows: FolderRows,
}

/// More rows of an open page.
#[derive(Template)]
#[template(path = "files/row_list.html")]
struct MoreRowsFragment {
    location: FolderLocation,
    listed: ListedFolder,
}

pub struct FolderPageView {
    /// The cluster's short name.
    pub slug: String,
    pub cluster_title: String,
    /// The folder's encoded path.
    pub path: String,
    /// The same for people.
    pub shown_path: String,
    /// What the field to go elsewhere shows.
    pub typed: String,
    pub clusters: Vec<FilesClusterLink>,
    pub places: Vec<FolderStep>,
    /// The way down to this folder.
    pub crumbs: Vec<FolderStep>,
    /// The page of the folder above; empty at the root.
    pub up: String,
    pub is_favourite: bool,
    pub location: FolderLocation,
    /// The rows, if they are at hand.
    pub rows: Option<FolderRows>,
    pub transfers: FolderTransfersView,
    connected: bool,
}

impl FolderPageView {
    /// Whether the person's connection is open.
    pub const fn is_connected(&self) -> bool {
        self.connected
    }
}

pub async fn get(unchecked: UncheckedFilesRequest, QueryParams(query): QueryParams<FolderPageQuery>) -> HandlerResult {
    let files = unchecked.authorize().await?;
    if !query.go.trim().is_empty() {
        return match read_typed_path(&files, &query) {
            Ok(path) => Ok(flash::see_other(&files_url(files.slug(), &path))),
            Err(problem) => PlacesPage::show(&files, &query.go, &problem.to_string()).await,
        };
    }
    if query.path.is_empty() {
        return PlacesPage::show(&files, "", "").await;
    }
    match read_location(&files, &query) {
        Ok(location) => show_folder(&files, location, &query).await,
        Err(problem) => PlacesPage::show(&files, &query.path, &problem.to_string()).await,
    }
}

/// The rows, for an open page.
pub async fn get_rows(
    unchecked: UncheckedFilesRequest,
    QueryParams(query): QueryParams<FolderPageQuery>,
) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let location = read_location(&files, &query).map_err(|problem| AppError::BadRequest(problem.to_string()))?;
    if !files.request.context.is_fragment {
        return Ok(flash::see_other(&location.waiting_url(query.from)));
    }
    let freshness = match (query.refresh, query.from) {
        (true, _) => ListingFreshness::New,
        (false, 0) => ListingFreshness::Recent,
        (false, _) => ListingFreshness::Kept,
    };
    let page_url = location.page_url();
    let rows = FolderRows::load(&files, location, query.from, freshness).await?;
    if rows.is_file() {
        let to = file_page(&rows.location);
        return Ok([("hx-redirect", to)].into_response());
    }
    match rows {
        FolderRows { content: FolderRowsContent::Listed(listed), location, .. } if query.from > 0 => {
            respond(&MoreRowsFragment { location, listed })
        }
        // Instead of the whole list, if there are no more rows to be had.
        rows if query.from > 0 => {
            let headers = [("hx-retarget", "#files-rows"), ("hx-reswap", "outerHTML")];
            Ok((headers, respond(&FolderRowsFragment { rows })?).into_response())
        }
        rows => Ok(([("hx-replace-url", page_url)], respond(&FolderRowsFragment { rows })?).into_response()),
    }
}

/// Where a path leads that turned out to be a file's: to its folder, in which it is pointed out.
fn file_page(location: &FolderLocation) -> String {
    match (location.path.parent(), location.path.name()) {
        (Some(parent), Some(name)) => location.at(parent).with_selected(Some(name)).page_url(),
        _ => location.page_url(),
    }
}

fn read_location(files: &FilesRequest, query: &FolderPageQuery) -> Result<FolderLocation, RemotePathError> {
    let path = RemotePath::from_encoded(&query.path)?;
    let location = FolderLocation::new(files.slug(), path)
        .with_sort(FolderSort::parse(&query.sort))
        .with_filter(&query.filter)
        .with_hidden(query.hidden);
    Ok(location.with_selected(RemoteName::from_encoded(&query.select).ok()))
}

/// A full path, one that begins with a variable, or one relative to the folder that is shown.
fn read_typed_path(files: &FilesRequest, query: &FolderPageQuery) -> Result<RemotePath, RemotePathError> {
    let typed = query.go.trim();
    if typed.starts_with(['/', '~', '$']) || query.path.is_empty() {
        return files.typed_path(typed);
    }
    let folder = RemotePath::from_encoded(&query.path)?;
    RemotePath::parse(&[folder.as_bytes(), b"/", typed.as_bytes()].concat())
}

async fn show_folder(files: &FilesRequest, location: FolderLocation, query: &FolderPageQuery) -> HandlerResult {
    let context = &files.request.context;
    let transfers = FolderTransfersView::load(files, &location.path, 0).await?;
    // A message tells of something that was done here a moment ago.
    let was_changed = query.refresh || context.flash.is_some() || transfers.has_ended;
    let freshness = if was_changed { ListingFreshness::New } else { ListingFreshness::Recent };
    let now = context.app.clock.now();
    let changes = files.connection.as_ref().ok().map(|connection| connection.folder_changes());
    let kept = context.app.folder_listings.find(files.request.account_id(), &location.path, freshness, changes, now);
    if was_changed {
        context.app.folder_listings.forget(files.request.account_id(), &location.path);
    }
    // Without a connection nothing is waited for.
    let is_ready = query.wait || files.connection.is_err();
    let rows = match (kept, is_ready) {
        (_, true) => Some(FolderRows::load(files, location.clone(), query.from, freshness).await?),
        (Some(kept), false) => Some(FolderRows::from_contents(files, location.clone(), kept).await?),
        (None, false) => None,
    };
    if rows.as_ref().is_some_and(FolderRows::is_file) {
        return Ok(flash::see_other(&file_page(&location)));
    }
    let view = build_view(files, location, rows, transfers).await?;
    let here = view.crumbs.last().map_or("/", |step| step.label.as_str());
    let title = format!("{here} on {}", view.cluster_title);
    let page = PageFrame::for_person(context, &files.request.me.0, &title, NavSection::Files);
    respond(&FilesFolderPage { page, view })
}

async fn build_view(
    files: &FilesRequest,
    location: FolderLocation,
    rows: Option<FolderRows>,
    transfers: FolderTransfersView,
) -> Result<FolderPageView, AppError> {
    let (app, id) = (&files.request.context.app, files.request.account_id());
    let is_favourite = {
        let mut db = app.store.read().await?;
        store::file_folders::is_favourite(&mut db, id.person, id.cluster, &location.path).await?
    };
    let (places, _) = load_places(files).await?;
    let current = innermost_place(&places, &location.path);
    let place_step = |place: &StoragePlace| FolderStep {
        label: place.label.clone(),
        href: location.at(place.path.clone()).page_url(),
        is_current: current == Some(place),
    };
    Ok(FolderPageView {
        slug: location.slug.clone(),
        cluster_title: files.request.cluster.row.title.clone(),
        path: location.path.to_encoded(),
        shown_path: location.path.to_string(),
        typed: short_path(files, &location.path),
        clusters: list_cluster_links(files).await?,
        places: places.iter().map(place_step).collect(),
        crumbs: build_steps(&location.path, current, |path| location.at(path.clone()).page_url()),
        up: location.path.parent().map(|parent| location.at(parent).page_url()).unwrap_or_default(),
        is_favourite,
        rows,
        transfers,
        location,
        connected: files.connection.is_ok(),
    })
}

impl FolderRows {
    /// Whether the path turned out to be a file's.
    fn is_file(&self) -> bool {
        matches!(&self.content, FolderRowsContent::Trouble(FolderTrouble { is_file: true, .. }))
    }
}
