//! What machines ask: health and figures on a private listener, the dashboards' empty origin, and stopping.

use reqwest::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::support::client::send;
use crate::support::{Client, TestApp};

#[tokio::test]
async fn public_health_check_reveals_no_details() {
    let (portal, _admin) = TestApp::with_admin().await;
    let page = portal.visitor().get("/healthz").await;
    assert_eq!((page.status, page.text()), (200, "well\n"));
    assert_eq!(page.header("content-type"), "text/plain; charset=utf-8");

    portal.clock.advance(-3600);
    let page = portal.visitor().get("/healthz").await;
    assert_eq!((page.status, page.text()), (503, "unwell\n"), "no word about what");
}

/// The doctor is told more, but nobody can pretend to be the doctor.
#[tokio::test]
async fn forged_doctor_header_reveals_nothing() {
    let portal = TestApp::start().await;
    let now = portal.clock.now().0;
    for mark in ["", "x", "0", &format!("{now}.AAAA"), &format!("{now}.{}", "A".repeat(43))] {
        let request = portal.visitor().request(Method::GET, "/healthz");
        let page = send(request.header(portolan::probe::PROBE_HEADER, mark)).await;
        assert_eq!((page.status, page.text()), (200, "well\n"), "{mark}");
    }
}

#[tokio::test]
async fn private_health_check_names_the_problem() {
    let (portal, _admin) = TestApp::with_admin().await;
    let watcher = Client::new(&portal.metrics_url);
    let read = async || {
        let page = watcher.get("/healthz").await;
        (page.status, serde_json::from_str::<serde_json::Value>(page.text()).unwrap())
    };
    let (status, well) = read().await;
    assert_eq!((status, well["status"].as_str()), (200, Some("well")));
    assert_eq!(well["problems"], serde_json::json!([]));

    portal.clock.advance(-120);
    assert_eq!(read().await.0, 200, "small corrections of the clock are nothing");
    portal.clock.advance(-3480);
    let (status, unwell) = read().await;
    assert_eq!((status, unwell["status"].as_str()), (503, Some("unwell")));
    let problem = unwell["problems"][0].as_str().unwrap();
    assert!(problem.starts_with("The clock is behind: "), "{problem}");
    assert!(problem.contains("3600 s"), "{problem}");
    assert_eq!(unwell["problems"].as_array().unwrap().len(), 1);
    portal.clock.advance(3600);
    assert_eq!(read().await.0, 200, "it is well again by itself");
}

/// Lesson 13: addresses hold secrets, so figures name routes and never addresses.
#[tokio::test]
async fn metrics_count_routes_and_hold_no_secrets() {
    let (portal, admin) = TestApp::with_admin().await;
    let lab = portal.group(&admin, "Smith Lab").await;
    let link = portal.invite(&admin, lab, "member").await;
    let visitor = portal.visitor();
    visitor.get(&link).await;
    visitor.get("/sign-in?next=/secret-address").await;
    visitor.get("/no-such-page-secret").await;
    for word in ["SECRET-VERB", "BREW"] {
        send(visitor.request(word.parse().unwrap(), "/sign-in").header("origin", &portal.url)).await;
    }
    let page = Client::new(&portal.metrics_url).get("/metrics").await;
    assert_eq!(page.status, 200);
    assert_eq!(page.header("content-type"), "text/plain; version=0.0.4; charset=utf-8");
    let lines: Vec<&str> = page.text().lines().collect();
    for labels in [
        "method=\"GET\",route=\"/join/{token}\",status=\"200\"",
        "method=\"POST\",route=\"/groups/{id}/invitations\",status=\"303\"",
        "method=\"GET\",route=\"none\",status=\"404\"",
    ] {
        let start = format!("portolan_http_requests_total{{{labels}}} ");
        assert!(lines.iter().any(|found| found.starts_with(&start)), "no {start} in {lines:#?}");
    }
    let token = link.trim_start_matches("/join/");
    for secret in [token, "secret-address", "page-secret", "SECRET", "BREW", &admin.cookie("portolan_session").unwrap()]
    {
        assert!(!page.text().contains(secret), "{secret}");
    }
}

#[tokio::test]
async fn private_and_public_listeners_serve_different_routes() {
    let (portal, admin) = TestApp::with_admin().await;
    let watcher = Client::new(&portal.metrics_url);
    for path in ["/", "/sign-in", "/people", "/account", "/events", "/setup/x"] {
        let request = watcher.request(Method::GET, path).header("cookie", admin.cookies());
        let page = send(request).await;
        assert_eq!((page.status, page.text()), (404, ""), "{path}");
    }
    assert_eq!(portal.visitor().get("/metrics").await.status, 404);
    assert_eq!(admin.get("/metrics").await.status, 404);
}

/// Dashboards run other people's scripts: their origin shares nothing with the portal.
#[tokio::test]
async fn the_dashboards_origin_is_empty_and_sets_no_cookies() {
    let (portal, admin) = TestApp::with_admin().await;
    let boards = Client::new(&portal.dashboards_url);
    for path in ["/", "/sign-in", "/people", "/healthz", "/metrics", "/events", "/dashboards"] {
        let request = boards.request(Method::GET, path).header("cookie", admin.cookies());
        let page = send(request).await;
        assert_eq!(page.status, 404, "{path}");
        assert!(page.text().starts_with("There is no dashboard at this address."), "{path}");
        assert_eq!(page.header("set-cookie"), "", "{path}");
        assert_eq!(page.header("x-content-type-options"), "nosniff");
        assert_eq!(page.header("cache-control"), "private, no-store");
    }
    let form = [("name", "ada"), ("password", crate::support::PASSWORD)];
    let page = boards.post("/sign-in", &form).await;
    assert_eq!((page.status, page.header("set-cookie")), (404, ""));
    for host in ["evil.org", portal.url.trim_start_matches("http://"), "127.0.0.1"] {
        let page = send(boards.request(Method::GET, "/").header("host", host)).await;
        assert_eq!(page.status, 421, "{host}");
        assert!(!page.text().contains("evil"));
    }
}

/// A form that is being sent while the portal is told to stop is answered, not lost.
#[tokio::test]
async fn stopping_waits_for_requests_under_way() {
    let (portal, _admin) = TestApp::with_admin().await;
    let address = portal.url.trim_start_matches("http://").to_owned();
    let body = "name=ada&password=quiet+harbour+at+dawn";
    let mut slow = TcpStream::connect(&address).await.unwrap();
    let head = format!(
        "POST /sign-in HTTP/1.1\r\nhost: {address}\r\norigin: {}\r\nexpect: 100-continue\r\n\
         content-type: application/x-www-form-urlencoded\r\ncontent-length: {}\r\n\r\n",
        portal.url,
        body.len()
    );
    slow.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    slow.read_exact(&mut go_on).await.unwrap();
    assert!(go_on.starts_with(b"HTTP/1.1 100 Continue"), "the portal is reading the form");

    let mut idle = TcpStream::connect(&address).await.unwrap();
    let question = format!("GET /healthz HTTP/1.1\r\nhost: {address}\r\n\r\n");
    idle.write_all(question.as_bytes()).await.unwrap();
    idle.read_exact(&mut [0; 15]).await.unwrap();
    portal.app.stop.cancel();
    // A connection with nothing under way ends as soon as the portal has begun to stop.
    idle.read_to_end(&mut Vec::new()).await.unwrap();
    slow.write_all(body.as_bytes()).await.unwrap();
    let mut answer = String::new();
    slow.read_to_string(&mut answer).await.unwrap();
    assert!(answer.starts_with("HTTP/1.1 303 "), "{answer}");
    assert!(answer.contains("portolan_session="), "{answer}");
}

/// A foreign name that was made to lead to this machine must not read its figures.
#[tokio::test]
async fn private_listener_accepts_only_local_host_names() {
    let portal = TestApp::start().await;
    let watcher = Client::new(&portal.metrics_url);
    for (host, status) in [
        ("evil.example", 421),
        ("evil.example:8082", 421),
        ("localhost", 200),
        ("127.0.0.1:8082", 200),
        ("[::1]:8082", 200),
    ] {
        let page = send(watcher.request(Method::GET, "/metrics").header("host", host)).await;
        assert_eq!(page.status, status, "{host}");
    }
}
