//! Uploads by the tus protocol, version 1.0.0 (tus.io/protocols/resumable-upload): core, creation, creation with upload,
//! checksum, termination and expiration. Any tus client can use it; answers that a person may read are sentences.

pub mod batch;
mod responses;
mod tus_request;
pub mod unfinished;

use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::Response;

pub(in crate::web) use self::responses::TusError;
use self::responses::tus_response;
pub(in crate::web) use self::tus_request::TusRequest;
use crate::auth::Permission;
use crate::files::uploads::CHECKSUM_ALGORITHMS;
use crate::web::http::extractors::{MaybeCurrentPerson, PathParams};
use crate::web::http::visitor::Visitor;
use crate::web::portal_state::PortalState;

const EXTENSIONS: &str = "creation,creation-with-upload,checksum,termination,expiration";

/// Checks who asks, and the protocol's version. Programs get a status, not the sign-in page.
fn authorize(state: PortalState, me: MaybeCurrentPerson, headers: HeaderMap) -> Result<TusRequest, TusError> {
    let Some(me) = me.0 else {
        return Err(TusError::new(
            StatusCode::UNAUTHORIZED,
            "You're signed out. Sign in again, then continue the upload.",
        ));
    };
    if me.viewer.may(Permission::UseClusters).is_err() {
        return Err(TusError::new(StatusCode::FORBIDDEN, "You don't have permission to upload files."));
    }
    TusRequest::by_person(state.app, me.person.id.into(), headers)
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
    Visitor(client): Visitor,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TusError> {
    authorize(state, me, headers)?.create(&client, body).await
}

/// How far an upload is.
pub async fn head(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, TusError> {
    authorize(state, me, headers)?.head(&id).await
}

/// Takes the next bytes.
pub async fn patch(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TusError> {
    authorize(state, me, headers)?.patch(&id, body).await
}

/// Ends an upload and removes what has arrived.
pub async fn delete(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, TusError> {
    authorize(state, me, headers)?.delete(&id).await
}

/// For clients that can only send POST: the header says what is meant.
pub async fn post(
    State(state): State<PortalState>,
    me: MaybeCurrentPerson,
    PathParams(id): PathParams<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, TusError> {
    authorize(state, me, headers)?.post(&id, body).await
}
