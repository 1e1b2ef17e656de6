//! `portolan serve`: runs the portal until it is stopped.

use crate::app::{self, App, AppState};
use crate::clock::Clock;
use crate::config::Config;
use crate::web::{PortalListeners, PortalState, serve_portal};
use crate::{health, telemetry};

pub(super) async fn run(config: Config) -> anyhow::Result<()> {
    telemetry::init_logging(&config.log).map_err(anyhow::Error::msg)?;
    app::prepare_data_dir(&config.data_dir)?;
    let _lock = app::lock_data_dir(&config.data_dir)?;
    let app = App::open(config, Clock::system()).await?;
    let listeners = PortalListeners::bind(&app.config).await?;
    log_startup(&app).await?;
    tokio::spawn(stop_on_signal(app.clone()));
    serve_portal(PortalState::new(app)?, listeners).await?;
    tracing::info!("The portal has stopped");
    Ok(())
}

async fn log_startup(app: &AppState) -> anyhow::Result<()> {
    for warning in &app.config.warnings {
        tracing::warn!("{warning}");
    }
    for problem in health::find_problems(app).await {
        tracing::warn!("{problem}");
    }
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        portal = %app.config.portal.public_url,
        dashboards = %app.config.dashboards.public_url,
        metrics = %app.config.metrics.listen,
        data = %app.config.data_dir.display(),
        "The portal is ready"
    );
    if let Some(token) = app.auth.create_setup_link().await? {
        let link = app.config.portal.public_url.join(&format!("/setup/{}", token.as_str()));
        tracing::info!(
            "There are no accounts yet. Open this link to become the administrator. It works once and expires in 24 hours: {link}"
        );
    }
    Ok(())
}

async fn stop_on_signal(app: AppState) {
    use tokio::signal::unix::{SignalKind, signal};
    let (Ok(mut interrupt), Ok(mut terminate)) = (signal(SignalKind::interrupt()), signal(SignalKind::terminate()))
    else {
        tracing::error!("Could not listen for signals; stop the portal with kill -9");
        return;
    };
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
    tracing::info!("Stopping; waiting for open requests to finish");
    app.stop.cancel();
}
