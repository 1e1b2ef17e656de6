//! The stream of events of an open page: it tells at once when the session has ended, and closes with the portal.

use std::time::Duration;

use reqwest::{Method, Response};

use crate::support::wait::PATIENCE;
use crate::support::{Client, PASSWORD, TestApp};

const SIGNED_OUT: &str = "event: signed-out";

async fn open(browser: &Client) -> Response {
    let response = browser.request(Method::GET, "/events").send().await.unwrap();
    assert_eq!(response.status(), 200);
    let kind = response.headers()["content-type"].to_str().unwrap();
    assert_eq!(kind, "text/event-stream");
    response
}

/// What still comes until the stream ends. It must end.
async fn rest(mut stream: Response) -> String {
    let read = async {
        let mut text = String::new();
        while let Some(bytes) = stream.chunk().await.unwrap() {
            text.push_str(&String::from_utf8_lossy(&bytes));
        }
        text
    };
    tokio::time::timeout(PATIENCE, read).await.expect("the stream goes on")
}

/// The stream has nothing to tell: it gives neither text nor an end while another request is answered.
async fn is_quiet(stream: &mut Response, browser: &Client) -> bool {
    tokio::select! {
        biased;
        _ = stream.chunk() => false,
        () = async {
            for _ in 0..3 {
                browser.get("/healthz").await;
            }
        } => true,
    }
}

async fn second_browser(portal: &TestApp, name: &str) -> Client {
    let browser = portal.visitor();
    assert_eq!(browser.sign_in(name, PASSWORD).await.status, 303);
    browser
}

#[tokio::test]
async fn without_a_session_there_is_no_stream() {
    let (portal, _admin) = TestApp::with_admin().await;
    let page = portal.visitor().get("/events").await;
    assert!([303, 401].contains(&page.status), "{}", page.status);
    assert_ne!(page.header("content-type"), "text/event-stream");
    assert_eq!(page.text(), "");
}

#[tokio::test]
async fn event_stream_is_never_buffered_or_cached() {
    let (_portal, admin) = TestApp::with_admin().await;
    let response = open(&admin).await;
    assert_eq!(response.headers()["x-accel-buffering"], "no");
    let cache = response.headers()["cache-control"].to_str().unwrap();
    assert!(cache.contains("no-cache") || cache.contains("no-store"), "{cache}");
    assert!(!response.headers().contains_key("content-encoding"));
}

#[tokio::test]
async fn ending_a_device_tells_its_page_and_no_other() {
    let (portal, _admin, bob) = TestApp::with_member("bob").await;
    let other = second_browser(&portal, "bob").await;
    let (mut mine, theirs) = (open(&bob).await, open(&other).await);
    let page = bob.get("/account/devices").await;
    let forms = page.select_all("form[action$='/end']");
    let this = forms.iter().position(|words| words.contains("this device")).unwrap();
    let html = scraper::Html::parse_document(page.text());
    let selector = scraper::Selector::parse("form[action$='/end']").unwrap();
    let path = html.select(&selector).nth(1 - this).unwrap().attr("action").unwrap().to_owned();
    bob.post(&path, &[]).await;
    assert!(rest(theirs).await.contains(SIGNED_OUT));
    assert!(is_quiet(&mut mine, &bob).await);
}

#[tokio::test]
async fn signing_out_tells_the_other_tabs() {
    let (_portal, admin) = TestApp::with_admin().await;
    let tab = open(&admin).await;
    admin.post("/sign-out", &[]).await;
    assert!(rest(tab).await.contains(SIGNED_OUT));
}

#[tokio::test]
async fn sign_out_everywhere_tells_every_browser() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let other = second_browser(&portal, "bob").await;
    let streams = [open(&bob).await, open(&other).await];
    let mut of_admin = open(&admin).await;
    bob.post("/account/devices/end-all", &[]).await;
    for stream in streams {
        assert!(rest(stream).await.contains(SIGNED_OUT));
    }
    assert!(is_quiet(&mut of_admin, &admin).await, "it is not about others");
}

#[tokio::test]
async fn a_new_password_tells_the_other_browsers() {
    let (portal, admin) = TestApp::with_admin().await;
    let other = second_browser(&portal, "ada").await;
    let (mut mine, theirs) = (open(&admin).await, open(&other).await);
    let new = "another harbour at dusk";
    let form = [("current", PASSWORD), ("password", new), ("again", new)];
    assert_eq!(admin.post("/account/password", &form).await.status, 303);
    assert!(rest(theirs).await.contains(SIGNED_OUT));
    assert!(is_quiet(&mut mine, &admin).await);
}

#[tokio::test]
async fn switching_an_account_off_tells_its_pages() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let stream = open(&bob).await;
    let id = portal.person_id("bob").await;
    admin.post(&format!("/people/{id}/disable"), &[]).await;
    assert!(rest(stream).await.contains(SIGNED_OUT));
}

#[tokio::test]
async fn streams_end_with_the_portal() {
    let (portal, admin) = TestApp::with_admin().await;
    let streams = [open(&admin).await, open(&admin).await];
    portal.app.stop.cancel();
    for stream in streams {
        assert!(!rest(stream).await.contains(SIGNED_OUT), "the session goes on after a restart");
    }
}
/// Lets the streams ask whether their session still holds, which they do now and then.
async fn let_streams_ask() {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(21)).await;
    tokio::time::resume();
}

#[tokio::test]
async fn a_session_that_has_run_out_tells_its_page() {
    let (portal, admin) = TestApp::with_admin().await;
    let stream = open(&admin).await;
    portal.clock.advance(12 * 3600);
    let_streams_ask().await;
    assert!(rest(stream).await.contains(SIGNED_OUT));
}

/// An open page is not a person: it must not keep the session of a browser that nobody uses.
#[tokio::test]
async fn an_open_page_does_not_keep_the_session_alive() {
    let (portal, admin) = TestApp::with_admin().await;
    let stream = open(&admin).await;
    for _ in 0..3 {
        portal.clock.advance(5 * 3600);
        let_streams_ask().await;
        for _ in 0..5 {
            portal.visitor().get("/healthz").await;
        }
    }
    assert!(!admin.is_signed_in().await, "unused for 15 hours");
    drop(stream);
}
