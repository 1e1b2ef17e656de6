//! Downloading one file: whole, or the range that a browser asks for when it resumes.

use askama::Template;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::Response;
use serde::Deserialize;

use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::downloads::{ConnectionSource, FileDownload, attachment_disposition};
use crate::ssh::RunCommandError;
use crate::ssh::sftp::SftpError;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::http::file_response::{insert_header, respond_with_file};
use crate::web::http::middleware::UserFileMarker;
use crate::web::http::page_frame::{NavSection, PageFrame, respond_with};
use crate::web::http::stream_limits::{MAX_DOWNLOADS, OpenResponsePermit};
use crate::web::pages::files::{FilesRequest, UncheckedFilesRequest, files_url};

#[derive(Deserialize)]
pub struct DownloadQuery {
    path: String,
}

#[derive(Template)]
#[template(path = "files/download_failed.html")]
struct DownloadFailedPage {
    page: PageFrame,
    /// The cluster's short name and its title.
    slug: String,
    cluster: String,
    path: String,
    reason: String,
    folder_href: String,
    is_disconnected: bool,
}

/// The address of a file's download.
pub(in crate::web) fn download_url(slug: &str, path: &RemotePath) -> String {
    let query = form_urlencoded::Serializer::new(String::new()).append_pair("path", &path.to_encoded()).finish();
    format!("/files/{slug}/download?{query}")
}

pub async fn get(
    request: UncheckedFilesRequest,
    method: Method,
    headers: HeaderMap,
    QueryParams(query): QueryParams<DownloadQuery>,
) -> HandlerResult {
    let files = request.authorize().await?;
    let path = RemotePath::from_encoded(&query.path).map_err(|error| AppError::BadRequest(error.to_string()))?;
    let Some(permit) = files.start_download() else { return files.show_too_many_downloads(&path) };
    match respond_with_attachment(files.connection_source(), &path, &method, &headers, permit).await {
        Ok(response) => Ok(response),
        Err(error) => files.show_download_failed(&path, &error),
    }
}

/// Sends a file to be saved, or the range of it that the request asks for.
pub(in crate::web) async fn respond_with_attachment(
    source: ConnectionSource,
    path: &RemotePath,
    method: &Method,
    headers: &HeaderMap,
    permit: OpenResponsePermit,
) -> Result<Response, SftpError> {
    let download = FileDownload::open(source, path.clone()).await?;
    let mut response = respond_with_file(method, headers, download, Some(permit));
    let name = path.name();
    mark_as_attachment(&mut response, name.as_ref().map_or(b"download", |name| name.as_bytes()));
    Ok(response)
}

/// The browser saves the body under this name and never shows it.
pub(super) fn mark_as_attachment(response: &mut Response, name: &[u8]) {
    insert_header(response, header::CONTENT_DISPOSITION, attachment_disposition(name));
    response.extensions_mut().insert(UserFileMarker);
}

impl FilesRequest {
    /// What downloads read from: this connection, or the one that replaces it.
    pub(in crate::web) fn connection_source(&self) -> ConnectionSource {
        let app = &self.request.context.app;
        let key = self.request.account_id().connection_key();
        ConnectionSource::new(app.connections.clone(), key, app.stop.clone())
    }

    /// Takes a place among this person's downloads, if one is free.
    pub(in crate::web) fn start_download(&self) -> Option<OpenResponsePermit> {
        self.request.context.pages.downloads.acquire(self.request.me.0.person.id)
    }

    pub(in crate::web) fn show_too_many_downloads(&self, path: &RemotePath) -> HandlerResult {
        let reason = format!("You already have {MAX_DOWNLOADS} downloads running. Try again when one of them is done.");
        self.show_problem(StatusCode::TOO_MANY_REQUESTS, path, reason, false)
    }

    /// A page that says why nothing was downloaded.
    pub(in crate::web) fn show_download_failed(&self, path: &RemotePath, error: &SftpError) -> HandlerResult {
        let is_disconnected = matches!(error, SftpError::Run(RunCommandError::NotConnected));
        let status = match error {
            SftpError::NotFound => StatusCode::NOT_FOUND,
            SftpError::NotAllowed => StatusCode::FORBIDDEN,
            SftpError::NotAFile | SftpError::NotAFolder | SftpError::SpecialFile => StatusCode::UNPROCESSABLE_ENTITY,
            _ if is_disconnected => StatusCode::CONFLICT,
            _ => StatusCode::SERVICE_UNAVAILABLE,
        };
        self.show_problem(status, path, error.to_string(), is_disconnected)
    }

    fn show_problem(
        &self,
        status: StatusCode,
        path: &RemotePath,
        reason: String,
        is_disconnected: bool,
    ) -> HandlerResult {
        let (context, me) = (&self.request.context, &self.request.me);
        let folder = path.parent().unwrap_or_else(RemotePath::root);
        let page = DownloadFailedPage {
            page: PageFrame::for_person(context, &me.0, "Download failed", NavSection::Files),
            slug: self.slug().to_owned(),
            cluster: self.request.cluster.row.title.clone(),
            path: path.to_string(),
            reason,
            folder_href: files_url(self.slug(), &folder),
            is_disconnected,
        };
        respond_with(status, &page)
    }
}
