//! Who may ask for what.

use super::*;

/// What the pages of the pinned versions were seen to ask for.
#[test]
fn pages_get_what_they_need_to_show() {
    for (kind, method, path) in [
        (Kind::TensorBoard, "GET", "/"),
        (Kind::TensorBoard, "HEAD", "/index.js"),
        (
            Kind::TensorBoard,
            "GET",
            "/font-roboto/oMMgfZMQthOryQo9n22dcuvvDin1pK8aKteLpeZ5c0A.woff2",
        ),
        (Kind::TensorBoard, "GET", "/tf-imports/vs/editor/editor.main.js"),
        (Kind::TensorBoard, "GET", "/data/plugins_listing"),
        (Kind::TensorBoard, "GET", "/experiment/defaultExperimentId/data/runs"),
        (
            Kind::TensorBoard,
            "POST",
            "/experiment/defaultExperimentId/data/plugin/timeseries/timeSeries",
        ),
        (
            Kind::TensorBoard,
            "POST",
            "/experiment/defaultExperimentId/data/plugin/hparams/session_groups",
        ),
        (Kind::TensorBoard, "POST", "/data/plugin/scalars/scalars_multirun"),
        (Kind::TensorBoard, "GET", "/data/plugin/images/individualImage"),
        (Kind::Mlflow, "GET", "/"),
        (Kind::Mlflow, "GET", "/static-files/static/js/main.6f.js"),
        (Kind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/search"),
        (Kind::Mlflow, "POST", "/graphql"),
        (Kind::Mlflow, "GET", "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval"),
        (Kind::Mlflow, "GET", "/get-artifact"),
        (Kind::Mlflow, "GET", "/ajax-api/2.0/mlflow/logged-models/m-1%2D2/artifacts/files"),
        (Kind::Mlflow, "POST", "/ajax-api/3.0/mlflow/traces/search"),
    ] {
        assert!(is_allowed(kind, method, path), "{kind} {method} {path}");
    }
}

#[test]
fn nothing_else_passes() {
    for (kind, method, path) in [
        (Kind::TensorBoard, "GET", "/data/logdir"),
        (Kind::TensorBoard, "GET", "/data/plugin/projector/tensor"),
        (Kind::TensorBoard, "GET", "/experiment/x/data/plugin/projector/sprite_image"),
        (Kind::TensorBoard, "GET", "/data/plugin/profile/capture"),
        (Kind::TensorBoard, "GET", "/data/plugin/debugger-v2/source_files/file"),
        (Kind::TensorBoard, "POST", "/"),
        (Kind::TensorBoard, "PUT", "/data/runs"),
        (Kind::TensorBoard, "get", "/data/runs"),
        (Kind::TensorBoard, "OPTIONS", "/"),
        (Kind::TensorBoard, "GET", "/font-roboto/"),
        (Kind::TensorBoard, "GET", "/font-roboto/a/b"),
        (Kind::TensorBoard, "GET", "/tf-imports"),
        (Kind::TensorBoard, "GET", "/data/plugin/scalars/tags/"),
        (Kind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/create"),
        (Kind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/delete"),
        (Kind::Mlflow, "POST", "/ajax-api/2.0/mlflow/runs/log-batch"),
        (Kind::Mlflow, "DELETE", "/ajax-api/2.0/mlflow/registered-models/delete"),
        (Kind::Mlflow, "PATCH", "/ajax-api/2.0/mlflow/logged-models/m-1"),
        (Kind::Mlflow, "POST", "/ajax-api/2.0/mlflow/logged-models"),
        (Kind::Mlflow, "GET", "/ajax-api/2.0/mlflow/gateway-proxy"),
        (Kind::Mlflow, "POST", "/ajax-api/2.0/mlflow/upload-artifact"),
        (Kind::Mlflow, "GET", "/ajax-api/2.0/mlflow/webhooks"),
        (Kind::Mlflow, "POST", "/ajax-api/3.0/mlflow/scorer/invoke"),
        (Kind::Mlflow, "GET", "/ajax-api/3.0/mlflow/gateway/secrets/list"),
        (Kind::Mlflow, "POST", "/ajax-api/3.0/mlflow/demo/generate"),
        (Kind::Mlflow, "POST", "/ajax-api/3.0/mlflow/traces"),
        (Kind::Mlflow, "GET", "/ajax-api/3.0/mlflow/jobs/1"),
        (Kind::Mlflow, "POST", "/ajax-api/3.0/mlflow/ui-telemetry"),
        (Kind::Mlflow, "GET", "/ajax-api/3.0/mlflow/assistant/config"),
        (Kind::Mlflow, "GET", "/graphql"),
        (Kind::Mlflow, "POST", "/api/2.0/mlflow/runs/search"),
        (Kind::Mlflow, "PUT", "/ajax-api/2.0/mlflow-artifacts/artifacts/x"),
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
        assert!(!is_allowed(Kind::TensorBoard, "GET", path), "{path}");
    }
    assert!(is_allowed(Kind::TensorBoard, "GET", "/tf-imports/a%20b%C3%A9"));
}

#[test]
fn every_rule_says_one_thing() {
    for kind in Kind::ALL {
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
        for kind in Kind::ALL {
            let _ = is_allowed(kind, &method, &path);
        }
    }
}
