//! Raw requests through a real server in front: the upstream sees exactly one request for each.

use std::sync::{Arc, Mutex};

use super::world::{HostileUpstream, hostile_upstream, patient};

/// An upstream that records every head it gets, and reads bodies as their head says.
fn noting() -> (HostileUpstream, Arc<Mutex<Vec<String>>>) {
    let heads = Arc::new(Mutex::new(Vec::new()));
    let notes = Arc::clone(&heads);
    let evil = hostile_upstream(patient(), move |mut peer, _| {
        let notes = Arc::clone(&notes);
        async move {
            while let Some(head) = peer.head().await {
                if head.contains("transfer-encoding: chunked") {
                    let mut body = String::new();
                    while !body.ends_with("0\r\n\r\n") {
                        body.push(char::from(peer.read(1).await[0]));
                    }
                } else if let Some((_, after)) = head.split_once("content-length: ") {
                    let length = after.split("\r\n").next().unwrap().parse().unwrap();
                    peer.read(length).await;
                }
                notes.lock().unwrap().push(head);
                peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
            }
        }
    });
    (evil, heads)
}

/// Sends these bytes on one connection; returns the number of responses with status 200.
async fn send(evil: &HostileUpstream, bytes: &str) -> usize {
    let mut front = evil.front();
    front.send(bytes).await;
    front.send("GET /last HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").await;
    String::from_utf8_lossy(&front.rest().await).matches("HTTP/1.1 200").count()
}

#[tokio::test]
async fn a_hidden_second_request_never_arrives() {
    for bytes in [
        // Length and chunks: a server that trusts the length sees a second request.
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 40\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\n\r\nGET /hidden HTTP/1.1\r\nX: ",
        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: +3\r\n\r\nabc",
        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n",
        "POST /a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: x\r\n\r\n0\r\n\r\n",
        "GET /a HTTP/1.1\r\nHost: x\r\nX: a\rGET /hidden HTTP/1.1\r\n\r\n",
        "GET /a\r\nX: /hidden HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET http://elsewhere/hidden HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET //elsewhere/hidden HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /../hidden HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /%2e%2e/hidden HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /a\\..\\hidden HTTP/1.1\r\nHost: x\r\n\r\n",
        "CONNECT hidden:80 HTTP/1.1\r\nHost: x\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n",
    ] {
        let (evil, heads) = noting();
        send(&evil, bytes).await;
        let heads = heads.lock().unwrap();
        for head in heads.iter() {
            assert!(!head.contains("hidden"), "{bytes:?} brought {head:?}");
            let framed = head.matches("content-length").count() + head.matches("transfer-enc").count();
            assert!(framed <= 1, "{bytes:?} brought {head:?}");
        }
        assert!(heads.len() <= 2, "{bytes:?} brought {heads:?}");
    }
}

#[tokio::test]
async fn honest_requests_follow_each_other_on_one_connection() {
    let (evil, heads) = noting();
    let answers = send(
        &evil,
        "POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc\
         POST /b HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX-After: 1\r\n\r\n\
         PUT /c HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\n\
         DELETE /d HTTP/1.1\r\nHost: x\r\n\r\n",
    )
    .await;
    assert_eq!(answers, 5);
    let heads = heads.lock().unwrap();
    let framing: Vec<_> = heads
        .iter()
        .map(|head| {
            let path = head.split(' ').nth(1).unwrap();
            let how = head.lines().find(|line| line.starts_with("content-l") || line.starts_with("tr"));
            (path, how.unwrap_or_default())
        })
        .collect();
    assert_eq!(
        framing,
        [
            ("/a", "content-length: 3"),
            ("/b", "transfer-encoding: chunked"),
            ("/c", "content-length: 0"),
            ("/d", ""),
            ("/last", ""),
        ]
    );
}
