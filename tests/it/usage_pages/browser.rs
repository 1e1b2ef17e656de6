//! The pages of use in a real browser, wide and on a phone.

use portolan::usage::UsageJobOutcome;

use super::{TODAY, World, world};
use crate::accessibility::audit;
use crate::support::browser::Browser;

/// Looks at the page that is open. A phone makes a page that is too wide smaller, so its width tells.
async fn look(browser: &Browser, place: &str) {
    let too_wide = "return innerWidth - Math.max(screen.width, outerWidth)";
    let too_wide = browser.run(too_wide).await.as_i64().unwrap();
    assert!(too_wide <= 0, "{place} is wider than the screen by {too_wide}");
    audit(browser, place).await;
}

async fn audit_all(width: u32) {
    let world: World = world().await;
    let browser = Browser::open(&world.portal.url, width).await;
    browser.sign_in("pia").await;
    browser.go(&world.url("usage")).await;
    browser.wait_for_text("No accounts selected yet").await;
    look(&browser, "without accounts").await;
    world.fill().await;
    browser.go(&world.url("usage?period=90d&by=day")).await;
    browser.wait_for_text("Usage over time").await;
    browser.run("for (const one of document.querySelectorAll('main details')) one.open = true").await;
    keep(&browser, &format!("use-pi-{width}")).await;
    look(&browser, "the page of a PI").await;
    browser.go(&world.url("usage")).await;
    browser.wait_for_text("Usage over time").await;
    browser.prefer("dark").await;
    keep(&browser, &format!("use-pi-dark-{width}")).await;
    look(&browser, "the page in the dark").await;
    choose_days(&browser).await;
    keep(&browser, &format!("use-days-{width}")).await;
    look(&browser, "days of one's own choice").await;
    let max = world.portal.person_id("max").await;
    browser.go(&world.url(&format!("usage/jobs?member=p{max}"))).await;
    browser.wait_for_text("max's jobs").await;
    keep(&browser, &format!("use-jobs-{width}")).await;
    look(&browser, "jobs").await;
    browser.go(&world.url("accounts")).await;
    browser.press("New allocation").await;
    browser.press("Add allocation").await;
    browser.wait_for_text("There is a problem").await;
    keep(&browser, &format!("use-accounts-{width}")).await;
    look(&browser, "an allocation without an amount").await;
    browser.fill("amount", "5000").await;
    browser.press("Add allocation").await;
    browser.wait_for_text("Allocation added").await;
    look(&browser, "an allocation").await;
    browser.press("Edit the allocation of 5,000 core hours to def-one").await;
    browser.wait_for_text("Edit allocation").await;
    keep(&browser, &format!("use-change-{width}")).await;
    look(&browser, "an allocation to be changed").await;
    browser.fill("amount", "6000").await;
    browser.press("Save allocation").await;
    browser.wait_for_text("Allocation saved").await;
    assert!(browser.text().await.contains("6,000 core hours"));
    browser.close().await;
}

/// The fields for days come once they are wanted, and the page then shows just these.
async fn choose_days(browser: &Browser) {
    let is_seen = "return document.querySelector('#f-first').checkVisibility()";
    assert_eq!(browser.run(is_seen).await, false, "not before they are wanted");
    browser.run("document.querySelector('#f-period').value = 'days'").await;
    assert_eq!(browser.run(is_seen).await, true);
    for (field, day) in [("first", "2026-10-05"), ("last", "2026-10-11")] {
        browser.run(&format!("document.querySelector('#f-{field}').value = '{day}'")).await;
    }
    browser.press("Apply filters").await;
    browser.wait_for_text("Usage in the selected period").await;
    browser.wait_for_text("5 Oct 2026 to 11 Oct 2026").await;
    assert_eq!(browser.run(is_seen).await, true, "they can be changed");
}

/// Nothing of a job is out of sight on a phone, however long its names are.
#[tokio::test(flavor = "multi_thread")]
async fn jobs_fit_on_a_phone() {
    let world: World = world().await;
    world.choose(&["key/def-one"]).await;
    let (user, kind) = ("u".repeat(40), "k".repeat(48));
    world
        .put_day(TODAY, &[(&user, &kind, 20, UsageJobOutcome::Failed), ("max", "fit", 1, UsageJobOutcome::Done)])
        .await;
    let browser = Browser::open(&world.portal.url, 390).await;
    browser.sign_in("pia").await;
    browser.go(&world.url("usage/jobs")).await;
    browser.wait_for_text(&user).await;
    let hidden = "return [...document.querySelectorAll('html, .table-wrap, .use-jobs td')]
        .filter((one) => one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent.slice(0, 80))";
    assert_eq!(browser.run(hidden).await, serde_json::json!([]));
    // Figures stand side by side, each below what it is called.
    let beside = "const cells = document.querySelectorAll('.use-jobs tbody tr:first-child td.num');
        return cells[0].getBoundingClientRect().top === cells[1].getBoundingClientRect().top";
    assert_eq!(browser.run(beside).await, true);
    look(&browser, "jobs with long names").await;
    browser.close().await;
}

/// A lab of two dozen people with everything unfolded fits on four sheets.
#[tokio::test(flavor = "multi_thread")]
async fn unfolded_page_prints_on_four_sheets() {
    let world: World = world().await;
    world.fill().await;
    // Letters: job types that differ only in numbers are one.
    let letter = |number: u8| char::from(b'a' + number);
    let names: Vec<String> = (0..20).map(|number| format!("x{}{}", letter(number / 8), letter(number % 8))).collect();
    let did: Vec<_> = names.iter().map(|name| (&**name, &**name, 2, UsageJobOutcome::Done)).collect();
    world.put_day(TODAY.plus(-96), &did).await;
    let browser = Browser::open(&world.portal.url, 1280).await;
    browser.sign_in("pia").await;
    browser.go(&world.url(&format!("usage?period={}..{TODAY}", TODAY.plus(-120)))).await;
    browser.wait_for_text("Usage over time").await;
    browser.run("for (const one of document.querySelectorAll('main details')) one.open = true").await;
    let sheets = browser.sheets().await;
    assert!((1..=4).contains(&sheets), "{sheets}");
    browser.close().await;
}

/// Keeps pictures of the page from its top to its end, if a folder for that is named.
async fn keep(browser: &Browser, name: &str) {
    let Ok(folder) = std::env::var("PORTOLAN_PICTURES") else { return };
    for place in 0..4 {
        browser.run(&format!("scrollTo(0, {place} * (innerHeight - 80))")).await;
        let picture = browser.picture().await;
        std::fs::write(format!("{folder}/{name}-{place}.png"), picture).unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_readable_on_a_desk() {
    audit_all(1280).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_are_readable_on_a_phone() {
    audit_all(390).await;
}
