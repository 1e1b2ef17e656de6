//! Downloading one file: whole, or the range that a browser asks for when it resumes.

use askama::Template;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;
use serde::Deserialize;

use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::downloads::{
    ConnectionSource, DownloadError, DownloadRange, FileDownload, attachment_disposition, entity_tag, last_modified,
    parse_range,
};
use crate::ssh::RunCommandError;
use crate::ssh::sftp::SftpError;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
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
    let mut download = match FileDownload::open(files.connection_source(), path.clone()).await {
        Ok(download) => download,
        Err(error) => return files.show_download_failed(&path, &error),
    };
    let attrs = *download.attrs();
    let (tag, modified) = (entity_tag(&path, &attrs), last_modified(&attrs));
    let is_same = is_unchanged(headers.get(header::IF_RANGE), &tag, modified.as_deref());
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok()).filter(|_| is_same);
    let (status, range) = match parse_range(range, attrs.size) {
        DownloadRange::All => (StatusCode::OK, 0..attrs.size),
        DownloadRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        DownloadRange::Unsatisfiable => {
            let headers = [(header::CONTENT_RANGE, format!("bytes */{}", attrs.size))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, headers).into_response());
        }
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.headers_mut().extend([
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start)),
    ]);
    if status == StatusCode::PARTIAL_CONTENT {
        let shown = format!("bytes {}-{}/{}", range.start, range.end - 1, attrs.size);
        insert(&mut response, header::CONTENT_RANGE, shown);
    }
    insert(&mut response, header::ETAG, tag);
    if let Some(modified) = modified {
        insert(&mut response, header::LAST_MODIFIED, modified);
    }
    let name = path.name();
    mark_as_attachment(&mut response, name.as_ref().map_or(b"download", |name| name.as_bytes()));
    if method != Method::HEAD {
        download.seek(range);
        *response.body_mut() = Body::from_stream(stream::try_unfold((download, permit), next_chunk));
    }
    Ok(response)
}

/// The permit is held until the response has ended.
type OpenDownload = (FileDownload, OpenResponsePermit);

async fn next_chunk(
    (mut download, permit): OpenDownload,
) -> Result<Option<(bytes::Bytes, OpenDownload)>, DownloadError> {
    match download.next_chunk().await {
        Ok(chunk) => Ok(chunk.map(|chunk| (chunk, (download, permit)))),
        Err(error) => {
            tracing::info!(%error, "A download was cut off");
            Err(error)
        }
    }
}

/// Whether a range may be sent: the client names no version of the file, or the one that is there.
fn is_unchanged(if_range: Option<&HeaderValue>, tag: &str, modified: Option<&str>) -> bool {
    if_range
        .is_none_or(|value| value.as_bytes() == tag.as_bytes() || Some(value.as_bytes()) == modified.map(str::as_bytes))
}

/// Sets a header whose value we made; none of them can contain anything that a header may not.
pub(super) fn insert(response: &mut Response, name: header::HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The browser saves the body under this name and never shows it.
pub(super) fn mark_as_attachment(response: &mut Response, name: &[u8]) {
    insert(response, header::CONTENT_DISPOSITION, attachment_disposition(name));
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_of_another_version_are_not_sent() {
        let modified = Some("Wed, 18 Nov 2026 02:49:21 GMT");
        for (if_range, expected) in [
            ("\"a-1-2\"", true),
            ("Wed, 18 Nov 2026 02:49:21 GMT", true),
            ("W/\"a-1-2\"", false),
            ("\"a-1-3\"", false),
            ("Wed, 18 Nov 2026 02:49:22 GMT", false),
        ] {
            let value = HeaderValue::from_static(if_range);
            assert_eq!(is_unchanged(Some(&value), "\"a-1-2\"", modified), expected, "{if_range}");
        }
        assert!(is_unchanged(None, "\"a-1-2\"", None));
        assert!(!is_unchanged(Some(&HeaderValue::from_static("")), "\"a-1-2\"", None));
    }
}
