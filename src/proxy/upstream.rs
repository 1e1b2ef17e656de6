//! One upstream: how it is dialled, the connections that are kept to it, and what its failures mean.

use std::error::Error as StdError;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use http::Uri;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::client::legacy::connect::{Connected, Connection};
use hyper_util::client::legacy::{Client, Error};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::net::UnixStream;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, timeout_at};

use super::Failure;
use super::flow::Upload;

/// The head of an answer may be this large; it is also the most that is read ahead on a connection.
const READ_AHEAD: usize = 64 * 1024;

/// Opens one connection to the upstream, ready for HTTP (any handshake of the caller's own is already done).
pub type Dial =
    Arc<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send>> + Send + Sync>;

/// How long and how much.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Until a connection stands, the wait for a free place among `connections` included.
    pub connect: Duration,
    /// Until the answer's head is there, counted from when the request was sent whole.
    pub head: Duration,
    /// Without a byte of either body, whoever of the two sides it is that does not move. Not for upgrades.
    pub idle: Duration,
    /// Connections at a time, the idle ones included.
    pub connections: usize,
    /// Connections that are kept for the next request.
    pub kept: usize,
    /// How long they are kept.
    pub kept_for: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_mins(1),
            idle: Duration::from_mins(2),
            connections: 128,
            kept: 32,
            kept_for: Duration::from_secs(20),
        }
    }
}

/// One upstream with the connections that are kept to it. Cheap to clone; they are closed with the last clone.
#[derive(Clone)]
pub struct Upstream {
    pub(super) client: Client<Dialler, Upload>,
    pub(super) limits: Limits,
}

impl Upstream {
    /// An upstream to which no connection stands yet.
    pub fn new(dial: Dial, limits: Limits) -> Self {
        let places = Arc::new(Semaphore::new(limits.connections));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(limits.kept_for)
            .pool_max_idle_per_host(limits.kept)
            .http1_max_buf_size(READ_AHEAD)
            // A request of which nothing was sent yet is sent over another connection.
            .retry_canceled_requests(true)
            .set_host(false)
            .build(Dialler { dial, places, within: limits.connect });
        Self { client, limits }
    }
}

/// Opens connections for the client library, so many at a time.
#[derive(Clone)]
pub(super) struct Dialler {
    dial: Dial,
    places: Arc<Semaphore>,
    within: Duration,
}

impl tower::Service<Uri> for Dialler {
    type Response = Wire;
    type Error = NoConnection;
    type Future = Pin<Box<dyn Future<Output = Result<Wire, NoConnection>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), NoConnection>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let Self { dial, places, within } = self.clone();
        Box::pin(async move {
            let deadline = Instant::now() + within;
            let Ok(Ok(place)) = timeout_at(deadline, places.acquire_owned()).await else {
                return Err(NoConnection::Busy);
            };
            match timeout_at(deadline, dial()).await {
                Ok(Ok(stream)) => Ok(Wire {
                    stream: TokioIo::new(stream),
                    answered: Answered(Arc::default()),
                    _place: place,
                }),
                Ok(Err(error)) => Err(NoConnection::Failed(error)),
                Err(_) => Err(NoConnection::Late),
            }
        })
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoConnection {
    #[error("all places are taken")]
    Busy,
    #[error("it took too long")]
    Late,
    #[error(transparent)]
    Failed(io::Error),
}

/// Has this connection brought an answer before? Then its end may just mean that it had been idle for too long.
#[derive(Clone)]
pub(super) struct Answered(Arc<AtomicBool>);

impl Answered {
    pub(super) fn mark(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One connection and its place among those that are allowed.
pub(super) struct Wire {
    stream: TokioIo<UnixStream>,
    answered: Answered,
    _place: OwnedSemaphorePermit,
}

impl Connection for Wire {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.answered.clone())
    }
}

impl Read for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }
}

/// Did a connection end that had been kept from before, with no word about this request?
pub(super) fn was_stale(error: &Error) -> bool {
    let mut extras = http::Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extras);
    }
    let kept = extras.get::<Answered>().is_some_and(|it| it.0.load(Ordering::Relaxed));
    kept && matches!(meaning(error), Failure::Unreachable)
}

/// What an error of the client library means.
pub(super) fn meaning(error: &Error) -> Failure {
    let mut next = error.source();
    while let Some(cause) = next {
        match cause.downcast_ref::<NoConnection>() {
            Some(NoConnection::Busy) => return Failure::Busy,
            Some(NoConnection::Late) => return Failure::Late,
            Some(NoConnection::Failed(_)) => return Failure::Unreachable,
            None => {}
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_parse() {
                return Failure::Broken;
            }
            if error.is_user() {
                // The request's own body failed or ended too soon.
                return Failure::Gone;
            }
        }
        next = cause.source();
    }
    Failure::Unreachable
}
