//! An HTTP/1.1 and WebSocket reverse proxy to one untrusted upstream. It streams requests and responses, drops what
//! the upstream must not learn or say, and refuses anything ambiguous. It knows nothing of dashboards or permissions:
//! its caller has checked those.

mod body;
mod framing;
mod location;
mod path;
mod request;
mod response;
mod upstream;
mod websocket;

#[cfg(test)]
mod tests;

use std::any::Any;
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use hyper::upgrade::OnUpgrade;
use tokio::time::{Instant, sleep_until};
use tokio_util::sync::CancellationToken;

use body::{CutUploadOnDrop, CuttableBody, ExchangeActivity, ProxyRequestBody, ProxyResponseBody};
use request::{BodySize, ProxyRequestKind};

pub use body::BodyCutReason;
pub use path::clean_path;
pub use upstream::{DialUpstream, ProxyLimits, UpstreamClient};

pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The body of a response, as it streams.
pub type BoxedResponseBody = UnsyncBoxBody<Bytes, BoxError>;

/// How to forward one request.
#[derive(Debug, Clone)]
pub struct ProxyContext {
    /// The request target at the upstream, from [`clean_path`]: starts with `/`.
    pub path_and_query: String,
    /// Sent as `Host`: `localhost`.
    pub host: String,
    /// The public path of the upstream's root, without a trailing slash: `/b/abc/app`.
    pub prefix: String,
    /// Our public origin: `https://boards.example.org`.
    pub origin: String,
    pub client: IpAddr,
    /// Cancelling this cuts bodies and upgraded connections at once.
    pub cancel: CancellationToken,
    /// Held for as long as the response body or the WebSocket is open.
    pub keep_alive: Option<Arc<dyn Any + Send + Sync>>,
}

/// Why there is no response to pass on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ProxyError {
    /// No connection, or it ended without a response. Use status 502.
    #[error("nothing answers there")]
    Unreachable,
    /// The connection or the response head took too long. Use status 504.
    #[error("it took too long to answer")]
    TimedOut,
    /// The response was not HTTP, had too large a head, contradicted itself, or redirected elsewhere. Use status 502.
    #[error("what came back is not an answer that can be shown")]
    BadResponse,
    /// The request is malformed, ambiguous, or asks for something that is never forwarded. Use status 400.
    #[error("the request can not be passed on: {0}")]
    Refused(&'static str),
    /// All allowed connections are in use. Use status 503.
    #[error("too many requests are under way")]
    Busy,
    /// The client went away midway, or lost access: `cancel` was cancelled. The status hardly matters.
    #[error("whoever asked is gone")]
    ClientGone,
}

/// Forwards a request to the upstream and returns its response. The response body streams while it is read; dropping
/// it, or this future, drops the request at the upstream. For a WebSocket the response is the 101 to send, and a
/// separate task relays the bytes until either side ends or `cancel` is cancelled.
pub async fn forward_request<B>(
    upstream: &UpstreamClient,
    passage: ProxyContext,
    request: Request<B>,
) -> Result<Response<BoxedResponseBody>, ProxyError>
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (mut parts, body) = request.into_parts();
    let client = parts.extensions.get::<OnUpgrade>().cloned();
    let known = body_size(&body);
    let kind = request::prepare_request(&mut parts, known, &passage)?;

    let held =
        (known != BodySize::Empty).then(|| CuttableBody::new(UnsyncBoxBody::new(body.map_err(Into::<BoxError>::into))));
    let pulse = ExchangeActivity::new(held.is_some());
    let end_of_upload = CutUploadOnDrop(held.clone());
    let again = (held.is_none() && kind == ProxyRequestKind::Plain && is_repeatable(&parts.method))
        .then(|| Request::from_parts(parts.clone(), ProxyRequestBody::new(None, Arc::clone(&pulse))));
    let request = Request::from_parts(parts, ProxyRequestBody::new(held, Arc::clone(&pulse)));
    let answer = tokio::select! {
        biased;
        () = passage.cancel.cancelled() => return Err(ProxyError::ClientGone),
        answer = await_response(upstream, request, again, &pulse) => answer?,
    };

    let (parts, body) = answer.into_parts();
    let switching = parts.extensions.get::<OnUpgrade>().cloned();
    let parts = response::prepare_response(parts, kind, &passage)?;
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        let (Some(client), Some(switching)) = (client, switching) else {
            return Err(ProxyError::BadResponse);
        };
        tokio::spawn(async move {
            websocket::relay(client, switching, passage.cancel).await;
            drop(passage.keep_alive);
        });
        return Ok(Response::from_parts(parts, BoxedResponseBody::default()));
    }
    if http_body::Body::is_end_stream(&body) {
        return Ok(Response::from_parts(parts, BoxedResponseBody::default()));
    }
    let idle = upstream.limits.body_idle;
    let body = ProxyResponseBody::new(body, pulse, end_of_upload, idle, passage.cancel, passage.keep_alive);
    Ok(Response::from_parts(parts, UnsyncBoxBody::new(body)))
}

fn body_size(body: &impl http_body::Body) -> BodySize {
    if body.is_end_stream() {
        return BodySize::Empty;
    }
    match body.size_hint().exact() {
        Some(0) => BodySize::Empty,
        Some(bytes) => BodySize::Bytes(bytes),
        None => BodySize::Unknown,
    }
}

/// Whether a request with this method can safely be sent twice.
fn is_repeatable(method: &Method) -> bool {
    method == Method::GET || method == Method::HEAD
}

/// Waits for the response head: as long as the request body makes progress, and a while longer.
async fn await_response(
    upstream: &UpstreamClient,
    request: Request<ProxyRequestBody>,
    again: Option<Request<ProxyRequestBody>>,
    pulse: &ExchangeActivity,
) -> Result<Response<Incoming>, ProxyError> {
    let limits = upstream.limits;
    let asking = async {
        let answer = match (upstream.client.request(request).await, again) {
            (Err(error), Some(again)) if upstream::is_stale_connection(&error) => upstream.client.request(again).await,
            (answer, _) => answer,
        };
        answer.map_err(|error| {
            tracing::debug!(error = &error as &dyn std::error::Error, "A request was not answered");
            upstream::classify_error(&error)
        })
    };
    tokio::pin!(asking);
    let answer = loop {
        let now = Instant::now();
        let patience = if pulse.is_sending() { limits.body_idle } else { limits.head };
        let deadline = pulse.last_activity() + patience;
        if deadline <= now {
            return Err(ProxyError::TimedOut);
        }
        tokio::select! {
            answer = &mut asking => break answer?,
            // No longer than the head limit, because the upload may finish meanwhile.
            () = sleep_until(deadline.min(now + limits.head)) => {}
        }
    };
    if let Some(answered) = answer.extensions().get::<upstream::AnsweredBeforeFlag>() {
        answered.set();
    }
    Ok(answer)
}
