//! Text that others type: shown as text, or refused in words.

use reqwest::Method;
use scraper::{Html, Selector};

use super::{World, refuse_inline, world};
use crate::support::TestApp;
use crate::support::app::new_person;
use crate::support::client::send;

/// Text that does something where names are pasted into pages, tables, templates or queries (lessons 1, 3, 19).
const HOSTILE: &[&str] = &[
    "<script>alert(1)</script>",
    "\"><img src=x onerror=alert(1)>",
    "' autofocus onfocus='alert(1)",
    "</title></textarea><svg onload=alert(1)>",
    "<!-- <b id=evil>",
    "javascript:alert(1)",
    "{{ 7*7 }} {% raw %} ${7*7} <%= 7 %>",
    "&lt;b&gt; &amp; &#x3c;",
    "a|b|c",
    "'; DROP TABLE people; --",
    "%s%n \\x3cscript\\x3e $(id) `id`",
];

#[tokio::test]
async fn hostile_text_is_shown_as_text() {
    let world = world().await;
    let World { portal, admin, lab, .. } = &world;
    let rename = format!("/groups/{lab}/name");
    for (number, text) in HOSTILE.iter().enumerate() {
        assert_eq!(admin.post("/account/name", &[("display_name", text)]).await.status, 303);
        assert_eq!(admin.post(&rename, &[("name", text)]).await.status, 303, "{text}");
        let form = [("label", *text), ("role", "member"), ("days", "7")];
        assert_eq!(admin.post(&format!("/groups/{lab}/invitations"), &form).await.status, 303);

        let account = admin.get("/account").await;
        assert_eq!(account.attribute("input[name=display_name]", "value"), *text);
        let page = admin.get(&format!("/groups/{lab}/members")).await;
        assert_eq!(page.select_text("h1"), *text);
        assert_eq!(page.select_text("[aria-labelledby=invitations-title] .cell-title"), *text);
        let search = admin.request(Method::GET, "/activity").query(&[("text", text)]);
        let found = send(search).await;
        assert_eq!(found.attribute("input[name=text]", "value"), *text);
        assert!(!found.select_all("tbody tr").is_empty(), "{text} is found in the log");
        let typed = portal.visitor().sign_in(text, "wrong").await;
        assert_eq!(typed.attribute("input[name=name]", "value"), *text);
        for (name, page) in [("account", account), ("group", page), ("search", found), ("typed", typed)] {
            refuse_inline(&format!("{text} on {name}"), &page);
            let html = Html::parse_document(page.text());
            assert!(html.select(&Selector::parse("#evil, img").unwrap()).next().is_none());
        }
        portal.clock.advance(30);
        if number > 2 {
            continue;
        }
        for path in ["/", "/people", "/people/1", "/groups", "/activity", "/account/activity"] {
            refuse_inline(&format!("{text} on {path}"), &admin.get(path).await);
        }
        refuse_inline(text, &portal.visitor().get(&world.link).await);
    }
    assert_eq!(admin.get("/people").await.select_all("tbody tr").len(), 2, "the table is there");
}

#[tokio::test]
async fn tricky_text_is_refused_in_every_field() {
    let world = world().await;
    let World { portal, admin, link, lab } = &world;
    let long = "x".repeat(10_000);
    let before = portal.snapshot().await;
    for text in [
        "a\nb",
        "a\r\nSet-Cookie: x=y",
        "a\u{0}b",
        "a\u{1b}[31m",
        "a\u{202E}b",
        "a\u{2066}b",
        "\u{200B}",
        "a\u{FEFF}b",
        "a\u{2028}b",
        "a\u{85}b",
        &long,
    ] {
        let invitation = [("label", text), ("role", "member"), ("days", "7")];
        let mut person = new_person("eve");
        person[0].1 = text;
        for (path, form) in [
            ("/account/name".to_owned(), [("display_name", text)].as_slice()),
            ("/groups".into(), &[("name", text)]),
            (format!("/groups/{lab}/name"), &[("name", text)]),
            (format!("/groups/{lab}/invitations"), &invitation),
            (link.clone(), &person),
        ] {
            let page = admin.post(&path, form).await;
            assert_eq!(page.status, 422, "{path}: {text:.10?}");
            assert!(!page.select_text(".error-summary").is_empty());
            assert_eq!(page.header("set-cookie"), "", "{path}: {text:.10?}");
        }
    }
    assert_eq!(portal.snapshot().await, before);
}

/// Lesson 11: messages between pages are chosen from a list; nobody can put words there.
#[tokio::test]
async fn flash_messages_come_from_a_fixed_list() {
    let (portal, _admin) = TestApp::with_admin().await;
    let visitor = portal.visitor();
    for (cookie, shown) in [("signed-out", 1), ("Your-account-is-locked", 0), ("%3Cb%3Ex", 0)] {
        visitor.set_cookie(&format!("portolan_flash={cookie}"));
        assert_eq!(visitor.get("/sign-in").await.select_all(".alert").len(), shown, "{cookie}");
    }
    // A text that the portal didn't seal isn't shown.
    visitor.set_cookie("portolan_flash=signed-out.WW91ciBhY2NvdW50IGlzIGxvY2tlZA");
    assert_eq!(visitor.get("/sign-in").await.select_text(".alert").trim(), "You're signed out.");
}
