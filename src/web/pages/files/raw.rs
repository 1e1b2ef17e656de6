//! The bytes of pictures, audio and video, for the page that shows them. Only types of a short list go out, and under
//! a policy that lets nothing in them run.

use axum::http::{HeaderMap, Method};
use serde::Deserialize;

use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::downloads::{ConnectionSource, DownloadError, FileDownload};
use crate::files::preview::{InlineMediaType, MAX_INLINE_IMAGE_BYTES, MediaKind};
use crate::ssh::sftp::SftpError;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::http::file_response::{mark_as_inline, respond_with_file};
use crate::web::http::stream_limits::OpenResponsePermit;
use crate::web::pages::files::UncheckedFilesRequest;

/// A drawing may contain scripts, forms and links: with this they stay dead, even in a tab of its own.
const MEDIA_POLICY: &str =
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'none'";

#[derive(Deserialize)]
pub struct RawFileQuery {
    /// The encoded path.
    #[serde(default)]
    path: String,
}

/// Sends a picture, audio or video; anything else doesn't exist here.
pub async fn get(
    unchecked: UncheckedFilesRequest,
    method: Method,
    QueryParams(query): QueryParams<RawFileQuery>,
    headers: HeaderMap,
) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let path = RemotePath::from_encoded(&query.path).map_err(|_| AppError::NotFound)?;
    respond_with_media(request.connection_source(), path, &method, &headers, None).await
}

/// Sends what may be shown inside of a page, under a policy of its own.
pub(in crate::web) async fn respond_with_media(
    source: ConnectionSource,
    path: RemotePath,
    method: &Method,
    headers: &HeaderMap,
    permit: Option<OpenResponsePermit>,
) -> HandlerResult {
    let extension = path.name().ok_or(AppError::NotFound)?.extension();
    let opened = FileDownload::open(source, path).await;
    let mut download = opened.map_err(|error| to_app_error(&error))?;
    let head = download.read_head(InlineMediaType::SNIFF_BYTES).await.map_err(|error| match error {
        DownloadError::Sftp(error) => to_app_error(&error),
        _ => AppError::Busy,
    })?;
    let media = InlineMediaType::detect(&extension, &head).ok_or(AppError::NotFound)?;
    if media.kind == MediaKind::Image && download.attrs().size > MAX_INLINE_IMAGE_BYTES {
        return Err(AppError::NotFound);
    }
    let mut response = respond_with_file(method, headers, download, permit);
    mark_as_inline(&mut response, media.content_type, MEDIA_POLICY.to_owned());
    Ok(response)
}

fn to_app_error(error: &SftpError) -> AppError {
    match error {
        SftpError::NotAllowed => AppError::Denied,
        SftpError::Run(_) | SftpError::NoService => AppError::Busy,
        _ => AppError::NotFound,
    }
}
