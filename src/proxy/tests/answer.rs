//! What a browser sees of a response.

use http::StatusCode;
use proptest::prelude::*;

use super::world::{hostile_upstream, passage, patient, request, response_shown_for, text};
use crate::proxy::request::ProxyRequestKind;
use crate::proxy::response::prepare_response;
use crate::proxy::{ProxyError, forward_request};

#[tokio::test]
async fn an_upstream_speaks_for_itself_only() {
    let answer = response_shown_for(
        "HTTP/1.0 200 Very Fine\r\nContent-Length: 2\r\nContent-Type: text/html\r\n\
         Content-Security-Policy: default-src 'self'\r\nContent-Security-Policy: img-src *\r\n\
         Content-Encoding: gzip\r\nETag: \"x\"\r\nCache-Control: no-store\r\n\
         Set-Cookie: a=b\r\nSet-Cookie: c=d\r\nClear-Site-Data: \"*\"\r\nService-Worker-Allowed: /\r\n\
         Alt-Svc: h3=\":443\"\r\nStrict-Transport-Security: max-age=1\r\nPublic-Key-Pins: x\r\n\
         Refresh: 0; url=https://elsewhere\r\nAccess-Control-Allow-Origin: *\r\n\
         Access-Control-Allow-Credentials: true\r\nReport-To: x\r\nNEL: x\r\n\
         Content-Security-Policy-Report-Only: x\r\nX-Frame-Options: DENY\r\nServer: x\r\nVia: x\r\n\
         X-Powered-By: x\r\nX-Accel-Redirect: /internal\r\nX-Sendfile: /etc/passwd\r\n\
         WWW-Authenticate: Basic\r\nConnection: X-Named\r\nX-Named: x\r\nKeep-Alive: x\r\n\
         Proxy-Authenticate: x\r\nTrailer: x\r\nUpgrade: h2c\r\n\r\nok",
    )
    .await
    .unwrap();
    assert_eq!(answer.version(), http::Version::HTTP_11);
    assert!(answer.extensions().is_empty());
    let mut names: Vec<_> = answer.headers().iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    assert_eq!(
        names,
        [
            "cache-control",
            "content-encoding",
            "content-length",
            "content-security-policy",
            "content-security-policy",
            "content-type",
            "etag",
        ]
    );
    assert_eq!(text(answer).await, "ok");
}

#[tokio::test]
async fn compressed_bytes_pass_as_they_are() {
    let answer = response_shown_for("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 7\r\n\r\nno gzip")
        .await
        .unwrap();
    assert_eq!(text(answer).await, "no gzip");
}

#[tokio::test]
async fn redirects_stay_inside() {
    let answer = response_shown_for("HTTP/1.1 302 Found\r\nLocation: http://localhost/x\r\nContent-Length: 0\r\n\r\n");
    assert_eq!(answer.await.unwrap().headers()["location"], "/b/word/app/x");
    for elsewhere in [
        "HTTP/1.1 302 Found\r\nLocation: https://elsewhere/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 201 Created\r\nLocation: //elsewhere/\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 302 Found\r\nLocation: /a\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
    ] {
        assert_eq!(response_shown_for(elsewhere).await.unwrap_err(), ProxyError::BadResponse, "{elsewhere}");
    }
}

#[tokio::test]
async fn answers_that_contradict_themselves_are_not_shown() {
    for answer in [
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 3\r\n\r\nok!",
        "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\nok",
        "HTTP/1.0 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        "HTTP/1.1 304 Not Modified\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\nConnection: Upgrade\r\n\r\n",
    ] {
        assert_eq!(response_shown_for(answer).await.unwrap_err(), ProxyError::BadResponse, "{answer}");
    }
}

#[tokio::test]
async fn lengths_and_missing_bodies_are_told_right() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        while let Some(head) = peer.head().await {
            let path = head.split(' ').nth(1).unwrap();
            peer.send(match path {
                "/head" => "HTTP/1.1 200 OK\r\nContent-Length: 1234\r\n\r\n",
                "/204" => "HTTP/1.1 204 No Content\r\nContent-Length: 5\r\n\r\n",
                "/304" => "HTTP/1.1 304 Not Modified\r\nETag: \"x\"\r\nContent-Length: 77\r\n\r\n",
                "/twice" => "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\nok",
                "/range" => {
                    "HTTP/1.1 206 Partial Content\r\nContent-Range: bytes 2-3/9\r\nAccept-Ranges: bytes\r\n\
                     Content-Length: 2\r\n\r\nok"
                }
                "/early" => {
                    "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n\
                     HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
                }
                "/chunks" => {
                    "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-After\r\n\r\n\
                     1\r\no\r\n1;ext=1\r\nk\r\n0\r\nX-After: evil\r\nSet-Cookie: a=b\r\n\r\n"
                }
                _ => "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\nok",
            })
            .await;
            if path == "/close" {
                return;
            }
        }
    });
    let mut front = evil.front();
    for (ask, begins, holds, ends) in [
        ("HEAD /head", "HTTP/1.1 200 OK\r\n", "content-length: 1234\r\n", ""),
        ("GET /204", "HTTP/1.1 204 No Content\r\n", "", ""),
        ("GET /304", "HTTP/1.1 304 Not Modified\r\n", "etag: \"x\"\r\n", ""),
        ("GET /twice", "HTTP/1.1 200 OK\r\n", "content-length: 2\r\n", "ok"),
        ("GET /range", "HTTP/1.1 206 Partial Content\r\n", "content-range: bytes 2-3/9\r\n", "ok"),
        ("GET /early", "HTTP/1.1 200 OK\r\n", "content-length: 2\r\n", "ok"),
        ("GET /chunks", "HTTP/1.1 200 OK\r\n", "transfer-encoding: chunked\r\n", "1\r\no\r\n1\r\nk\r\n0\r\n\r\n"),
        ("GET /close", "HTTP/1.1 200 OK\r\n", "transfer-encoding: chunked\r\n", "2\r\nok\r\n0\r\n\r\n"),
    ] {
        front.send(format!("{ask} HTTP/1.1\r\nHost: x\r\nTE: trailers\r\n\r\n")).await;
        let head = front.head().await.unwrap();
        assert!(head.starts_with(begins) && head.contains(holds), "{ask}: {head}");
        assert!(!head.contains("trailer") && !head.contains("content-length: 5"), "{ask}: {head}");
        let body = front.read(ends.len()).await;
        assert_eq!(String::from_utf8_lossy(&body), ends, "{ask}");
    }
}

#[tokio::test]
async fn the_status_of_an_error_passes() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        peer.head().await.unwrap();
        peer.send("HTTP/1.1 503 Service Unavailable\r\nRetry-After: 3\r\nContent-Length: 0\r\n\r\n").await;
    });
    let answer = forward_request(&evil.upstream, passage("/"), request(http::Method::GET, &[])).await.unwrap();
    assert_eq!(answer.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert_eq!(answer.headers()["retry-after"], "3");
}

proptest! {
    #[test]
    fn no_header_makes_it_panic(
        headers in prop::collection::vec(
            (
                prop_oneof![
                    prop::sample::select(vec![
                        "connection", "content-length", "transfer-encoding", "upgrade", "set-cookie", "location",
                        "sec-websocket-accept", "access-control-allow-origin",
                    ]).prop_map(str::to_owned),
                    "[a-z_-]{1,12}",
                ],
                prop::collection::vec(any::<u8>(), 0..20),
            ),
            0..12,
        ),
        status in 100_u16..=999,
        kind in prop::sample::select(vec![ProxyRequestKind::Plain, ProxyRequestKind::WebSocket]),
    ) {
        let mut made = http::Response::new(());
        *made.status_mut() = StatusCode::from_u16(status).unwrap();
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(&value)) {
                made.headers_mut().append(name, value);
            }
        }
        if let Ok(parts) = prepare_response(made.into_parts().0, kind, &passage("/x")) {
            for gone in ["set-cookie", "transfer-encoding", "access-control-allow-origin"] {
                prop_assert!(!parts.headers.contains_key(gone));
            }
            if let Some(place) = parts.headers.get("location") {
                prop_assert!(place.as_bytes().starts_with(b"/b/word/app/"));
            }
        }
    }
}
