//! What an upstream sees of a request.

use http::{Method, Request, Version};
use http_body_util::Empty;
use proptest::prelude::*;

use super::world::{hostile_upstream, passage, patient, request, request_seen_upstream, text};
use crate::proxy::request::{BodySize, prepare_request};
use crate::proxy::{ProxyContext, ProxyError, forward_request};

fn lines(head: &str) -> Vec<&str> {
    head.trim_end().split("\r\n").collect()
}

#[tokio::test]
async fn the_upstream_learns_what_it_needs_and_no_more() {
    let head = request_seen_upstream(
        "/data?x=1",
        request(
            Method::GET,
            &[
                ("Host", "boards.example.org"),
                ("Cookie", "session=secret"),
                ("Cookie", "other=secret"),
                ("Authorization", "Bearer secret"),
                ("Proxy-Authorization", "Basic secret"),
                ("Origin", "https://secret.example.org"),
                ("Referer", "https://secret.example.org/"),
                ("X-Forwarded-For", "10.0.0.1"),
                ("X-Forwarded-Proto", "gopher"),
                ("X-Forwarded-Host", "elsewhere"),
                ("X-Forwarded-Prefix", "/elsewhere"),
                ("X-Forwarded-Port", "1"),
                ("X_Forwarded_For", "10.0.0.2"),
                ("Forwarded", "for=10.0.0.3"),
                ("X-Real-IP", "10.0.0.4"),
                ("Via", "1.0 elsewhere"),
                ("Proxy", "http://elsewhere"),
                ("X-HTTP-Method-Override", "DELETE"),
                ("X-Original-URL", "/elsewhere"),
                ("Sec-WebSocket-Key", "x"),
                ("Accept-Encoding", "gzip, br"),
                ("Accept", "text/html"),
                ("Range", "bytes=0-9"),
                ("If-None-Match", "\"x\""),
            ],
        ),
    )
    .await;
    let mut got = lines(&head);
    assert_eq!(got.remove(0), "GET /data?x=1 HTTP/1.1");
    got.sort_unstable();
    assert_eq!(
        got,
        [
            "accept-encoding: gzip, br",
            "accept: text/html",
            "host: localhost",
            "if-none-match: \"x\"",
            "range: bytes=0-9",
            "x-forwarded-for: 192.0.2.7",
            "x-forwarded-host: boards.example.org",
            "x-forwarded-prefix: /b/word/app",
            "x-forwarded-proto: https",
        ]
    );
}

#[tokio::test]
async fn headers_of_one_hop_end_here() {
    let head = request_seen_upstream(
        "/",
        request(
            Method::GET,
            &[
                ("Connection", "keep-alive, X-Named"),
                ("Connection", "x-also ,, upgrade"),
                ("Keep-Alive", "timeout=5"),
                ("Proxy-Connection", "keep-alive"),
                ("TE", "trailers"),
                ("Trailer", "X-After"),
                ("Upgrade", "h2c"),
                ("HTTP2-Settings", "AAMAAABkAARAAAAAAAIAAAAA"),
                ("X-Named", "1"),
                ("X-Also", "2"),
                ("X-Stays", "3"),
            ],
        ),
    )
    .await
    .to_lowercase();
    for gone in ["connection", "keep-alive", "te:", "trailer", "upgrade", "http2", "named", "also"] {
        assert!(!head.contains(gone), "{gone} in {head}");
    }
    assert!(head.contains("x-stays: 3"));
}

/// Sends a request that must not reach the upstream at all.
async fn refused(passage: ProxyContext, request: Request<Empty<bytes::Bytes>>) {
    let evil = hostile_upstream(patient(), |_, _| async { panic!("it reached the upstream") });
    let failure = forward_request(&evil.upstream, passage, request).await.unwrap_err();
    assert!(matches!(failure, ProxyError::Refused(_)), "{failure:?}");
    assert_eq!(evil.dials(), 0);
}

#[tokio::test]
async fn what_can_be_read_in_two_ways_is_refused() {
    for headers in [
        &[("Content-Length", "0"), ("Transfer-Encoding", "chunked")][..],
        &[("Content-Length", "0"), ("Content-Length", "1")],
        &[("Content-Length", "0, 0")],
        &[("Content-Length", "+0")],
        &[("Content-Length", "")],
        &[("Content-Length", "99999999999999999999999")],
        &[("Content-Length", "5")],
        &[("Transfer-Encoding", "gzip, chunked")],
        &[("Transfer-Encoding", "chunked"), ("Transfer-Encoding", "chunked")],
        &[("Transfer-Encoding", "identity")],
        &[("Transfer-Encoding", "xchunked")],
        &[("Expect", "the-unexpected")],
        &[("Service-Worker", "script")],
        &[("Sec-Fetch-Dest", "serviceworker")],
    ] {
        refused(passage("/"), request(Method::POST, headers)).await;
    }
    for path in ["", "x", "//elsewhere", "http://elsewhere/", "/..", "/%2e%2e/", "/a\r\nX: y", "/a\\b"] {
        refused(passage(path), request(Method::GET, &[])).await;
    }
    for method in [Method::CONNECT, Method::TRACE] {
        refused(passage("/"), request(method, &[])).await;
    }
    let mut absolute = request(Method::GET, &[]);
    *absolute.uri_mut() = "http://elsewhere/b/word/app/".parse().unwrap();
    refused(passage("/"), absolute).await;
}

#[tokio::test]
async fn one_length_told_twice_the_same_is_one_length() {
    let head = request_seen_upstream("/", request(Method::POST, &[("Content-Length", "0"), ("Content-Length", "0")]));
    assert_eq!(head.await.matches("content-length: 0\r\n").count(), 1);
}

#[tokio::test]
async fn other_versions_of_http_become_the_one() {
    for version in [Version::HTTP_10, Version::HTTP_2] {
        let mut old = request(Method::GET, &[]);
        *old.version_mut() = version;
        assert!(request_seen_upstream("/", old).await.starts_with("GET / HTTP/1.1\r\n"));
    }
}

#[tokio::test]
async fn an_ipv6_client_is_named_too() {
    let evil = hostile_upstream(patient(), |mut peer, _| async move {
        let head = peer.head().await.unwrap();
        assert!(head.contains("x-forwarded-for: 2001:db8::1\r\n"), "{head}");
        peer.send("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok").await;
    });
    let passage = ProxyContext { client: "2001:db8::1".parse().unwrap(), ..passage("/") };
    let answer = forward_request(&evil.upstream, passage, request(Method::GET, &[])).await.unwrap();
    assert_eq!(text(answer).await, "ok");
}

proptest! {
    /// Whatever the headers: no panic, and the request sent has one length, one host, and nothing private.
    #[test]
    fn no_header_makes_it_panic(
        headers in prop::collection::vec(
            (
                prop_oneof![
                    prop::sample::select(vec![
                        "connection", "content-length", "transfer-encoding", "upgrade", "cookie", "expect",
                        "host", "te", "sec-websocket-key", "sec-websocket-version", "x-forwarded-for",
                    ]).prop_map(str::to_owned),
                    "[a-z_-]{1,12}",
                ],
                prop_oneof![
                    prop::sample::select(vec![
                        "close", "upgrade", "websocket", "h2c", "chunked", "0", "7", "cookie", "host", "13",
                        "content-length, x", "100-continue",
                    ]).prop_map(|text| text.as_bytes().to_vec()),
                    prop::collection::vec(any::<u8>(), 0..20),
                ],
            ),
            0..12,
        ),
        known in prop::sample::select(vec![BodySize::Empty, BodySize::Bytes(7), BodySize::Unknown]),
        method in prop::sample::select(vec![Method::GET, Method::POST, Method::OPTIONS]),
    ) {
        let mut made = Request::new(());
        *made.method_mut() = method;
        for (name, value) in headers {
            let name = http::HeaderName::from_bytes(name.as_bytes());
            if let (Ok(name), Ok(value)) = (name, http::HeaderValue::from_bytes(&value)) {
                made.headers_mut().append(name, value);
            }
        }
        let (mut parts, ()) = made.into_parts();
        if prepare_request(&mut parts, known, &passage("/x")).is_ok() {
            let count = |name: &str| parts.headers.get_all(name).iter().count();
            prop_assert_eq!(count("host"), 1);
            prop_assert_eq!(count("x-forwarded-for"), 1);
            prop_assert!(count("content-length") + count("transfer-encoding") <= 1);
            prop_assert!(count("content-length") + count("transfer-encoding") == 1 || known == BodySize::Empty);
            for gone in ["cookie", "connection", "upgrade", "te", "expect"] {
                prop_assert_eq!(count(gone), 0);
            }
        }
    }
}
