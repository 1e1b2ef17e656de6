//! The services that pages and background work share, and how they start and stop.

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use metrics_exporter_prometheus::PrometheusHandle;

use crate::clock::Clock;
use crate::cluster::dashboard_folders::DashboardFolderCache;
use crate::cluster::{ClusterAccountCache, ConnectionPool};
use crate::config::Config;
use crate::core::Core;
use crate::dashboards::Dashboards;
use crate::files::FolderListingCache;
use crate::files::folder_sizes::FolderSizeService;
use crate::files::preview_tokens::PreviewTokenStore;
use crate::files::transfers::TransferWorker;
use crate::files::uploads::UploadService;
use crate::jobs::notifications::NotificationHub;
use crate::jobs::webhook::WebhookWorker;
use crate::jobs::{
    JobDetailsCache, JobOutputCache, PastRunsCache, QueueMonitor, SavedRecipeService, SubmissionWorker,
    SubmitCheckCache,
};
use crate::sites::Site;
use crate::store::Store;
use crate::terminals::TerminalService;
use crate::usage::UsageService;
use crate::{housekeeping, telemetry};

mod data_dir;
pub mod master_key;
mod master_key_rotation;
mod recipe_files;

pub use data_dir::{lock_data_dir, prepare_data_dir, prepare_run_dir};
pub use master_key::{KEY_CHECK_SETTING, MasterKeySource, compute_key_check, master_key_source};
pub use master_key_rotation::rotate_master_key;
pub use recipe_files::RecipeFolderCache;

/// How long requests and streams may take to finish during shutdown.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(10);

/// File names in the data folder.
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

pub struct App {
    pub core: Core,
    pub connections: ConnectionPool,
    /// Each person on each of their clusters.
    pub cluster_accounts: ClusterAccountCache,
    pub queue_monitor: QueueMonitor,
    /// Jobs on their way to clusters.
    pub submissions: SubmissionWorker,
    pub dashboards: Dashboards,
    /// Work on files in the background.
    pub transfers: TransferWorker,
    /// Shells on clusters in people's browsers.
    pub terminals: TerminalService,
    /// Folders that dashboards could show.
    pub dashboard_folders: DashboardFolderCache,
    /// What takes the space in people's folders.
    pub folder_sizes: FolderSizeService,
    /// Files on their way to clusters.
    pub uploads: UploadService,
    pub usage: UsageService,
    pub job_details: JobDetailsCache,
    /// What earlier runs used, for right-sizing.
    pub past_runs: PastRunsCache,
    /// What clusters said about the files and jobs that new jobs depend on.
    pub submit_checks: SubmitCheckCache,
    /// The output of jobs that people are viewing.
    pub job_outputs: JobOutputCache,
    /// Wakes open pages when someone has a new notification.
    pub notifications: NotificationHub,
    /// Sends notifications to people's own webhooks.
    pub webhooks: WebhookWorker,
    /// Shipped presets, then the administrator's own.
    pub site_presets: Vec<Site>,
    /// The shipped recipes and the administrator's own.
    pub recipe_files: RecipeFolderCache,
    pub saved_recipes: SavedRecipeService,
    /// Folders that people are looking at.
    pub folder_listings: FolderListingCache,
    /// By which browsers load single files from the dashboards' origin.
    pub preview_tokens: PreviewTokenStore,
    pub metrics: PrometheusHandle,
}

pub type AppState = Arc<App>;

/// Allows `app.store` instead of `app.core.store`.
impl Deref for App {
    type Target = Core;

    fn deref(&self) -> &Core {
        &self.core
    }
}

impl App {
    /// Opens the data folder and builds the services.
    pub async fn open(config: Config, clock: Clock) -> anyhow::Result<AppState> {
        prepare_data_dir(&config.data_dir)?;
        // Before the database: a key is created only if there is no database yet.
        let master = master_key::load_or_create_master_key(&config.data_dir)?;
        let database = config.data_dir.join(files::DATABASE);
        let store = Store::open(&database).await.context("Couldn't open the database")?;
        let vault = master_key::open_vault(master, &config.data_dir, &store).await?;
        let metrics = telemetry::install_metrics().map_err(anyhow::Error::msg)?;
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
            transfers: TransferWorker::new(core.clone(), connections.clone(), notifications.clone()),
            terminals: TerminalService::new(core.clone(), connections.clone()),
            dashboard_folders: DashboardFolderCache::default(),
            folder_sizes: FolderSizeService::new(core.clone(), connections.clone()),
            uploads: UploadService::new(core.clone(), connections.clone(), notifications.clone()),
            usage: UsageService::new(core.clone(), connections.clone(), notifications.clone()),
            job_details: JobDetailsCache::new(core.clone(), connections.clone()),
            past_runs: PastRunsCache::new(core.clone(), connections.clone()),
            submit_checks: SubmitCheckCache::new(connections.clone()),
            job_outputs: JobOutputCache::new(core.clone(), connections.clone()),
            webhooks: WebhookWorker::new(core.clone(), notifications.clone()),
            saved_recipes: SavedRecipeService::new(core.clone()),
            recipe_files: RecipeFolderCache::new(core.config.data_dir.join(files::RECIPES)),
            site_presets: load_presets(&core.config.data_dir.join(files::SITES)),
            folder_listings: FolderListingCache::default(),
            preview_tokens: PreviewTokenStore::default(),
            metrics,
            cluster_accounts: connections.accounts().clone(),
            connections,
            queue_monitor: queues,
            submissions,
            notifications,
            core,
        }))
    }

    /// Takes over the previous run's connections and starts the background workers.
    pub async fn start_workers(&self) -> anyhow::Result<()> {
        // Not earlier: commands need no sockets, and may run before the system has created the folder.
        prepare_run_dir(&self.config.run_dir())?;
        self.connections.adopt_masters().await.context("Couldn't read the connections left by the previous run")?;
        self.tasks.spawn(self.connections.clone().run());
        self.tasks.spawn(self.queue_monitor.clone().run());
        self.tasks.spawn(self.submissions.clone().run());
        self.tasks.spawn(self.dashboards.clone().run_reconciler());
        self.tasks.spawn(self.transfers.clone().run());
        self.tasks.spawn(self.terminals.clone().run());
        self.tasks.spawn(self.uploads.clone().run_sweeper());
        self.tasks.spawn(self.usage.clone().run());
        self.tasks.spawn(self.webhooks.clone().run());
        self.tasks.spawn(housekeeping::run(self.core.clone(), self.notifications.clone(), self.metrics.clone()));
        Ok(())
    }

    /// Waits until [`Core::stop`] is cancelled, then lets requests, streams and workers finish.
    pub async fn run_until_stopped(&self) {
        self.stop.cancelled().await;
        self.tasks.close();
        let drained = tokio::time::timeout(SHUTDOWN_TIMEOUT, self.tasks.wait()).await;
        if drained.is_err() {
            tracing::warn!("Some requests did not finish within {} s and were aborted", SHUTDOWN_TIMEOUT.as_secs());
        }
        self.store.close().await;
    }
}

/// Shipped presets plus the administrator's own from the data folder, which win when names clash.
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
            Err(error) => tracing::warn!(path = %path.display(), "Skipped a preset: {error}"),
        }
    }
    presets
}
