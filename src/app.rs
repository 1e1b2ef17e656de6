//! What is shared by all requests, how it starts and how it stops.

use std::net::SocketAddr;
use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::Context as _;
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;

use crate::clock::Clock;
use crate::cluster::ConnectionPool;
use crate::cluster::dashboard_folders::DashboardFolderCache;
use crate::config::Config;
use crate::core::Core;
use crate::dashboards::Dashboards;
use crate::jobs::notifications::NotificationHub;
use crate::jobs::webhook::WebhookWorker;
use crate::jobs::{
    JobDetailsCache, OutputCache, PastRunsCache, QueueMonitor, SavedRecipes, SubmissionWorker,
};
use crate::sites::Site;
use crate::store::{Store, StoreCache};
use crate::usage::UsageService;
use crate::{entropy, housekeeping, telemetry, web};

mod data_dir;
pub mod master_key;
mod master_key_rotation;
mod recipe_files;

pub use data_dir::{lock_data_dir, prepare_data_dir, prepare_run_dir};
pub use master_key::{KEY_CHECK_SETTING, MasterKeySource, compute_key_check, master_key_source};
pub use master_key_rotation::rotate_master_key;
pub use recipe_files::RecipeFiles;

/// How long requests and streams may take to finish once the portal was told to stop.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// The file names inside the data folder.
pub mod files {
    pub const DATABASE: &str = "portolan.db";
    pub const MASTER_KEY: &str = "master.key";
    /// The next master key, while it is being changed.
    pub const NEXT_MASTER_KEY: &str = "master.key.new";
    /// Locked while a portal runs on this folder.
    pub const LOCK: &str = "portolan.lock";
    /// Folder of the administrator's own presets.
    pub const SITES: &str = "sites";
    /// Folder of the administrator's own recipes.
    pub const RECIPES: &str = "recipes";
}

/// Shared by all requests.
pub struct App {
    pub core: Core,
    /// People's connections to clusters.
    pub connections: ConnectionPool,
    pub queue_monitor: QueueMonitor,
    /// Jobs on their way to clusters.
    pub submissions: SubmissionWorker,
    pub dashboards: Dashboards,
    /// What dashboards could show.
    pub dashboard_folders: DashboardFolderCache,
    pub usage: UsageService,
    /// What was read for jobs' own pages.
    pub job_details: JobDetailsCache,
    /// What earlier runs used.
    pub past_runs: PastRunsCache,
    /// The output of jobs that people look at.
    pub job_outputs: OutputCache,
    /// Rings when someone is to be told something.
    pub notifications: NotificationHub,
    /// Sends notices to addresses of people's own choice.
    pub webhooks: WebhookWorker,
    /// What is known of sites: ours, then the administrator's own.
    pub site_presets: Vec<Site>,
    /// The recipes: ours, and the administrator's own.
    pub recipe_files: RecipeFiles,
    /// The recipes that people keep.
    pub saved_recipes: SavedRecipes,
    /// Figures about the portal itself.
    pub metrics: PrometheusHandle,
    /// What every home page shows.
    pub home_overview: StoreCache<(), web::HomeOverview>,
    /// What it shows of each person's connections.
    pub home_connections: web::HomeConnectionCache,
    /// When people were last there.
    pub home_visits: web::HomeVisits,
    /// The clusters that people compose jobs for.
    pub compose_targets: web::ComposeTargetCache,
    /// The clusters that people have jobs on.
    pub cluster_queues: web::ClusterQueueCache,
    /// What was drawn of groups' use.
    pub usage_summaries: web::UsageSummaryCache,
    pub event_streams: web::EventStreamLimiter,
    /// Names this run of the program in request ids.
    run_id: u32,
    request_counter: AtomicU64,
}

pub type AppState = Arc<App>;

/// `app.store` rather than `app.core.store`: the foundations are the app's own.
impl Deref for App {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl App {
    /// Opens the data folder and puts the parts together.
    pub async fn open(config: Config, clock: Clock) -> anyhow::Result<AppState> {
        prepare_data_dir(&config.data_dir)?;
        // Before the database: a key is made only where there is no database yet.
        let master = master_key::load_or_create_master_key(&config.data_dir)?;
        let database = config.data_dir.join(files::DATABASE);
        let store = Store::open(&database).await.context("The database could not be opened")?;
        let vault = master_key::open_vault(master, &config.data_dir, &store).await?;
        let core = Core::new(config, store, vault, clock);
        let connections = ConnectionPool::new(core.clone());
        let notifications = NotificationHub::default();
        let queues = QueueMonitor::new(core.clone(), connections.clone(), notifications.clone());
        let submissions = SubmissionWorker::new(core.clone(), connections.clone(), queues.clone());
        Ok(Arc::new(Self {
            dashboards: Dashboards::new(
                core.clone(),
                connections.clone(),
                queues.clone(),
                submissions.clone(),
                notifications.clone(),
            ),
            dashboard_folders: DashboardFolderCache::default(),
            usage: UsageService::new(core.clone(), connections.clone(), notifications.clone()),
            job_details: JobDetailsCache::new(core.clone(), connections.clone()),
            past_runs: PastRunsCache::new(core.clone(), connections.clone()),
            job_outputs: OutputCache::new(core.clone(), connections.clone()),
            webhooks: WebhookWorker::new(core.clone(), notifications.clone()),
            saved_recipes: SavedRecipes::new(core.clone()),
            recipe_files: RecipeFiles::new(core.config.data_dir.join(files::RECIPES)),
            site_presets: load_presets(&core.config.data_dir.join(files::SITES)),
            metrics: telemetry::install_metrics().map_err(anyhow::Error::msg)?,
            connections,
            queue_monitor: queues,
            submissions,
            notifications,
            core,
            home_overview: StoreCache::new(1),
            home_connections: StoreCache::new(1000),
            home_visits: web::HomeVisits::default(),
            compose_targets: StoreCache::new(1000),
            cluster_queues: StoreCache::new(1000),
            usage_summaries: web::UsageSummaryCache::default(),
            event_streams: web::EventStreamLimiter::default(),
            run_id: u32::from_ne_bytes(entropy::random_bytes()?),
            request_counter: AtomicU64::new(1),
        }))
    }
}

impl App {
    /// A name for the next request, by which it is found in the log.
    pub fn next_request_id(&self) -> String {
        format!("{:08x}-{}", self.run_id, self.request_counter.fetch_add(1, Ordering::Relaxed))
    }
}

/// The three listeners, bound but not yet answering.
pub struct PortalListeners {
    portal: TcpListener,
    dashboards: TcpListener,
    metrics: TcpListener,
}

impl PortalListeners {
    /// Listeners that were bound elsewhere (tests let the system choose the ports).
    pub const fn new(portal: TcpListener, boards: TcpListener, metrics: TcpListener) -> Self {
        Self { portal, dashboards: boards, metrics }
    }

    /// Binds all three, or none.
    pub async fn bind_listener(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            portal: bind("portal.listen", config.portal.listen).await?,
            dashboards: bind("dashboards.listen", config.dashboards.listen).await?,
            metrics: bind("metrics.listen", config.metrics.listen).await?,
        })
    }
}

async fn bind(name: &str, address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("{name}: nothing can listen on {address}. Is another program using that port?")
    })
}

/// Serves until [`App::stop`] is cancelled, then lets requests and streams finish.
pub async fn serve(app: AppState, listeners: PortalListeners) -> anyhow::Result<()> {
    // Not before: commands need no sockets, and may run before the system has made a place for them.
    prepare_run_dir(&app.config.run_dir())?;
    app.connections
        .adopt_masters()
        .await
        .context("The connections of the run before could not be read")?;
    app.tasks.spawn(app.connections.clone().run());
    app.tasks.spawn(app.queue_monitor.clone().run());
    app.tasks.spawn(app.submissions.clone().run());
    app.tasks.spawn(app.dashboards.clone().run_reconciler());
    app.tasks.spawn(app.usage.clone().run());
    app.tasks.spawn(app.webhooks.clone().run());
    app.tasks.spawn(housekeeping::run(
        app.core.clone(),
        app.notifications.clone(),
        app.metrics.clone(),
    ));
    let servers = [
        (listeners.portal, web::portal_router(app.clone())),
        (listeners.dashboards, web::dashboard_router(app.clone())),
        (listeners.metrics, web::private_router(app.clone())),
    ]
    .map(|(listener, router)| {
        let stop = app.stop.clone();
        app.tasks.spawn(async move { web::serve(listener, router, stop).await })
    });
    app.stop.cancelled().await;
    app.tasks.close();
    let drained = tokio::time::timeout(SHUTDOWN_TIMEOUT, app.tasks.wait()).await;
    if drained.is_err() {
        tracing::warn!(
            "Some requests did not finish in {} s and were cut off",
            SHUTDOWN_TIMEOUT.as_secs()
        );
    }
    app.store.close().await;
    for server in servers {
        if server.is_finished() {
            server.await.context("A listener failed")?.context("A listener failed")?;
        }
    }
    Ok(())
}

/// Our presets and those that an administrator has put into the data folder; theirs count where names are the same.
fn load_presets(folder: &Path) -> Vec<Site> {
    let mut presets = crate::sites::presets().to_vec();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let site = std::fs::read_to_string(&path)
            .map_err(|error| error.to_string())
            .and_then(|text| Site::from_toml(&text).map_err(|error| error.to_string()));
        match site {
            Ok(site) => {
                presets.retain(|ours| ours.name != site.name);
                presets.push(site);
            }
            Err(error) => tracing::warn!(path = %path.display(), "A preset was left out: {error}"),
        }
    }
    presets
}
