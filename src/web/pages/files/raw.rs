//! The bytes of pictures, audio and video, for the page that shows them. Only types of a short list go out, and under
//! a policy that lets nothing in them run.

use std::ops::Range;

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::IntoResponse as _;
use futures_util::stream;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::downloads::{DownloadRange, parse_range};
use crate::files::preview::{InlineMediaType, MAX_INLINE_IMAGE_BYTES, MediaKind, read_range};
use crate::ssh::sftp::SftpError;
use crate::ssh::sftp::transfer::RemoteFileReader;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::http::middleware::UserFileMarker;
use crate::web::pages::files::UncheckedFilesRequest;

/// A drawing may contain scripts, forms and links: with this they stay dead, even in a tab of its own.
const MEDIA_POLICY: &str = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:";

#[derive(Deserialize)]
pub struct RawFileQuery {
    /// The encoded path.
    #[serde(default)]
    path: String,
}

/// Sends a picture, audio or video; anything else doesn't exist here.
pub async fn get(
    unchecked: UncheckedFilesRequest,
    QueryParams(query): QueryParams<RawFileQuery>,
    headers: HeaderMap,
) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let path = RemotePath::from_encoded(&query.path).map_err(|_| AppError::NotFound)?;
    let extension = path.name().ok_or(AppError::NotFound)?.extension();
    let connection = request.connection.map_err(|error| to_app_error(&error.into()))?;
    let mut reader = RemoteFileReader::open(&connection, &path).await.map_err(|error| to_app_error(&error))?;
    let size = reader.attrs().size;
    let sniffed = 0..size.min(InlineMediaType::SNIFF_BYTES as u64);
    let head = read_range(&mut reader, sniffed).await.map_err(|error| to_app_error(&error))?;
    let media = InlineMediaType::detect(&extension, &head).ok_or(AppError::NotFound)?;
    if media.kind == MediaKind::Image && size > MAX_INLINE_IMAGE_BYTES {
        return Err(AppError::NotFound);
    }
    let wanted = headers.get(header::RANGE).and_then(|value| value.to_str().ok());
    let (status, range) = match parse_range(wanted, size) {
        DownloadRange::All => (StatusCode::OK, 0..size),
        DownloadRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        DownloadRange::Unsatisfiable => {
            let whole = [(header::CONTENT_RANGE, format!("bytes */{size}"))];
            return Ok((StatusCode::RANGE_NOT_SATISFIABLE, whole, media_headers(media)).into_response());
        }
    };
    let mut response_headers = media_headers(media);
    response_headers.insert(header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start));
    if status == StatusCode::PARTIAL_CONTENT {
        let part = format!("bytes {}-{}/{size}", range.start, range.end - 1);
        response_headers.insert(header::CONTENT_RANGE, HeaderValue::try_from(part).map_err(|_| AppError::NotFound)?);
    }
    let body = MediaBody::new(reader, range, request.request.context.app.stop.clone()).into_body();
    Ok((status, Extension(UserFileMarker), response_headers, body).into_response())
}

fn media_headers(media: InlineMediaType) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in [
        (header::CONTENT_TYPE, media.content_type),
        (header::CONTENT_SECURITY_POLICY, MEDIA_POLICY),
        (header::CONTENT_DISPOSITION, "inline"),
        (header::ACCEPT_RANGES, "bytes"),
    ] {
        headers.insert(name, HeaderValue::from_static(value));
    }
    headers
}

/// What is left to send.
struct MediaBody {
    reader: RemoteFileReader,
    left: u64,
    stop: CancellationToken,
}

impl MediaBody {
    fn new(mut reader: RemoteFileReader, range: Range<u64>, stop: CancellationToken) -> Self {
        let left = range.end - range.start;
        reader.seek(range);
        Self { reader, left, stop }
    }

    fn into_body(self) -> Body {
        Body::from_stream(stream::try_unfold(self, Self::next_chunk))
    }

    async fn next_chunk(mut self) -> Result<Option<(Bytes, Self)>, std::io::Error> {
        if self.left == 0 {
            return Ok(None);
        }
        let chunk = tokio::select! {
            chunk = self.reader.next_chunk() => chunk.map_err(std::io::Error::other)?,
            () = self.stop.cancelled() => return Err(std::io::Error::other("the portal is shutting down")),
        };
        let chunk = chunk.ok_or_else(|| std::io::Error::other("the file became shorter"))?;
        self.left = self.left.saturating_sub(u64::try_from(chunk.len()).unwrap_or(u64::MAX));
        Ok(Some((chunk, self)))
    }
}

fn to_app_error(error: &SftpError) -> AppError {
    match error {
        SftpError::NotAllowed => AppError::Denied,
        SftpError::Run(_) | SftpError::NoService => AppError::Busy,
        _ => AppError::NotFound,
    }
}
