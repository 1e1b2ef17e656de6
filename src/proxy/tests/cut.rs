//! Bodies that are cut: because nothing moves, or because access ended.

use std::sync::Arc;

use http::{Method, Request};
use http_body_util::BodyExt as _;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::world::{HostileUpstream, hostile_upstream, impatient, passage, patient, request};
use crate::proxy::{BodyCutReason, ProxyContext, ProxyError, ProxyLimits, forward_request};

/// An upstream that starts a response and then goes silent; notifies when its connection has closed.
fn beginning(limits: ProxyLimits, begin: &'static str) -> (HostileUpstream, Arc<Notify>) {
    let ended = Arc::new(Notify::new());
    let there = Arc::clone(&ended);
    let evil = hostile_upstream(limits, move |mut peer, _| {
        let there = Arc::clone(&there);
        async move {
            peer.head().await.unwrap();
            peer.send(begin).await;
            peer.rest().await;
            there.notify_one();
        }
    });
    (evil, ended)
}

const BEGIN: &str = "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc";

async fn why(body: &mut crate::proxy::BoxedResponseBody) -> BodyCutReason {
    loop {
        if let Err(error) = body.frame().await.expect("it ended as if it were whole") {
            return *error.downcast_ref().unwrap();
        }
    }
}

#[tokio::test]
async fn an_answer_that_stops_moving_is_cut() {
    let (evil, ended) = beginning(impatient(), BEGIN);
    let mut body = evil.get("/").await.unwrap().into_body();
    assert_eq!(why(&mut body).await, BodyCutReason::Idle);
    assert!(body.frame().await.is_none());
    ended.notified().await;
}

#[tokio::test]
async fn a_reader_who_stops_reading_does_not_hold_the_upstream() {
    let limits = ProxyLimits { connections: 1, ..impatient() };
    let (evil, ended) = beginning(limits, BEGIN);
    let mut body = evil.get("/").await.unwrap().into_body();
    ended.notified().await;
    assert_eq!(why(&mut body).await, BodyCutReason::Idle);
    // Its slot is free again.
    evil.get("/").await.unwrap();
}

#[tokio::test]
async fn what_may_not_go_on_is_cut_at_once() {
    let (evil, ended) = beginning(patient(), BEGIN);
    let until = CancellationToken::new();
    let passage = ProxyContext { cancel: until.clone(), ..passage("/") };
    let answer = forward_request(&evil.upstream, passage.clone(), request(Method::GET, &[])).await.unwrap();
    let mut body = answer.into_body();
    assert_eq!(body.frame().await.unwrap().unwrap().into_data().unwrap(), "abc");
    let (cut, ()) = tokio::join!(why(&mut body), async { until.cancel() });
    assert_eq!(cut, BodyCutReason::Ended);
    ended.notified().await;

    let late = forward_request(&evil.upstream, passage, request(Method::GET, &[])).await;
    assert_eq!(late.unwrap_err(), ProxyError::ClientGone);
    assert_eq!(evil.dials(), 1);
}

#[tokio::test]
async fn a_browser_sees_the_cut() {
    let (evil, ended) = beginning(patient(), BEGIN);
    let until = CancellationToken::new();
    let mut front = evil.front_until(&until);
    front.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(front.head().await.unwrap().contains("content-length: 10\r\n"));
    assert_eq!(front.read(3).await, b"abc");
    until.cancel();
    assert_eq!(front.rest().await, b"");
    ended.notified().await;
}

#[tokio::test]
async fn waiting_for_an_answer_is_cut_too() {
    let (asked, ended) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (here, there) = (Arc::clone(&asked), Arc::clone(&ended));
    let evil = hostile_upstream(patient(), move |mut peer, _| {
        let (here, there) = (Arc::clone(&here), Arc::clone(&there));
        async move {
            peer.head().await.unwrap();
            here.notify_one();
            peer.rest().await;
            there.notify_one();
        }
    });
    let until = CancellationToken::new();
    let passage = ProxyContext { cancel: until.clone(), ..passage("/") };
    let asking = forward_request(&evil.upstream, passage, request(Method::GET, &[]));
    let (answer, ()) = tokio::join!(asking, async {
        asked.notified().await;
        until.cancel();
    });
    assert_eq!(answer.unwrap_err(), ProxyError::ClientGone);
    ended.notified().await;
}

#[tokio::test]
async fn an_upload_is_cut_too() {
    let part = Arc::new(Notify::new());
    let ended = Arc::new(Notify::new());
    let (here, there) = (Arc::clone(&part), Arc::clone(&ended));
    let evil = hostile_upstream(patient(), move |mut peer, _| {
        let (here, there) = (Arc::clone(&here), Arc::clone(&there));
        async move {
            peer.head().await.unwrap();
            peer.read(3).await;
            here.notify_one();
            assert_eq!(peer.rest().await, b"");
            there.notify_one();
        }
    });
    let until = CancellationToken::new();
    let mut front = evil.front_until(&until);
    front.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nabc").await;
    part.notified().await;
    until.cancel();
    ended.notified().await;
    assert!(front.head().await.unwrap().starts_with("HTTP/1.1 502"));
}

#[tokio::test]
async fn an_upload_that_is_answered_already_is_not_left_running() {
    let (evil, ended) = beginning(patient(), "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    let never = futures_util::stream::pending::<Result<http_body::Frame<bytes::Bytes>, ProxyError>>();
    let request = Request::post("/").body(http_body_util::StreamBody::new(never)).unwrap();
    let answer = forward_request(&evil.upstream, passage("/"), request).await.unwrap();
    assert_eq!(answer.status(), 200);
    ended.notified().await;
}
