//! Logs and metrics of the portal itself.

use std::io::IsTerminal as _;
use std::sync::OnceLock;

use metrics_exporter_prometheus::{Matcher, PrometheusBuilder, PrometheusHandle};
use tracing_subscriber::EnvFilter;

use crate::config::{LogFormat, LogSettings};

/// Upper bounds of the request-duration histogram, in seconds.
const DURATION_BUCKETS: &[f64] = &[0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0];

/// Starts logging to standard error: readable on a terminal, JSON otherwise.
pub fn init_logging(log: &LogSettings) -> Result<(), String> {
    let filter = EnvFilter::try_new(&log.level)
        .map_err(|error| format!("log.level '{}' is not understood: {error}", log.level))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let json = match log.format {
        LogFormat::Json => true,
        LogFormat::Text => false,
        LogFormat::Auto => !std::io::stderr().is_terminal(),
    };
    let started = if json {
        builder.json().flatten_event(true).with_current_span(false).try_init()
    } else {
        builder.with_target(false).with_ansi(std::io::stderr().is_terminal()).try_init()
    };
    started.map_err(|error| error.to_string())
}

/// Installs the metrics recorder: one per process.
pub fn install_metrics() -> Result<PrometheusHandle, String> {
    static HANDLE: OnceLock<Result<PrometheusHandle, String>> = OnceLock::new();
    HANDLE
        .get_or_init(|| {
            PrometheusBuilder::new()
                .set_buckets_for_metric(Matcher::Suffix("_seconds".into()), DURATION_BUCKETS)
                .and_then(PrometheusBuilder::install_recorder)
                .map_err(|error| error.to_string())
        })
        .clone()
}
