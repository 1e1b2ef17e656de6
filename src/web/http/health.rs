//! `/healthz` and `/metrics`. The public check only says whether the portal is healthy; details are on loopback.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::json;

use crate::app::AppState;
use crate::health;
use crate::probe;
use crate::web::http::extractors::RequestContext;

/// For the proxy in front: is the portal healthy? If `doctor` asks, it also reports what it sees of the request.
pub async fn public(context: RequestContext, headers: HeaderMap) -> Response {
    let app = &context.app;
    let status = status(&health::find_problems(app).await);
    if is_doctor(app, &headers) {
        return (status, Json(describe_request(&context, &headers))).into_response();
    }
    let word = if status == StatusCode::OK { "well\n" } else { "unwell\n" };
    (status, [(header::CONTENT_TYPE, "text/plain; charset=utf-8")], word).into_response()
}

/// Whether the request carries the mark of a `doctor` with our master key.
fn is_doctor(app: &AppState, headers: &HeaderMap) -> bool {
    let probe = headers.get(probe::PROBE_HEADER).and_then(|value| value.to_str().ok());
    probe.is_some_and(|probe| probe::verify_probe(&app.vault, probe, app.clock.now()))
}

fn describe_request(context: &RequestContext, headers: &HeaderMap) -> serde_json::Value {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
    json!({
        "host": header("host"),
        "forwarded_proto": header("x-forwarded-proto"),
        "forwarded_for": header("x-forwarded-for"),
        "client_address": context.visitor.address.to_string(),
        "now": context.app.clock.now().0,
    })
}

/// For monitoring on the same machine: what is wrong. If `doctor` asks, it also says which instance this is.
pub async fn private(State(app): State<AppState>, headers: HeaderMap) -> Response {
    let problems = health::find_problems(&app).await;
    let mut body = json!({
        "status": if problems.is_empty() { "well" } else { "unwell" },
        "problems": problems,
        "version": env!("CARGO_PKG_VERSION"),
    });
    if is_doctor(&app, &headers) {
        body["data_dir"] = json!(probe::data_dir_name(&app.config.data_dir));
    }
    (status(&problems), Json(body)).into_response()
}

pub async fn metrics(State(app): State<AppState>) -> Response {
    let kind = "text/plain; version=0.0.4; charset=utf-8";
    ([(header::CONTENT_TYPE, kind)], app.metrics.render()).into_response()
}

fn status(problems: &[String]) -> StatusCode {
    if problems.is_empty() { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}
