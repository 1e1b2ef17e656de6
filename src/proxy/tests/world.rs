//! An upstream on a Unix socket that does whatever a test wants, and a browser's side that sends raw bytes.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt as _, Empty};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio_util::sync::CancellationToken;

use crate::proxy::{
    BoxedResponseBody, DialUpstream, ProxyContext, ProxyError, ProxyLimits, UpstreamClient, forward_request,
};

pub struct HostileUpstream {
    pub upstream: UpstreamClient,
    /// How often it was dialled.
    pub dialled: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

/// Starts an upstream that handles each connection like this.
pub fn hostile_upstream<F, T>(limits: ProxyLimits, treat: F) -> HostileUpstream
where
    F: Fn(RawPeer, usize) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(treat(RawPeer(BufReader::new(stream)), number));
        }
    });
    let dialled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&dialled);
    let dial: DialUpstream = Arc::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        Box::pin(UnixStream::connect(socket.clone()))
    });
    HostileUpstream { upstream: UpstreamClient::new(dial, limits), dialled, _folder: folder }
}

/// Limits that no test reaches by accident.
pub fn patient() -> ProxyLimits {
    ProxyLimits::default()
}

/// Limits for tests that wait for a timeout.
pub fn impatient() -> ProxyLimits {
    let short = Duration::from_millis(80);
    ProxyLimits { connect: short, head: short, body_idle: short, ..ProxyLimits::default() }
}

/// One end of a connection, for raw reads and writes.
pub struct RawPeer(pub BufReader<UnixStream>);

impl RawPeer {
    /// The next head, including its empty line; `None` at the end of the connection.
    pub async fn head(&mut self) -> Option<String> {
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if self.0.read_line(&mut head).await.ok()? == 0 {
                return None;
            }
        }
        Some(head)
    }

    pub async fn read(&mut self, bytes: usize) -> Vec<u8> {
        let mut buffer = vec![0; bytes];
        self.0.read_exact(&mut buffer).await.unwrap();
        buffer
    }

    /// Everything until the connection ends, however it ends.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        rest
    }

    pub async fn send(&mut self, words: impl AsRef<[u8]>) {
        let _ = self.0.get_mut().write_all(words.as_ref()).await;
    }
}

/// Gives every request on a connection the same response.
pub async fn always(mut peer: RawPeer, answer: &str) {
    while peer.head().await.is_some() {
        peer.send(answer).await;
    }
}

pub fn passage(path: &str) -> ProxyContext {
    ProxyContext {
        path_and_query: path.into(),
        host: "localhost".into(),
        prefix: "/b/word/app".into(),
        origin: "https://boards.example.org".into(),
        client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
        cancel: CancellationToken::new(),
        keep_alive: None,
    }
}

pub fn request(method: Method, headers: &[(&str, &str)]) -> Request<Empty<Bytes>> {
    let mut request = Request::builder().method(method).uri("/b/word/app/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Empty::new()).unwrap()
}

impl HostileUpstream {
    pub async fn get(&self, path: &str) -> Result<Response<BoxedResponseBody>, ProxyError> {
        forward_request(&self.upstream, passage(path), request(Method::GET, &[])).await
    }

    pub fn dials(&self) -> usize {
        self.dialled.load(Ordering::SeqCst)
    }

    /// A browser's connection to a server that forwards everything, path by path.
    pub fn front(&self) -> RawPeer {
        self.front_until(&CancellationToken::new())
    }

    pub fn front_until(&self, until: &CancellationToken) -> RawPeer {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (upstream, until) = (self.upstream.clone(), until.clone());
        let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
            let path = request.uri().path_and_query().map_or("", |path| path.as_str());
            let passage = ProxyContext { cancel: until.clone(), ..passage(path) };
            let upstream = upstream.clone();
            async move {
                Ok::<_, std::convert::Infallible>(
                    forward_request(&upstream, passage, request).await.unwrap_or_else(shown),
                )
            }
        });
        let serving =
            hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(theirs), service).with_upgrades();
        tokio::spawn(async move { drop(serving.await) });
        RawPeer(BufReader::new(ours))
    }
}

fn shown(failure: ProxyError) -> Response<BoxedResponseBody> {
    let mut answer = Response::new(BoxedResponseBody::default());
    *answer.status_mut() = match failure {
        ProxyError::Refused(_) => StatusCode::BAD_REQUEST,
        ProxyError::TimedOut => StatusCode::GATEWAY_TIMEOUT,
        ProxyError::Busy => StatusCode::SERVICE_UNAVAILABLE,
        ProxyError::Unreachable | ProxyError::BadResponse | ProxyError::ClientGone => StatusCode::BAD_GATEWAY,
    };
    answer
}

/// The whole response body as text.
pub async fn text(answer: Response<BoxedResponseBody>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The head that an upstream sees for this request.
pub async fn request_seen_upstream(path: &str, request: Request<Empty<Bytes>>) -> String {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        let head = peer.head().await.unwrap();
        let length = head.len();
        peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{head}")).await;
    });
    text(forward_request(&evil.upstream, passage(path), request).await.unwrap()).await
}

/// The response that comes through for these upstream bytes.
pub async fn response_shown_for(answer: &'static str) -> Result<Response<BoxedResponseBody>, ProxyError> {
    let evil = hostile_upstream(patient(), move |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send(answer).await;
    });
    evil.get("/").await
}
