//! Connections that are kept alive, closed meanwhile, or too many.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::{Method, Request};
use http_body_util::Full;
use tokio::sync::{Notify, mpsc};

use super::world::{HostileUpstream, always, hostile_upstream, impatient, passage, patient, text};
use crate::proxy::{ProxyError, ProxyLimits, forward_request};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

#[tokio::test]
async fn a_connection_serves_one_request_after_the_other() {
    let evil = hostile_upstream(patient(), |peer, _| always(peer, OK));
    for _ in 0..20 {
        assert_eq!(text(evil.get("/").await.unwrap()).await, "ok");
    }
    assert_eq!(evil.dials(), 1);
}

#[tokio::test]
async fn kept_connections_are_closed_after_a_while_and_with_the_upstream() {
    let closed = Arc::new(Notify::new());
    let there = Arc::clone(&closed);
    let brief = ProxyLimits { keep_idle_for: Duration::from_millis(50), ..patient() };
    for limits in [brief, patient()] {
        let there = Arc::clone(&there);
        let evil = hostile_upstream(limits, move |peer, _| {
            let there = Arc::clone(&there);
            async move {
                always(peer, OK).await;
                there.notify_one();
            }
        });
        assert_eq!(text(evil.get("/").await.unwrap()).await, "ok");
        if limits.keep_idle_for == brief.keep_idle_for {
            closed.notified().await;
        }
        drop(evil);
        if limits.keep_idle_for != brief.keep_idle_for {
            closed.notified().await;
        }
    }
}

/// An upstream whose first connection answers once and closes on the next request; others always answer.
fn fickle(heads: &Arc<AtomicUsize>) -> HostileUpstream {
    let heads = Arc::clone(heads);
    hostile_upstream(patient(), move |mut peer, number| {
        let heads = Arc::clone(&heads);
        async move {
            while peer.head().await.is_some() {
                let asked = heads.fetch_add(1, Ordering::SeqCst);
                if number == 0 && asked > 0 {
                    return;
                }
                peer.send(OK).await;
            }
        }
    })
}

#[tokio::test]
async fn a_kept_connection_that_ends_is_replaced_for_requests_that_do_nothing() {
    let heads = Arc::default();
    let evil = fickle(&heads);
    assert_eq!(text(evil.get("/").await.unwrap()).await, "ok");
    assert_eq!(text(evil.get("/").await.unwrap()).await, "ok");
    assert_eq!((heads.load(Ordering::SeqCst), evil.dials()), (3, 2));
}

#[tokio::test]
async fn but_nothing_is_done_twice() {
    for (method, body) in [(Method::POST, "x"), (Method::POST, ""), (Method::DELETE, ""), (Method::GET, "x")] {
        let heads = Arc::default();
        let evil = fickle(&heads);
        assert_eq!(text(evil.get("/").await.unwrap()).await, "ok");
        let request = Request::builder().method(method).uri("/").body(Full::from(body)).unwrap();
        let failure = forward_request(&evil.upstream, passage("/"), request).await.unwrap_err();
        assert_eq!(failure, ProxyError::Unreachable);
        assert_eq!((heads.load(Ordering::SeqCst), evil.dials()), (2, 1));
    }
}

#[tokio::test]
async fn a_connection_that_was_closed_meanwhile_is_not_used() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send(OK).await;
    });
    for _ in 0..10 {
        let request = Request::post("/").body(Full::from("x")).unwrap();
        let answer = forward_request(&evil.upstream, passage("/"), request).await;
        // Whether the close is noticed before the next request starts is luck; that it is never sent twice is not.
        match answer {
            Ok(answer) => assert_eq!(text(answer).await, "ok"),
            Err(failure) => assert_eq!(failure, ProxyError::Unreachable),
        }
    }
    assert!(evil.dials() <= 10);
}

#[tokio::test]
async fn there_are_only_so_many_at_a_time() {
    let limits = ProxyLimits { connections: 2, head: patient().head, body_idle: patient().body_idle, ..impatient() };
    let (asked, mut asks) = mpsc::unbounded_channel();
    let go = Arc::new(Notify::new());
    let gate = Arc::clone(&go);
    let evil = hostile_upstream(limits, move |mut peer, _| {
        let (asked, gate) = (asked.clone(), Arc::clone(&gate));
        async move {
            while peer.head().await.is_some() {
                asked.send(()).unwrap();
                gate.notified().await;
                peer.send(OK).await;
            }
        }
    });
    let evil = Arc::new(evil);
    let ask = || {
        let evil = Arc::clone(&evil);
        tokio::spawn(async move { evil.get("/").await })
    };
    let two = [ask(), ask()];
    asks.recv().await.unwrap();
    asks.recv().await.unwrap();
    assert_eq!(evil.get("/").await.unwrap_err(), ProxyError::Busy);
    assert_eq!(evil.dials(), 2);
    go.notify_one();
    go.notify_one();
    for answer in two {
        assert_eq!(text(answer.await.unwrap().unwrap()).await, "ok");
    }
    let again = ask();
    asks.recv().await.unwrap();
    go.notify_one();
    assert_eq!(text(again.await.unwrap().unwrap()).await, "ok");
    assert_eq!(evil.dials(), 2);
}

#[tokio::test]
async fn many_at_once_share_the_places() {
    let evil = Arc::new(hostile_upstream(ProxyLimits { connections: 4, ..patient() }, |peer, _| always(peer, OK)));
    let asks = (0..200).map(|_| {
        let evil = Arc::clone(&evil);
        tokio::spawn(async move { text(evil.get("/").await.unwrap()).await })
    });
    for ask in asks.collect::<Vec<_>>() {
        assert_eq!(ask.await.unwrap(), "ok");
    }
    assert!(evil.dials() <= 200);
}
