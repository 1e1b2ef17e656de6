//! Connects to a dashboard: through its owner's connection to the node that Slurm names. Each connection proves that
//! it reaches this very run. The host and port never come from a URL that someone typed.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::access::DashboardStreamGuard;
use super::handshake::{self, DashboardSecret};
use super::job_report::{self, DashboardEndpoint, DashboardReport, DashboardStage};
use super::service::{Dashboards, lock, queue_key};
use crate::cluster::folders::join_path;
use crate::domain::{DashboardId, DashboardRunId, RemotePath};
use crate::entropy;
use crate::proxy::{DialUpstream, ProxyLimits, UpstreamClient};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::{self, SftpError};
use crate::store::dashboards::Dashboard;
use crate::store::dashboards::runs::DashboardRun;

/// Concurrent requests of all readers, out of the connections that a dashboard accepts.
const MAX_READER_REQUESTS: usize = 96;
/// A reader whose earlier requests take longer than this is asked to wait.
const READER_SLOT_TIMEOUT: Duration = Duration::from_secs(20);
/// The dashboard's server accepts only so many connections that have not proven anything yet; the portal leaves room
/// for its own next ones.
const MAX_PARALLEL_DIALS: usize = 16;
/// A connection that closes during the handshake is retried: strangers may have filled the server's queue.
const DIAL_ATTEMPTS: u32 = 3;

/// A dashboard that can be reached.
#[derive(Clone)]
pub struct LiveDashboard {
    pub run: DashboardRunId,
    pub upstream: UpstreamClient,
    /// Slots for all readers together: the owner has the rest.
    reader_slots: Arc<Semaphore>,
    connection: Arc<ClusterConnection>,
    node: String,
    port: u16,
}

impl LiveDashboard {
    /// Takes the slots for one more request of a reader; none if they stay taken for too long.
    pub async fn acquire_reader_slots(&self, of: &DashboardStreamGuard) -> Option<Vec<OwnedSemaphorePermit>> {
        let both = async {
            let own = of.request_slots().acquire_owned().await.ok()?;
            let shared = self.reader_slots.clone().acquire_owned().await.ok()?;
            Some(vec![own, shared])
        };
        tokio::time::timeout(READER_SLOT_TIMEOUT, both).await.ok().flatten()
    }
}

/// The outcome of an attempt to connect.
pub(super) enum DashboardConnectOutcome {
    Connected(LiveDashboard),
    /// Its job reports another stage, or nothing yet.
    NotReady(Option<DashboardReport>),
    /// There is no connection, or it is busy: tried again later.
    RetryLater(String),
    /// Its job is ready, but the dashboard cannot be reached.
    Unreachable(String),
}

impl Dashboards {
    /// Tries to connect to a run on the node that Slurm names for its job.
    pub(super) async fn connect_run(
        &self,
        dashboard: &Dashboard,
        run: &DashboardRun,
        node: Option<&str>,
    ) -> DashboardConnectOutcome {
        let connection = match self.0.connections.connection(queue_key(dashboard).connection_key()) {
            Ok(connection) => connection,
            Err(error) => return DashboardConnectOutcome::RetryLater(error.to_string()),
        };
        let path = join_path(&run.folder, job_report::REPORT_FILE);
        let Ok(path) = RemotePath::parse(path.as_bytes()) else {
            return DashboardConnectOutcome::NotReady(None);
        };
        let bytes = match sftp::read(&connection, &path, job_report::MAX_REPORT_LEN).await {
            Ok(bytes) => bytes,
            Err(SftpError::Run(error)) => {
                return DashboardConnectOutcome::RetryLater(error.to_string());
            }
            Err(_) => return DashboardConnectOutcome::NotReady(None),
        };
        let Ok(report) = DashboardReport::parse(&bytes) else {
            return DashboardConnectOutcome::NotReady(None);
        };
        let DashboardStage::Ready(endpoint) = &report.stage else {
            return DashboardConnectOutcome::NotReady(Some(report));
        };
        let Some(node) = node else { return DashboardConnectOutcome::NotReady(Some(report)) };
        match self.open_forward(connection, run, node, endpoint).await {
            Ok(live) => DashboardConnectOutcome::Connected(live),
            Err(problem) => DashboardConnectOutcome::Unreachable(problem),
        }
    }

    async fn open_forward(
        &self,
        connection: Arc<ClusterConnection>,
        run: &DashboardRun,
        node: &str,
        endpoint: &DashboardEndpoint,
    ) -> Result<LiveDashboard, String> {
        let name = forward_name(run.id);
        let socket = connection.forward(&name, node, endpoint.port).await.map_err(|error| error.to_string())?;
        let dial = make_dialer(socket, endpoint.secret.clone());
        if let Err(error) = dial().await {
            let _ = connection.close_forward(&name, node, endpoint.port).await;
            return Err(match error.kind() {
                ErrorKind::InvalidData => "Another program is using the dashboard's port.".to_owned(),
                _ => {
                    format!("The login node couldn't reach the dashboard on node {node}. The cluster may not allow it.")
                }
            });
        }
        Ok(LiveDashboard {
            run: run.id,
            upstream: UpstreamClient::new(dial, ProxyLimits::default()),
            reader_slots: Arc::new(Semaphore::new(MAX_READER_REQUESTS)),
            connection,
            node: node.to_owned(),
            port: endpoint.port,
        })
    }

    /// The live dashboard, if it can be reached now.
    pub fn live(&self, dashboard: DashboardId) -> Option<LiveDashboard> {
        lock(&self.0.live).get(&dashboard).cloned()
    }

    /// Replaces the live dashboard, and closes the forwarding of the old one.
    pub(super) async fn set_live(&self, dashboard: DashboardId, live: Option<LiveDashboard>) {
        let old = {
            let mut all = lock(&self.0.live);
            match live {
                Some(live) => all.insert(dashboard, live),
                None => all.remove(&dashboard),
            }
        };
        if let Some(old) = old {
            let _ = old.connection.close_forward(&forward_name(old.run), &old.node, old.port).await;
        }
    }

    /// Whether the connection that a live dashboard uses is still open.
    pub(super) fn is_connection_current(&self, dashboard: &Dashboard, live: &LiveDashboard) -> bool {
        let now = self.0.connections.connection(queue_key(dashboard).connection_key());
        now.is_ok_and(|connection| Arc::ptr_eq(&connection, &live.connection))
    }
}

fn forward_name(run: DashboardRunId) -> String {
    format!("board-{run}")
}

/// Opens connections through a socket, each with its handshake.
fn make_dialer(socket: PathBuf, secret: DashboardSecret) -> DialUpstream {
    let permits = Arc::new(Semaphore::new(MAX_PARALLEL_DIALS));
    Arc::new(move || {
        let (socket, secret, permits) = (socket.clone(), secret.clone(), permits.clone());
        Box::pin(async move {
            let _permit = permits.acquire_owned().await.map_err(std::io::Error::other)?;
            for left in (0..DIAL_ATTEMPTS).rev() {
                let mut stream = UnixStream::connect(&socket).await?;
                match handshake::authenticate(&mut stream, &secret, entropy::random_bytes()?).await {
                    Ok(()) => return Ok(stream),
                    Err(error) if left == 0 || error.kind() != ErrorKind::UnexpectedEof => {
                        return Err(error);
                    }
                    Err(_) => {}
                }
            }
            Err(ErrorKind::UnexpectedEof.into())
        })
    })
}
