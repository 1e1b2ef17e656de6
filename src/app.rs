//! What is shared by all requests, how it starts and how it stops.

use std::io::Write as _;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use anyhow::{Context as _, bail};
use metrics_exporter_prometheus::PrometheusHandle;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::auth::Auth;
use crate::clock::Clock;
use crate::config::Config;
use crate::store::{self, Cache, Store};
use crate::vault::{MasterKey, Purpose, Vault};
use crate::{entropy, housekeeping, telemetry, web};

/// How long requests and streams may take to finish once the portal was told to stop.
const DRAIN: Duration = Duration::from_secs(10);

/// The file names inside the data folder.
pub mod files {
    /// The database.
    pub const DATABASE: &str = "portolan.db";
    /// The master key.
    pub const MASTER_KEY: &str = "master.key";
    /// Locked while a portal runs on this folder.
    pub const LOCK: &str = "portolan.lock";
}

/// Shared by all requests.
pub struct App {
    /// The settings.
    pub config: Config,
    /// Accounts and rights.
    pub auth: Auth,
    /// The database.
    pub store: Store,
    /// Sealing.
    pub vault: Vault,
    /// The time.
    pub clock: Clock,
    /// Figures about the portal itself.
    pub metrics: PrometheusHandle,
    /// What every home page shows.
    pub home: Cache<(), web::HomeFacts>,
    /// Open event streams.
    pub streams: web::Streams,
    /// Names this run of the program in request ids.
    run: u32,
    requests: AtomicU64,
    /// Cancelled when the portal stops: every stream and task ends with it.
    pub stop: CancellationToken,
    /// Background tasks, awaited at the end.
    pub tasks: TaskTracker,
}

/// What handlers get.
pub type AppState = Arc<App>;

impl App {
    /// Opens the data folder and puts the parts together.
    pub async fn open(config: Config, clock: Clock) -> anyhow::Result<AppState> {
        prepare_data_dir(&config.data_dir)?;
        let master = master_key(&config.data_dir)?;
        let vault = Vault::new(master);
        let store = Store::open(&config.data_dir.join(files::DATABASE))
            .await
            .context("The database could not be opened")?;
        check_key(&store, &vault).await?;
        let auth = Auth::new(store.clone(), vault.clone(), clock.clone(), config.sessions.clone());
        let metrics = telemetry::metrics().map_err(anyhow::Error::msg)?;
        Ok(Arc::new(Self {
            config,
            auth,
            store,
            vault,
            clock,
            metrics,
            home: Cache::new(1),
            streams: web::Streams::default(),
            run: u32::from_ne_bytes(entropy::bytes()?),
            requests: AtomicU64::new(1),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
        }))
    }
}

impl App {
    /// A name for the next request, by which it is found in the log.
    pub fn next_request_id(&self) -> String {
        format!("{:08x}-{}", self.run, self.requests.fetch_add(1, Ordering::Relaxed))
    }
}

/// The three listeners, bound but not yet answering.
pub struct Listeners {
    portal: TcpListener,
    boards: TcpListener,
    metrics: TcpListener,
}

impl Listeners {
    /// Listeners that were bound elsewhere (tests let the system choose the ports).
    pub const fn new(portal: TcpListener, boards: TcpListener, metrics: TcpListener) -> Self {
        Self { portal, boards, metrics }
    }

    /// Binds all three, or none.
    pub async fn bind(config: &Config) -> anyhow::Result<Self> {
        Ok(Self {
            portal: bind("portal.listen", config.portal.listen).await?,
            boards: bind("boards.listen", config.boards.listen).await?,
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
pub async fn serve(app: AppState, listeners: Listeners) -> anyhow::Result<()> {
    app.tasks.spawn(housekeeping::run(app.clone()));
    let servers = [
        (listeners.portal, web::portal(app.clone())),
        (listeners.boards, web::boards(&app)),
        (listeners.metrics, web::private(app.clone())),
    ]
    .map(|(listener, router)| {
        let stop = app.stop.clone();
        app.tasks.spawn(async move { web::serve(listener, router, stop).await })
    });
    app.stop.cancelled().await;
    app.tasks.close();
    let drained = tokio::time::timeout(DRAIN, app.tasks.wait()).await;
    if drained.is_err() {
        tracing::warn!("Some requests did not finish in {} s and were cut off", DRAIN.as_secs());
    }
    app.store.close().await;
    for server in servers {
        if server.is_finished() {
            server.await.context("A listener failed")?.context("A listener failed")?;
        }
    }
    Ok(())
}

/// Makes the data folder if it is missing and insists that nobody else can look into it.
pub fn prepare_data_dir(dir: &Path) -> anyhow::Result<()> {
    if !dir.exists() {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .with_context(|| format!("The data folder {} could not be made", dir.display()))?;
    }
    let meta = std::fs::metadata(dir)
        .with_context(|| format!("The data folder {} could not be read", dir.display()))?;
    if !meta.is_dir() {
        bail!("The data folder {} is not a folder.", dir.display());
    }
    if meta.mode() & 0o077 != 0 {
        bail!(
            "The data folder {} can be entered by other users of this machine (mode {:03o}). Mend it with: chmod 700 {}",
            dir.display(),
            meta.mode() & 0o777,
            dir.display()
        );
    }
    if meta.uid() != rustix::process::geteuid().as_raw() {
        bail!(
            "The data folder {} belongs to another user (number {}). Run the portal as that user, or mend it with chown.",
            dir.display(),
            meta.uid()
        );
    }
    Ok(())
}

/// Takes the lock that says "a portal runs on this folder"; held until the value is dropped.
pub fn lock_data_dir(dir: &Path) -> anyhow::Result<std::fs::File> {
    let path = dir.join(files::LOCK);
    let file = std::fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(&path)?;
    if file.try_lock().is_err() {
        bail!("Another portal is running on the data folder {}. Stop it first.", dir.display());
    }
    Ok(file)
}

/// Where the master key comes from.
#[derive(Debug, PartialEq, Eq)]
pub enum KeySource {
    /// `PORTOLAN_MASTER_KEY`.
    Environment,
    /// A systemd credential or the key file.
    File(PathBuf),
}

/// Where the master key comes from in this environment.
pub fn key_source(data_dir: &Path) -> KeySource {
    if std::env::var_os("PORTOLAN_MASTER_KEY").is_some() {
        return KeySource::Environment;
    }
    let credential = std::env::var_os("CREDENTIALS_DIRECTORY")
        .map(|dir| PathBuf::from(dir).join("portolan-master-key"))
        .filter(|path| path.exists());
    KeySource::File(credential.unwrap_or_else(|| data_dir.join(files::MASTER_KEY)))
}

/// Reads the master key; makes one if there is neither a key nor a database.
pub fn master_key(data_dir: &Path) -> anyhow::Result<MasterKey> {
    let path = match key_source(data_dir) {
        KeySource::Environment => {
            let text =
                zeroize::Zeroizing::new(std::env::var("PORTOLAN_MASTER_KEY").unwrap_or_default());
            return MasterKey::parse(&text).context("PORTOLAN_MASTER_KEY was not accepted");
        }
        KeySource::File(path) => path,
    };
    if !path.exists() {
        if data_dir.join(files::DATABASE).exists() {
            bail!(
                "There is a database but no master key at {}. Put the key back from where you keep it; without it, what is sealed in the database cannot be opened.",
                path.display()
            );
        }
        return make_master_key(&path);
    }
    refuse_readable_key(&path, data_dir)?;
    let text = zeroize::Zeroizing::new(
        std::fs::read_to_string(&path)
            .with_context(|| format!("{} could not be read", path.display()))?,
    );
    MasterKey::parse(&text).with_context(|| format!("{} was not accepted", path.display()))
}

/// A key file must be closed to everyone else. What systemd hands over as a credential is closed by its folder,
/// and newer versions give the service's own group the right to read it.
fn refuse_readable_key(path: &Path, data_dir: &Path) -> anyhow::Result<()> {
    let mode = std::fs::metadata(path)?.mode() & 0o777;
    let forbidden = if path.starts_with(data_dir) { 0o077 } else { 0o027 };
    if mode & forbidden != 0 {
        bail!(
            "The master key {} can be read by other users of this machine (mode {mode:03o}). Mend it with: chmod 600 {}",
            path.display(),
            path.display()
        );
    }
    Ok(())
}

/// Written under another name first: a key file is whole or not there.
fn make_master_key(path: &Path) -> anyhow::Result<MasterKey> {
    let key = MasterKey::generate()?;
    let draft = path.with_extension("key.new");
    let _ = std::fs::remove_file(&draft);
    let mut file =
        std::fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    file.write_all(key.to_text().as_bytes())?;
    file.write_all(b"\n")?;
    file.sync_all()?;
    std::fs::rename(&draft, path)?;
    tracing::info!(path = %path.display(), "Made a new master key. Keep a copy of it somewhere safe, apart from the backups");
    Ok(key)
}

/// Name of the fact that tells which master key a database belongs to.
pub const KEY_CHECK: &str = "key-check";

/// The value that a database keeps of its master key.
pub fn key_check(vault: &Vault) -> [u8; 32] {
    vault.sign(Purpose::KeyCheck, b"this database")
}

/// Refuses to work on a database that was sealed under another master key.
async fn check_key(store: &Store, vault: &Vault) -> anyhow::Result<()> {
    let check = key_check(vault);
    let mut tx = store.write().await?;
    match store::facts::get(&mut tx, KEY_CHECK).await? {
        None => {
            store::facts::set(&mut tx, KEY_CHECK, &check).await?;
            store::commit(tx).await?;
        }
        Some(known) if known == check => {}
        Some(_) => bail!(
            "This master key does not belong to this database. Put the right key back; nothing was changed."
        ),
    }
    Ok(())
}
