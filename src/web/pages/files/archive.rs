//! Downloading a selection: one file as it is, several or a folder as an archive that is written while it is sent.

use axum::body::Body;
use axum::extract::RawForm;
use axum::extract::rejection::RawFormRejection;
use axum::http::{HeaderValue, Method, StatusCode, header};
use axum::response::Response;
use futures_util::stream;

use crate::domain::{RemoteName, RemotePath, RemotePathError};
use crate::error::AppError;
use crate::files::archive::{ArchiveFormat, ArchiveSelection, ArchiveStream};
use crate::files::downloads::DownloadError;
use crate::ssh::sftp::{self, RemoteFileKind};
use crate::web::HandlerResult;
use crate::web::http::flash::see_other;
use crate::web::http::stream_limits::OpenResponsePermit;
use crate::web::pages::files::UncheckedFilesRequest;
use crate::web::pages::files::download::{download_url, mark_as_attachment};

/// How many files and folders someone can tick.
const MAX_NAMES: usize = 2000;
/// What the form of so many ticked names may take.
pub const MAX_FORM_BYTES: usize = 2 * 1024 * 1024;

/// The ticked names in a folder; none means all of it.
#[derive(Debug, PartialEq, Eq)]
struct TickedFiles {
    folder: RemotePath,
    names: Vec<RemoteName>,
    /// `None`: whatever suits what is ticked.
    format: Option<ArchiveFormat>,
}

impl TickedFiles {
    fn parse(form: &[u8]) -> Result<Self, RemotePathError> {
        let mut folder = Err(RemotePathError::NotAbsolute);
        let (mut names, mut format) = (Vec::new(), None);
        for (key, value) in form_urlencoded::parse(form) {
            match key.as_ref() {
                "path" => folder = RemotePath::from_encoded(&value),
                "name" if names.len() < MAX_NAMES => names.push(RemoteName::from_encoded(&value)?),
                "name" => return Err(RemotePathError::PathTooLong),
                "format" => format = parse_format(&value),
                _ => {}
            }
        }
        Ok(Self { folder: folder?, names, format })
    }

    fn into_selection(self) -> ArchiveSelection {
        if self.names.is_empty() {
            return ArchiveSelection::WholeFolder(self.folder);
        }
        let paths = self.names.iter().map(|name| self.folder.join(name)).collect();
        ArchiveSelection::Inside(self.folder, paths)
    }
}

pub(in crate::web) fn parse_format(text: &str) -> Option<ArchiveFormat> {
    match text {
        "zip" => Some(ArchiveFormat::Zip),
        "tar" => Some(ArchiveFormat::Tar),
        _ => None,
    }
}

/// Downloads what is ticked. A link can ask for it as well as a form: it changes nothing.
pub async fn get_or_post(
    request: UncheckedFilesRequest,
    method: Method,
    form: Result<RawForm, RawFormRejection>,
) -> HandlerResult {
    let files = request.authorize().await?;
    let RawForm(form) = form.map_err(|rejection| match rejection.status() {
        StatusCode::PAYLOAD_TOO_LARGE => AppError::TooLarge,
        _ => AppError::BadRequest(rejection.body_text()),
    })?;
    let ticked = TickedFiles::parse(&form).map_err(|error| AppError::BadRequest(error.to_string()))?;
    let first = ticked.names.first().map_or_else(|| ticked.folder.clone(), |name| ticked.folder.join(name));
    let connection = match &files.connection {
        Ok(connection) => connection,
        Err(error) => return files.show_download_failed(&first, &error.clone().into()),
    };
    // What can be said on a page is said before the archive begins.
    let is_link_meant = !ticked.names.is_empty() && (ticked.names.len() > 1 || ticked.format.is_some());
    let looked =
        if is_link_meant { sftp::lstat(connection, &first).await } else { sftp::stat(connection, &first).await };
    match looked {
        Ok(attrs) if attrs.kind == RemoteFileKind::File && ticked.format.is_none() && ticked.names.len() == 1 => {
            return Ok(see_other(&download_url(files.slug(), &first)));
        }
        Err(error) if ticked.names.len() <= 1 => return files.show_download_failed(&first, &error),
        _ => {}
    }
    let Some(permit) = files.start_download() else { return files.show_too_many_downloads(&first) };
    let format = ticked.format.unwrap_or(ArchiveFormat::Zip);
    let now = files.request.context.app.clock.now();
    let selection = ticked.into_selection();
    Ok(respond_with_archive(&method, format, &selection.name(), || {
        (ArchiveStream::start(files.connection_source(), format, selection, now), permit)
    }))
}

/// The permit is held until the response has ended.
pub(in crate::web) type OpenArchive = (ArchiveStream, OpenResponsePermit);

async fn next_piece((mut archive, permit): OpenArchive) -> Result<Option<(bytes::Bytes, OpenArchive)>, DownloadError> {
    match archive.next_piece().await {
        Ok(piece) => Ok(piece.map(|piece| (piece, (archive, permit)))),
        Err(error) => {
            tracing::info!(%error, "The download of an archive was cut off");
            Err(error)
        }
    }
}

/// Sends an archive; `name` is its name without the extension.
pub(in crate::web) fn respond_with_archive(
    method: &Method,
    format: ArchiveFormat,
    name: &[u8],
    start: impl FnOnce() -> OpenArchive,
) -> Response {
    let mut name = name.to_vec();
    name.push(b'.');
    name.extend_from_slice(format.extension().as_bytes());
    let mut response = Response::new(Body::empty());
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(format.content_type()));
    mark_as_attachment(&mut response, &name);
    if *method != Method::HEAD {
        *response.body_mut() = Body::from_stream(stream::try_unfold(start(), next_piece));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticked_names_are_read_and_tricks_refused() {
        let read = TickedFiles::parse(b"path=%2Fhome%2Fa&name=b&name=c+%25FF&format=tar&x=1").unwrap();
        assert_eq!(read.folder.as_bytes(), b"/home/a");
        assert_eq!(read.names.iter().map(RemoteName::as_bytes).collect::<Vec<_>>(), [&b"b"[..], b"c \xff"]);
        assert_eq!(read.format, Some(ArchiveFormat::Tar));
        assert_eq!(read.into_selection().name(), b"a");
        assert_eq!(TickedFiles::parse(b"path=/a&name=b.csv").unwrap().into_selection().name(), b"b.csv");
        assert_eq!(TickedFiles::parse(b"path=/").unwrap().into_selection().name(), b"files");
        for bad in
            ["", "name=a", "path=a", "path=/a&name=..", "path=/a&name=b%2Fc", "path=/a/..&name=b", "path=/a&name="]
        {
            assert!(TickedFiles::parse(bad.as_bytes()).is_err(), "{bad}");
        }
        let many = format!("path=/a{}", "&name=b".repeat(MAX_NAMES + 1));
        assert!(TickedFiles::parse(many.as_bytes()).is_err());
    }
}
