//! Upstreams that are dead, slow, broken or mean.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use tokio::io::AsyncWriteExt as _;

use super::world::{Peer, evil, impatient, passage, patient, request, text, told};
use crate::proxy::{BoxError, Dial, Failure, Limits, Upstream, pass};

async fn asked(upstream: &Upstream) -> Failure {
    pass(upstream, passage("/"), request(Method::GET, &[])).await.unwrap_err()
}

#[tokio::test]
async fn nobody_there() {
    let dial: Dial = Arc::new(|| {
        Box::pin(async { Err(std::io::Error::from(std::io::ErrorKind::ConnectionRefused)) })
    });
    assert_eq!(asked(&Upstream::new(dial, patient())).await, Failure::Unreachable);
}

#[tokio::test]
async fn a_connection_that_never_stands() {
    let dial: Dial = Arc::new(|| Box::pin(std::future::pending()));
    assert_eq!(asked(&Upstream::new(dial, impatient())).await, Failure::Late);
}

#[tokio::test]
async fn one_that_never_answers() {
    let silent = evil(impatient(), |mut peer, _| async move {
        peer.rest().await;
    });
    assert_eq!(silent.get("/").await.unwrap_err(), Failure::Late);
}

#[tokio::test]
async fn one_that_answers_byte_by_byte() {
    let slow = evil(impatient(), |mut peer: Peer, _| async move {
        peer.head().await.unwrap();
        peer.say("HTTP/1.1 200 OK\r\nX: ").await;
        while peer.0.get_mut().write_all(b"x").await.is_ok() {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        }
    });
    assert_eq!(slow.get("/").await.unwrap_err(), Failure::Late);
}

#[tokio::test]
async fn one_that_promises_an_answer_for_ever() {
    let promising = evil(impatient(), |mut peer: Peer, _| async move {
        peer.head().await.unwrap();
        while peer.0.get_mut().write_all(b"HTTP/1.1 102 Processing\r\n\r\n").await.is_ok() {
            tokio::task::yield_now().await;
        }
    });
    assert_eq!(promising.get("/").await.unwrap_err(), Failure::Late);
}

#[tokio::test]
async fn one_that_closes_at_once() {
    let closing = evil(patient(), |_, _| async {});
    assert_eq!(closing.get("/").await.unwrap_err(), Failure::Unreachable);
    let later = evil(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
    });
    assert_eq!(later.get("/").await.unwrap_err(), Failure::Unreachable);
    assert_eq!(later.dials(), 1, "a fresh connection that ends is no reason to ask again");
}

#[tokio::test]
async fn one_that_dies_in_the_head() {
    assert_eq!(told("HTTP/1.1 200 OK\r\nContent-").await.unwrap_err(), Failure::Unreachable);
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
        assert_eq!(told(garbage).await.unwrap_err(), Failure::Broken, "{garbage:?}");
    }
}

#[tokio::test]
async fn one_with_endless_headers() {
    let endless = evil(patient(), |mut peer: Peer, _| async move {
        peer.head().await.unwrap();
        peer.say("HTTP/1.1 200 OK\r\n").await;
        while peer.0.get_mut().write_all(b"X-More: and more\r\n").await.is_ok() {}
    });
    assert_eq!(endless.get("/").await.unwrap_err(), Failure::Broken);
    let one = evil(patient(), |mut peer: Peer, _| async move {
        peer.head().await.unwrap();
        peer.say("HTTP/1.1 200 OK\r\nX-Long: ").await;
        while peer.0.get_mut().write_all(&[b'x'; 1024]).await.is_ok() {}
    });
    assert_eq!(one.get("/").await.unwrap_err(), Failure::Broken);
}

/// How the body ends for whoever reads it.
async fn ends_badly(answer: &'static str) {
    let body = told(answer).await.unwrap().into_body();
    assert!(body.collect().await.is_err(), "{answer:?} ended as if it were whole");
    // And for a browser: its connection ends before the length it was told.
    let evil = evil(patient(), move |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.say(answer).await;
    });
    let mut front = evil.front();
    front.say("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
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
    ends_badly("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\nx")
        .await;
}

#[tokio::test]
async fn one_that_says_more_than_it_announced() {
    let evil = evil(patient(), |mut peer, number| async move {
        while peer.head().await.is_some() {
            let extra =
                if number == 0 { "HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil" } else { "" };
            peer.say(format!("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok{extra}")).await;
        }
    });
    for _ in 0..2 {
        assert_eq!(text(evil.get("/").await.unwrap()).await, "ok");
    }
    assert_eq!(evil.dials(), 2, "the connection with the surplus was used again");
}

#[tokio::test]
async fn one_that_stops_reading_an_upload() {
    let limits = Limits { head: patient().head, ..impatient() };
    let evil = evil(limits, |mut peer, _| async move {
        peer.head().await.unwrap();
        std::future::pending::<()>().await;
    });
    let frames = futures_util::stream::repeat_with(|| {
        Ok::<_, BoxError>(http_body::Frame::data(bytes::Bytes::from_static(&[0; 4096])))
    });
    let request = Request::post("/").body(http_body_util::StreamBody::new(frames)).unwrap();
    let failure = pass(&evil.upstream, passage("/"), request).await.unwrap_err();
    assert_eq!(failure, Failure::Late);
}
