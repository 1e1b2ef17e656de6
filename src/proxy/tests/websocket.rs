//! WebSocket through the proxy.

use std::sync::Arc;

use http_body_util::BodyExt as _;
use tokio::io::AsyncWriteExt as _;
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use super::world::{HostileUpstream, hostile_upstream, impatient, patient};

const ASK: &str = "GET /ws HTTP/1.1\r\nHost: x\r\nConnection: keep-alive, Upgrade\r\nUpgrade: WebSocket\r\n\
    Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\
    Sec-WebSocket-Protocol: chat\r\nCookie: secret\r\nOrigin: https://x\r\n\r\n";

const YES: &str = "HTTP/1.1 101 Sure\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\
    Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\nSec-WebSocket-Protocol: chat\r\n\
    Set-Cookie: a=b\r\n\r\n";

/// An upstream that accepts, greets right away and echoes every byte; notifies when it has ended.
fn echo() -> (HostileUpstream, Arc<Notify>) {
    let ended = Arc::new(Notify::new());
    let there = Arc::clone(&ended);
    // The limits for bodies don't apply here.
    let evil = hostile_upstream(impatient(), move |mut peer, _| {
        let there = Arc::clone(&there);
        async move {
            let head = peer.head().await.unwrap();
            if head.contains("/silent") {
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n").await;
                peer.rest().await;
                return;
            }
            assert!(head.contains("connection: Upgrade\r\nupgrade: websocket\r\n"), "{head}");
            assert!(head.contains("sec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"), "{head}");
            assert!(!head.contains("cookie") && !head.contains("origin"), "{head}");
            peer.send(format!("{YES}hello")).await;
            loop {
                let mut byte = [0];
                match tokio::io::AsyncReadExt::read(&mut peer.0, &mut byte).await {
                    Ok(1) if byte != *b"!" => peer.send(byte).await,
                    _ => break,
                }
            }
            there.notify_one();
        }
    });
    (evil, ended)
}

#[tokio::test]
async fn bytes_go_both_ways() {
    let (evil, ended) = echo();
    let mut front = evil.front();
    front.send(format!("{ASK}early")).await;
    let head = front.head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 101 Switching Protocols\r\n"), "{head}");
    assert!(head.contains("upgrade: websocket\r\n") && head.contains("sec-websocket-protocol: chat"));
    assert!(head.contains("sec-websocket-accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n"));
    assert!(!head.contains("set-cookie"));
    assert_eq!(front.read(10).await, b"helloearly");
    // It may stay silent for longer than a body may.
    let body = evil.get("/silent").await.unwrap().into_body();
    assert!(body.collect().await.is_err());
    let long = vec![7; 300_000];
    let (mut reader, mut writer) = front.0.into_inner().into_split();
    let write = tokio::spawn({
        let long = long.clone();
        async move { writer.write_all(&long).await.map(|()| writer) }
    });
    let mut back = vec![0; long.len()];
    tokio::io::AsyncReadExt::read_exact(&mut reader, &mut back).await.unwrap();
    assert_eq!(back, long);
    drop((reader, write.await.unwrap().unwrap()));
    ended.notified().await;
}

#[tokio::test]
async fn when_the_upstream_ends_the_browser_sees_it() {
    let (evil, ended) = echo();
    let mut front = evil.front();
    front.send(format!("{ASK}bye!")).await;
    front.head().await.unwrap();
    assert_eq!(front.rest().await, b"hellobye");
    ended.notified().await;
}

#[tokio::test]
async fn it_is_cut_when_it_may_not_go_on() {
    let (evil, ended) = echo();
    let until = CancellationToken::new();
    let mut front = evil.front_until(&until);
    front.send(ASK).await;
    front.head().await.unwrap();
    assert_eq!(front.read(5).await, b"hello");
    until.cancel();
    assert_eq!(front.rest().await, b"");
    ended.notified().await;
}

#[tokio::test]
async fn an_upstream_may_decline() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 403 Forbidden\r\nUpgrade: websocket\r\nContent-Length: 2\r\n\r\nno").await;
    });
    let mut front = evil.front();
    front.send(ASK).await;
    let head = front.head().await.unwrap();
    assert!(head.starts_with("HTTP/1.1 403 Forbidden\r\n") && !head.contains("upgrade"), "{head}");
    assert_eq!(front.read(2).await, b"no");
}

#[tokio::test]
async fn an_upstream_that_agrees_to_something_else_is_not_believed() {
    for answer in [
        YES.replace("Upgrade: websocket", "Upgrade: h2c"),
        YES.replace("Sec-WebSocket-Accept", "X"),
        "HTTP/1.1 101 Sure\r\n\r\n".to_owned(),
    ] {
        let evil = hostile_upstream(patient(), move |mut peer, _| {
            let answer = answer.clone();
            async move {
                peer.head().await.unwrap();
                peer.send(answer).await;
                peer.rest().await;
            }
        });
        let mut front = evil.front();
        front.send(ASK).await;
        assert!(front.head().await.unwrap().starts_with("HTTP/1.1 502"));
    }
}

#[tokio::test]
async fn who_asks_wrongly_is_refused() {
    for (from, to) in [
        ("GET", "POST"),
        ("HTTP/1.1", "HTTP/1.0"),
        ("Version: 13", "Version: 8"),
        ("Sec-WebSocket-Version: 13\r\n", ""),
        ("dGhlIHNhbXBsZSBub25jZQ==", "c2hvcnQ="),
        ("dGhlIHNhbXBsZSBub25jZQ==", "not base64"),
        ("Sec-WebSocket-Key:", "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Key:"),
        ("keep-alive, Upgrade", "keep-alive"),
        ("Upgrade: WebSocket", "Upgrade: WebSocket, h2c"),
        ("Upgrade: WebSocket", "Upgrade: websocket\r\nUpgrade: h2c"),
        ("Cookie: secret", "Content-Length: 5"),
    ] {
        let evil = hostile_upstream(patient(), |_, _| async { panic!("it reached the upstream") });
        let mut front = evil.front();
        front.send(ASK.replacen(from, to, 1)).await;
        let head = front.head().await.unwrap();
        assert!(head.contains(" 400 Bad Request\r\n"), "{to}: {head}");
        assert_eq!(evil.dials(), 0);
    }
}
