//! Signed-in browsers: how long they last, ending them, and what is not a session.

use reqwest::Method;

use crate::support::client::send;
use crate::support::{Client, PASSWORD, TestApp};

const HOUR: i64 = 3600;
const DAY: i64 = 24 * HOUR;
const NEW: &str = "another harbour at dusk";

async fn signed_in(portal: &TestApp, name: &str) -> Client {
    let browser = portal.visitor();
    assert_eq!(browser.sign_in(name, PASSWORD).await.location(), "/");
    browser
}

/// Where the buttons on the page of devices lead, this browser's first.
async fn device_paths(browser: &Client) -> Vec<String> {
    let page = browser.get("/account/devices").await;
    let html = scraper::Html::parse_document(page.text());
    let forms = scraper::Selector::parse("form[action$='/end']").unwrap();
    html.select(&forms).map(|form| form.attr("action").unwrap().to_owned()).collect()
}

#[tokio::test]
async fn session_ends_after_half_a_day_without_use() {
    let (portal, ada) = TestApp::with_admin().await;
    for _ in 0..3 {
        portal.clock.advance(12 * HOUR - 1);
        assert!(ada.is_signed_in().await, "each use begins the half day anew");
    }
    portal.clock.advance(12 * HOUR);
    let page = ada.get("/account").await;
    assert_eq!((page.status, page.location()), (303, "/sign-in?next=%2Faccount"));
}

#[tokio::test]
async fn session_ends_after_two_weeks_even_when_used() {
    let (portal, ada) = TestApp::with_admin().await;
    for _ in 0..27 {
        portal.clock.advance(12 * HOUR - 60);
        assert!(ada.is_signed_in().await);
    }
    portal.clock.advance(12 * HOUR - 60);
    assert!(ada.is_signed_in().await, "28 minutes are left");
    portal.clock.advance(28 * 60);
    assert!(!ada.is_signed_in().await);
}

#[tokio::test]
async fn session_limits_are_settings() {
    let portal = TestApp::start_with(|config| {
        config.sessions.idle_hours = 1;
        config.sessions.absolute_days = 1;
    })
    .await;
    let ada = portal.set_up("ada").await;
    portal.clock.advance(HOUR);
    assert!(!ada.is_signed_in().await);
}

#[tokio::test]
async fn expired_sessions_are_deleted() {
    let (portal, ada) = TestApp::with_admin().await;
    portal.clock.advance(13 * HOUR);
    let fresh = signed_in(&portal, "ada").await;
    portolan::housekeeping::sweep(&portal.app, &portal.app.notifications).await;
    assert_eq!(device_paths(&fresh).await.len(), 1);
    portal.clock.advance(-13 * HOUR);
    assert!(!ada.is_signed_in().await, "it is gone, not only too old");
    assert!(fresh.is_signed_in().await);
}

#[tokio::test]
async fn signing_out_ends_the_session_on_the_server() {
    let (portal, ada) = TestApp::with_admin().await;
    let token = ada.cookie("portolan_session").unwrap();
    let page = ada.post("/sign-out", &[]).await;
    assert_eq!((page.status, page.location()), (303, "/sign-in"));
    assert_eq!(ada.cookie("portolan_session").unwrap_or_default(), "");
    assert!(ada.get("/sign-in").await.select_text("body").contains("You're signed out."));
    let thief = portal.visitor();
    thief.set_cookie(&format!("portolan_session={token}"));
    assert!(!thief.is_signed_in().await);
    assert_eq!(ada.post("/sign-out", &[]).await.status, 303, "twice does no harm");
}

#[tokio::test]
async fn devices_are_listed_and_ended_one_by_one() {
    let (portal, ada) = TestApp::with_admin().await;
    portal.clock.advance(60);
    let phone = portal.visitor();
    let agent = "Mozilla/5.0 (iPhone; CPU iPhone OS 18_0 like Mac OS X) Version/18.0 Mobile Safari/604.1";
    let request = phone.request(Method::POST, "/sign-in").header("origin", &portal.url);
    let form = [("name", "ada"), ("password", PASSWORD)];
    send(request.header("user-agent", agent).form(&form)).await;

    let page = ada.get("/account/devices").await;
    assert_eq!(page.select_all(".rows > li").len(), 2);
    assert!(page.text().contains("Safari on iPhone") && page.text().contains("127.0.0.1"));
    let this = page.select_all("form[action$='/end']");
    let number = this.iter().position(|words| words.contains("this device")).unwrap();
    let paths = device_paths(&ada).await;
    let (own, other) = (&paths[number], &paths[1 - number]);

    assert_eq!(ada.post(other, &[]).await.location(), "/account/devices");
    assert!(!phone.is_signed_in().await);
    assert!(ada.is_signed_in().await);
    assert_eq!(ada.post(other, &[]).await.status, 404, "it is ended already");
    assert_eq!(ada.post(own, &[]).await.location(), "/sign-in");
    assert!(!ada.is_signed_in().await);
}

#[tokio::test]
async fn nobody_ends_the_sessions_of_others() {
    let (_portal, ada, bob) = TestApp::with_member("bob").await;
    let [path] = device_paths(&ada).await.try_into().unwrap();
    assert_eq!(bob.post(&path, &[]).await.status, 404);
    for id in ["0", "-1", "999999", "x", "9223372036854775808"] {
        let page = bob.post(&format!("/account/devices/{id}/end"), &[]).await;
        assert_eq!(page.status, 404, "{id}");
    }
    assert!(ada.is_signed_in().await);
    let [own] = device_paths(&bob).await.try_into().unwrap();
    assert_eq!(ada.post(&own, &[]).await.status, 404, "not even an administrator this way");
    assert!(bob.is_signed_in().await);
}

#[tokio::test]
async fn sign_out_everywhere_means_everywhere() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let second = signed_in(&portal, "bob").await;
    assert_eq!(bob.post("/account/devices/end-all", &[]).await.location(), "/sign-in");
    assert!(!bob.is_signed_in().await && !second.is_signed_in().await);
    assert!(ada.is_signed_in().await, "others stay");
}

#[tokio::test]
async fn a_new_password_ends_every_session_but_this_one() {
    let (portal, ada) = TestApp::with_admin().await;
    let other = signed_in(&portal, "ada").await;
    let path = "/account/password";
    for (current, password, again, problem) in [
        ("wrong", NEW, NEW, "Wrong password."),
        (PASSWORD, NEW, PASSWORD, "The two passwords don't match."),
        (PASSWORD, "short", "short", "Use at least 10 characters."),
    ] {
        let form = [("current", current), ("password", password), ("again", again)];
        let page = ada.post(path, &form).await;
        assert_eq!(page.status, 422);
        assert!(page.select_text(".error-summary").contains(problem), "{problem}");
    }
    assert!(other.is_signed_in().await, "nothing was changed");

    let page = ada.post(path, &[("current", PASSWORD), ("password", NEW), ("again", NEW)]).await;
    assert_eq!((page.status, page.location()), (303, "/account"));
    assert!(ada.is_signed_in().await && !other.is_signed_in().await);
    assert_eq!(portal.visitor().sign_in("ada", PASSWORD).await.status, 422);
    assert_eq!(portal.visitor().sign_in("ada", NEW).await.status, 303);
}

#[tokio::test]
async fn a_reset_link_ends_every_session_and_works_once() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let path = format!("/people/{}/reset-link", portal.person_id("bob").await);
    let link = async || {
        let text = ada.post_and_follow(&path, &[]).await.select_text(".alert code");
        text.strip_prefix(&portal.url).unwrap().to_owned()
    };
    let (old, link) = (link().await, link().await);
    let visitor = portal.visitor();
    assert_eq!(visitor.get(&old).await.select_text("h1"), "This link was revoked");
    assert_eq!(visitor.get("/reset/made-up").await.select_text("h1"), "Invalid link");
    assert_eq!(visitor.get(&link.replace("reset", "join")).await.status, 410, "another purpose");
    assert!(bob.is_signed_in().await, "a link that nobody used changes nothing");
    let page = visitor.post(&link, &[("password", NEW), ("again", PASSWORD)]).await;
    assert_eq!(page.status, 422);
    let page = visitor.post(&link, &[("password", NEW), ("again", NEW)]).await;
    assert_eq!((page.status, page.location()), (303, "/sign-in"));
    assert!(!bob.is_signed_in().await);
    assert!(!visitor.is_signed_in().await, "the link alone signs nobody in");
    assert_eq!(visitor.sign_in("bob", NEW).await.status, 303);
    let page = visitor.post(&link, &[("password", PASSWORD), ("again", PASSWORD)]).await;
    assert_eq!(page.select_text("h1"), "This link was already used");
}

#[tokio::test]
async fn a_reset_link_lasts_a_day() {
    let (portal, ada) = TestApp::with_admin().await;
    let path = format!("/people/{}/reset-link", portal.person_id("ada").await);
    let text = ada.post_and_follow(&path, &[]).await.select_text(".alert code");
    portal.clock.advance(DAY);
    let form = [("password", NEW), ("again", NEW)];
    let page = portal.visitor().post(text.strip_prefix(&portal.url).unwrap(), &form).await;
    assert_eq!((page.status, page.select_text("h1").as_str()), (410, "This link has expired"));
    assert_eq!(portal.visitor().sign_in("ada", PASSWORD).await.status, 303);
}

#[tokio::test]
async fn switching_an_account_off_ends_everything_at_once() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let second = signed_in(&portal, "bob").await;
    let id = portal.person_id("bob").await;
    assert_eq!(ada.post(&format!("/people/{id}/disable"), &[]).await.status, 303);
    assert!(!bob.is_signed_in().await && !second.is_signed_in().await);
    assert_eq!(portal.visitor().sign_in("bob", PASSWORD).await.status, 422);
    assert_eq!(ada.post(&format!("/people/{id}/enable"), &[]).await.status, 303);
    assert!(!bob.is_signed_in().await, "switched on again, one has to sign in");
    assert_eq!(bob.sign_in("bob", PASSWORD).await.status, 303);
}

/// Whatever a browser sends as its cookie, the answer is the sign-in page and never a fault.
#[tokio::test]
async fn invalid_session_cookie_leads_to_the_sign_in_page() {
    let (portal, ada) = TestApp::with_admin().await;
    let right = ada.cookie("portolan_session").unwrap();
    let mut tampered = right.clone().into_bytes();
    tampered[7] ^= 1;
    let values: Vec<Vec<u8>> = vec![
        tampered,
        right.as_bytes()[1..].to_vec(),
        format!("{right}A").into_bytes(),
        format!("{right}%00").into_bytes(),
        Vec::new(),
        vec![b'x'; 10_000],
        b"%00%01%0a%0d".to_vec(),
        b"\t\x80\xff\xfe".to_vec(),
        b"' OR 1=1 --".to_vec(),
        "ünïcode\u{202E}".as_bytes().to_vec(),
        b"\"".to_vec(),
        b"=;=;;=".to_vec(),
    ];
    let visitor = portal.visitor();
    for value in values {
        let cookie = [b"portolan_session=".as_slice(), &value].concat();
        for path in ["/", "/people", "/account"] {
            let request = visitor.request(Method::GET, path);
            let page = send(request.header("cookie", cookie.as_slice())).await;
            let words = String::from_utf8_lossy(&value[..value.len().min(40)]).into_owned();
            assert_eq!(page.status, 303, "{words}");
            assert!(page.location().starts_with("/sign-in"), "{words}");
        }
    }
    assert!(ada.is_signed_in().await);
}

/// Whoever reads the database, or a backup of it, can neither sign in nor go on with a session.
#[tokio::test]
async fn the_database_holds_no_cookie_and_no_password() {
    let (portal, ada) = TestApp::with_admin().await;
    let group = portal.group(&ada, "Findable Lab").await;
    let link = portal.invite(&ada, group, "member").await;
    let (key, codes) = crate::support::totp::turn_on(&portal, &ada).await;
    let browser = portal.visitor();
    browser.sign_in("ada", PASSWORD).await;
    let secrets = [
        ada.cookie("portolan_session").unwrap(),
        browser.cookie("portolan_waiting").unwrap(),
        link.trim_start_matches("/join/").to_owned(),
        PASSWORD.to_owned(),
        "$argon2".to_owned(),
        key.replace(' ', ""),
        codes[0].clone(),
        codes[0].replace('-', ""),
    ];
    let mut bytes = Vec::new();
    for ending in ["", "-wal"] {
        let path = format!("{}{ending}", portal.app.store.path().display());
        bytes.extend(std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}")));
    }
    let holds = |text: &str| bytes.windows(text.len()).any(|window| window == text.as_bytes());
    assert!(holds("Findable Lab"), "this is the right file");
    for secret in &secrets {
        assert!(!holds(secret), "{secret} is in the database");
    }
}

/// A browser that joins, resets or sets up anew leaves no session of before behind.
#[tokio::test]
async fn new_account_in_the_same_browser_ends_the_previous_session() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let before = bob.cookies();
    let lab = portal.group(&admin, "Smith Lab").await;
    let link = portal.invite(&admin, lab, "member").await;
    assert_eq!(bob.post(&link, &crate::support::app::new_person("eve")).await.status, 303);
    assert!(bob.get("/").await.text().contains("Hello eve"));
    let old = portal.visitor();
    let page = send(old.request(reqwest::Method::GET, "/").header("cookie", before)).await;
    assert_eq!(page.status, 303, "bob's session is over");
}
