//! Signing in: the right and the wrong, where one goes afterwards, the cookies, and how often one may try.

use portolan::config::PublicUrl;
use reqwest::Method;

use crate::support::app::new_person;
use crate::support::client::send;
use crate::support::{Client, PASSWORD, Page, TestApp};

const WRONG: &str = "not the right password";

#[tokio::test]
async fn name_and_password_open_the_portal() {
    let (portal, _admin) = TestApp::with_admin().await;
    let visitor = portal.visitor();
    let page = visitor.get("/groups?a=b").await;
    assert_eq!((page.status, page.location()), (303, "/sign-in?next=%2Fgroups%3Fa%3Db"));
    let page = visitor.get(page.location()).await;
    assert_eq!(page.attribute("input[name=next]", "value"), "/groups?a=b");

    let form = [("name", "ada"), ("password", PASSWORD), ("next", "/groups?a=b")];
    let page = visitor.post("/sign-in", &form).await;
    assert_eq!((page.status, page.location()), (303, "/groups?a=b"));
    assert!(visitor.is_signed_in().await);
    assert_eq!(visitor.get("/sign-in").await.location(), "/", "nothing to sign in to any more");
}

#[tokio::test]
async fn the_name_may_be_typed_in_any_case_but_not_the_password() {
    let (portal, _admin) = TestApp::with_admin().await;
    assert_eq!(portal.visitor().sign_in("  ADA ", PASSWORD).await.status, 303);
    assert_eq!(portal.visitor().sign_in("ada", &PASSWORD.to_uppercase()).await.status, 422);
    assert_eq!(portal.visitor().sign_in("ada", &format!("{PASSWORD} ")).await.status, 422);
}

/// Nobody can find out by trying whether an account exists or is switched off.
#[tokio::test]
async fn every_wrong_sign_in_gets_the_same_answer() {
    let (portal, admin, _member) = TestApp::with_member("bob").await;
    let bob = portal.person_id("bob").await;
    admin.post(&format!("/people/{bob}/disable"), &[]).await;
    let long = "x".repeat(10_000);
    let mut answers = Vec::new();
    for (name, password) in [
        ("nobody", WRONG),
        ("ada", WRONG),
        ("bob", WRONG),
        ("ada", ""),
        ("", PASSWORD),
        ("ada\u{0}", PASSWORD),
        ("ada' OR '1'='1", PASSWORD),
        (&long, PASSWORD),
        ("ada", &long),
    ] {
        let visitor = portal.visitor();
        let page = visitor.sign_in(name, password).await;
        assert_eq!(page.status, 422, "{name:.20} {password:.20}");
        assert_eq!(visitor.cookies(), "", "nothing is left in the browser");
        assert!(!visitor.is_signed_in().await);
        answers.push(page.select_text(".error-summary"));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "{answers:?}");
    assert!(answers[0].contains("Wrong user name or password."));
}

/// Only someone who knows the password learns that the account is disabled.
#[tokio::test]
async fn disabled_person_with_the_right_password_is_told() {
    let (portal, admin, _member) = TestApp::with_member("bob").await;
    let bob = portal.person_id("bob").await;
    admin.post(&format!("/people/{bob}/disable"), &[]).await;
    let visitor = portal.visitor();
    let page = visitor.sign_in("bob", PASSWORD).await;
    assert_eq!(page.status, 422);
    assert!(page.select_text(".error-summary").contains("This account is disabled."), "{}", page.text());
    assert_eq!(visitor.cookies(), "");
    assert!(!visitor.is_signed_in().await);
    let rows = admin.get("/activity?action=sign-in.disabled").await.select_all("tbody tr");
    assert_eq!(rows.len(), 1);
    assert!(rows[0].contains("Tried to sign in to a disabled account") && rows[0].contains("bob"), "{rows:?}");
}

#[tokio::test]
async fn sign_in_never_redirects_to_another_site() {
    let (portal, _admin) = TestApp::with_admin().await;
    let long = format!("/{}", "x".repeat(2000));
    let (visitor, admin) = (portal.visitor(), portal.visitor());
    for next in [
        "https://evil.org/",
        "//evil.org",
        "///evil.org",
        "/\\evil.org",
        "\\\\evil.org",
        "/\t/evil.org",
        "/\r\nlocation: https://evil.org",
        "\u{1}//evil.org",
        " //evil.org",
        "javascript:alert(1)",
        "%2f%2fevil.org",
        "@evil.org",
        ".evil.org",
        "/sign-in?next=//evil.org",
        &long,
    ] {
        let form = [("name", "ada"), ("password", PASSWORD), ("next", next)];
        let page = admin.post("/sign-in", &form).await;
        assert_eq!((page.status, page.location()), (303, "/"), "{next:?}");
        let page = send(visitor.request(Method::GET, "/sign-in").query(&[("next", next)])).await;
        assert_eq!(page.attribute("input[name=next]", "value"), "/", "{next:?}");
        let page = send(admin.request(Method::GET, "/sign-in").query(&[("next", next)])).await;
        assert_eq!(page.location(), "/", "{next:?}, signed in already");
    }
}

/// A session that somebody planted in the browser is not the one that is signed in.
#[tokio::test]
async fn each_sign_in_begins_a_new_session() {
    let (portal, admin) = TestApp::with_admin().await;
    let visitor = portal.visitor();
    visitor.set_cookie("portolan_session=chosen-by-an-attacker");
    assert_eq!(visitor.sign_in("ada", PASSWORD).await.status, 303);
    let first = visitor.cookie("portolan_session").unwrap();
    assert_ne!(first, "chosen-by-an-attacker");
    assert_eq!(first.len(), 43);

    assert_eq!(visitor.sign_in("ada", PASSWORD).await.status, 303);
    let second = visitor.cookie("portolan_session").unwrap();
    assert_ne!(first, second);
    let thief = portal.visitor();
    thief.set_cookie(&format!("portolan_session={first}"));
    assert!(!thief.is_signed_in().await, "the session before was ended");
    thief.set_cookie("portolan_session=chosen-by-an-attacker");
    assert!(!thief.is_signed_in().await, "the planted one was never one");
    assert!(visitor.is_signed_in().await);
    assert!(admin.is_signed_in().await, "other browsers are not touched");
}

#[tokio::test]
async fn a_wrong_password_does_not_sign_the_present_person_out() {
    let (portal, admin) = TestApp::with_admin().await;
    assert_eq!(admin.sign_in("ada", WRONG).await.status, 422);
    assert!(admin.is_signed_in().await);
    assert_eq!(portal.visitor().get("/sign-in").await.status, 200);
}

fn cookies_set(page: &Page) -> Vec<String> {
    let all = page.headers.get_all("set-cookie");
    all.iter().map(|value| value.to_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn cookies_are_out_of_reach_for_scripts_and_other_sites() {
    let (portal, _admin) = TestApp::with_admin().await;
    let cookies = cookies_set(&portal.visitor().sign_in("ada", PASSWORD).await);
    for name in ["portolan_session", "portolan_browser"] {
        let cookie = cookies.iter().find(|cookie| cookie.starts_with(&format!("{name}="))).unwrap();
        for flag in ["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age="] {
            assert!(cookie.contains(flag), "{cookie} has no {flag}");
        }
        assert!(!cookie.contains("Domain"), "{cookie}");
        assert!(!cookie.contains("Secure"), "over http it would never come back: {cookie}");
    }
}

#[tokio::test]
async fn over_tls_cookies_belong_to_this_host_alone() {
    let url = "https://portal.example.org";
    let portal = TestApp::start_with(|config| {
        config.portal.public_url = PublicUrl::try_from(url.to_owned()).unwrap();
    })
    .await;
    let token = portal.app.auth.create_setup_link().await.unwrap().unwrap();
    let request = portal.visitor().request(Method::POST, &format!("/setup/{}", token.as_str()));
    let request = request.header("host", "portal.example.org").header("origin", url);
    let page = send(request.form(&new_person("ada"))).await;
    assert_eq!(page.status, 303, "{}", page.text());
    assert_eq!(page.header("strict-transport-security"), "max-age=31536000");
    for cookie in cookies_set(&page) {
        assert!(cookie.starts_with("__Host-portolan_"), "{cookie}");
        for flag in ["Secure", "HttpOnly", "SameSite=Lax", "Path=/"] {
            assert!(cookie.contains(flag), "{cookie} has no {flag}");
        }
        assert!(!cookie.contains("Domain"), "{cookie}");
    }

    let cookies = cookies_set(&page);
    let session = cookies.iter().find(|cookie| cookie.contains("_session=")).unwrap();
    let pair = session.split(';').next().unwrap();
    let home = async |cookie: &str| {
        let request = portal.visitor().request(Method::GET, "/");
        send(request.header("host", "portal.example.org").header("cookie", cookie)).await.status
    };
    assert_eq!(home(pair).await, 200);
    let unprefixed = pair.trim_start_matches("__Host-");
    assert_eq!(home(unprefixed).await, 303, "a neighbour host could have set this one");
}

/// A portal behind a proxy, so that tries can come from many addresses.
async fn behind_a_proxy() -> TestApp {
    let portal = TestApp::start_with(|config| {
        config.proxy.trusted = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    portal.set_up("ada").await;
    portal
}

async fn try_from(browser: &Client, address: &str, name: &str, password: &str) -> Page {
    let request = browser.request(Method::POST, "/sign-in").header("x-forwarded-for", address);
    let url = request.try_clone().unwrap().build().unwrap().url().origin().ascii_serialization();
    send(request.header("origin", url).form(&[("name", name), ("password", password)])).await
}

#[tokio::test]
async fn eight_wrong_passwords_require_a_pause() {
    let (portal, _admin) = TestApp::with_admin().await;
    let visitor = portal.visitor();
    for _ in 0..8 {
        assert_eq!(visitor.sign_in("ada", WRONG).await.status, 422);
    }
    let page = visitor.sign_in("ada", PASSWORD).await;
    assert_eq!(page.status, 429, "even the right password has to wait");
    assert_eq!(page.header("retry-after"), "30");
    let words = page.select_text(".error-summary");
    assert!(words.contains("Too many attempts. Try again in 30 s."), "{words}");
    assert!(!visitor.is_signed_in().await);

    portal.clock.advance(29);
    assert_eq!(visitor.sign_in("ada", PASSWORD).await.status, 429);
    portal.clock.advance(1);
    assert_eq!(visitor.sign_in("ada", PASSWORD).await.status, 303);
}

#[tokio::test]
async fn one_address_cannot_try_many_names() {
    let portal = behind_a_proxy().await;
    let visitor = portal.visitor();
    for number in 0..30 {
        // Names that cannot exist cost no password hash, but they count.
        let page = try_from(&visitor, "198.51.100.7", &format!("{number}!"), WRONG).await;
        assert_eq!(page.status, 422);
    }
    assert_eq!(try_from(&visitor, "198.51.100.7", "ada", PASSWORD).await.status, 429);
    assert_eq!(try_from(&visitor, "198.51.100.8", "ada", PASSWORD).await.status, 303);
}

/// Rate limits must not become a way to lock someone out for good.
#[tokio::test]
async fn strangers_cannot_lock_the_owner_out() {
    let portal = behind_a_proxy().await;
    let owner = portal.visitor();
    assert_eq!(try_from(&owner, "192.0.2.1", "ada", PASSWORD).await.status, 303);
    let mark = owner.cookie("portolan_browser").unwrap();

    for stranger in 1..=5 {
        for _ in 0..8 {
            let address = format!("203.0.113.{stranger}");
            assert_eq!(try_from(&portal.visitor(), &address, "ada", WRONG).await.status, 422);
        }
    }
    let fresh = try_from(&portal.visitor(), "203.0.113.200", "ada", PASSWORD).await;
    assert_eq!(fresh.status, 429, "the account is full for browsers it does not know");
    assert_eq!(try_from(&owner, "192.0.2.1", "ada", PASSWORD).await.status, 303);
    assert_eq!(try_from(&owner, "203.0.113.1", "ada", PASSWORD).await.status, 303, "from anywhere");

    let forged = portal.visitor();
    let (id, signature) = mark.split_once('.').unwrap();
    for value in [format!("{id}.{}", "A".repeat(signature.len())), "x".into(), String::new()] {
        forged.set_cookie(&format!("portolan_browser={value}"));
        assert_eq!(try_from(&forged, "203.0.113.9", "ada", PASSWORD).await.status, 429, "{value}");
    }
    portal.clock.advance(60);
    let later = try_from(&portal.visitor(), "203.0.113.201", "ada", PASSWORD).await;
    assert_eq!(later.status, 303, "it empties by itself");
}

#[tokio::test]
async fn a_known_browser_cannot_guess_without_end_and_is_known_for_one_name_only() {
    let (portal, _admin, bob) = TestApp::with_member("bob").await;
    bob.post("/sign-out", &[]).await;
    for _ in 0..10 {
        assert_eq!(bob.sign_in("bob", WRONG).await.status, 422);
    }
    assert_eq!(bob.sign_in("bob", PASSWORD).await.status, 429);
    for _ in 0..8 {
        assert_eq!(bob.sign_in("ada", WRONG).await.status, 422);
    }
    assert_eq!(bob.sign_in("ada", WRONG).await.status, 429, "counted as a stranger to ada");
    portal.clock.advance(30);
    assert_eq!(bob.sign_in("bob", PASSWORD).await.status, 303);
}

#[tokio::test]
async fn successful_sign_ins_are_not_counted() {
    let (portal, _admin) = TestApp::with_admin().await;
    for _ in 0..12 {
        assert_eq!(portal.visitor().sign_in("ada", PASSWORD).await.status, 303);
    }
}

#[tokio::test]
async fn forwarded_addresses_are_accepted_from_trusted_proxies_only() {
    let (portal, _admin) = TestApp::with_admin().await;
    for number in 0..8 {
        let address = format!("198.51.100.{number}");
        assert_eq!(try_from(&portal.visitor(), &address, "ada", WRONG).await.status, 422);
    }
    let page = try_from(&portal.visitor(), "198.51.100.99", "ada", PASSWORD).await;
    assert_eq!(page.status, 429, "no proxy is trusted: all came from one address");
}

#[tokio::test]
async fn failed_tries_are_recorded_with_name_and_address() {
    let portal = behind_a_proxy().await;
    try_from(&portal.visitor(), "203.0.113.77", "ada", WRONG).await;
    let ada = portal.visitor();
    ada.sign_in("ada", PASSWORD).await;
    let page = ada.get("/activity?action=sign-in.failed").await;
    let rows = page.select_all("tbody tr");
    assert_eq!(rows.len(), 1);
    assert!(rows[0].contains("Failed to sign in") && rows[0].contains("203.0.113.77"), "{rows:?}");
    assert!(!page.text().contains(WRONG), "passwords are never recorded");
}

/// A password check takes a while; what is true when the session begins counts, not what was true before.
#[tokio::test]
async fn sign_in_under_way_fails_when_the_account_changes() {
    let (portal, admin, _) = TestApp::with_member("bob").await;
    let bob = portolan::domain::PersonId(portal.person_id("bob").await);
    // The sign-in finds the password right and then waits for the write lock, which is held here.
    let mut tx = portal.app.store.write().await.unwrap();
    let visitor = portal.visitor();
    let waiting = tokio::spawn({
        let visitor = visitor.clone();
        async move { visitor.sign_in("bob", PASSWORD).await.status }
    });
    for _ in 0..50 {
        admin.get("/").await;
    }
    portolan::store::people::set_password(&mut tx, bob, b"changed", portal.clock.now()).await.unwrap();
    portolan::store::commit(tx).await.unwrap();
    assert_ne!(waiting.await.unwrap(), 303);
    assert!(!visitor.is_signed_in().await);
}

/// Whoever once knew the old password has no use for the marks of those days.
#[tokio::test]
async fn known_browser_cookie_ends_with_the_password() {
    let (portal, _, bob) = TestApp::with_member("bob").await;
    let thief = portal.visitor();
    thief.sign_in("bob", PASSWORD).await;
    let new = "another calm morning";
    let form = [("current", PASSWORD), ("password", new), ("again", new)];
    assert_eq!(bob.post("/account/password", &form).await.status, 303);
    let mut refused = 0;
    for _ in 0..12 {
        refused += i32::from(thief.sign_in("bob", PASSWORD).await.status == 429);
    }
    assert_eq!(refused, 4, "eight tries as any stranger, then wait");
}
