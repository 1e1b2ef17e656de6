//! The dashboards' own origin. Until a dashboard is opened there is nothing to see here.

use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use crate::probe::BOARDS_MARK;

/// The answer to any address that is not a dashboard. Static: nothing of the request is repeated.
pub async fn nothing_here() -> Response {
    (
        StatusCode::NOT_FOUND,
        [(header::CONTENT_TYPE.as_str(), "text/plain; charset=utf-8"), (BOARDS_MARK, "1")],
        "There is no dashboard at this address. Open dashboards from the portal.\n",
    )
        .into_response()
}
