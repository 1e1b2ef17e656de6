//! A network that can be cut: passes bytes on between a port of its own and another one, until it is told to stop.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::server::{Server, site_at};
use super::{Client, TestApp};

/// A running relay; ended with everything that goes over it when dropped.
pub struct Relay {
    pub port: u16,
    flows: Arc<watch::Sender<bool>>,
    /// Bytes that still pass from the near side before it is cut.
    left: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Relay {
    /// A relay to a port of this machine.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let flows = Arc::new(watch::Sender::new(true));
        let left = Arc::new(AtomicUsize::new(usize::MAX));
        let task = tokio::spawn(accept(listener, port, flows.clone(), left.clone()));
        Self { port: own, flows, left, task }
    }

    /// From now on nothing arrives, and nobody is told.
    pub fn cut(&self) {
        self.flows.send_replace(false);
    }

    /// The same once so many more bytes have passed from the near side. Waits until it is so.
    pub async fn cut_after(&self, bytes: usize) {
        self.left.store(bytes, Ordering::SeqCst);
        let mut flows = self.flows.subscribe();
        flows.wait_for(|flows| !*flows).await.unwrap();
    }

    /// What was held back arrives, and the rest flows again.
    pub fn mend(&self) {
        self.left.store(usize::MAX, Ordering::SeqCst);
        self.flows.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A portal with alice, who is connected to this server over a relay: `own`.
pub async fn with_alice_over(relay: &Relay, server: &Server) -> (TestApp, Client) {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_pinned(&site_at("own", relay.port), &server.pins()).await;
    alice.prepare_on(server, "own", "alice").await;
    alice.connect("own").await;
    (portal, alice)
}

async fn accept(listener: TcpListener, port: u16, flows: Arc<watch::Sender<bool>>, left: Arc<AtomicUsize>) {
    let unbounded = Arc::new(AtomicUsize::new(usize::MAX));
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
        let (from_near, to_near) = near.into_split();
        let (from_far, to_far) = far.into_split();
        connections.spawn(pass(from_near, to_far, flows.clone(), left.clone()));
        connections.spawn(pass(from_far, to_near, flows.clone(), unbounded.clone()));
    }
}

async fn pass(
    mut from: OwnedReadHalf,
    mut to: OwnedWriteHalf,
    flows: Arc<watch::Sender<bool>>,
    left: Arc<AtomicUsize>,
) {
    let mut opened = flows.subscribe();
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length) = from.read(&mut piece).await {
        if opened.wait_for(|flows| *flows).await.is_err() || length == 0 {
            break;
        }
        let now = length.min(left.load(Ordering::SeqCst));
        if to.write_all(&piece[..now]).await.is_err() {
            break;
        }
        if left.load(Ordering::SeqCst) < usize::MAX && left.fetch_sub(now, Ordering::SeqCst) == now {
            flows.send_replace(false);
        }
        if now < length {
            let held_back = opened.wait_for(|flows| *flows).await.is_ok();
            if !held_back || to.write_all(&piece[now..length]).await.is_err() {
                break;
            }
        }
    }
}
