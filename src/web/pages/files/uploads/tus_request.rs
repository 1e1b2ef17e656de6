//! The protocol itself, whoever uploads: a person to any folder of theirs, or a guest to a drop-box.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse as _, Response};

use super::responses::{
    EXPIRES, LENGTH, METADATA, OFFSET, PROBLEM, TusError, http_date, require_tus_version, tus_response,
};
use crate::app::AppState;
use crate::auth::RequestClient;
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::uploads::{
    NameDecision, RequestChecksum, UploadError, UploadMetadata, UploadOwner, UploadPart, expires_at, stored_path,
};
use crate::store::shared_paths::SharedPath;
use crate::store::uploads::StoredUpload;

const PART_TYPE: &str = "application/offset+octet-stream";
/// How long a request waits while a large file is checked.
const FINISH_WAIT: Duration = Duration::from_secs(25);

/// A tus request by someone who may make it.
pub(in crate::web) struct TusRequest {
    app: AppState,
    owner: UploadOwner,
    /// Where a guest's files go.
    drop_box: Option<SharedPath>,
    /// The address below which the uploads are.
    base: String,
    headers: HeaderMap,
}

impl TusRequest {
    /// A request by a person. Checks the protocol's version.
    pub fn by_person(app: AppState, owner: UploadOwner, headers: HeaderMap) -> Result<Self, TusError> {
        require_tus_version(&headers)?;
        Ok(Self { app, owner, drop_box: None, base: "/uploads".to_owned(), headers })
    }

    /// A request by a guest whose access was checked.
    pub fn by_guest(app: AppState, drop_box: SharedPath, base: String, headers: HeaderMap) -> Result<Self, TusError> {
        require_tus_version(&headers)?;
        let owner = UploadOwner { person: drop_box.person_id, drop_box: Some(drop_box.id) };
        Ok(Self { app, owner, drop_box: Some(drop_box), base, headers })
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

    fn metadata(&self, header: &str, size: u64) -> Result<UploadMetadata, UploadError> {
        let Some(drop_box) = &self.drop_box else { return Ok(UploadMetadata::parse(header)?) };
        let (bytes, files) = drop_box.room();
        // Said before the cluster is asked anything; what counts is the reservation afterwards.
        if size > bytes || files == 0 {
            return Err(UploadError::DropBoxFull);
        }
        let folder = RemotePath::from_encoded(&drop_box.path).map_err(|_| UploadError::NoFolder)?;
        Ok(UploadMetadata::parse_for_drop_box(header, &drop_box.slug, folder)?)
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
        let task = self.app.tasks.spawn(self.app.uploads.clone().append(self.owner, id, part));
        Ok(task.await.unwrap_or(Err(UploadError::Stopping))?)
    }

    /// Begins an upload, and takes its first bytes if the request has any.
    pub async fn create(self, client: &RequestClient, body: Body) -> Result<Response, TusError> {
        let size = self.number(LENGTH)?;
        let header = self.header(METADATA).unwrap_or_default().to_owned();
        let metadata = self.metadata(&header, size)?;
        let uploads = &self.app.uploads;
        let upload = uploads.create(self.owner, &metadata, &header, (size, client)).await?;
        let location = format!("{}/{}", self.base, upload.id);
        let received = if size == 0 {
            let finished = uploads.finish_empty(self.owner, &upload).await;
            if finished.is_err() {
                let _ = uploads.cancel(self.owner, &upload.id).await;
            }
            finished.map(|()| 0).map_err(TusError::from)
        } else if self.has_part() {
            self.append(upload.id.clone(), 0, body).await
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
    pub async fn head(self, id: &str) -> Result<Response, TusError> {
        let upload = self.app.uploads.find_settled(self.owner, id).await?;
        let mut response = tus_response(StatusCode::OK);
        let headers = response.headers_mut();
        headers.insert(OFFSET, HeaderValue::from(upload.confirmed));
        headers.insert(LENGTH, HeaderValue::from(upload.size));
        if let Ok(metadata) = HeaderValue::try_from(&upload.metadata) {
            headers.insert(METADATA, metadata);
        }
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        // The answer that said it first may not have reached the page. It is meant for the folder's owner.
        if self.drop_box.is_none() {
            let problem: String = upload.problem.chars().map(|c| if c.is_ascii() { c } else { '?' }).collect();
            if let Ok(problem) = HeaderValue::try_from(problem) {
                headers.insert(PROBLEM, problem);
            }
        }
        add_expiry(&mut response, &upload);
        Ok(response)
    }

    /// Takes the next bytes.
    pub async fn patch(self, id: &str, body: Body) -> Result<Response, TusError> {
        if !self.has_part() {
            let text = format!("The request's content type must be {PART_TYPE}.");
            return Err(TusError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, &text));
        }
        let offset = self.append(id.to_owned(), self.number(OFFSET)?, body).await?;
        let mut response = tus_response(StatusCode::NO_CONTENT);
        response.headers_mut().insert(OFFSET, HeaderValue::from(offset));
        if let Ok(upload) = self.app.uploads.find(self.owner, id).await {
            add_expiry(&mut response, &upload);
        }
        Ok(response)
    }

    /// Ends an upload and removes what has arrived.
    pub async fn delete(self, id: &str) -> Result<Response, TusError> {
        self.app.uploads.cancel(self.owner, id).await?;
        Ok(tus_response(StatusCode::NO_CONTENT))
    }

    /// For clients that can only send POST: the header says what is meant.
    pub async fn post(self, id: &str, body: Body) -> Result<Response, TusError> {
        let method = self.headers.get("x-http-method-override").map(HeaderValue::as_bytes);
        match method.and_then(|method| Method::from_bytes(method).ok()) {
            Some(Method::PATCH) => self.patch(id, body).await,
            Some(Method::DELETE) => self.delete(id).await,
            Some(Method::HEAD) => self.head(id).await,
            _ => Ok(AppError::MethodNotAllowed.into_response()),
        }
    }

    /// Finishes an upload that has arrived.
    pub async fn finish(self, id: &str, decision: NameDecision) -> Result<Response, TusError> {
        let task = self.app.tasks.spawn(self.app.uploads.clone().finish(self.owner, id.to_owned(), decision));
        match tokio::time::timeout(FINISH_WAIT, task).await {
            Err(_) => {
                return Ok((StatusCode::ACCEPTED, Json(serde_json::json!({ "state": "checking" }))).into_response());
            }
            Ok(ended) => ended.unwrap_or(Err(UploadError::Stopping))?,
        }
        let upload = self.app.uploads.find(self.owner, id).await?;
        // A guest isn't told the new name: it says which names are taken.
        let target = if self.drop_box.is_some() { None } else { stored_path(&upload.target)?.name() };
        let name = target.map(|name| name.to_string()).unwrap_or_default();
        Ok(Json(serde_json::json!({ "state": upload.state.as_str(), "name": name })).into_response())
    }
}

fn add_expiry(response: &mut Response, upload: &StoredUpload) {
    if let Some(date) = http_date(expires_at(upload)) {
        response.headers_mut().insert(EXPIRES, date);
    }
}
