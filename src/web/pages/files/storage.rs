//! Storage on a cluster: how full each place is, its largest folders, and files that the centre will delete soon. The page
//! shows what is stored and how old it is; measuring goes on in the background.

mod folder_usage_view;

use std::sync::Arc;

use askama::Template;
use serde::Deserialize;

use self::folder_usage_view::{FolderUsageUnit, FolderUsageView};
use super::{FilesRequest, UncheckedFilesRequest, files_url};
use crate::clock::UnixTime;
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::folder_sizes::{FolderMeasurementError, MeasuredDisk};
use crate::files::storage::{PlaceWithQuota, StoragePlaces};
use crate::format;
use crate::jobs::PersonQueueSnapshot;
use crate::ssh::RunCommandError;
use crate::web::HandlerResult;
use crate::web::http::extractors::{FormBody, QueryParams};
use crate::web::http::flash::{self, FlashMessage};
use crate::web::http::page_frame::{NavSection, PageFrame, respond};
use crate::web::pages::home::resource_bars::{FolderQuotaBars, folder_quota};

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct StorageQuery {
    /// The place whose folders are shown, encoded; empty: the fullest one.
    path: String,
    /// `size` or `files`; empty: whichever is closer to its limit.
    by: String,
}

#[derive(Deserialize)]
pub struct MeasureFolderForm {
    /// Encoded.
    path: String,
    /// Whether to measure even if that was done a short while ago.
    #[serde(default)]
    again: bool,
}

#[derive(Template)]
#[template(path = "files/storage.html")]
struct StoragePage {
    page: PageFrame,
    slug: String,
    /// The cluster's title.
    cluster: String,
    is_connected: bool,
    places: Vec<StoragePlaceView>,
    /// Quotas that belong to none of the places.
    other_quotas: Vec<FolderQuotaBars>,
    quotas_at: Option<UnixTime>,
    /// Since when newer quotas are awaited.
    refresh_asked_at: Option<UnixTime>,
    usage: Option<FolderUsageView>,
}

#[derive(Template)]
#[template(path = "files/treemap.html")]
struct FolderUsageFragment {
    view: FolderUsageView,
}

/// One place, with how full it is.
struct StoragePlaceView {
    place: PlaceWithQuota,
    /// Its folder page.
    href: String,
    /// This page, with its folders.
    largest_href: String,
    is_shown: bool,
    quota: Option<FolderQuotaBars>,
    /// Free space of the whole file system; only where there is no quota.
    disk: Option<(String, UnixTime)>,
}

pub async fn get(unchecked: UncheckedFilesRequest, QueryParams(query): QueryParams<StorageQuery>) -> HandlerResult {
    let overview = StorageOverview::load(unchecked).await?;
    let shown = overview.choose_place(&query.path)?;
    let usage = match shown {
        Some(place) => Some(overview.load_usage(place, &query.by).await?),
        None => None,
    };
    let disks = overview.files.request.context.app.folder_sizes.list_disks(overview.files.request.account_id()).await?;
    let places = overview.places.places.iter();
    let places = places.map(|place| overview.place_view(place, shown, &disks)).collect();
    let FilesRequest { request, .. } = &overview.files;
    let title = format!("Storage on {}", request.cluster.row.title);
    let is_connected = overview.files.connection.is_ok();
    respond(&StoragePage {
        page: PageFrame::for_person(&request.context, &request.me.0, &title, NavSection::Files),
        slug: overview.files.slug().to_owned(),
        cluster: request.cluster.row.title.clone(),
        is_connected,
        places,
        other_quotas: overview.places.other_quotas.iter().map(folder_quota).collect(),
        quotas_at: overview.snapshot.resources.places_at.map(UnixTime),
        refresh_asked_at: overview.snapshot.resources_wanted.filter(|_| is_connected),
        usage,
    })
}

/// The largest folders of one place, as they renew themselves while it is being measured.
pub async fn get_place(
    unchecked: UncheckedFilesRequest,
    QueryParams(query): QueryParams<StorageQuery>,
) -> HandlerResult {
    let overview = StorageOverview::load(unchecked).await?;
    let place = overview.choose_place(&query.path)?.ok_or(AppError::NotFound)?;
    respond(&FolderUsageFragment { view: overview.load_usage(place, &query.by).await? })
}

/// Starts to measure a place.
pub async fn measure(unchecked: UncheckedFilesRequest, FormBody(form): FormBody<MeasureFolderForm>) -> HandlerResult {
    let overview = StorageOverview::load(unchecked).await?;
    let path = RemotePath::from_encoded(&form.path).map_err(|_| AppError::NotFound)?;
    let place = overview.places.find(&path).ok_or(AppError::NotFound)?;
    let request = overview.files.request;
    let service = &request.context.app.folder_sizes;
    let started = service.start(request.account_id(), &place.path, place.purge_days(), form.again).await;
    let back = format!("{}#largest", storage_url(&request.cluster.row.slug, &place.path, None));
    let message = match started {
        Ok(()) => return Ok(flash::see_other(&back)),
        Err(FolderMeasurementError::AnotherRunning) => FlashMessage::AnotherFolderMeasured,
        Err(FolderMeasurementError::Run(RunCommandError::NotConnected)) => FlashMessage::StorageNotConnected,
        Err(FolderMeasurementError::Run(_)) => FlashMessage::FolderNotMeasured,
        Err(FolderMeasurementError::Store(error)) => return Err(error.into()),
    };
    Ok(flash::redirect(request.context, &back, message))
}

/// Reads the quotas again soon, but not too often.
pub async fn refresh(unchecked: UncheckedFilesRequest) -> HandlerResult {
    let files = unchecked.authorize().await?;
    let app = &files.request.context.app;
    let id = files.request.account_id();
    app.cluster_accounts.get(id).await?.ok_or(AppError::NotFound)?;
    app.queue_monitor.refresh_resources_soon(id).await?;
    Ok(flash::see_other(&format!("/files/{}/storage", files.slug())))
}

/// A person's storage on a cluster.
struct StorageOverview {
    files: FilesRequest,
    places: StoragePlaces,
    snapshot: Arc<PersonQueueSnapshot>,
}

impl StorageOverview {
    async fn load(unchecked: UncheckedFilesRequest) -> Result<Self, AppError> {
        let files = unchecked.authorize().await?;
        let (app, id) = (&files.request.context.app, files.request.account_id());
        let snapshot = match app.cluster_accounts.get(id).await? {
            Some(_) => app.queue_monitor.view(id, false).await?,
            None => Arc::default(),
        };
        let site = &files.request.cluster.site;
        let places = StoragePlaces::new(&files.discovered, site, &snapshot.resources.places);
        Ok(Self { files, places, snapshot })
    }

    /// The place that an address names, or the fullest one. `None` if there are no places.
    fn choose_place(&self, encoded: &str) -> Result<Option<&PlaceWithQuota>, AppError> {
        if encoded.is_empty() {
            let fullness =
                |place: &&PlaceWithQuota| place.quota.as_ref().map_or(0, |quota| folder_quota(quota).fullness());
            // The first of several that are equally full.
            return Ok(self.places.places.iter().rev().max_by_key(fullness));
        }
        let path = RemotePath::from_encoded(encoded).map_err(|_| AppError::NotFound)?;
        self.places.find(&path).map(Some).ok_or(AppError::NotFound)
    }

    async fn load_usage(&self, place: &PlaceWithQuota, by: &str) -> Result<FolderUsageView, AppError> {
        let (service, id) = (&self.files.request.context.app.folder_sizes, self.files.request.account_id());
        // Before the result: it may arrive in between, and then the page is shown again.
        let state = service.state(id, &place.path);
        let stored = service.load(id, &place.path).await?;
        let unit =
            FolderUsageUnit::parse(by).unwrap_or_else(|| FolderUsageUnit::closest_to_limit(place.quota.as_ref()));
        Ok(FolderUsageView::new(self.files.slug(), place, unit, stored, state, self.files.connection.is_ok()))
    }

    fn place_view(
        &self,
        place: &PlaceWithQuota,
        shown: Option<&PlaceWithQuota>,
        disks: &[MeasuredDisk],
    ) -> StoragePlaceView {
        let slug = self.files.slug();
        let disk = disks.iter().find(|disk| disk.folder == place.path && place.quota.is_none());
        let text = |disk: &MeasuredDisk| {
            format!("{} free of {} on the whole disk", format::bytes(disk.free_bytes), format::bytes(disk.bytes))
        };
        StoragePlaceView {
            href: files_url(slug, &place.path),
            largest_href: format!("{}#largest", storage_url(slug, &place.path, None)),
            is_shown: shown == Some(place),
            quota: place.quota.as_ref().map(folder_quota),
            disk: disk.map(|disk| (text(disk), disk.measured_at)),
            place: place.clone(),
        }
    }
}

/// This page, with the folders of a place.
fn storage_url(slug: &str, place: &RemotePath, unit: Option<FolderUsageUnit>) -> String {
    format!("/files/{slug}/storage?{}", place_query(place, unit))
}

fn place_query(place: &RemotePath, unit: Option<FolderUsageUnit>) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("path", &place.to_encoded());
    if let Some(unit) = unit {
        query.append_pair("by", unit.as_str());
    }
    query.finish()
}
