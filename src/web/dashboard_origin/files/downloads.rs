//! What guests download: a file, a picture for the page that shows it, or a folder as an archive.

use axum::Extension;
use axum::extract::{FromRequestParts, State};
use axum::http::{HeaderMap, Method};
use axum::response::Response;

use super::{GuestFilesRequest, GuestPathQuery};
use crate::app::AppState;
use crate::files::archive::{ArchiveFormat, ArchiveSelection, ArchiveStream};
use crate::ssh::sftp::{RemoteFileKind, SftpError};
use crate::store::shared_paths::SharedPathKind;
use crate::web::dashboard_origin::link_end::end_with_link;
use crate::web::http::extractors::{PathParams, QueryParams};
use crate::web::http::stream_limits::{OpenResponseLimiter, OpenResponsePermit};
use crate::web::pages::files::archive::respond_with_archive;
use crate::web::pages::files::download::respond_with_attachment;
use crate::web::pages::files::raw::respond_with_media;

/// A download that a guest asks for, before anything is checked.
#[derive(FromRequestParts)]
#[from_request(state(AppState))]
pub struct UncheckedGuestDownload {
    #[from_request(via(State))]
    app: AppState,
    #[from_request(via(Extension))]
    limiter: OpenResponseLimiter,
    #[from_request(via(PathParams))]
    access_key: String,
    #[from_request(via(QueryParams))]
    query: GuestPathQuery,
    method: Method,
    headers: HeaderMap,
}

#[derive(Clone, Copy)]
enum GuestDownloadKind {
    File,
    Picture,
    Archive,
}

/// One file, or a range of it.
pub async fn get_file(unchecked: UncheckedGuestDownload) -> Response {
    unchecked.serve(GuestDownloadKind::File).await
}

/// A picture, for the page that shows it.
pub async fn get_picture(unchecked: UncheckedGuestDownload) -> Response {
    unchecked.serve(GuestDownloadKind::Picture).await
}

/// A folder as a zip archive.
pub async fn get_archive(unchecked: UncheckedGuestDownload) -> Response {
    unchecked.serve(GuestDownloadKind::Archive).await
}

impl UncheckedGuestDownload {
    async fn serve(self, kind: GuestDownloadKind) -> Response {
        let sent = async {
            let request = GuestFilesRequest::authorize(&self.app, &self.access_key, &self.headers, &self.query).await?;
            let permit = request.start_download(&self.limiter)?;
            let response = self.respond(&request, kind, permit).await;
            let response = response.map_err(|error| Box::new(request.problem(&error).into_page()))?;
            Ok(end_with_link(&self.app, request.link.id, &self.method, response))
        };
        sent.await.unwrap_or_else(|response: Box<Response>| *response)
    }

    async fn respond(
        &self,
        request: &GuestFilesRequest,
        kind: GuestDownloadKind,
        permit: OpenResponsePermit,
    ) -> Result<Response, SftpError> {
        let (session, path) = request.resolve().await?;
        let source = request.source();
        match kind {
            GuestDownloadKind::File => {
                respond_with_attachment(source, &path, &self.method, &self.headers, permit).await
            }
            // A guest sees a broken picture, whatever the reason.
            GuestDownloadKind::Picture => {
                let sent = respond_with_media(source, path, &self.method, &self.headers, Some(permit)).await;
                sent.map_err(|_| SftpError::NotFound)
            }
            GuestDownloadKind::Archive => {
                let attrs = session.stat(&path).await?;
                if attrs.kind != RemoteFileKind::Folder || request.shared.kind != SharedPathKind::Folder {
                    return Err(SftpError::NotAFolder);
                }
                let selection = ArchiveSelection::WholeFolder(path);
                let now = self.app.clock.now();
                Ok(respond_with_archive(&self.method, ArchiveFormat::Zip, &selection.name(), || {
                    (ArchiveStream::start(source, ArchiveFormat::Zip, selection.clone(), now), permit)
                }))
            }
        }
    }
}
