//! Tests of what guests may request.

use super::*;

/// What the pages of the pinned versions were seen to request.
#[test]
fn pages_get_what_they_need_to_show() {
    for (kind, method, path) in [
        (DashboardKind::TensorBoard, "GET", "/"),
        (DashboardKind::TensorBoard, "HEAD", "/index.js"),
        (DashboardKind::TensorBoard, "GET", "/font-roboto/oMMgfZMQthOryQo9n22dcuvvDin1pK8aKteLpeZ5c0A.woff2"),
        (DashboardKind::TensorBoard, "GET", "/tf-imports/vs/editor/editor.main.js"),
        (DashboardKind::TensorBoard, "GET", "/data/plugins_listing"),
        (DashboardKind::TensorBoard, "GET", "/experiment/defaultExperimentId/data/runs"),
        (DashboardKind::TensorBoard, "POST", "/experiment/defaultExperimentId/data/plugin/timeseries/timeSeries"),
        (DashboardKind::TensorBoard, "POST", "/experiment/defaultExperimentId/data/plugin/hparams/session_groups"),
        (DashboardKind::TensorBoard, "POST", "/data/plugin/scalars/scalars_multirun"),
        (DashboardKind::TensorBoard, "GET", "/data/plugin/images/individualImage"),
        (DashboardKind::Mlflow, "GET", "/"),
        (DashboardKind::Mlflow, "GET", "/static-files/static/js/main.6f.js"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/search"),
        (DashboardKind::Mlflow, "POST", "/graphql"),
        (DashboardKind::Mlflow, "GET", "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"),
        (DashboardKind::Mlflow, "GET", "/get-artifact"),
        (DashboardKind::Mlflow, "GET", "/ajax-api/2.0/mlflow/logged-models/m-1%2D2/artifacts/files"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/3.0/mlflow/traces/search"),
    ] {
        assert!(is_allowed(kind, method, path), "{kind} {method} {path}");
    }
}

#[test]
fn nothing_else_passes() {
    for (kind, method, path) in [
        (DashboardKind::TensorBoard, "GET", "/data/logdir"),
        (DashboardKind::TensorBoard, "GET", "/data/plugin/projector/tensor"),
        (DashboardKind::TensorBoard, "GET", "/experiment/x/data/plugin/projector/sprite_image"),
        (DashboardKind::TensorBoard, "GET", "/data/plugin/profile/capture"),
        (DashboardKind::TensorBoard, "GET", "/data/plugin/debugger-v2/source_files/file"),
        (DashboardKind::TensorBoard, "POST", "/"),
        (DashboardKind::TensorBoard, "PUT", "/data/runs"),
        (DashboardKind::TensorBoard, "get", "/data/runs"),
        (DashboardKind::TensorBoard, "OPTIONS", "/"),
        (DashboardKind::TensorBoard, "GET", "/font-roboto/"),
        (DashboardKind::TensorBoard, "GET", "/font-roboto/a/b"),
        (DashboardKind::TensorBoard, "GET", "/tf-imports"),
        (DashboardKind::TensorBoard, "GET", "/data/plugin/scalars/tags/"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/create"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/delete"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/log-batch"),
        (DashboardKind::Mlflow, "DELETE", "/ajax-api/2.0/mlflow/registered-models/delete"),
        (DashboardKind::Mlflow, "PATCH", "/ajax-api/2.0/mlflow/logged-models/m-1"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/2.0/mlflow/logged-models"),
        (DashboardKind::Mlflow, "GET", "/ajax-api/2.0/mlflow/gateway-proxy"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/2.0/mlflow/upload-artifact"),
        (DashboardKind::Mlflow, "GET", "/ajax-api/2.0/mlflow/webhooks"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/3.0/mlflow/scorer/invoke"),
        (DashboardKind::Mlflow, "GET", "/ajax-api/3.0/mlflow/gateway/secrets/list"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/3.0/mlflow/demo/generate"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/3.0/mlflow/traces"),
        (DashboardKind::Mlflow, "GET", "/ajax-api/3.0/mlflow/jobs/1"),
        (DashboardKind::Mlflow, "POST", "/ajax-api/3.0/mlflow/ui-telemetry"),
        (DashboardKind::Mlflow, "GET", "/ajax-api/3.0/mlflow/assistant/config"),
        (DashboardKind::Mlflow, "GET", "/graphql"),
        (DashboardKind::Mlflow, "POST", "/api/2.0/mlflow/runs/search"),
        (DashboardKind::Mlflow, "PUT", "/ajax-api/2.0/mlflow-artifacts/artifacts/x"),
    ] {
        assert!(!is_allowed(kind, method, path), "{kind} {method} {path}");
    }
}

#[test]
fn a_path_with_two_readings_does_not_pass() {
    for path in [
        "",
        "index.js",
        "//",
        "//index.js",
        "/tf-imports/../data/logdir",
        "/tf-imports/%2e%2e/data/logdir",
        "/tf-imports/./a",
        "/tf-imports//a",
        "/tf-imports/a%2fb",
        "/tf-imports/a%2Fb",
        "/tf-imports/a%5cb",
        "/tf-imports/a\\b",
        "/tf-imports/a%00",
        "/tf-imports/a%0d%0aX",
        "/tf-imports/a%252e",
        "/tf-imports/a%",
        "/tf-imports/a%2",
        "/tf-imports/a%zz",
        "/tf-imports/a%+1",
        "/tf-imports/a%ff",
        "/tf-imports/a?b",
        "/tf-imports/a%3fb",
        "/tf-imports/a#b",
        "http://localhost/",
    ] {
        assert!(!is_allowed(DashboardKind::TensorBoard, "GET", path), "{path}");
    }
    assert!(is_allowed(DashboardKind::TensorBoard, "GET", "/tf-imports/a%20b%C3%A9"));
}

#[test]
fn every_rule_says_one_thing() {
    for kind in DashboardKind::ALL {
        let all: Vec<_> = rules(kind).collect();
        for (place, (method, path)) in all.iter().enumerate() {
            assert!(["GET", "POST"].contains(method) && path.starts_with('/'), "{path}");
            assert!(!all[..place].contains(&(method, path)), "{path} twice");
            let steps: Vec<_> = path.split('/').collect();
            assert!(!steps[..steps.len() - 1].contains(&"**"), "{path}");
        }
    }
}

proptest::proptest! {
    #[test]
    fn nothing_panics(method in "[A-Z]{0,7}", path in "\\PC{0,60}") {
        for kind in DashboardKind::ALL {
            let _ = is_allowed(kind, &method, &path);
        }
    }
}
