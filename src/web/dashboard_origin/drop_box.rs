//! Guests who upload files by a drop-box link: into one folder, over its owner's connection, without seeing what is there.

use askama::Template;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};

use crate::app::{App, AppState};
use crate::auth::guest_links::{GuestAccessError, GuestBrowserAccess, GuestLinkTargetKind};
use crate::clock::UnixTime;
use crate::cluster::ClusterAccountId;
use crate::files::uploads::NameDecision;
use crate::format;
use crate::store::shared_paths::SharedPath;
use crate::web::dashboard_origin::read_cookie;
use crate::web::dashboard_origin::viewer::{self, DashboardOriginAssetUrls};
use crate::web::http::assets;
use crate::web::http::extractors::PathParams;
use crate::web::http::visitor::Visitor;
use crate::web::pages::files::uploads::{TusError, TusRequest};

const KIND: GuestLinkTargetKind = GuestLinkTargetKind::DropBox;

#[derive(Template)]
#[template(path = "dashboard_origin/drop_box.html")]
struct DropBoxPage {
    assets: DashboardOriginAssetUrls,
    tus_js: &'static str,
    drop_box_js: &'static str,
    uploads_url: String,
    title: String,
    owner: String,
    until: UnixTime,
    /// How much it still takes: `4.2 GB`, `18 files`.
    room_bytes: String,
    room_files: String,
    is_full: bool,
    is_reachable: bool,
}

async fn check_access(
    app: &App,
    access_key: &str,
    headers: &HeaderMap,
) -> Result<(GuestBrowserAccess, SharedPath), GuestAccessError> {
    let cookie = read_cookie(app, KIND, access_key, headers)?;
    app.auth.check_shared_path(KIND, access_key, &cookie).await
}

pub async fn get(
    State(app): State<AppState>,
    PathParams(access_key): PathParams<String>,
    headers: HeaderMap,
) -> Response {
    let (access, shared) = match check_access(&app, &access_key, &headers).await {
        Ok(checked) => checked,
        Err(error) => return viewer::show_no_access(KIND, &error),
    };
    let (bytes, files) = shared.room();
    let account = ClusterAccountId { person: shared.person_id, cluster: shared.cluster_id };
    let page = DropBoxPage {
        assets: DashboardOriginAssetUrls::new(),
        tus_js: assets::asset_url("tus.min.js"),
        drop_box_js: assets::asset_url("drop_box.js"),
        uploads_url: uploads_url(&access_key),
        title: shared.title,
        owner: access.link.maker_name,
        until: access.link.expires_at,
        room_bytes: format::decimal_bytes(bytes),
        room_files: format::count(files, "more file"),
        is_full: bytes == 0 || files == 0,
        is_reachable: app.connections.connection(account.connection_key()).is_ok(),
    };
    viewer::render_page(StatusCode::OK, &page)
}

fn uploads_url(access_key: &str) -> String {
    format!("{}/uploads", KIND.base_path(access_key))
}

/// A request by a guest who may upload now: checked on every request.
async fn authorize(app: AppState, access_key: &str, headers: HeaderMap) -> Result<TusRequest, TusError> {
    let (access, shared) = check_access(&app, access_key, &headers).await.map_err(|error| refuse_access(&error))?;
    app.auth.limit_guest_upload_requests(access.link.id).map_err(|seconds| {
        let text = "This link was used too often in a short time. The upload continues in a moment.";
        TusError::new(StatusCode::TOO_MANY_REQUESTS, text).with_retry_after(seconds)
    })?;
    TusRequest::by_guest(app, shared, uploads_url(access_key), headers)
}

fn refuse_access(error: &GuestAccessError) -> TusError {
    match error {
        GuestAccessError::Store(error) => {
            tracing::error!(%error, "Could not check access to a drop-box");
            TusError::new(StatusCode::SERVICE_UNAVAILABLE, "")
        }
        GuestAccessError::Closed | GuestAccessError::Locked(_) => TusError::new(
            StatusCode::NOT_FOUND,
            "You don't have access to this drop-box. The link may have expired or been revoked. Open it again, or ask the person who sent it for a new one.",
        ),
    }
}

/// Puts what is said to the folder's owner into words for a guest.
fn for_guests(answer: Result<Response, TusError>) -> Response {
    let mut response = answer.unwrap_or_else(TusError::into_response);
    let text = match response.status() {
        StatusCode::SERVICE_UNAVAILABLE => {
            "The folder can't be reached right now. The upload continues automatically once it can."
        }
        StatusCode::FORBIDDEN | StatusCode::UNPROCESSABLE_ENTITY => {
            "The file couldn't be saved. Tell the person who sent you the link."
        }
        StatusCode::INSUFFICIENT_STORAGE => "The disk is full. Tell the person who sent you the link.",
        _ => return response,
    };
    *response.body_mut() = Body::from(text);
    response
}

/// Begins an upload.
pub async fn create(
    State(app): State<AppState>,
    PathParams(access_key): PathParams<String>,
    Visitor(client): Visitor,
    headers: HeaderMap,
    body: Body,
) -> Response {
    let created = async {
        let (access, shared) =
            check_access(&app, &access_key, &headers).await.map_err(|error| refuse_access(&error))?;
        if let Err(seconds) = app.auth.limit_guest_requests(access.link.id) {
            let text = "Too many uploads were started with this link in a short time. This one starts in a moment.";
            return Err(TusError::new(StatusCode::TOO_MANY_REQUESTS, text).with_retry_after(seconds));
        }
        TusRequest::by_guest(app, shared, uploads_url(&access_key), headers)?.create(&client, body).await
    };
    for_guests(created.await)
}

/// How far an upload is.
pub async fn head(
    State(app): State<AppState>,
    PathParams((access_key, id)): PathParams<(String, String)>,
    headers: HeaderMap,
) -> Response {
    for_guests(async { authorize(app, &access_key, headers).await?.head(&id).await }.await)
}

/// Takes the next bytes.
pub async fn patch(
    State(app): State<AppState>,
    PathParams((access_key, id)): PathParams<(String, String)>,
    headers: HeaderMap,
    body: Body,
) -> Response {
    for_guests(async { authorize(app, &access_key, headers).await?.patch(&id, body).await }.await)
}

/// Ends an upload and removes what has arrived.
pub async fn delete(
    State(app): State<AppState>,
    PathParams((access_key, id)): PathParams<(String, String)>,
    headers: HeaderMap,
) -> Response {
    for_guests(async { authorize(app, &access_key, headers).await?.delete(&id).await }.await)
}

/// Finishes an upload that has arrived, after an interruption.
pub async fn finish(
    State(app): State<AppState>,
    PathParams((access_key, id)): PathParams<(String, String)>,
    headers: HeaderMap,
) -> Response {
    for_guests(async { authorize(app, &access_key, headers).await?.finish(&id, NameDecision::TryAgain).await }.await)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn guests_read_nothing_that_was_meant_for_the_owner() {
        for (status, words) in [(503, "right now"), (403, "Tell the person"), (422, "Tell the person"), (507, "full")] {
            let status = StatusCode::from_u16(status).unwrap();
            let answer = for_guests(Err(TusError::new(status, "You're not connected to /home/alice.")));
            assert_eq!(answer.status(), status);
            let body = axum::body::to_bytes(answer.into_body(), 1000).await.unwrap();
            let text = String::from_utf8_lossy(&body).into_owned();
            assert!(text.contains(words) && !text.contains("alice"), "{text}");
        }
        let kept = for_guests(Err(TusError::new(StatusCode::CONFLICT, "x")));
        assert_eq!(kept.status(), StatusCode::CONFLICT);
    }
}
