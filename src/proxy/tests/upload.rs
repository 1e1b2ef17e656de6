//! Requests with streaming bodies.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt as _, StreamBody};
use tokio::io::AsyncReadExt as _;
use tokio::sync::{Notify, mpsc};

use super::world::{hostile_upstream, passage, patient, text};
use crate::proxy::{BoxError, ProxyError, forward_request};

const MEGABYTE: u64 = 1 << 20;
const PIECE: u64 = 64 * 1024;

/// A request whose body is produced piece by piece as it is read, and a count of what was produced.
fn upload(bytes: u64, told: bool) -> (Request<crate::proxy::BoxedResponseBody>, Arc<AtomicU64>) {
    let made = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&made);
    let piece = Bytes::from(vec![b'x'; usize::try_from(PIECE).unwrap()]);
    let pieces = stream::iter(0..bytes / PIECE).then_frame(move || {
        count.fetch_add(PIECE, Ordering::SeqCst);
        piece.clone()
    });
    let mut request = Request::builder().method(Method::POST).uri("/");
    if told {
        request = request.header("content-length", bytes);
    }
    (request.body(pieces).unwrap(), made)
}

trait ThenFrame {
    fn then_frame(self, make: impl FnMut() -> Bytes + Send + 'static) -> crate::proxy::BoxedResponseBody;
}

impl<S: futures_util::Stream<Item = u64> + Send + 'static> ThenFrame for S {
    fn then_frame(self, mut make: impl FnMut() -> Bytes + Send + 'static) -> crate::proxy::BoxedResponseBody {
        use futures_util::StreamExt as _;
        let frames = self.map(move |_| Ok::<_, BoxError>(Frame::data(make())));
        StreamBody::new(frames).boxed_unsync()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_upstream_stops_the_browser_and_nothing_is_kept() {
    let all = 300 * MEGABYTE;
    let (request, made) = upload(all, true);
    let count = Arc::clone(&made);
    let evil = hostile_upstream(patient(), move |mut peer, _| {
        let made = Arc::clone(&count);
        async move {
            let head = peer.head().await.unwrap();
            assert!(head.contains(&format!("content-length: {all}\r\n")), "{head}");
            let mut buffer = vec![0; 32 * 1024];
            let mut read = 0;
            while read < all {
                read += peer.0.read(&mut buffer).await.unwrap() as u64;
                let ahead = made.load(Ordering::SeqCst).saturating_sub(read);
                assert!(ahead < 2 * MEGABYTE, "{ahead} bytes ahead");
            }
            peer.send("HTTP/1.1 201 Created\r\nContent-Length: 2\r\n\r\nok").await;
        }
    });
    let answer = forward_request(&evil.upstream, passage("/"), request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(text(answer).await, "ok");
}

#[tokio::test]
async fn a_body_of_unknown_length_goes_in_chunks() {
    let (request, _) = upload(2 * PIECE, false);
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        let head = peer.head().await.unwrap();
        assert!(head.contains("transfer-encoding: chunked\r\n"), "{head}");
        let chunk = usize::try_from(PIECE).unwrap() + "10000\r\n\r\n".len();
        peer.read(2 * chunk).await;
        assert_eq!(peer.read(5).await, b"0\r\n\r\n");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    });
    assert_eq!(text(forward_request(&evil.upstream, passage("/"), request).await.unwrap()).await, "ok");
}

#[tokio::test]
async fn who_waits_to_be_told_to_go_on_is_told() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        let head = peer.head().await.unwrap();
        assert!(!head.contains("expect"), "{head}");
        assert_eq!(peer.read(5).await, b"hello");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    });
    let mut front = evil.front();
    front.send("PUT / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n").await;
    assert!(front.head().await.unwrap().starts_with("HTTP/1.1 100 Continue\r\n"));
    front.send("hello").await;
    assert!(front.head().await.unwrap().starts_with("HTTP/1.1 200 OK\r\n"));
    assert_eq!(front.read(2).await, b"ok");
}

#[tokio::test]
async fn an_upstream_may_answer_before_it_has_read_all() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
        peer.rest().await;
    });
    let (request, made) = upload(3000 * MEGABYTE, true);
    let answer = forward_request(&evil.upstream, passage("/"), request).await.unwrap();
    assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
    assert_eq!(text(answer).await, "no");
    assert!(made.load(Ordering::SeqCst) < 3000 * MEGABYTE);
}

#[tokio::test]
async fn a_browser_that_goes_away_in_the_middle_ends_it_at_the_upstream() {
    let (part, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (here, there) = (Arc::clone(&part), Arc::clone(&ended));
    let evil = hostile_upstream(patient(), move |mut peer, _| {
        let (here, there) = (Arc::clone(&here), Arc::clone(&there));
        async move {
            peer.head().await.unwrap();
            peer.read(3).await;
            here.notify_one();
            assert_eq!(peer.rest().await, b"", "an end was made up");
            there.notify_one();
        }
    });
    let mut front = evil.front();
    front.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc").await;
    part.notified().await;
    drop(front);
    ended.notified().await;
}

#[tokio::test]
async fn a_body_that_breaks_off_is_not_completed() {
    let (told, mut rests) = mpsc::unbounded_channel();
    let evil = hostile_upstream(patient(), move |mut peer, _| {
        let told = told.clone();
        async move {
            // It may break off before the head was sent.
            peer.head().await;
            told.send(String::from_utf8(peer.rest().await).unwrap()).unwrap();
        }
    });
    let piece = || Ok(Frame::data(Bytes::from("abc")));
    for (length, frames) in [
        (None, vec![piece(), Err("lost")]),
        (Some("10"), vec![piece(), Err("lost")]),
        // Ends cleanly, but is shorter than its head says.
        (Some("10"), vec![piece()]),
    ] {
        let mut request = Request::builder().method(Method::POST).uri("/");
        if let Some(length) = length {
            request = request.header("content-length", length);
        }
        let request = request.body(StreamBody::new(stream::iter(frames))).unwrap();
        let failure = forward_request(&evil.upstream, passage("/"), request).await.unwrap_err();
        assert_eq!(failure, ProxyError::ClientGone);
        let rest = rests.recv().await.unwrap();
        assert!(!rest.contains("0\r\n\r\n") && rest.len() < 10, "{rest:?}");
    }
}

#[tokio::test]
async fn an_upstream_may_even_close_before_it_has_read_all() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno").await;
    });
    for _ in 0..20 {
        let (request, _) = upload(300 * MEGABYTE, true);
        match forward_request(&evil.upstream, passage("/"), request).await {
            Ok(answer) => {
                assert_eq!(answer.status(), StatusCode::PAYLOAD_TOO_LARGE);
            }
            // Writing failed before the response was read.
            Err(failure) => assert_eq!(failure, ProxyError::Unreachable),
        }
    }
}
