//! A network that can be cut: passes bytes on between a port of its own and another one, until it is told to stop.

use std::sync::Arc;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// A running relay; ended with everything that goes over it when dropped.
pub struct Relay {
    pub port: u16,
    flows: Arc<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Relay {
    /// A relay to a port of this machine.
    pub async fn to(port: u16) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().port();
        let flows = Arc::new(watch::Sender::new(true));
        let task = tokio::spawn(accept(listener, port, flows.clone()));
        Self { port: own, flows, task }
    }

    /// From now on nothing arrives, and nobody is told.
    pub fn cut(&self) {
        self.flows.send_replace(false);
    }

    /// What was held back arrives, and the rest flows again.
    pub fn mend(&self) {
        self.flows.send_replace(true);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn accept(listener: TcpListener, port: u16, flows: Arc<watch::Sender<bool>>) {
    let mut connections = tokio::task::JoinSet::new();
    while let Ok((near, _)) = listener.accept().await {
        let Ok(far) = TcpStream::connect(("127.0.0.1", port)).await else { continue };
        let (from_near, to_near) = near.into_split();
        let (from_far, to_far) = far.into_split();
        connections.spawn(pass(from_near, to_far, flows.subscribe()));
        connections.spawn(pass(from_far, to_near, flows.subscribe()));
    }
}

async fn pass(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, mut flows: watch::Receiver<bool>) {
    let mut piece = vec![0; 16 * 1024];
    while let Ok(length) = from.read(&mut piece).await {
        if flows.wait_for(|flows| *flows).await.is_err() || length == 0 {
            break;
        }
        if to.write_all(&piece[..length]).await.is_err() {
            break;
        }
    }
}
