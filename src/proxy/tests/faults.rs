//! Upstreams that are dead, slow, broken or malicious.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use tokio::io::AsyncWriteExt as _;

use super::world::{RawPeer, hostile_upstream, impatient, passage, patient, request, response_shown_for, text};
use crate::proxy::{BoxError, DialUpstream, ProxyError, ProxyLimits, UpstreamClient, forward_request};

async fn asked(upstream: &UpstreamClient) -> ProxyError {
    forward_request(upstream, passage("/"), request(Method::GET, &[])).await.unwrap_err()
}

#[tokio::test]
async fn nobody_there() {
    let dial: DialUpstream =
        Arc::new(|| Box::pin(async { Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)) }));
    assert_eq!(asked(&UpstreamClient::new(dial, patient())).await, ProxyError::Unreachable);
}

#[tokio::test]
async fn a_connection_that_never_stands() {
    let dial: DialUpstream = Arc::new(|| Box::pin(std::future::pending()));
    assert_eq!(asked(&UpstreamClient::new(dial, impatient())).await, ProxyError::TimedOut);
}

#[tokio::test]
async fn one_that_never_answers() {
    let silent = hostile_upstream(impatient(), |mut peer, _| async move {
        peer.rest().await;
    });
    assert_eq!(silent.get("/").await.unwrap_err(), ProxyError::TimedOut);
}

#[tokio::test]
async fn one_that_answers_byte_by_byte() {
    let slow = hostile_upstream(impatient(), |mut peer: RawPeer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 200 OK\r\nX: ").await;
        while peer.0.get_mut().write_all(b"x").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    assert_eq!(slow.get("/").await.unwrap_err(), ProxyError::TimedOut);
}

#[tokio::test]
async fn one_that_promises_an_answer_for_ever() {
    let promising = hostile_upstream(impatient(), |mut peer: RawPeer, _| async move {
        peer.head().await.unwrap();
        while peer.0.get_mut().write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(promising.get("/").await.unwrap_err(), ProxyError::TimedOut);
}

#[tokio::test]
async fn one_that_closes_at_once() {
    let closing = hostile_upstream(patient(), |_, _| async {});
    assert_eq!(closing.get("/").await.unwrap_err(), ProxyError::Unreachable);
    let later = hostile_upstream(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
    });
    assert_eq!(later.get("/").await.unwrap_err(), ProxyError::Unreachable);
    assert_eq!(later.dials(), 1, "a fresh connection that ends is no reason to ask again");
}

#[tokio::test]
async fn one_that_dies_in_the_head() {
    assert_eq!(response_shown_for("HTTP/1.1 200 OK\r\nContent-").await.unwrap_err(), ProxyError::Unreachable);
}

#[tokio::test]
async fn one_that_speaks_something_else() {
    for garbage in [
        "garbage garbage garbage garbage\r\n\r\n",
        "SSH-2.0-OpenSSH_9.2\r\n\r\n",
        "\u{0}\u{1}\u{2}\u{3}\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 2000 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        "HTTP/1.1 200 OK\r\n folded: x\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX : y\r\n\r\n",
        "HTTP/1.1 200 OK\r\nX: a\u{0}b\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ] {
        assert_eq!(response_shown_for(garbage).await.unwrap_err(), ProxyError::BadResponse, "{garbage:?}");
    }
}

#[tokio::test]
async fn one_with_endless_headers() {
    let endless = hostile_upstream(patient(), |mut peer: RawPeer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 200 OK\r\n").await;
        while peer.0.get_mut().write_all(b"X-More: and more\r\n").await.is_ok() {}
    });
    assert_eq!(endless.get("/").await.unwrap_err(), ProxyError::BadResponse);
    let one = hostile_upstream(patient(), |mut peer: RawPeer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 200 OK\r\nX-Long: ").await;
        while peer.0.get_mut().write_all(&[b'x'; 1024]).await.is_ok() {}
    });
    assert_eq!(one.get("/").await.unwrap_err(), ProxyError::BadResponse);
}

/// Checks that the body ends with an error for its reader.
async fn ends_badly(answer: &'static str) {
    let body = response_shown_for(answer).await.unwrap().into_body();
    assert!(body.collect().await.is_err(), "{answer:?} ended as if it were whole");
    // For a browser, the connection closes before the announced length.
    let evil = hostile_upstream(patient(), move |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send(answer).await;
    });
    let mut front = evil.front();
    front.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    let text = String::from_utf8_lossy(&front.rest().await).into_owned();
    assert!(!text.ends_with("0\r\n\r\n"), "{text:?}");
    assert!(!text.contains("content-length") || text.contains("content-length: 10"), "{text:?}");
}

#[tokio::test]
async fn one_that_dies_in_the_middle_of_a_body() {
    ends_badly("HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort").await;
    ends_badly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n").await;
    ends_badly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n10\r\nshort").await;
    ends_badly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nshort\r\n").await;
    ends_badly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx").await;
}

#[tokio::test]
async fn one_that_says_more_than_it_announced() {
    let evil = hostile_upstream(patient(), |mut peer, number| async move {
        while peer.head().await.is_some() {
            let extra = if number == 0 { "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil" } else { "" };
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok{extra}")).await;
        }
    });
    for _ in 0..2 {
        assert_eq!(text(evil.get("/").await.unwrap()).await, "ok");
    }
    assert_eq!(evil.dials(), 2, "the connection with the surplus was used again");
}

#[tokio::test]
async fn one_that_stops_reading_an_upload() {
    let limits = ProxyLimits { head: patient().head, ..impatient() };
    let evil = hostile_upstream(limits, |mut peer, _| async move {
        peer.head().await.unwrap();
        std::future::pending::<()>().await;
    });
    let frames = futures_util::stream::repeat_with(|| {
        Ok::<_, BoxError>(http_body::Frame::data(bytes::Bytes::from_static(&[0; 4096])))
    });
    let request = Request::post("/").body(http_body_util::StreamBody::new(frames)).unwrap();
    let failure = forward_request(&evil.upstream, passage("/"), request).await.unwrap_err();
    assert_eq!(failure, ProxyError::TimedOut);
}
