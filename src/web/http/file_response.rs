//! Someone's file as a response: whole, or the range that a browser asks for when it resumes or looks for a place in it.

use axum::Extension;
use axum::body::{Body, Bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use futures_util::stream;

use crate::files::downloads::{DownloadError, DownloadRange, FileDownload, entity_tag, last_modified, parse_range};
use crate::web::http::middleware::UserFileMarker;
use crate::web::http::stream_limits::OpenResponsePermit;

/// Sends the file, or the range that the request asks for. What the browser may do with it is up to the caller: its type
/// is set to one that browsers only save.
pub fn respond_with_file(
    method: &Method,
    headers: &HeaderMap,
    mut download: FileDownload,
    permit: Option<OpenResponsePermit>,
) -> Response {
    let attrs = *download.attrs();
    let (tag, modified) = (entity_tag(download.path(), &attrs), last_modified(&attrs));
    let is_same = is_unchanged(headers.get(header::IF_RANGE), &tag, modified.as_deref());
    let range = headers.get(header::RANGE).and_then(|value| value.to_str().ok()).filter(|_| is_same);
    let (status, range) = match parse_range(range, attrs.size) {
        DownloadRange::All => (StatusCode::OK, 0..attrs.size),
        DownloadRange::Part(range) => (StatusCode::PARTIAL_CONTENT, range),
        DownloadRange::Unsatisfiable => {
            let headers = [(header::CONTENT_RANGE, format!("bytes */{}", attrs.size))];
            return (StatusCode::RANGE_NOT_SATISFIABLE, Extension(UserFileMarker), headers).into_response();
        }
    };
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response.extensions_mut().insert(UserFileMarker);
    response.headers_mut().extend([
        (header::ACCEPT_RANGES, HeaderValue::from_static("bytes")),
        (header::CONTENT_TYPE, HeaderValue::from_static("application/octet-stream")),
        (header::CONTENT_LENGTH, HeaderValue::from(range.end - range.start)),
    ]);
    if status == StatusCode::PARTIAL_CONTENT {
        let shown = format!("bytes {}-{}/{}", range.start, range.end - 1, attrs.size);
        insert_header(&mut response, header::CONTENT_RANGE, shown);
    }
    insert_header(&mut response, header::ETAG, tag);
    if let Some(modified) = modified {
        insert_header(&mut response, header::LAST_MODIFIED, modified);
    }
    if method != Method::HEAD {
        download.seek(range);
        *response.body_mut() = Body::from_stream(stream::try_unfold((download, permit), next_chunk));
    }
    response
}

/// The permit is held until the response has ended.
type OpenDownload = (FileDownload, Option<OpenResponsePermit>);

async fn next_chunk((mut download, permit): OpenDownload) -> Result<Option<(Bytes, OpenDownload)>, DownloadError> {
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
pub fn insert_header(response: &mut Response, name: HeaderName, value: String) {
    if let Ok(value) = HeaderValue::try_from(value) {
        response.headers_mut().insert(name, value);
    }
}

/// The browser shows the body as this type, under this policy.
pub fn mark_as_inline(response: &mut Response, content_type: &'static str, policy: String) {
    for (name, value) in [(header::CONTENT_TYPE, content_type), (header::CONTENT_DISPOSITION, "inline")] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    insert_header(response, header::CONTENT_SECURITY_POLICY, policy);
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
