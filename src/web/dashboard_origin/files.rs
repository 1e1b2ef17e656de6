//! Guests who read a file or a folder by a guest link: over its owner's connection, read-only, and nothing outside of it.

pub mod downloads;
mod problem;

use askama::Template;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use serde::Deserialize;

use self::problem::GuestFilesProblem;
use crate::app::AppState;
use crate::auth::guest_links::{GuestLink, GuestLinkTargetKind};
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::domain::{RemoteName, RemotePath};
use crate::files::downloads::ConnectionSource;
use crate::files::preview::{InlineMediaType, MAX_INLINE_IMAGE_BYTES};
use crate::files::shared_paths::{self, GuestFileContent};
use crate::files::{FolderContents, FolderOrder};
use crate::format;
use crate::ssh::sftp::transfer::TransferSession;
use crate::ssh::sftp::{RemoteDirEntry, RemoteFileAttrs, RemoteFileKind, SftpError};
use crate::store::shared_paths::{SharedPath, SharedPathKind};
use crate::web::dashboard_origin::read_cookie;
use crate::web::dashboard_origin::viewer::{self, DashboardOriginAssetUrls};
use crate::web::http::assets;
use crate::web::http::extractors::{PathParams, QueryParams};
use crate::web::http::stream_limits::{OpenResponseLimiter, OpenResponsePermit};

/// Downloads by all guests of one person at the same time: they must not crowd out the person's own.
pub const MAX_GUEST_DOWNLOADS: usize = 6;

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct GuestPathQuery {
    /// Seen from what was shared, encoded; empty for all of it.
    path: String,
    /// Whether the page waits for the cluster, for browsers without JavaScript.
    wait: bool,
}

#[derive(Template)]
#[template(path = "dashboard_origin/guest_files.html")]
struct GuestFilesPage {
    assets: DashboardOriginAssetUrls,
    htmx_js: &'static str,
    title: String,
    owner: String,
    until: UnixTime,
    /// The way down to the folder that is shown.
    crumbs: Vec<(String, String)>,
    is_folder: bool,
    content_url: String,
    waiting_url: String,
    archive_url: String,
    content: Option<GuestContentView>,
}

#[derive(Template)]
#[template(path = "dashboard_origin/guest_files_content.html")]
struct GuestFilesFragment {
    content: GuestContentView,
}

enum GuestContentView {
    Folder { rows: Vec<GuestFileRow>, is_truncated: bool },
    File { row: GuestFileRow, picture: Option<String> },
    Problem(GuestFilesProblem),
}

struct GuestFileRow {
    name: String,
    href: String,
    is_folder: bool,
    size: String,
    modified: Option<UnixTime>,
}

/// A guest's request for something that was shared.
struct GuestFilesRequest {
    app: AppState,
    link: GuestLink,
    shared: SharedPath,
    base: String,
    /// Seen from what was shared.
    inside: RemotePath,
}

impl GuestFilesRequest {
    async fn authorize(
        app: &AppState,
        access_key: &str,
        headers: &HeaderMap,
        query: &GuestPathQuery,
    ) -> Result<Self, Box<Response>> {
        let kind = GuestLinkTargetKind::Files;
        let checked = match read_cookie(app, kind, access_key, headers) {
            Ok(cookie) => app.auth.check_shared_path(kind, access_key, &cookie).await,
            Err(error) => Err(error),
        };
        let (access, shared) = checked.map_err(|error| viewer::show_no_access(kind, &error))?;
        let base = kind.base_path(access_key);
        let path = if query.path.is_empty() { "/" } else { &query.path };
        let inside = RemotePath::from_encoded(path).ok();
        let is_reachable = |inside: &RemotePath| shared.kind == SharedPathKind::Folder || inside.parent().is_none();
        let Some(inside) = inside.filter(is_reachable) else {
            return Err(Box::new(GuestFilesProblem::new(&access.link.maker_name, &SftpError::NotFound).into_page()));
        };
        Ok(Self { app: app.clone(), link: access.link, shared, base, inside })
    }

    fn source(&self) -> ConnectionSource {
        let account = ClusterAccountId { person: self.shared.person_id, cluster: self.shared.cluster_id };
        ConnectionSource::for_guest(self.app.connections.clone(), account.connection_key(), self.app.stop.clone())
    }

    /// Where it really is on the cluster, and a session that leads there.
    async fn resolve(&self) -> Result<(TransferSession, RemotePath), SftpError> {
        let root = RemotePath::from_encoded(&self.shared.path).map_err(|_| SftpError::NotFound)?;
        let session = TransferSession::open_for_guest(&self.source().connection()?).await?;
        let path = shared_paths::resolve(&session, &root, &self.inside).await?;
        Ok((session, path))
    }

    /// Counts a request that needs the cluster.
    fn limit(&self) -> Result<(), GuestFilesProblem> {
        self.app.auth.limit_guest_requests(self.link.id).map_err(GuestFilesProblem::too_many)
    }

    async fn load_content(&self) -> GuestContentView {
        if let Err(problem) = self.limit() {
            return GuestContentView::Problem(problem);
        }
        let loaded = async {
            let (session, path) = self.resolve().await?;
            shared_paths::load(&session, path, self.app.clock.now()).await
        };
        match loaded.await {
            Ok(GuestFileContent::Folder(contents)) if self.shared.kind == SharedPathKind::Folder => {
                self.folder_view(&contents)
            }
            Ok(GuestFileContent::File(attrs)) => {
                let href = self.url("download", &self.inside);
                let picture = self.is_picture(&attrs).then(|| self.url("picture", &self.inside));
                GuestContentView::File { row: GuestFileRow::new(self.name(), href, &attrs), picture }
            }
            Ok(GuestFileContent::Folder(_)) => GuestContentView::Problem(self.problem(&SftpError::NotFound)),
            Err(error) => GuestContentView::Problem(self.problem(&error)),
        }
    }

    fn folder_view(&self, contents: &FolderContents) -> GuestContentView {
        let order = contents.order(&FolderOrder { shows_hidden: true, ..FolderOrder::default() });
        let entries = order.iter().filter_map(|index| contents.entries.get(*index));
        GuestContentView::Folder {
            rows: entries.map(|entry| self.row(entry)).collect(),
            is_truncated: contents.is_truncated,
        }
    }

    fn row(&self, entry: &RemoteDirEntry) -> GuestFileRow {
        let path = self.inside.join(&entry.name);
        // A picture has a page that shows it.
        let is_picture = InlineMediaType::is_picture_extension(&entry.name.extension());
        let below = if entry.attrs.kind == RemoteFileKind::File && !is_picture { "download" } else { "" };
        // A link may lead out of what was shared: nothing is told about its target here.
        if entry.is_link || !matches!(entry.attrs.kind, RemoteFileKind::File | RemoteFileKind::Folder) {
            let href = if entry.is_link { self.url("", &path) } else { String::new() };
            let (name, size) = (entry.name.to_string(), String::new());
            return GuestFileRow { name, href, is_folder: false, size, modified: None };
        }
        GuestFileRow::new(entry.name.to_string(), self.url(below, &path), &entry.attrs)
    }

    /// Whether the page shows the file, judged by its name; the file itself is judged when it is sent.
    fn is_picture(&self, attrs: &RemoteFileAttrs) -> bool {
        let path = RemotePath::from_encoded(&self.shared.path).ok();
        let name = self.inside.name().or_else(|| path?.name());
        let is_picture = |name: RemoteName| InlineMediaType::is_picture_extension(&name.extension());
        attrs.size <= MAX_INLINE_IMAGE_BYTES && name.is_some_and(is_picture)
    }

    /// What is shown, for people.
    fn name(&self) -> String {
        self.inside.name().map_or_else(|| self.shared.title.clone(), |name| name.to_string())
    }

    /// An address below the guest's own.
    fn url(&self, below: &str, inside: &RemotePath) -> String {
        if inside.parent().is_none() {
            return format!("{}/{below}", self.base);
        }
        let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", &inside.to_encoded()).finish();
        format!("{}/{below}?{query}", self.base)
    }

    fn crumbs(&self) -> Vec<(String, String)> {
        let label = |path: &RemotePath| path.name().map_or_else(|| self.shared.title.clone(), |name| name.to_string());
        self.inside.ancestors_and_self().iter().map(|path| (label(path), self.url("", path))).collect()
    }

    fn problem(&self, error: &SftpError) -> GuestFilesProblem {
        GuestFilesProblem::new(&self.link.maker_name, error)
    }

    /// Takes a place among the downloads of the owner's guests.
    fn start_download(&self, limiter: &OpenResponseLimiter) -> Result<OpenResponsePermit, Box<Response>> {
        self.limit().map_err(|problem| Box::new(problem.into_page()))?;
        limiter.acquire(self.shared.person_id).ok_or_else(|| {
            let text = "Several guests are downloading at the moment. Try again in a few minutes.";
            Box::new(viewer::show_text(StatusCode::TOO_MANY_REQUESTS, "Too many downloads", text))
        })
    }

    fn into_page(self, content: Option<GuestContentView>) -> GuestFilesPage {
        let waiting_url = self.url("", &self.inside);
        let separator = if waiting_url.contains('?') { '&' } else { '?' };
        GuestFilesPage {
            assets: DashboardOriginAssetUrls::new(),
            htmx_js: assets::asset_url("htmx.min.js"),
            title: self.name(),
            until: self.link.expires_at,
            crumbs: self.crumbs(),
            is_folder: self.shared.kind == SharedPathKind::Folder,
            content_url: self.url("content", &self.inside),
            waiting_url: format!("{waiting_url}{separator}wait=true"),
            archive_url: self.url("archive", &self.inside),
            content,
            owner: self.link.maker_name,
        }
    }
}

impl GuestFileRow {
    fn new(name: String, href: String, attrs: &RemoteFileAttrs) -> Self {
        let is_folder = attrs.kind == RemoteFileKind::Folder;
        let size = if is_folder { String::new() } else { format::bytes(attrs.size) };
        Self { name, href, is_folder, size, modified: attrs.modified }
    }
}

/// The page. With `wait`, its content is part of it.
pub async fn get(
    State(app): State<AppState>,
    PathParams(access_key): PathParams<String>,
    QueryParams(query): QueryParams<GuestPathQuery>,
    headers: HeaderMap,
) -> Response {
    let request = match GuestFilesRequest::authorize(&app, &access_key, &headers, &query).await {
        Ok(request) => request,
        Err(response) => return *response,
    };
    let content = if query.wait { Some(request.load_content().await) } else { None };
    let status = match &content {
        Some(GuestContentView::Problem(problem)) => problem.status,
        _ => StatusCode::OK,
    };
    viewer::render_page(status, &request.into_page(content))
}

/// What is on the cluster, as a fragment.
pub async fn get_content(
    State(app): State<AppState>,
    PathParams(access_key): PathParams<String>,
    QueryParams(query): QueryParams<GuestPathQuery>,
    headers: HeaderMap,
) -> Response {
    match GuestFilesRequest::authorize(&app, &access_key, &headers, &query).await {
        Ok(request) => {
            let content = request.load_content().await;
            viewer::render_page(StatusCode::OK, &GuestFilesFragment { content })
        }
        Err(response) => *response,
    }
}
