//! Many small files in one request. See `files::uploads::batch` for its format.

use std::time::Duration;

use axum::Json;
use axum::body::Body;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use serde::Deserialize;

use super::responses::{refuse, show_problem};
use crate::auth::ActivityEventKind;
use crate::domain::RemotePath;
use crate::error::AppError;
use crate::files::uploads::UploadError;
use crate::files::uploads::batch::{BatchOutcome, MAX_BATCH_BYTES, parse_batch, write_batch};
use crate::format;
use crate::ssh::sftp::RenameMode;
use crate::web::HandlerResult;
use crate::web::http::extractors::QueryParams;
use crate::web::pages::files::UncheckedFilesRequest;

/// A request that takes longer is cut: it holds one of few places.
const RECEIVE_TIMEOUT: Duration = Duration::from_mins(2);

#[derive(Deserialize)]
pub struct UploadBatchQuery {
    /// The folder that the paths begin in, encoded.
    path: String,
    /// `yes` if files may be replaced.
    #[serde(default)]
    replace: String,
}

pub async fn post(
    unchecked: UncheckedFilesRequest,
    QueryParams(query): QueryParams<UploadBatchQuery>,
    body: Body,
) -> HandlerResult {
    let request = unchecked.authorize().await?;
    let folder = RemotePath::from_encoded(&query.path).map_err(|error| AppError::BadRequest(error.to_string()))?;
    let app = request.request.context.app.clone();
    let connection = match &request.connection {
        Ok(connection) => connection.clone(),
        Err(error) => return Ok(show_problem(&error.clone().into())),
    };
    let place = match app.uploads.batch_place(request.request.me.0.person.id).await {
        Ok(place) => place,
        Err(error) => return Ok(show_problem(&error)),
    };
    let received = tokio::time::timeout(RECEIVE_TIMEOUT, axum::body::to_bytes(body, MAX_BATCH_BYTES)).await;
    let Ok(Ok(body)) = received else {
        return Ok(refuse(StatusCode::BAD_REQUEST, "The request was interrupted, or is too large."));
    };
    let files = match parse_batch(body) {
        Ok(files) => files,
        Err(error) => return Ok(refuse(StatusCode::BAD_REQUEST, &error.to_string())),
    };
    let mode = if query.replace == "yes" { RenameMode::Replace } else { RenameMode::KeepExisting };
    let writing = write_batch(connection, folder.clone(), files, mode);
    let task = app.tasks.spawn(async move {
        let written = writing.await;
        drop(place);
        written
    });
    match task.await.unwrap_or(Err(UploadError::Stopping)) {
        Ok(outcomes) => {
            let done = outcomes.iter().filter(|outcome| **outcome == BatchOutcome::Done).count();
            if done > 0 {
                let count = format::count(u64::try_from(done).unwrap_or(u64::MAX), "file");
                request.record(ActivityEventKind::FilesUploaded, &format!("{count} to {folder}")).await?;
            }
            Ok(show_outcomes(&outcomes))
        }
        Err(error) => Ok(show_problem(&error)),
    }
}

fn show_outcomes(outcomes: &[BatchOutcome]) -> Response {
    let files: Vec<serde_json::Value> = outcomes
        .iter()
        .map(|outcome| match outcome {
            BatchOutcome::Done => serde_json::json!({ "outcome": "done" }),
            BatchOutcome::Exists => serde_json::json!({ "outcome": "exists" }),
            BatchOutcome::Failed(problem) => serde_json::json!({ "outcome": "failed", "problem": problem }),
        })
        .collect();
    Json(serde_json::json!({ "files": files })).into_response()
}
