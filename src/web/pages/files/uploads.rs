//! Uploads by the tus protocol, version 1.0.0 (tus.io/protocols/resumable-upload): core, creation, creation with upload,
//! checksum, termination and expiration. Any tus client can use it; answers that a person may read are sentences.

pub mod batch;
mod responses;
pub mod unfinished;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use self::responses::{
    EXPIRES, LENGTH, METADATA, OFFSET, PROBLEM, TusError, http_date, require_tus_version, tus_response,
};
use crate::auth::Permission;
use crate::domain::PersonId;
use crate::error::AppError;
use crate::files::uploads::{
    CHECKSUM_ALGORITHMS, RequestChecksum, UploadError, UploadMetadata, UploadPart, expires_at,
};
use crate::store::uploads::StoredUpload;
use crate::web::http::extractors::{MaybeCurrentPerson, PathParams};
use crate::web::portal_state::PortalState;

const EXTENSIONS: &str = "creation,creation-with-upload,checksum,termination,expiration";
const PART_TYPE: &str = "application/offset+octet-stream";

/// A tus request by someone who may make it.
struct UploadRequest {
    state: PortalState,
    person: PersonId,
    headers: HeaderMap,
}

impl UploadRequest {
    /// Checks who asks, and the protocol's version. Programs get a status, not the sign-in page.
    fn authorize(state: PortalState, me: MaybeCurrentPerson, headers: HeaderMap) -> Result<Self, TusError> {
        let Some(me) = me.0 else {
            return Err(TusError::new(
                StatusCode::UNAUTHORIZED,
                "You're signed out. Sign in again, then continue the upload.",
            ));
        };
        if me.viewer.may(Permission::UseClusters).is_err() {
            return Err(TusError::new(StatusCode::FORBIDDEN, "You don't have permission to upload files."));
        }
        require_tus_version(&headers)?;
        Ok(Self { state, person: me.person.id, headers })
    }

    fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn number(&self, name: &str) -> Result<u64, TusError> {
        let number = self.header(name).and_then(|value| value.parse().ok());
        number.ok_or_else(|| {
            TusError::new(StatusCode::BAD_REQUEST, &format!("The header {name} is missing or isn't a number."))
        })
    }

    fn has_part(&self) -> bool {
        self.header("content-type") == Some(PART_TYPE)
    }

    /// Writes a part in a task of its own: it saves what has arrived even if the client goes away.
    async fn append(&self, id: String, offset: u64, body: Body) -> Result<u64, TusError> {
        let checksum = match self.header("upload-checksum") {
            None => None,
            Some(header) => Some(RequestChecksum::parse(header).ok_or_else(|| {
                TusError::new(
                    StatusCode::BAD_REQUEST,
                    "The upload's checksum can't be read, or uses an unknown algorithm.",
                )
            })?),
        };
        let part = UploadPart { offset, checksum, body: body.into_data_stream() };
        let app = &self.state.app;
        let task = app.tasks.spawn(app.uploads.clone().append(self.person, id, part));
        Ok(task.await.unwrap_or(Err(UploadError::Stopping))?)
    }
}

/// What the server can do.
pub async fn options() -> Response {
    let mut response = tus_response(StatusCode::NO_CONTENT);
    let headers = response.headers_mut();
    headers.insert("tus-version", HeaderValue::from_static(responses::TUS_VERSION));
    headers.insert("tus-extension", HeaderValue::from_static(EXTENSIONS));
    headers.insert("tus-checksum-algorithm", HeaderValue::from_static(CHECKSUM_ALGORITHMS));
    response
}

/// Begins an upload, and takes its first bytes if the request has any.
pub async fn create(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TusError> {
    let request = UploadRequest::authorize(state, me, headers)?;
    let size = request.number(LENGTH)?;
    let header = request.header(METADATA).unwrap_or_default().to_owned();
    let metadata = UploadMetadata::parse(&header).map_err(UploadError::from)?;
    let uploads = &request.state.app.uploads;
    let upload = uploads.create(request.person, &metadata, &header, size).await?;
    let location = format!("/uploads/{}", upload.id);
    let received = if size == 0 {
        let finished = uploads.finish_empty(request.person, &upload).await;
        if finished.is_err() {
            let _ = uploads.cancel(request.person, &upload.id).await;
        }
        finished.map(|()| 0).map_err(TusError::from)
    } else if request.has_part() {
        request.append(upload.id.clone(), 0, body).await
    } else {
        Ok(0)
    };
    let mut response = match received {
        Ok(offset) => {
            let mut response = tus_response(StatusCode::CREATED);
            response.headers_mut().insert(OFFSET, HeaderValue::from(offset));
            add_expiry(&mut response, &upload);
            response
        }
        Err(problem) => problem.into_response(),
    };
    // Also with a problem: the client may go on with what was created.
    if let Ok(location) = HeaderValue::try_from(location) {
        response.headers_mut().insert(header::LOCATION, location);
    }
    Ok(response)
}

/// How far an upload is.
pub async fn head(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, TusError> {
    let request = UploadRequest::authorize(state, me, headers)?;
    let upload = request.state.app.uploads.find_settled(request.person, &id).await?;
    let mut response = tus_response(StatusCode::OK);
    let headers = response.headers_mut();
    headers.insert(OFFSET, HeaderValue::from(upload.confirmed));
    headers.insert(LENGTH, HeaderValue::from(upload.size));
    if let Ok(metadata) = HeaderValue::try_from(&upload.metadata) {
        headers.insert(METADATA, metadata);
    }
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // The answer that said it first may not have reached the page.
    let problem: String = upload.problem.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
    if let Ok(problem) = HeaderValue::try_from(problem) {
        headers.insert(PROBLEM, problem);
    }
    add_expiry(&mut response, &upload);
    Ok(response)
}

/// Takes the next bytes.
pub async fn patch(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TusError> {
    let request = UploadRequest::authorize(state, me, headers)?;
    if !request.has_part() {
        let text = format!("The request's content type must be {PART_TYPE}.");
        return Err(TusError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, &text));
    }
    let offset = request.append(id.clone(), request.number(OFFSET)?, body).await?;
    let mut response = tus_response(StatusCode::NO_CONTENT);
    response.headers_mut().insert(OFFSET, HeaderValue::from(offset));
    if let Ok(upload) = request.state.app.uploads.find(request.person, &id).await {
        add_expiry(&mut response, &upload);
    }
    Ok(response)
}

/// Ends an upload and removes what has arrived.
pub async fn delete(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, TusError> {
    let request = UploadRequest::authorize(state, me, headers)?;
    request.state.app.uploads.cancel(request.person, &id).await?;
    Ok(tus_response(StatusCode::NO_CONTENT))
}

/// For clients that can only send POST: the header says what is meant.
pub async fn post(
    state: State<PortalState>,
    me: MaybeCurrentPerson,
    id: PathParams<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TusError> {
    let method = headers.get("x-http-method-override").and_then(|value| Method::from_bytes(value.as_bytes()).ok());
    match method {
        Some(Method::PATCH) => patch(state, me, id, headers, body).await,
        Some(Method::DELETE) => delete(state, me, id, headers).await,
        Some(Method::HEAD) => head(state, me, id, headers).await,
        _ => {
            UploadRequest::authorize(state.0, me, headers)?;
            Ok(AppError::MethodNotAllowed.into_response())
        }
    }
}

fn add_expiry(response: &mut Response, upload: &StoredUpload) {
    if let Some(date) = http_date(expires_at(upload)) {
        response.headers_mut().insert(EXPIRES, date);
    }
}
