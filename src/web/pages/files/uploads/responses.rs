//! How uploads answer: the protocol's headers, and a sentence where something is wrong.

use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::clock::UnixTime;
use crate::files::uploads::UploadError;
use crate::ssh::sftp::SftpError;
use crate::store::StoreError;
use crate::web::http::errors::set_retry_after;

pub(super) const TUS_VERSION: &str = "1.0.0";
pub(super) const LENGTH: &str = "upload-length";
pub(super) const OFFSET: &str = "upload-offset";
pub(super) const METADATA: &str = "upload-metadata";
pub(super) const EXPIRES: &str = "upload-expires";
/// Our own: why the upload stopped, as a sentence; empty if it goes on.
pub(super) const PROBLEM: &str = "portolan-upload-problem";

const TUS_RESUMABLE: &str = "tus-resumable";
/// The protocol's own status for data that doesn't match its checksum.
const CHECKSUM_MISMATCH: u16 = 460;
/// When a client should try again if the cluster can't be reached.
const RETRY_SECONDS: i64 = 5;

/// An answer as tus wants it.
pub(super) fn tus_response(status: StatusCode) -> Response {
    let mut response = status.into_response();
    response.headers_mut().insert(TUS_RESUMABLE, HeaderValue::from_static(TUS_VERSION));
    response
}

/// An answer that says what is wrong.
pub(super) fn refuse(status: StatusCode, text: &str) -> Response {
    let kind = [(header::CONTENT_TYPE, "text/plain; charset=utf-8")];
    let mut response = (status, kind, text.to_owned()).into_response();
    response.headers_mut().insert(TUS_RESUMABLE, HeaderValue::from_static(TUS_VERSION));
    response
}

/// Why a request is refused, as the answer to it.
pub struct TusError(Box<Response>);

impl TusError {
    pub(in crate::web) fn new(status: StatusCode, text: &str) -> Self {
        Self(Box::new(refuse(status, text)))
    }

    pub(in crate::web) fn with_retry_after(mut self, seconds: i64) -> Self {
        set_retry_after(&mut self.0, seconds);
        self
    }
}

impl From<UploadError> for TusError {
    fn from(error: UploadError) -> Self {
        Self(Box::new(show_problem(&error)))
    }
}

impl IntoResponse for TusError {
    fn into_response(self) -> Response {
        *self.0
    }
}

/// Refuses clients that speak another version.
pub(super) fn require_tus_version(headers: &HeaderMap) -> Result<(), TusError> {
    if headers.get(TUS_RESUMABLE).is_some_and(|version| version == TUS_VERSION) {
        return Ok(());
    }
    let mut response = refuse(StatusCode::PRECONDITION_FAILED, "This server supports only tus 1.0.0.");
    response.headers_mut().insert("tus-version", HeaderValue::from_static(TUS_VERSION));
    Err(TusError(Box::new(response)))
}

/// The answer to a request whose upload does not go on.
pub(super) fn show_problem(error: &UploadError) -> Response {
    let status = match error {
        UploadError::NotFound | UploadError::DropBoxClosed => StatusCode::NOT_FOUND,
        UploadError::Expired => StatusCode::GONE,
        UploadError::Metadata(_) | UploadError::NoCluster | UploadError::TooMuchData | UploadError::Interrupted => {
            StatusCode::BAD_REQUEST
        }
        UploadError::TooManyUploads | UploadError::TooManyAtOnce => StatusCode::TOO_MANY_REQUESTS,
        UploadError::DropBoxFull => StatusCode::PAYLOAD_TOO_LARGE,
        UploadError::InUse => StatusCode::LOCKED,
        UploadError::WrongOffset | UploadError::NameTaken | UploadError::FolderInTheWay => StatusCode::CONFLICT,
        UploadError::ChecksumMismatch => StatusCode::from_u16(CHECKSUM_MISMATCH).unwrap_or(StatusCode::BAD_REQUEST),
        UploadError::Stopping
        | UploadError::DropBoxPaused
        | UploadError::NoBatchPlace
        | UploadError::Sftp(SftpError::Run(_))
        | UploadError::Store(StoreError::Busy) => StatusCode::SERVICE_UNAVAILABLE,
        UploadError::Sftp(SftpError::NotWritten) => StatusCode::INSUFFICIENT_STORAGE,
        UploadError::Sftp(SftpError::NotAllowed) => StatusCode::FORBIDDEN,
        UploadError::NoFolder | UploadError::Damaged | UploadError::Sftp(_) => StatusCode::UNPROCESSABLE_ENTITY,
        UploadError::Store(_) | UploadError::Entropy(_) => StatusCode::INTERNAL_SERVER_ERROR,
    };
    let text = match error {
        UploadError::Store(_) | UploadError::Entropy(_) => {
            tracing::error!(%error, "An upload failed");
            "The portal had an internal error. The upload can be resumed from where it stopped.".to_owned()
        }
        error => error.to_string(),
    };
    let mut response = refuse(status, &text);
    if error.is_passing() {
        set_retry_after(&mut response, RETRY_SECONDS);
    }
    response
}

/// A time as HTTP headers write it.
pub(super) fn http_date(at: UnixTime) -> Option<HeaderValue> {
    let time = jiff::Timestamp::from_second(at.0).ok()?;
    HeaderValue::try_from(time.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ssh::RunCommandError;

    #[test]
    fn times_are_written_as_http_wants_them() {
        assert_eq!(http_date(UnixTime(1_794_820_320)).unwrap(), "Mon, 16 Nov 2026 09:12:00 GMT");
    }

    #[test]
    fn problems_have_the_statuses_of_the_protocol() {
        for (error, status, waits) in [
            (UploadError::NotFound, 404, false),
            (UploadError::Expired, 410, false),
            (UploadError::WrongOffset, 409, false),
            (UploadError::ChecksumMismatch, 460, false),
            (UploadError::DropBoxFull, 413, false),
            (UploadError::DropBoxClosed, 404, false),
            (UploadError::InUse, 423, false),
            (UploadError::NoBatchPlace, 503, true),
            (UploadError::Sftp(SftpError::NotWritten), 507, false),
            (UploadError::Sftp(SftpError::Run(RunCommandError::NotConnected)), 503, true),
        ] {
            let response = show_problem(&error);
            assert_eq!(response.status().as_u16(), status);
            assert_eq!(response.headers().contains_key(header::RETRY_AFTER), waits, "{status}");
            assert_eq!(response.headers()["tus-resumable"], "1.0.0");
        }
        let refused = require_tus_version(&HeaderMap::new()).err().map(|error| error.into_response().status());
        assert_eq!(refused, Some(StatusCode::PRECONDITION_FAILED));
    }
}
