//! What the portal's handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::app::AppState;
use crate::entropy;
use crate::store::StoreCache;
use crate::web::http::stream_limits::EventStreamLimiter;
use crate::web::pages::groups::usage::UsageSummaryCache;
use crate::web::pages::home::{HasJobsCache, HomeOverview, HomeVisits};

/// The services, and what pages keep beside them.
#[derive(Clone)]
pub struct PortalState {
    pub app: AppState,
    pub pages: Arc<PageState>,
}

/// What only pages need from one request to the next.
pub struct PageState {
    /// What every home page shows.
    pub home_overview: StoreCache<(), HomeOverview>,
    /// Whether people have had jobs.
    pub has_jobs: HasJobsCache,
    /// When people were last there.
    pub home_visits: HomeVisits,
    /// What was drawn of groups' use.
    pub usage_summaries: UsageSummaryCache,
    pub event_streams: EventStreamLimiter,
    /// Names this run of the program in request ids.
    run_id: u32,
    request_counter: AtomicU64,
}

impl PortalState {
    pub fn new(app: AppState) -> std::io::Result<Self> {
        let pages = PageState {
            home_overview: StoreCache::new(1),
            has_jobs: StoreCache::new(1000),
            home_visits: HomeVisits::default(),
            usage_summaries: UsageSummaryCache::default(),
            event_streams: EventStreamLimiter::default(),
            run_id: u32::from_ne_bytes(entropy::random_bytes()?),
            request_counter: AtomicU64::new(1),
        };
        Ok(Self { app, pages: Arc::new(pages) })
    }
}

impl PageState {
    /// A name for the next request, by which it is found in the log.
    pub fn next_request_id(&self) -> String {
        format!("{:08x}-{}", self.run_id, self.request_counter.fetch_add(1, Ordering::Relaxed))
    }
}
