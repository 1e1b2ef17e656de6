//! Reaching a dashboard: a way through its owner's connection to the node that Slurm names, and on each connection the
//! proof that it is this very run. No host or port ever comes from an address that someone typed.

use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::desk::{Boards, lock, queue_of};
use super::entry::StreamGuard;
use super::handshake::{self, Secret};
use super::state::{self, Door, Report, Stage};
use crate::cluster::folders::join_path;
use crate::domain::{DashboardId, DashboardRunId};
use crate::entropy;
use crate::proxy::{DialUpstream, ProxyLimits, Upstream};
use crate::ssh::ClusterConnection;
use crate::ssh::sftp::{self, SftpError};
use crate::store::dashboards::Dashboard;
use crate::store::dashboards::runs::DashboardRun;

/// Requests of all readers that may be under way at a time, of the connections that a dashboard takes.
const READERS: usize = 96;
/// A reader whose earlier requests take this long is told to wait.
const ROOM_WITHIN: Duration = Duration::from_secs(20);
/// A board's door takes so many who have not proven anything yet; the portal leaves room for its own next ones.
const DIALS_AT_ONCE: usize = 16;
/// A connection that ends in the proof is opened anew: strangers may have filled the board's door.
const DIALS: u32 = 3;

/// A dashboard that can be reached.
#[derive(Clone)]
pub struct Live {
    /// Which run of it.
    pub run: DashboardRunId,
    /// Where requests go.
    pub upstream: Upstream,
    /// Places for all readers together: the owner has the rest.
    readers: Arc<Semaphore>,
    line: Arc<ClusterConnection>,
    node: String,
    port: u16,
}

impl Live {
    /// Places for one more request of a reader, for as long as they are held; none if they are taken for too long.
    pub async fn room_for_reader(&self, of: &StreamGuard) -> Option<Vec<OwnedSemaphorePermit>> {
        let both = async {
            let own = of.places().acquire_owned().await.ok()?;
            let shared = self.readers.clone().acquire_owned().await.ok()?;
            Some(vec![own, shared])
        };
        tokio::time::timeout(ROOM_WITHIN, both).await.ok().flatten()
    }
}

/// What came of a try.
pub(super) enum Reached {
    /// It answers.
    Yes(Live),
    /// Its job says something else, or nothing yet.
    NotYet(Option<Report>),
    /// There is no connection, or it is busy: tried again later.
    Later(String),
    /// Its job is ready, but nothing can be reached there.
    Unreachable(String),
}

impl Boards {
    /// Tries to reach a run on the node that Slurm names for its job.
    pub(super) async fn reach(
        &self,
        board: &Dashboard,
        run: &DashboardRun,
        node: Option<&str>,
    ) -> Reached {
        let line = match self.0.parts.lines.connection(queue_of(board).line()) {
            Ok(line) => line,
            Err(error) => return Reached::Later(error.to_string()),
        };
        let path = join_path(&run.folder, state::FILE);
        let bytes = match sftp::read(&line, &path, state::LONGEST).await {
            Ok(bytes) => bytes,
            Err(SftpError::Run(error)) => return Reached::Later(error.to_string()),
            Err(_) => return Reached::NotYet(None),
        };
        let Ok(report) = Report::read(&bytes) else { return Reached::NotYet(None) };
        let Stage::Ready(door) = &report.stage else { return Reached::NotYet(Some(report)) };
        let Some(node) = node else { return Reached::NotYet(Some(report)) };
        match self.connect(line, run, node, door).await {
            Ok(way) => Reached::Yes(way),
            Err(problem) => Reached::Unreachable(problem),
        }
    }

    async fn connect(
        &self,
        line: Arc<ClusterConnection>,
        run: &DashboardRun,
        node: &str,
        door: &Door,
    ) -> Result<Live, String> {
        let name = name(run.id);
        let socket =
            line.forward(&name, node, door.port).await.map_err(|error| error.to_string())?;
        let dial = dial(socket, door.secret.clone());
        if let Err(error) = dial().await {
            let _ = line.close_forward(&name, node, door.port).await;
            return Err(match error.kind() {
                ErrorKind::InvalidData => {
                    "Something else answers at the dashboard's port.".to_owned()
                }
                _ => format!(
                    "The sign-in host could not reach the dashboard on the node {node}. The site may not allow it."
                ),
            });
        }
        Ok(Live {
            run: run.id,
            upstream: Upstream::new(dial, ProxyLimits::default()),
            readers: Arc::new(Semaphore::new(READERS)),
            line,
            node: node.to_owned(),
            port: door.port,
        })
    }

    /// The way to a dashboard, if it can be reached now.
    pub fn live(&self, board: DashboardId) -> Option<Live> {
        lock(&self.0.live).get(&board).cloned()
    }

    /// Takes a new way, and closes the old one.
    pub(super) async fn set_live(&self, board: DashboardId, live: Option<Live>) {
        let old = {
            let mut all = lock(&self.0.live);
            match live {
                Some(live) => all.insert(board, live),
                None => all.remove(&board),
            }
        };
        if let Some(old) = old {
            let _ = old.line.close_forward(&name(old.run), &old.node, old.port).await;
        }
    }

    /// Whether the connection that a way leads through still stands.
    pub(super) fn is_sound(&self, board: &Dashboard, live: &Live) -> bool {
        let now = self.0.parts.lines.connection(queue_of(board).line());
        now.is_ok_and(|line| Arc::ptr_eq(&line, &live.line))
    }
}

fn name(run: DashboardRunId) -> String {
    format!("board-{run}")
}

/// Opens connections through a socket, each with its proof.
fn dial(socket: PathBuf, secret: Secret) -> DialUpstream {
    let turns = Arc::new(Semaphore::new(DIALS_AT_ONCE));
    Arc::new(move || {
        let (socket, secret, turns) = (socket.clone(), secret.clone(), turns.clone());
        Box::pin(async move {
            let _turn = turns.acquire_owned().await.map_err(std::io::Error::other)?;
            for left in (0..DIALS).rev() {
                let mut stream = UnixStream::connect(&socket).await?;
                match handshake::shake(&mut stream, &secret, entropy::random_bytes()?).await {
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
