//! The places where someone can keep files on a cluster, with their favourites and the folders that they opened last:
//! where *Files* begins. Nothing here asks the cluster.

use askama::Template;
use axum::http::StatusCode;

use super::folder_location::FolderLocation;
use super::folder_rows::ConnectHint;
use super::{FilesRequest, files_url};
use crate::clock::UnixTime;
use crate::cluster::ConnectionStatus;
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::StoragePlace;
use crate::files::places::list_places;
use crate::store;
use crate::web::HandlerResult;
use crate::web::http::form_errors::echo_input;
use crate::web::http::page_frame::{FORM_ERROR_STATUS, NavSection, PageFrame, respond_with};
use crate::web::pages::home::resource_bars::{FolderQuotaBars, folder_quota};

#[derive(Template)]
#[template(path = "files/places.html")]
pub struct PlacesPage {
    page: PageFrame,
    slug: String,
    cluster_title: String,
    /// Where one comes back to after connecting.
    back: String,
    clusters: Vec<FilesClusterLink>,
    places: Vec<PlaceCard>,
    /// Where browsing starts without places.
    start: String,
    /// When the quotas were read.
    quotas_at: Option<UnixTime>,
    favourites: Vec<KeptFolderLink>,
    recent: Vec<KeptFolderLink>,
    /// How to connect, if there is no connection.
    hint: Option<ConnectHint>,
    /// A path that was typed and leads nowhere.
    typed: String,
    problem: String,
}

/// A place, with how full it is.
struct PlaceCard {
    place: StoragePlace,
    href: String,
    bars: Option<FolderQuotaBars>,
}

/// A favourite, or a folder that was opened before.
struct KeptFolderLink {
    label: String,
    href: String,
    /// The encoded path.
    path: String,
}

/// One of the person's clusters.
pub struct FilesClusterLink {
    pub title: String,
    pub href: String,
    pub is_current: bool,
    pub is_connected: bool,
}

impl PlacesPage {
    /// Shows the places; with a typed path that leads nowhere, and why.
    pub async fn show(files: &FilesRequest, typed: &str, problem: &str) -> HandlerResult {
        let (context, id) = (&files.request.context, files.request.account_id());
        let (places, quotas_at) = load_places(files).await?;
        let (favourites, recent) = {
            let mut db = context.app.store.read().await?;
            (
                store::file_folders::list_favourites(&mut db, id.person, id.cluster).await?,
                store::file_folders::list_recent(&mut db, id.person, id.cluster).await?,
            )
        };
        let kept = |path: &RemotePath| KeptFolderLink {
            label: short_path(files, path),
            href: files_url(files.slug(), path),
            path: path.to_encoded(),
        };
        let card = |place: StoragePlace| PlaceCard {
            href: FolderLocation::new(files.slug(), place.path.clone()).page_url(),
            bars: place.quota.as_ref().map(folder_quota),
            place,
        };
        let title = format!("Files on {}", files.request.cluster.row.title);
        let page = Self {
            page: PageFrame::for_person(context, &files.request.me.0, &title, NavSection::Files),
            slug: files.slug().to_owned(),
            cluster_title: files.request.cluster.row.title.clone(),
            back: format!("/files/{}", files.slug()),
            clusters: list_cluster_links(files).await?,
            quotas_at: quotas_at.filter(|_| places.iter().any(|place| place.quota.is_some())),
            places: places.into_iter().map(card).collect(),
            start: files_url(files.slug(), &files.start_path()),
            favourites: favourites.iter().map(kept).collect(),
            recent: recent.iter().map(kept).collect(),
            hint: match files.connection {
                Ok(_) => None,
                Err(_) => Some(ConnectHint::find(files).await?),
            },
            typed: echo_input(typed),
            problem: problem.to_owned(),
        };
        let status = if problem.is_empty() { StatusCode::OK } else { FORM_ERROR_STATUS };
        respond_with(status, &page)
    }
}

/// The person's places, and when their quotas were read.
pub async fn load_places(files: &FilesRequest) -> Result<(Vec<StoragePlace>, Option<UnixTime>), AppError> {
    let snapshot = files.request.context.app.queue_monitor.snapshot(files.request.account_id()).await?;
    let resources = &snapshot.resources;
    let places = list_places(&files.discovered, &files.request.cluster.site.storage, &resources.places);
    Ok((places, resources.places_at.map(UnixTime)))
}

/// The clusters that the person uses, the current one included.
pub async fn list_cluster_links(files: &FilesRequest) -> Result<Vec<FilesClusterLink>, AppError> {
    let (app, id) = (&files.request.context.app, files.request.account_id());
    let accounts = app.cluster_accounts.list(id.person).await?;
    let is_shown = |account: &&std::sync::Arc<crate::cluster::ClusterAccount>| {
        account.id == id || (!account.is_hidden && account.cluster().retired_at().is_none())
    };
    let links = accounts.iter().filter(is_shown).map(|account| FilesClusterLink {
        title: account.cluster().title.clone(),
        href: format!("/files/{}", account.cluster().slug),
        is_current: account.id == id,
        is_connected: matches!(account.status(&app.connections), ConnectionStatus::Up(_)),
    });
    Ok(links.collect())
}

/// A path as people write it: with a variable such as `$SCRATCH`, if it can be typed at all.
pub fn short_path(files: &FilesRequest, path: &RemotePath) -> String {
    path.as_text().map_or_else(|| path.to_string(), |text| files.variables.abbreviate(text))
}
