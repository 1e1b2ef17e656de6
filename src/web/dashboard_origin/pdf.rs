//! A PDF for the frame on its page in the portal. Browsers show PDFs only outside of a sandbox, so a person's PDF never
//! comes from the portal's own origin: it comes from here, by a token that opens this one file for a few minutes.

use axum::Extension;
use axum::extract::State;
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use crate::app::{App, AppState};
use crate::files::downloads::{ConnectionSource, DownloadError, FileDownload, attachment_disposition};
use crate::files::preview::{MAX_INLINE_PDF_BYTES, PDF_MAGIC};
use crate::files::preview_tokens::PreviewTokenTarget;
use crate::ssh::sftp::SftpError;
use crate::store;
use crate::web::dashboard_origin::{enter, is_token};
use crate::web::http::extractors::PathParams;
use crate::web::http::file_response::{insert_header, mark_as_inline, respond_with_file};
use crate::web::http::middleware::UserFileMarker;
use crate::web::http::stream_limits::OpenResponseLimiter;
use crate::web::http::visitor::visitor_from_request;

const EXPIRED: &str = "This preview has expired. Reload the page to see the file again.\n";
const NOT_A_PDF: &str = "This file is no longer a PDF that can be shown here. Reload the page.\n";
const NOT_CONNECTED: &str = "The connection to the cluster was lost. Connect again, then reload the page.\n";
const TOO_MANY: &str = "You have too many previews open. Close some of them, then reload the page.\n";

/// Sends the PDF of a token; any other file doesn't exist here.
pub async fn get(
    State(app): State<AppState>,
    Extension(limiter): Extension<OpenResponseLimiter>,
    PathParams(token): PathParams<String>,
    parts: Parts,
) -> Response {
    let target = match find_target(&app, &token, &parts).await {
        Ok(target) => target,
        Err(response) => return *response,
    };
    let Some(permit) = limiter.acquire(target.account.person) else {
        return show_text(&app, StatusCode::TOO_MANY_REQUESTS, TOO_MANY);
    };
    let key = target.account.connection_key();
    let source = ConnectionSource::new(app.connections.clone(), key, app.stop.clone());
    let download = match open_pdf(source, &target).await {
        Ok(Some(download)) => download,
        Err(DownloadError::Sftp(SftpError::Run(_))) => {
            return show_text(&app, StatusCode::SERVICE_UNAVAILABLE, NOT_CONNECTED);
        }
        Ok(None) | Err(_) => return show_text(&app, StatusCode::NOT_FOUND, NOT_A_PDF),
    };
    let mut response = respond_with_file(&parts.method, &parts.headers, download, Some(permit));
    mark_as_inline(&mut response, "application/pdf", frame_policy(&app));
    if let Some(name) = target.path.name() {
        let disposition = attachment_disposition(name.as_bytes()).replacen("attachment", "inline", 1);
        insert_header(&mut response, header::CONTENT_DISPOSITION, disposition);
    }
    response
}

/// What the token opens, if the person who got it is still signed in.
async fn find_target(app: &App, token: &str, parts: &Parts) -> Result<PreviewTokenTarget, Box<Response>> {
    let target = app.preview_tokens.find(token, app.clock.now()).filter(|_| is_token(token));
    let Some(target) = target else {
        let visitor = visitor_from_request(parts, &app.config.proxy.trusted);
        return Err(Box::new(match app.auth.limit_link_guess(&visitor) {
            Ok(()) => show_text(app, StatusCode::GONE, EXPIRED),
            Err(error) => enter::show_auth_error(&error),
        }));
    };
    let is_signed_in = async { store::sessions::exists(&mut *app.store.read().await?, target.session).await };
    match is_signed_in.await {
        Ok(true) => Ok(target),
        Ok(false) => Err(Box::new(show_text(app, StatusCode::GONE, EXPIRED))),
        Err(error) => Err(Box::new(enter::show_auth_error(&error.into()))),
    }
}

/// Opens the file if it is a PDF that isn't too large. It may have changed since its page was made.
async fn open_pdf(
    source: ConnectionSource,
    target: &PreviewTokenTarget,
) -> Result<Option<FileDownload>, DownloadError> {
    let mut download = FileDownload::open(source, target.path.clone()).await?;
    if download.attrs().size > MAX_INLINE_PDF_BYTES || download.read_head(PDF_MAGIC.len()).await? != PDF_MAGIC {
        return Ok(None);
    }
    Ok(Some(download))
}

/// Nothing loads, and only the portal's pages may frame it.
fn frame_policy(app: &App) -> String {
    format!("default-src 'none'; object-src 'none'; frame-ancestors {}", app.config.portal.public_url)
}

/// Why there is no PDF, as text in the same frame.
fn show_text(app: &App, status: StatusCode, text: &'static str) -> Response {
    let mut response = (status, Extension(UserFileMarker), text).into_response();
    mark_as_inline(&mut response, "text/plain; charset=utf-8", frame_policy(app));
    response
}
