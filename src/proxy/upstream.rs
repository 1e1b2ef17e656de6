//! One upstream: how it is dialled, its pooled connections, and what its failures mean.

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

use super::ProxyError;
use super::body::ProxyRequestBody;

/// The largest response head; also the most that is read ahead on a connection.
const MAX_HEAD_BYTES: usize = 64 * 1024;

/// Opens one connection to the upstream, ready for HTTP (any handshake of the caller's is already done).
pub type DialUpstream = Arc<dyn Fn() -> Pin<Box<dyn Future<Output = io::Result<UnixStream>> + Send>> + Send + Sync>;

#[derive(Debug, Clone, Copy)]
pub struct ProxyLimits {
    /// Until connected, including the wait for a free slot among `connections`.
    pub connect: Duration,
    /// Until the response head arrives, counted from when the whole request was sent.
    pub head: Duration,
    /// Without a byte of either body, whichever side is stuck. Not for upgrades.
    pub body_idle: Duration,
    /// Open connections, including idle ones.
    pub connections: usize,
    /// Connections kept open for the next request.
    pub max_idle_connections: usize,
    pub keep_idle_for: Duration,
}

impl Default for ProxyLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            head: Duration::from_mins(1),
            body_idle: Duration::from_mins(2),
            connections: 128,
            max_idle_connections: 32,
            keep_idle_for: Duration::from_secs(20),
        }
    }
}

/// One upstream with its pooled connections. Cheap to clone; the last clone closes them.
#[derive(Clone)]
pub struct UpstreamClient {
    pub(super) client: Client<UpstreamConnector, ProxyRequestBody>,
    pub(super) limits: ProxyLimits,
}

impl UpstreamClient {
    /// An upstream without any connection yet.
    pub fn new(dial: DialUpstream, limits: ProxyLimits) -> Self {
        let places = Arc::new(Semaphore::new(limits.connections));
        let client = Client::builder(TokioExecutor::new())
            .pool_timer(TokioTimer::new())
            .pool_idle_timeout(limits.keep_idle_for)
            .pool_max_idle_per_host(limits.max_idle_connections)
            .http1_max_buf_size(MAX_HEAD_BYTES)
            // If nothing of a request was sent yet, retry it over another connection.
            .retry_canceled_requests(true)
            .set_host(false)
            .build(UpstreamConnector { dial, places, timeout: limits.connect });
        Self { client, limits }
    }
}

/// Opens connections for the client library, up to the limit.
#[derive(Clone)]
pub(super) struct UpstreamConnector {
    dial: DialUpstream,
    places: Arc<Semaphore>,
    timeout: Duration,
}

impl tower::Service<Uri> for UpstreamConnector {
    type Response = UpstreamConnection;
    type Error = UpstreamConnectError;
    type Future = Pin<Box<dyn Future<Output = Result<UpstreamConnection, UpstreamConnectError>> + Send>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), UpstreamConnectError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _uri: Uri) -> Self::Future {
        let Self { dial, places, timeout: within } = self.clone();
        Box::pin(async move {
            let deadline = Instant::now() + within;
            let Ok(Ok(place)) = timeout_at(deadline, places.acquire_owned()).await else {
                return Err(UpstreamConnectError::Busy);
            };
            match timeout_at(deadline, dial()).await {
                Ok(Ok(stream)) => Ok(UpstreamConnection {
                    stream: TokioIo::new(stream),
                    answered: AnsweredBeforeFlag(Arc::default()),
                    _place: place,
                }),
                Ok(Err(error)) => Err(UpstreamConnectError::Failed(error)),
                Err(_) => Err(UpstreamConnectError::TimedOut),
            }
        })
    }
}

/// Why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(super) enum UpstreamConnectError {
    #[error("all places are taken")]
    Busy,
    #[error("it took too long")]
    TimedOut,
    #[error(transparent)]
    Failed(io::Error),
}

/// Whether this connection has delivered a response before. Then its end may just mean that it was idle for too long.
#[derive(Clone)]
pub(super) struct AnsweredBeforeFlag(Arc<AtomicBool>);

impl AnsweredBeforeFlag {
    pub(super) fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// One connection and its slot.
pub(super) struct UpstreamConnection {
    stream: TokioIo<UnixStream>,
    answered: AnsweredBeforeFlag,
    _place: OwnedSemaphorePermit,
}

impl Connection for UpstreamConnection {
    fn connected(&self) -> Connected {
        Connected::new().extra(self.answered.clone())
    }
}

impl Read for UpstreamConnection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl Write for UpstreamConnection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
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

/// Whether a pooled connection ended without any response to this request.
pub(super) fn is_stale_connection(error: &Error) -> bool {
    let mut extras = http::Extensions::new();
    if let Some(connected) = error.connect_info() {
        connected.get_extras(&mut extras);
    }
    let kept = extras.get::<AnsweredBeforeFlag>().is_some_and(|it| it.0.load(Ordering::Relaxed));
    kept && matches!(classify_error(error), ProxyError::Unreachable)
}

/// Translates an error of the client library.
pub(super) fn classify_error(error: &Error) -> ProxyError {
    let mut next = error.source();
    while let Some(cause) = next {
        match cause.downcast_ref::<UpstreamConnectError>() {
            Some(UpstreamConnectError::Busy) => return ProxyError::Busy,
            Some(UpstreamConnectError::TimedOut) => return ProxyError::TimedOut,
            Some(UpstreamConnectError::Failed(_)) => return ProxyError::Unreachable,
            None => {}
        }
        if let Some(error) = cause.downcast_ref::<hyper::Error>() {
            if error.is_parse() {
                return ProxyError::BadResponse;
            }
            if error.is_user() {
                // The request's own body failed or ended too soon.
                return ProxyError::ClientGone;
            }
        }
        next = cause.source();
    }
    ProxyError::Unreachable
}
