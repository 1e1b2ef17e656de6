//! The state that the portal's handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use axum::extract::FromRef;

use crate::app::AppState;
use crate::entropy;
use crate::files::results::JobResultsCache;
use crate::store::StoreCache;
use crate::web::http::stream_limits::{MAX_DOWNLOADS, MAX_EVENT_STREAMS, OpenResponseLimiter};
use crate::web::pages::groups::usage::UsageSummaryCache;
use crate::web::pages::home::{HomePersonFactsCache, LastVisits, PortalSetupFacts};

/// The services, plus the state that only pages need.
#[derive(Clone)]
pub struct PortalState {
    pub app: AppState,
    pub pages: Arc<CrossRequestState>,
}

/// What only pages keep from one request to the next.
pub struct CrossRequestState {
    /// The figures that are the same on everyone's home page.
    pub home_overview: StoreCache<(), PortalSetupFacts>,
    /// What the home page knows about each person.
    pub home_people: HomePersonFactsCache,
    /// When each person last visited the portal.
    pub visits: LastVisits,
    /// Rendered usage summaries of groups.
    pub usage_summaries: UsageSummaryCache,
    pub event_streams: OpenResponseLimiter,
    pub downloads: OpenResponseLimiter,
    /// What jobs left behind, kept for a short time.
    pub job_results: JobResultsCache,
    /// Identifies this run of the program in request ids.
    run_id: u32,
    request_counter: AtomicU64,
}

impl FromRef<PortalState> for AppState {
    fn from_ref(state: &PortalState) -> Self {
        state.app.clone()
    }
}

impl PortalState {
    pub fn new(app: AppState) -> std::io::Result<Self> {
        let pages = CrossRequestState {
            home_overview: StoreCache::new(1),
            home_people: StoreCache::new(1000),
            visits: LastVisits::default(),
            usage_summaries: UsageSummaryCache::default(),
            event_streams: OpenResponseLimiter::new(MAX_EVENT_STREAMS),
            downloads: OpenResponseLimiter::new(MAX_DOWNLOADS),
            job_results: JobResultsCache::default(),
            run_id: u32::from_ne_bytes(entropy::random_bytes()?),
            request_counter: AtomicU64::new(1),
        };
        Ok(Self { app, pages: Arc::new(pages) })
    }
}

impl CrossRequestState {
    /// An id for the next request, by which it can be found in the log.
    pub fn next_request_id(&self) -> String {
        format!("{:08x}-{}", self.run_id, self.request_counter.fetch_add(1, Ordering::Relaxed))
    }
}
