//! How far a PI's most frequent questions are from signing in, and what the page looks like on paper.

use fantoccini::wd::{PrintConfigurationBuilder, PrintSize};

use super::{World, world};
use crate::support::PASSWORD;
use crate::support::browser::{Browser, CountedClicks};

/// The hours of max in October, as `World::fill` writes them: 31 October is 16 days back.
fn october_hours() -> i64 {
    (16..=46).map(|back| 3 + back % 7).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn pi_reaches_last_months_gpu_hours_of_a_member_in_four_clicks() {
    let world: World = world().await;
    world.fill().await;
    let mut pi = CountedClicks::new(Browser::open(&world.portal.url, 1280).await);
    pi.browser.go("/sign-in").await;
    pi.browser.fill("name", "pia").await;
    pi.browser.fill("password", PASSWORD).await;
    pi.press("Sign in").await;
    pi.browser.wait_for_text("Hello pia").await;
    pi.press("Smith Lab").await;
    pi.browser.wait_for_text("Usage in the last 30 days").await;
    assert_eq!(pi.browser.path().await, world.url("usage"), "a PI opens the group's usage");
    pi.press("Last month").await;
    pi.browser.wait_for_text("Usage in October 2026").await;
    let row = "return [...document.querySelectorAll('[aria-labelledby=members-title] tr')] \
        .find((row) => row.innerText.trim().startsWith('max')).innerText";
    let row = pi.browser.run(row).await;
    let hours = october_hours();
    assert!(row.as_str().unwrap().contains(&hours.to_string()), "{hours} GPU hours in {row}");
    pi.press("max").await;
    pi.browser.wait_for_text("max's jobs").await;
    assert!(pi.browser.text().await.contains(&format!("{hours} GPU hours")), "{}", pi.browser.text().await);
    assert!(pi.clicks <= 4, "{} clicks", pi.clicks);
    pi.browser.close().await;
}

/// How many pages a PDF has. Chromium writes the objects of pages as plain text.
fn count_pages(pdf: &[u8]) -> usize {
    let text = String::from_utf8_lossy(pdf);
    text.match_indices("/Type /Page").filter(|(at, found)| !text[at + found.len()..].starts_with('s')).count()
}

#[tokio::test(flavor = "multi_thread")]
async fn group_pages_print_on_at_most_four_sheets() {
    let world: World = world().await;
    world.fill().await;
    let browser = Browser::open(&world.portal.url, 1280).await;
    browser.sign_in("pia").await;
    for (path, words) in [
        ("usage?period=2026-10", "Usage over time"),
        ("usage?period=year", "Usage over time"),
        ("members", "New invitation"),
        ("priority", "Your priority"),
        ("usage/fair-share", "Fair share, queue and storage"),
    ] {
        browser.go(&world.url(path)).await;
        browser.wait_for_text(words).await;
        let paper = PrintConfigurationBuilder::default().size(PrintSize::A4).build().unwrap();
        let pages = count_pages(&browser.window.print(paper).await.unwrap());
        assert!((1..=4).contains(&pages), "{path} takes {pages} sheets");
    }
    browser.close().await;
}
