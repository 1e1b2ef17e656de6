//! Every page, wide and on a phone, light and dark: contrast, labels, names, sizes, no sideways scrolling.

use crate::support::app::new_person;
use crate::support::browser::Browser;
use crate::support::{PASSWORD, TestApp};

const AUDIT: &str = include_str!("support/audit.js");

/// Names that break careless layouts.
const LONG: &str = "Wolfeschlegelsteinhausenbergerdorffwelchevoralternwarengewissenhaftschaferswessens";

/// Looks at the page that is open, light and dark.
pub async fn audit(browser: &Browser, place: &str) {
    for theme in ["light", "dark"] {
        browser.prefer(theme).await;
        let problems = browser.run(AUDIT).await;
        let problems: Vec<&str> = problems.as_array().unwrap().iter().filter_map(|p| p.as_str()).collect();
        assert!(problems.is_empty(), "{place} ({theme}): {problems:#?}");
    }
}

async fn audit_all(width: u32) {
    let (portal, admin, _) = TestApp::with_member("bob").await;
    portal.group(&admin, &LONG[..80]).await;
    let link = portal.invite(&admin, 1, "member").await;
    let browser = Browser::open(&portal.url, width).await;

    browser.go("/sign-in").await;
    audit(&browser, "/sign-in").await;
    browser.fill("name", "ada").await;
    browser.fill("password", "wrong wrong wrong").await;
    browser.press("Sign in").await;
    browser.wait_for_text("There is a problem").await;
    audit(&browser, "/sign-in with a problem").await;
    browser.go(&link).await;
    audit(&browser, "/join").await;
    let wrong = new_person("bob");
    browser.fill("display_name", wrong[0].1).await;
    browser.press("Create account").await;
    browser.wait_for_text("There is a problem").await;
    audit(&browser, "/join with problems").await;

    browser.go("/sign-in").await;
    browser.fill("name", "ada").await;
    browser.fill("password", PASSWORD).await;
    browser.press("Sign in").await;
    browser.wait_for_text("Hello ada").await;
    for path in [
        "/",
        "/groups",
        "/groups/1/members",
        "/groups/2/members",
        "/people",
        "/people/2",
        "/people/2/delete",
        "/activity",
        "/activity?text=nothing-like-it",
        "/account",
        "/account/second-factor",
        "/account/devices",
        "/account/activity",
        "/help",
        "/no-such-page",
        "/styleguide",
    ] {
        browser.go(path).await;
        audit(&browser, path).await;
    }
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_usable_on_a_desk() {
    audit_all(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_usable_on_a_phone() {
    audit_all(390).await;
}
