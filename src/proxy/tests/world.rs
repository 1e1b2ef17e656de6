//! An upstream on a Unix socket that does whatever a test tells it to, and a browser's side that speaks bytes.

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

use crate::proxy::{Body, Dial, Failure, Limits, Passage, Upstream, pass};

/// An upstream and its socket.
pub struct Evil {
    pub upstream: Upstream,
    /// How often it was dialled.
    pub dialled: Arc<AtomicUsize>,
    _folder: tempfile::TempDir,
}

/// Starts an upstream that treats each connection like this.
pub fn evil<F, T>(limits: Limits, treat: F) -> Evil
where
    F: Fn(Peer, usize) -> T + Send + 'static,
    T: Future<Output = ()> + Send + 'static,
{
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("s");
    let listener = UnixListener::bind(&socket).unwrap();
    tokio::spawn(async move {
        for number in 0.. {
            let (stream, _) = listener.accept().await.unwrap();
            tokio::spawn(treat(Peer(BufReader::new(stream)), number));
        }
    });
    let dialled = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&dialled);
    let dial: Dial = Arc::new(move || {
        counter.fetch_add(1, Ordering::SeqCst);
        Box::pin(UnixStream::connect(socket.clone()))
    });
    Evil { upstream: Upstream::new(dial, limits), dialled, _folder: folder }
}

/// Limits that no test reaches by accident.
pub fn patient() -> Limits {
    Limits::default()
}

/// Limits for those that wait to be given up.
pub fn impatient() -> Limits {
    let short = Duration::from_millis(80);
    Limits { connect: short, head: short, idle: short, ..Limits::default() }
}

/// One end of a connection, by words.
pub struct Peer(pub BufReader<UnixStream>);

impl Peer {
    /// The next head, up to and with its empty line; nothing at the connection's end.
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

    /// All there is up to the end of the connection, however it ends.
    pub async fn rest(&mut self) -> Vec<u8> {
        let mut rest = Vec::new();
        let _ = self.0.read_to_end(&mut rest).await;
        rest
    }

    pub async fn say(&mut self, words: impl AsRef<[u8]>) {
        let _ = self.0.get_mut().write_all(words.as_ref()).await;
    }
}

/// Treats every request on a connection to the same answer.
pub async fn always(mut peer: Peer, answer: &str) {
    while peer.head().await.is_some() {
        peer.say(answer).await;
    }
}

pub fn passage(path: &str) -> Passage {
    Passage {
        path_and_query: path.into(),
        host: "localhost".into(),
        prefix: "/b/word/app".into(),
        origin: "https://boards.example.org".into(),
        client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
        until: CancellationToken::new(),
        held: None,
    }
}

pub fn request(method: Method, headers: &[(&str, &str)]) -> Request<Empty<Bytes>> {
    let mut request = Request::builder().method(method).uri("/b/word/app/");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    request.body(Empty::new()).unwrap()
}

impl Evil {
    pub async fn get(&self, path: &str) -> Result<Response<Body>, Failure> {
        pass(&self.upstream, passage(path), request(Method::GET, &[])).await
    }

    pub fn dials(&self) -> usize {
        self.dialled.load(Ordering::SeqCst)
    }

    /// A browser's connection to a server that passes everything on, path by path.
    pub fn front(&self) -> Peer {
        self.front_until(&CancellationToken::new())
    }

    pub fn front_until(&self, until: &CancellationToken) -> Peer {
        let (ours, theirs) = UnixStream::pair().unwrap();
        let (upstream, until) = (self.upstream.clone(), until.clone());
        let service = hyper::service::service_fn(move |request: Request<hyper::body::Incoming>| {
            let path = request.uri().path_and_query().map_or("", |path| path.as_str());
            let passage = Passage { until: until.clone(), ..passage(path) };
            let upstream = upstream.clone();
            async move {
                Ok::<_, std::convert::Infallible>(
                    pass(&upstream, passage, request).await.unwrap_or_else(shown),
                )
            }
        });
        let serving = hyper::server::conn::http1::Builder::new()
            .serve_connection(TokioIo::new(theirs), service)
            .with_upgrades();
        tokio::spawn(async move { drop(serving.await) });
        Peer(BufReader::new(ours))
    }
}

fn shown(failure: Failure) -> Response<Body> {
    let mut answer = Response::new(Body::default());
    *answer.status_mut() = match failure {
        Failure::Refused(_) => StatusCode::BAD_REQUEST,
        Failure::Late => StatusCode::GATEWAY_TIMEOUT,
        Failure::Busy => StatusCode::SERVICE_UNAVAILABLE,
        Failure::Unreachable | Failure::Broken | Failure::Gone => StatusCode::BAD_GATEWAY,
    };
    answer
}

/// The whole of an answer as text.
pub async fn text(answer: Response<Body>) -> String {
    let bytes = answer.into_body().collect().await.unwrap().to_bytes();
    String::from_utf8(bytes.to_vec()).unwrap()
}

/// The head that an upstream saw of this request.
pub async fn seen(path: &str, request: Request<Empty<Bytes>>) -> String {
    let evil = evil(patient(), |mut peer, _| async move {
        let head = peer.head().await.unwrap();
        let length = head.len();
        peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{head}")).await;
    });
    text(pass(&evil.upstream, passage(path), request).await.unwrap()).await
}

/// The answer that comes through for what an upstream says.
pub async fn told(answer: &'static str) -> Result<Response<Body>, Failure> {
    let evil = evil(patient(), move |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.say(answer).await;
    });
    evil.get("/").await
}
