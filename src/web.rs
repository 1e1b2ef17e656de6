//! What browsers and machines ask for over HTTP: the only room that names `axum` and `askama`.
//!
//! - `routes`: every address of the portal, as tables
//! - `http`: what all pages stand on (extractors, middleware, errors, event stream, assets, page frame)
//! - `pages`: the pages, grouped as the navigation groups them; templates are in the same folders
//! - `dashboard_origin`: the second origin, on which dashboards and guests' pages are shown

use axum::Router;
use axum::serve::ListenerExt as _;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

mod dashboard_origin;
mod http;
mod pages;
mod routes;

pub use http::stream_limits::EventStreamLimiter;
pub use pages::compose::compose_target::ComposeTargetCache;
pub use pages::groups::usage::UsageSummaryCache;
pub use pages::home::{HomeConnectionCache, HomeOverview, HomeVisits};
pub use pages::jobs::ClusterQueueCache;
pub use routes::{dashboard_router, portal_router, private_router};

/// What every handler answers with.
type HandlerResult = Result<axum::response::Response, crate::error::AppError>;

/// Serves a router until told to stop, then lets its requests finish.
pub async fn serve(
    listener: TcpListener,
    router: Router,
    stop: CancellationToken,
) -> std::io::Result<()> {
    let service = router.into_make_service_with_connect_info::<std::net::SocketAddr>();
    // Small answers go out at once; a failure only makes them later.
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    axum::serve(listener, service).with_graceful_shutdown(stop.cancelled_owned()).await
}
