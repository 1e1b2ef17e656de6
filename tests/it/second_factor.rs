//! The second factor: turning it on and off, signing in with codes, and what a code is not good for.

use crate::support::client::send;
use crate::support::totp::{code, turn_on};
use crate::support::{Client, PASSWORD, Page, TestApp};

const OFF: &str = "/account/second-factor/off";

/// Signs in up to the code.
async fn half_way(portal: &TestApp, name: &str) -> Client {
    let browser = portal.visitor();
    let page = browser.sign_in(name, PASSWORD).await;
    assert_eq!((page.status, page.location()), (303, "/sign-in/code"));
    browser
}

async fn give(browser: &Client, code: &str) -> Page {
    browser.post("/sign-in/code", &[("code", code), ("next", "/account")]).await
}

/// A code for a moment some steps of 30 seconds away from now.
fn code_at(portal: &TestApp, key: &str, steps: i64) -> String {
    code(key, portal.clock.now().0 + 30 * steps)
}

/// A code that is certainly wrong now.
fn wrong_code(portal: &TestApp, key: &str) -> String {
    let right: Vec<String> = (-1..=1).map(|step| code_at(portal, key, step)).collect();
    (0..4).map(|n| format!("{n:06}")).find(|code| !right.contains(code)).unwrap()
}

#[tokio::test]
async fn second_factor_is_turned_on_with_a_code_and_the_password() {
    let (portal, ada) = TestApp::with_admin().await;
    let page = ada.get("/account/second-factor").await;
    assert!(page.attribute(".qr svg path", "d").len() > 1000, "the picture for the app");
    let key = page.select_text(".code code");
    assert_eq!(key.replace(' ', "").len(), 32, "20 bytes in base 32");

    let sealed = page.attribute("input[name=sealed]", "value");
    let (right, wrong) = (code_at(&portal, &key, 0), wrong_code(&portal, &key));
    for (code, password, problem) in [
        (wrong.as_str(), PASSWORD, "Wrong code."),
        ("", PASSWORD, "Wrong code."),
        ("<b>12345", PASSWORD, "Wrong code."),
        (&right, "not the right password", "Wrong password."),
    ] {
        let form = [("sealed", sealed.as_str()), ("code", code), ("password", password)];
        let page = ada.post("/account/second-factor", &form).await;
        assert_eq!(page.status, 422, "{problem}");
        assert!(page.select_text(".error-summary").contains(problem));
        assert_eq!(page.select_text(".code code"), key, "the same key: the app has scanned it");
    }
    assert_eq!(portal.visitor().sign_in("ada", PASSWORD).await.location(), "/", "it is still off");

    let form = [("sealed", sealed.as_str()), ("code", &right), ("password", PASSWORD)];
    let page = ada.post("/account/second-factor", &form).await;
    assert_eq!(page.select_text("h1"), "Your recovery codes");
    assert_eq!(page.select_text(".code code").lines().count(), 10);
    let page = ada.get("/account/second-factor").await;
    assert!(page.text().contains("10 of 10 codes left"));
    assert!(page.select_all(".code code").is_empty(), "the codes were shown once");
    let again = ada.post("/account/second-factor", &form).await;
    assert_eq!((again.status, again.location()), (303, "/account/second-factor"));
}

/// The key travels through the form; nobody else's, and nothing made up, is accepted there.
#[tokio::test]
async fn second_factor_secret_of_someone_else_is_refused() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let page = ada.get("/account/second-factor").await;
    let sealed = page.attribute("input[name=sealed]", "value");
    let code = code_at(&portal, &page.select_text(".code code"), 0);
    let flipped = format!("{}A", &sealed[..sealed.len() - 1]);
    let long = "A".repeat(10_000);
    for sealed in [sealed.as_str(), &flipped, "", "%%%", "AAAA", &long] {
        let form = [("sealed", sealed), ("code", code.as_str()), ("password", PASSWORD)];
        let page = bob.post("/account/second-factor", &form).await;
        assert_eq!(page.status, 400, "{sealed:.20}");
    }
    assert_eq!(portal.visitor().sign_in("bob", PASSWORD).await.location(), "/");
}

#[tokio::test]
async fn password_alone_does_not_sign_in_with_a_second_factor() {
    let (portal, ada) = TestApp::with_admin().await;
    let (key, _) = turn_on(&portal, &ada).await;
    portal.clock.advance(30);
    let browser = half_way(&portal, "ada").await;
    let waiting = browser.cookie("portolan_waiting").unwrap();
    assert_eq!(browser.cookie("portolan_session"), None);
    for path in ["/", "/account", "/people", "/activity.csv"] {
        assert_eq!(browser.get(path).await.status, 303, "{path}");
    }
    assert_eq!(browser.get("/events").await.status, 401);
    let disguised = portal.visitor();
    disguised.set_cookie(&format!("portolan_session={waiting}"));
    assert!(!disguised.is_signed_in().await, "a half-finished sign-in is not a session");

    assert_eq!(browser.get("/sign-in/code").await.status, 200);
    let wrong = give(&browser, &wrong_code(&portal, &key)).await;
    assert_eq!(wrong.status, 422);
    assert!(wrong.select_text(".error-summary").contains("Wrong code."));
    let spaced = code_at(&portal, &key, 0);
    let page = give(&browser, &format!(" {} {} ", &spaced[..3], &spaced[3..])).await;
    assert_eq!((page.status, page.location()), (303, "/account"));
    assert!(browser.is_signed_in().await);
    assert_eq!(browser.cookie("portolan_waiting").unwrap_or_default(), "");
    let page = give(&disguised, &spaced).await;
    assert_eq!(page.location(), "/sign-in", "without a password before, a code is nothing");
}

#[tokio::test]
async fn a_code_works_once_and_only_around_its_time() {
    let (portal, ada) = TestApp::with_admin().await;
    let (key, _) = turn_on(&portal, &ada).await;
    let page = give(&half_way(&portal, "ada").await, &code_at(&portal, &key, 0)).await;
    assert!(page.select_text(".error-summary").contains("This code was already used."));

    portal.clock.advance(300);
    let browser = half_way(&portal, "ada").await;
    for steps in [-3, -2, 2, 3] {
        assert_eq!(give(&browser, &code_at(&portal, &key, steps)).await.status, 422, "{steps}");
    }
    assert_eq!(give(&browser, &code_at(&portal, &key, -1)).await.status, 303, "a slow phone");
    let browser = half_way(&portal, "ada").await;
    assert_eq!(give(&browser, &code_at(&portal, &key, -1)).await.status, 422, "used");
    assert_eq!(give(&browser, &code_at(&portal, &key, 1)).await.status, 303, "a fast phone");
    let browser = half_way(&portal, "ada").await;
    assert_eq!(give(&browser, &code_at(&portal, &key, 0)).await.status, 422, "older than the last");
}

/// Two browsers with the same code at the same moment: one of them is late.
#[tokio::test]
async fn one_code_used_twice_at_once_signs_in_one_browser() {
    let (portal, ada) = TestApp::with_admin().await;
    let (key, _) = turn_on(&portal, &ada).await;
    portal.clock.advance(30);
    let (one, two) = (half_way(&portal, "ada").await, half_way(&portal, "ada").await);
    let code = code_at(&portal, &key, 0);
    let (a, b) = tokio::join!(give(&one, &code), give(&two, &code));
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 422]);
}

#[tokio::test]
async fn five_wrong_codes_restart_the_sign_in() {
    let (portal, ada) = TestApp::with_admin().await;
    let (key, _) = turn_on(&portal, &ada).await;
    portal.clock.advance(30);
    let browser = half_way(&portal, "ada").await;
    let wrong = wrong_code(&portal, &key);
    for _ in 0..4 {
        assert_eq!(give(&browser, &wrong).await.status, 422);
    }
    let page = give(&browser, &wrong).await;
    assert_eq!((page.status, page.location()), (303, "/sign-in"));
    let words = browser.get("/sign-in").await.select_text(".alert");
    assert!(words.contains("Start again with your password"), "{words}");
    assert_eq!(give(&browser, &code_at(&portal, &key, 0)).await.location(), "/sign-in");
    assert!(!browser.is_signed_in().await);
    let rows = ada.get("/activity?action=sign-in.code-failed").await.select_all("tbody tr");
    assert_eq!(rows.len(), 5, "each is recorded");
}

/// Beginning again, or coming from elsewhere, does not make more guesses possible.
#[tokio::test]
async fn wrong_codes_are_limited_over_many_sign_ins_and_addresses() {
    let portal = TestApp::start_with(|config| {
        config.proxy.trusted = vec!["127.0.0.0/8".parse().unwrap()];
    })
    .await;
    let ada = portal.set_up("ada").await;
    let (key, codes) = turn_on(&portal, &ada).await;
    portal.clock.advance(60);
    let wrong = wrong_code(&portal, &key);
    let mut statuses = Vec::new();
    for address in ["203.0.113.1", "203.0.113.2", "203.0.113.3"] {
        let thief = half_way(&portal, "ada").await;
        for _ in 0..4 {
            let request = thief.request(reqwest::Method::POST, "/sign-in/code");
            let request = request.header("origin", &portal.url).header("x-forwarded-for", address);
            statuses.push(send(request.form(&[("code", &wrong)])).await.status);
        }
    }
    assert_eq!(statuses[..10], [422; 10]);
    assert_eq!(statuses[10..], [429; 2], "ten guesses, then waiting");
    let page = give(&half_way(&portal, "ada").await, &codes[0]).await;
    assert_eq!(page.status, 429, "for every browser that is new to the account");
    assert!(page.select_text(".error-summary").contains("Too many attempts."));

    assert_eq!(ada.sign_in("ada", PASSWORD).await.location(), "/sign-in/code");
    let page = give(&ada, &code_at(&portal, &key, 0)).await;
    assert_eq!(page.location(), "/account", "but the owner's own browser gets in");
    portal.clock.advance(120);
    assert_eq!(give(&half_way(&portal, "ada").await, &codes[0]).await.location(), "/account");
}

/// Strangers who do not know the password cannot keep the owner from giving the code.
#[tokio::test]
async fn wrong_passwords_do_not_block_the_code() {
    let (portal, ada) = TestApp::with_admin().await;
    let (key, _) = turn_on(&portal, &ada).await;
    portal.clock.advance(30);
    let owner = half_way(&portal, "ada").await;
    for _ in 0..8 {
        assert_eq!(portal.visitor().sign_in("ada", "wrong").await.status, 422);
    }
    assert_eq!(portal.visitor().sign_in("ada", "wrong").await.status, 429);
    assert_eq!(give(&owner, &code_at(&portal, &key, 0)).await.location(), "/account");
}

#[tokio::test]
async fn the_code_must_follow_within_ten_minutes() {
    let (portal, ada) = TestApp::with_admin().await;
    let (key, _) = turn_on(&portal, &ada).await;
    portal.clock.advance(60);
    let (quick, slow) = (half_way(&portal, "ada").await, half_way(&portal, "ada").await);
    portal.clock.advance(599);
    assert_eq!(give(&quick, &code_at(&portal, &key, 0)).await.location(), "/account");
    portal.clock.advance(1);
    assert_eq!(slow.get("/sign-in/code").await.location(), "/sign-in");
    assert_eq!(give(&slow, &code_at(&portal, &key, 1)).await.location(), "/sign-in");
    assert!(!slow.is_signed_in().await);
}

#[tokio::test]
async fn a_recovery_code_works_once_however_it_is_typed() {
    let (portal, ada) = TestApp::with_admin().await;
    let (_, codes) = turn_on(&portal, &ada).await;
    let typed = format!("  {} ", codes[3].to_uppercase().replace('-', " "));
    let browser = half_way(&portal, "ada").await;
    assert_eq!(give(&browser, &typed).await.location(), "/account");
    let other = half_way(&portal, "ada").await;
    for used in [typed.as_str(), &codes[3], "", "aaaaa-aaaaa"] {
        assert_eq!(give(&other, used).await.status, 422, "{used}");
    }
    assert!(browser.get("/account/second-factor").await.text().contains("9 of 10 codes left"));
    let rows = browser.get("/account/activity").await.select_all("tbody tr");
    let row = rows.iter().find(|row| row.contains("Used a recovery code")).unwrap();
    assert!(row.contains("127.0.0.1"), "its owner is told from where: {row}");
}

#[tokio::test]
async fn recovery_codes_belong_to_one_person() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let (_, of_ada) = turn_on(&portal, &ada).await;
    turn_on(&portal, &bob).await;
    assert_eq!(give(&half_way(&portal, "bob").await, &of_ada[0]).await.status, 422);
    assert_eq!(give(&half_way(&portal, "ada").await, &of_ada[0]).await.status, 303);
}

#[tokio::test]
async fn new_recovery_codes_end_the_old_ones() {
    let (portal, ada) = TestApp::with_admin().await;
    let (_, old) = turn_on(&portal, &ada).await;
    let path = "/account/second-factor/codes";
    let page = ada.post(path, &[("password", "not the right password")]).await;
    assert_eq!(page.status, 422);
    let page = ada.post(path, &[("password", PASSWORD)]).await;
    let new = page.select_text(".code code");
    let browser = half_way(&portal, "ada").await;
    assert_eq!(give(&browser, &old[0]).await.status, 422);
    assert_eq!(give(&browser, new.lines().next().unwrap()).await.status, 303);
}

#[tokio::test]
async fn turning_the_second_factor_off_needs_the_password() {
    let (portal, ada) = TestApp::with_admin().await;
    let (_, codes) = turn_on(&portal, &ada).await;
    for _ in 0..10 {
        let page = ada.post(OFF, &[("password", "not the right password")]).await;
        assert_eq!(page.status, 422);
        assert!(page.select_text(".error-summary").contains("Wrong password."));
    }
    let page = ada.post(OFF, &[("password", PASSWORD)]).await;
    assert!(page.select_text(".error-summary").contains("Too many attempts."), "a stolen browser");
    half_way(&portal, "ada").await;
    portal.clock.advance(30);
    assert_eq!(ada.post(OFF, &[("password", PASSWORD)]).await.status, 303);
    assert_eq!(portal.visitor().sign_in("ada", PASSWORD).await.location(), "/");

    turn_on(&portal, &ada).await;
    let browser = half_way(&portal, "ada").await;
    assert_eq!(give(&browser, &codes[0]).await.status, 422, "codes of the time before");
}

/// A clock that was set back must be noticed: a code that somebody saw would be good again.
#[tokio::test]
async fn used_codes_stay_used_when_the_clock_goes_back() {
    let (portal, ada) = TestApp::with_admin().await;
    let (key, codes) = turn_on(&portal, &ada).await;
    portal.clock.advance(30);
    assert_eq!(give(&half_way(&portal, "ada").await, &code_at(&portal, &key, 0)).await.status, 303);
    portal.clock.advance(-3600);
    let browser = half_way(&portal, "ada").await;
    let page = give(&browser, &code_at(&portal, &key, 0)).await;
    assert_eq!(page.status, 422);
    let words = page.select_text(".error-summary");
    assert!(words.contains("clock"), "{words}");
    assert_eq!(give(&browser, &codes[0]).await.location(), "/account");
}

#[tokio::test]
async fn an_administrator_helps_with_a_lost_phone() {
    let (portal, ada, bob) = TestApp::with_member("bob").await;
    let (_, codes) = turn_on(&portal, &bob).await;
    let bob_id = portal.person_id("bob").await;
    let path = format!("/people/{bob_id}/second-factor-off");
    assert_eq!(bob.post(&path, &[]).await.status, 403);
    let waiting = half_way(&portal, "bob").await;
    assert_eq!(ada.post(&path, &[]).await.status, 303);
    assert_ne!(give(&waiting, &codes[0]).await.location(), "/account", "its codes are gone");
    assert_eq!(portal.visitor().sign_in("bob", PASSWORD).await.location(), "/");
    let page = bob.get("/account/activity").await;
    assert!(page.text().contains("Turned off someone&#39;s second factor"), "bob is told");
}
