//! Streaming responses, and readers that are slow or go away.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use http_body_util::BodyExt as _;
use tokio::io::Interest;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::world::{HostileUpstream, hostile_upstream, patient};

const MEGABYTE: u64 = 1 << 20;

/// The most that may be in flight: two sockets' buffers and what hyper reads ahead, with room to spare.
const UNDER_WAY: u64 = 2 * MEGABYTE;

/// An upstream that sends as fast as it can.
struct Hose {
    evil: HostileUpstream,
    sent: Arc<AtomicU64>,
    /// Notified each time it has to wait for the reader.
    blocked: Arc<Notify>,
    /// Cancelled when its connection closes before everything was sent.
    broken: CancellationToken,
}

fn hose(bytes: u64) -> Hose {
    let (sent, blocked) = (Arc::new(AtomicU64::new(0)), Arc::new(Notify::new()));
    let broken = CancellationToken::new();
    let (count, waits, ended) = (Arc::clone(&sent), Arc::clone(&blocked), broken.clone());
    let evil = hostile_upstream(patient(), move |mut peer, _| {
        let (count, waits, ended) = (Arc::clone(&count), Arc::clone(&waits), ended.clone());
        async move {
            peer.head().await.unwrap();
            peer.send(format!("HTTP/1.1 200 OK\r\nContent-Length: {bytes}\r\n\r\n")).await;
            let piece = vec![b'x'; 64 * 1024];
            while count.load(Ordering::SeqCst) < bytes {
                let left = usize::try_from(bytes - count.load(Ordering::SeqCst)).unwrap();
                match peer.0.get_ref().try_write(&piece[..piece.len().min(left)]) {
                    Ok(wrote) => {
                        count.fetch_add(wrote as u64, Ordering::SeqCst);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {
                        waits.notify_one();
                        let _ = peer.0.get_ref().ready(Interest::WRITABLE).await;
                    }
                    Err(_) => return ended.cancel(),
                }
            }
        }
    });
    Hose { evil, sent, blocked, broken }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_slow_reader_stops_the_upstream_and_nothing_is_kept() {
    let all = 300 * MEGABYTE;
    let hose = hose(all);
    let mut body = hose.evil.get("/").await.unwrap().into_body();
    hose.blocked.notified().await;
    assert!(hose.sent.load(Ordering::SeqCst) < UNDER_WAY);
    let mut read = 0;
    while let Some(frame) = body.frame().await {
        read += frame.unwrap().into_data().unwrap().len() as u64;
        let ahead = hose.sent.load(Ordering::SeqCst).saturating_sub(read);
        assert!(ahead < UNDER_WAY, "{ahead} bytes ahead");
    }
    assert_eq!(read, all);
}

#[tokio::test]
async fn through_a_server_too() {
    let all = 50 * MEGABYTE;
    let hose = hose(all);
    let mut front = hose.evil.front();
    front.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    front.head().await.unwrap();
    hose.blocked.notified().await;
    assert!(hose.sent.load(Ordering::SeqCst) < 2 * UNDER_WAY);
    for _ in 0..50 {
        front.read(1 << 20).await;
    }
}

#[tokio::test]
async fn a_reader_who_goes_away_ends_it_at_the_upstream() {
    let dropped = hose(300 * MEGABYTE);
    let mut body = dropped.evil.get("/").await.unwrap().into_body();
    body.frame().await.unwrap().unwrap();
    drop(body);
    dropped.broken.cancelled().await;

    let closed = hose(300 * MEGABYTE);
    let mut front = closed.evil.front();
    front.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    front.head().await.unwrap();
    drop(front);
    closed.broken.cancelled().await;
}

#[tokio::test]
async fn who_goes_away_before_the_answer_ends_the_request_too() {
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
    tokio::select! {
        _ = evil.get("/") => panic!("it was answered"),
        () = asked.notified() => {}
    }
    ended.notified().await;

    let mut front = evil.front();
    front.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n").await;
    asked.notified().await;
    drop(front);
    ended.notified().await;
}

#[tokio::test]
async fn an_answer_without_end_streams_on() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n").await;
        for _ in 0..3 {
            peer.send("4\r\ntick\r\n").await;
            // Continues only once the browser has it.
            peer.read(0).await;
        }
        peer.rest().await;
    });
    let mut body = evil.get("/").await.unwrap().into_body();
    let mut got = Vec::new();
    while got.len() < 12 {
        got.extend_from_slice(&body.frame().await.unwrap().unwrap().into_data().unwrap());
    }
    assert_eq!(got, b"tickticktick");
}
