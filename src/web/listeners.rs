//! The portal's listeners: bound, served and stopped together.

use std::net::SocketAddr;

use anyhow::Context as _;
use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::config::Config;
use crate::web::portal_state::PortalState;
use crate::web::routes::{dashboard_router, portal_router, private_router};

/// The three listeners, bound but not yet serving.
pub struct PortalListeners {
    portal: TcpListener,
    dashboards: TcpListener,
    metrics: TcpListener,
}

impl PortalListeners {
    /// Takes listeners that were bound elsewhere (tests let the system choose the ports).
    pub const fn new(portal: TcpListener, dashboards: TcpListener, metrics: TcpListener) -> Self {
        Self { portal, dashboards, metrics }
    }

    /// Binds all three, or none.
    pub async fn bind(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            portal: bind_listener("portal.listen", config.portal.listen).await?,
            dashboards: bind_listener("dashboards.listen", config.dashboards.listen).await?,
            metrics: bind_listener("metrics.listen", config.metrics.listen).await?,
        })
    }
}

async fn bind_listener(name: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address)
        .await
        .with_context(|| format!("{name}: nothing can listen on {address}. Is another program using that port?"))
}

/// Serves until the app shuts down, then lets open requests and streams finish.
pub async fn serve_portal(state: PortalState, listeners: PortalListeners) -> anyhow::Result<()> {
    let app = state.app.clone();
    app.start_workers().await?;
    let servers = [
        (listeners.portal, portal_router(state)),
        (listeners.dashboards, dashboard_router(app.clone())),
        (listeners.metrics, private_router(app.clone())),
    ]
    .map(|(listener, router)| app.tasks.spawn(serve(listener, router, app.stop.clone())));
    app.run_until_stopped().await;
    for server in servers {
        if server.is_finished() {
            server.await.context("A listener failed")?.context("A listener failed")?;
        }
    }
    Ok(())
}

/// Serves one router until shutdown, then lets its requests finish.
async fn serve(listener: TcpListener, router: Router, stop: CancellationToken) -> std::io::Result<()> {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    // Sends small responses at once. If this fails, they only arrive later.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, service).with_graceful_shutdown(stop.cancelled_owned()).await
}
