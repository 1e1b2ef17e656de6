//! What anyone but a dashboard's owner may request: reading, and nothing that writes, uploads or calls out. Pure.
//!
//! There is one table for each kind, derived from the programs' routes and from what their pages request. `server.py`
//! gets the same table for versions of `MLflow` that it shows read-only to everyone.

use super::DashboardKind;

/// Whether a guest's request is allowed. `path` is the part after the dashboard's prefix as the dashboard will get
/// it, without its query: percent-encoded, beginning with a slash. What does not decode, or contains anything odd, is
/// refused.
pub fn is_allowed(kind: DashboardKind, method: &str, path: &str) -> bool {
    let Some(path) = decode_path(path) else { return false };
    let method = if method == "HEAD" { "GET" } else { method };
    rules(kind).any(|(known, pattern)| known == method && matches_pattern(pattern, &path))
}

/// The table of a kind: a method (GET includes HEAD) and a path, in which `*` is one segment and `**` at the end is
/// one segment or more.
pub fn rules(kind: DashboardKind) -> impl Iterator<Item = (&'static str, &'static str)> {
    let table = match kind {
        DashboardKind::TensorBoard => TENSORBOARD,
        DashboardKind::Mlflow => MLFLOW,
    };
    table.iter().flat_map(|(method, paths)| paths.iter().map(move |path| (*method, *path)))
}

fn matches_pattern(pattern: &str, path: &str) -> bool {
    let (mut wanted, mut steps) = (pattern.split('/').skip(1), path.split('/').skip(1));
    loop {
        match (wanted.next(), steps.next()) {
            (Some("**"), Some(_)) | (None, None) => return true,
            (Some("*"), Some(step)) if !step.is_empty() => {}
            (Some(want), Some(step)) if want == step => {}
            _ => return false,
        }
    }
}

/// The path as the dashboard reads it, if there is only one way to read it.
fn decode_path(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        let byte = if byte == b'%' {
            let pair = [rest.next()?, rest.next()?];
            let pair = str::from_utf8(&pair).ok().filter(|pair| !pair.starts_with('+'))?;
            // An encoded slash may or may not separate segments, depending on who reads it.
            u8::from_str_radix(pair, 16).ok().filter(|byte| *byte != b'/')?
        } else {
            byte
        };
        bytes.push(byte);
    }
    let path = String::from_utf8(bytes).ok()?;
    let is_clear = path.starts_with('/')
        && !path.contains(['\\', '?', '#', '%'])
        && !path.contains("//")
        && !path.chars().any(char::is_control)
        && !path.split('/').any(|step| step == "." || step == "..");
    is_clear.then_some(path)
}

type ReadOnlyRequestList = &'static [(&'static str, &'static [&'static str])];

/// Without the projector, the debugger and the profiler: they read files by name, or reach out.
const TENSORBOARD: ReadOnlyRequestList = &[
    (
        "GET",
        &[
            "/",
            "/index.html",
            "/index.js",
            "/chart_worker.js",
            "/icon_bundle.svg",
            "/font-roboto/*",
            "/tf-imports/**",
            "/data/environment",
            "/data/experiments",
            "/data/experiment_runs",
            "/data/notifications",
            "/data/plugin_entry.html",
            "/data/plugins_listing",
            "/data/runs",
            "/data/window_properties",
            "/data/plugin/audio/audio",
            "/data/plugin/audio/individualAudio",
            "/data/plugin/audio/tags",
            "/data/plugin/custom_scalars/download_data",
            "/data/plugin/custom_scalars/layout",
            "/data/plugin/custom_scalars/scalars",
            "/data/plugin/distributions/distributions",
            "/data/plugin/distributions/tags",
            "/data/plugin/graphs/graph",
            "/data/plugin/graphs/info",
            "/data/plugin/graphs/run_metadata",
            "/data/plugin/histograms/histograms",
            "/data/plugin/histograms/tags",
            "/data/plugin/hparams/download_data",
            "/data/plugin/hparams/experiment",
            "/data/plugin/hparams/metric_evals",
            "/data/plugin/hparams/session_groups",
            "/data/plugin/images/images",
            "/data/plugin/images/individualImage",
            "/data/plugin/images/tags",
            "/data/plugin/mesh/data",
            "/data/plugin/mesh/meshes",
            "/data/plugin/mesh/tags",
            "/data/plugin/pr_curves/pr_curves",
            "/data/plugin/pr_curves/tags",
            "/data/plugin/scalars/scalars",
            "/data/plugin/scalars/tags",
            "/data/plugin/text/tags",
            "/data/plugin/text/text",
            "/data/plugin/timeseries/imageData",
            "/data/plugin/timeseries/tags",
            "/data/plugin/timeseries/timeSeries",
            "/experiment/*/data/runs",
            "/experiment/*/data/plugin/hparams/download_data",
            "/experiment/*/data/plugin/timeseries/imageData",
            "/experiment/*/data/plugin/timeseries/tags",
            "/experiment/*/data/plugin/timeseries/timeSeries",
        ],
    ),
    (
        "POST",
        &[
            "/data/plugin/hparams/experiment",
            "/data/plugin/hparams/metric_evals",
            "/data/plugin/hparams/session_groups",
            "/data/plugin/scalars/scalars_multirun",
            "/data/plugin/timeseries/timeSeries",
            "/experiment/*/data/plugin/hparams/experiment",
            "/experiment/*/data/plugin/hparams/metric_evals",
            "/experiment/*/data/plugin/hparams/session_groups",
            "/experiment/*/data/plugin/timeseries/timeSeries",
        ],
    ),
];

/// In the pinned version everything in GraphQL only reads, even its mutations, so it is allowed. The assistant, the
/// gateway, jobs, webhooks, scorers and demos are not here, and neither is anything that takes a URL.
const MLFLOW: ReadOnlyRequestList = &[
    (
        "GET",
        &[
            "/",
            "/health",
            "/version",
            "/static-files/**",
            "/get-artifact",
            "/model-versions/get-artifact",
            "/ajax-api/2.0/mlflow/artifacts/list",
            "/ajax-api/2.0/mlflow/experiments/get",
            "/ajax-api/2.0/mlflow/experiments/get-by-name",
            "/ajax-api/2.0/mlflow/experiments/search",
            "/ajax-api/2.0/mlflow/get-trace-artifact",
            "/ajax-api/2.0/mlflow/logged-models/*",
            "/ajax-api/2.0/mlflow/logged-models/*/artifacts/directories",
            "/ajax-api/2.0/mlflow/logged-models/*/artifacts/files",
            "/ajax-api/2.0/mlflow/metrics/get-history",
            "/ajax-api/2.0/mlflow/metrics/get-history-bulk",
            "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval",
            "/ajax-api/2.0/mlflow/model-versions/get",
            "/ajax-api/2.0/mlflow/model-versions/search",
            "/ajax-api/2.0/mlflow/registered-models/alias",
            "/ajax-api/2.0/mlflow/registered-models/get",
            "/ajax-api/2.0/mlflow/registered-models/get-latest-versions",
            "/ajax-api/2.0/mlflow/registered-models/search",
            "/ajax-api/2.0/mlflow/runs/get",
            "/ajax-api/2.0/mlflow/traces",
            "/ajax-api/2.0/mlflow/traces/*/info",
            "/ajax-api/3.0/mlflow/datasets/*",
            "/ajax-api/3.0/mlflow/datasets/*/experiment-ids",
            "/ajax-api/3.0/mlflow/datasets/*/records",
            "/ajax-api/3.0/mlflow/get-trace-artifact",
            "/ajax-api/3.0/mlflow/server-info",
            "/ajax-api/3.0/mlflow/traces/*",
            "/ajax-api/3.0/mlflow/traces/*/assessments/*",
            "/ajax-api/3.0/mlflow/ui-telemetry",
        ],
    ),
    (
        "POST",
        &[
            "/graphql",
            "/ajax-api/2.0/mlflow/experiments/search",
            "/ajax-api/2.0/mlflow/experiments/search-datasets",
            "/ajax-api/2.0/mlflow/logged-models/search",
            "/ajax-api/2.0/mlflow/registered-models/get-latest-versions",
            "/ajax-api/2.0/mlflow/runs/search",
            "/ajax-api/3.0/mlflow/datasets/search",
            "/ajax-api/3.0/mlflow/traces/batchGetInfos",
            "/ajax-api/3.0/mlflow/traces/metrics",
            "/ajax-api/3.0/mlflow/traces/search",
        ],
    ),
];

#[cfg(test)]
mod tests;
