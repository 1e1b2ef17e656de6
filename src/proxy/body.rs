//! Streaming bodies: never buffered, passed on as fast as the reader takes them, and cut from outside when nothing
//! moves for too long or access ends, even while the reader isn't asking for more.

use std::any::Any;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::AbortOnDropHandle;

use super::BoxError;

/// Why a body was cut short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BodyCutReason {
    /// No byte for as long as `ProxyLimits::body_idle` allows.
    #[error("nothing has moved for too long")]
    Idle,
    /// The context's `cancel` was cancelled.
    #[error("it may not go on")]
    Ended,
    /// The response was complete before the request was.
    #[error("the answer is complete")]
    Answered,
}

/// When data last moved in an exchange, in either direction.
pub(super) struct ExchangeActivity {
    begin: Instant,
    /// Milliseconds since the start.
    last: AtomicU64,
    /// Whether the request body is still being sent.
    is_sending: AtomicBool,
}

impl ExchangeActivity {
    pub(super) fn new(sending: bool) -> Arc<Self> {
        let begin = Instant::now();
        Arc::new(Self { begin, last: AtomicU64::new(0), is_sending: AtomicBool::new(sending) })
    }

    fn touch(&self) {
        let past = u64::try_from(self.begin.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.last.store(past, Ordering::Relaxed);
    }

    pub(super) fn last_activity(&self) -> Instant {
        self.begin + Duration::from_millis(self.last.load(Ordering::Relaxed))
    }

    /// Whether the request body is still being sent.
    pub(super) fn is_sending(&self) -> bool {
        self.is_sending.load(Ordering::Relaxed)
    }
}

/// A body that can be cut from outside.
pub(super) struct CuttableBody<B>(Mutex<CuttableBodyState<B>>);

struct CuttableBodyState<B> {
    body: Option<B>,
    cut: Option<BodyCutReason>,
    /// The task that waits for more of it.
    reader: Option<Waker>,
}

impl<B> CuttableBody<B> {
    pub(super) fn new(body: B) -> Arc<Self> {
        Arc::new(Self(Mutex::new(CuttableBodyState { body: Some(body), cut: None, reader: None })))
    }

    fn state(&self) -> MutexGuard<'_, CuttableBodyState<B>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Drops the body, and with it the connection it comes from, and tells its reader why.
    pub(super) fn cut(&self, why: BodyCutReason) {
        let (body, reader) = {
            let mut state = self.state();
            if state.body.is_some() {
                state.cut = Some(why);
            }
            (state.body.take(), state.reader.take())
        };
        drop(body);
        if let Some(reader) = reader {
            reader.wake();
        }
    }
}

impl<B> CuttableBody<B>
where
    B: Body<Data = Bytes> + Unpin,
    B::Error: Into<BoxError>,
{
    fn poll_frame(
        &self,
        cx: &mut Context<'_>,
        pulse: &ExchangeActivity,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.state();
        loop {
            let Some(body) = state.body.as_mut() else {
                return Poll::Ready(state.cut.take().map(|why| Err(why.into())));
            };
            match Pin::new(body).poll_frame(cx) {
                Poll::Pending => {
                    if !state.reader.as_ref().is_some_and(|reader| reader.will_wake(cx.waker())) {
                        state.reader = Some(cx.waker().clone());
                    }
                    return Poll::Pending;
                }
                Poll::Ready(Some(Ok(frame))) => {
                    pulse.touch();
                    // Drop trailers: they are headers that nobody has checked.
                    if frame.is_data() {
                        return Poll::Ready(Some(Ok(frame)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    state.body = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
                Poll::Ready(None) => {
                    state.body = None;
                    return Poll::Ready(None);
                }
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let state = self.state();
        state.body.as_ref().map_or(state.cut.is_none(), Body::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.state().body.as_ref().map_or_else(SizeHint::default, Body::size_hint)
    }
}

/// A request body, as the client library reads it.
pub(super) struct ProxyRequestBody {
    /// `None` for requests without a body.
    held: Option<Arc<CuttableBody<super::BoxedResponseBody>>>,
    pulse: Arc<ExchangeActivity>,
}

impl ProxyRequestBody {
    pub(super) fn new(held: Option<Arc<CuttableBody<super::BoxedResponseBody>>>, pulse: Arc<ExchangeActivity>) -> Self {
        Self { held, pulse }
    }
}

impl Body for ProxyRequestBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match &self.held {
            Some(held) => held.poll_frame(cx, &self.pulse),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.held.as_ref().is_none_or(|held| held.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.held.as_ref().map_or_else(|| SizeHint::with_exact(0), |held| held.size_hint())
    }
}

impl Drop for ProxyRequestBody {
    /// The library drops it once all of it has been sent.
    fn drop(&mut self) {
        self.pulse.is_sending.store(false, Ordering::Relaxed);
        self.pulse.touch();
    }
}

/// A response body, as the browser's connection reads it.
pub(super) struct ProxyResponseBody {
    held: Arc<CuttableBody<Incoming>>,
    pulse: Arc<ExchangeActivity>,
    _upload: CutUploadOnDrop,
    _watch: AbortOnDropHandle<()>,
    _held: Option<Arc<dyn Any + Send + Sync>>,
}

impl ProxyResponseBody {
    /// Watches the response in a separate task from here on, which also notices a browser that stops reading.
    pub(super) fn new(
        body: Incoming,
        pulse: Arc<ExchangeActivity>,
        upload: CutUploadOnDrop,
        idle: Duration,
        until: CancellationToken,
        kept: Option<Arc<dyn Any + Send + Sync>>,
    ) -> Self {
        let held = CuttableBody::new(body);
        pulse.touch();
        let watch = tokio::spawn(cut_when_idle(Arc::clone(&held), Arc::clone(&pulse), idle, until));
        Self { held, pulse, _upload: upload, _watch: AbortOnDropHandle::new(watch), _held: kept }
    }
}

async fn cut_when_idle(
    held: Arc<CuttableBody<Incoming>>,
    pulse: Arc<ExchangeActivity>,
    idle: Duration,
    until: CancellationToken,
) {
    let why = loop {
        let deadline = pulse.last_activity() + idle;
        if deadline <= Instant::now() {
            break BodyCutReason::Idle;
        }
        tokio::select! {
            () = until.cancelled() => break BodyCutReason::Ended,
            () = tokio::time::sleep_until(deadline) => {}
        }
    };
    held.cut(why);
}

impl Body for ProxyResponseBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        self.held.poll_frame(cx, &self.pulse)
    }

    fn is_end_stream(&self) -> bool {
        self.held.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.held.size_hint()
    }
}

/// Cuts the rest of a request body when its response is complete, because nothing would watch it any more.
pub(super) struct CutUploadOnDrop(pub(super) Option<Arc<CuttableBody<super::BoxedResponseBody>>>);

impl Drop for CutUploadOnDrop {
    fn drop(&mut self) {
        if let Some(held) = &self.0 {
            held.cut(BodyCutReason::Answered);
        }
    }
}
