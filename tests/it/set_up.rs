//! The set-up link: its first visitor becomes the administrator, and nobody after them.

use crate::support::app::new_person;
use crate::support::{PASSWORD, TestApp};

#[tokio::test]
async fn the_first_visitor_becomes_administrator() {
    let portal = TestApp::start().await;
    let token = portal.app.auth.create_setup_link().await.unwrap().unwrap();
    let path = format!("/setup/{}", token.as_str());
    let visitor = portal.visitor();
    assert_eq!(visitor.get(&path).await.select_text("h1"), "Set up this portal");

    let page = visitor.post(&path, &new_person("ada")).await;
    assert_eq!((page.status, page.location()), (303, "/"));
    let home = visitor.get("/").await;
    assert_eq!(home.select_text("h1"), "Hello ada");
    assert_eq!(home.select_text(".step.is-next .step-title"), "Create your group (next)");
    assert_eq!(visitor.get("/people").await.status, 200, "they administer the portal");

    assert_eq!(visitor.get(&path).await.status, 410, "the link is used up");
    assert!(portal.app.auth.create_setup_link().await.unwrap().is_none(), "and there is no other");
}

#[tokio::test]
async fn two_people_at_once_make_one_administrator() {
    let portal = TestApp::start().await;
    let token = portal.app.auth.create_setup_link().await.unwrap().unwrap();
    let path = format!("/setup/{}", token.as_str());
    let (first, second) = (portal.visitor(), portal.visitor());
    let (form_a, form_b) = (new_person("ada"), new_person("eve"));
    let (a, b) = tokio::join!(first.post(&path, &form_a), second.post(&path, &form_b));
    let mut statuses = [a.status, b.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [303, 410], "one is in, the other is told that the link was used");
    let mut db = portal.app.store.read().await.unwrap();
    assert_eq!(portolan::store::people::count(&mut db).await.unwrap(), 1);
}

#[tokio::test]
async fn old_forged_and_replaced_links_do_not_work() {
    let portal = TestApp::start().await;
    let first = portal.app.auth.create_setup_link().await.unwrap().unwrap();
    let second = portal.app.auth.create_setup_link().await.unwrap().unwrap();
    let visitor = portal.visitor();
    let open = async |token: &str| visitor.get(&format!("/setup/{token}")).await;
    assert_eq!(open(first.as_str()).await.select_text("h1"), "This link was revoked");
    assert_eq!(open("made-up").await.select_text("h1"), "Invalid link");
    assert_eq!(open(second.as_str()).await.status, 200);
    portal.clock.advance(24 * 3600);
    let page = visitor.post(&format!("/setup/{}", second.as_str()), &new_person("ada")).await;
    assert_eq!((page.status, page.select_text("h1").as_str()), (410, "This link has expired"));
}

#[tokio::test]
async fn wrong_fields_are_named_and_change_nothing() {
    let portal = TestApp::start().await;
    let token = portal.app.auth.create_setup_link().await.unwrap().unwrap();
    let path = format!("/setup/{}", token.as_str());
    let visitor = portal.visitor();
    let long = "x".repeat(10_000);
    let cases: &[(&str, &str, &str, &str, &str)] = &[
        ("", "ada", PASSWORD, PASSWORD, "Enter a name."),
        ("Ada", "", PASSWORD, PASSWORD, "Choose a user name."),
        ("Ada", "ada", "short", "short", "Use at least 10 characters."),
        ("Ada", "ada", "password123", "password123", "too common and easy to guess"),
        ("Ada", "ada", PASSWORD, "another one entirely", "The two passwords don't match."),
        ("Ada", "ada-lovelace", "ada-lovelace rules", "ada-lovelace rules", "contain your user name"),
        (&long, "ada", PASSWORD, PASSWORD, "Use at most 80 characters."),
        ("Ada", &long, PASSWORD, PASSWORD, "Use at most 32 characters."),
        ("Ada", "ada", &long, &long, "Use at most 1,000 characters."),
        ("A\u{0}da", "ada", PASSWORD, PASSWORD, "invisible control characters"),
        ("A\u{202E}da", "ada", PASSWORD, PASSWORD, "invisible control characters"),
        ("Ada", "a\nb", PASSWORD, PASSWORD, "Start with a letter"),
    ];
    for (display_name, name, password, again, expected) in cases {
        let form = [("display_name", *display_name), ("name", *name), ("password", *password), ("again", *again)];
        let page = visitor.post(&path, &form).await;
        assert_eq!(page.status, 422, "{expected}");
        let summary = page.select_text(".error-summary");
        assert!(summary.contains(expected), "{summary} does not say {expected}");
        assert!(!page.text().contains(PASSWORD), "a password is never shown again");
    }
    assert_eq!(visitor.get(&path).await.status, 200, "the link still works");
}
