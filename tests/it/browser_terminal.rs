//! A terminal in a real browser: typed into on a desk, left, and picked up on a phone.

use crate::accessibility::audit;
use crate::folders::with_alice;
use crate::support::browser::Browser;

const CONTROL: &str = "\u{E009}";
const F6: &str = "\u{E036}";
const ENTER: &str = "\u{E007}";

/// Waits until the terminal shows something.
async fn shows(browser: &Browser, words: &str) {
    let script = format!("return Boolean(document.querySelector('.xterm-rows')?.innerText.includes('{words}'))");
    browser.wait_until_true(words, &script).await;
}

async fn is_so(browser: &Browser, what: &str, script: &str) {
    browser.wait_until_true(what, &format!("return Boolean({script})")).await;
}

async fn press_keys(browser: &Browser, keys: &str) {
    browser.window.active_element().await.unwrap().send_keys(keys).await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn terminal_moves_from_a_desk_to_a_phone() {
    let (portal, _, alice) = with_alice().await;
    let desk = Browser::open(&portal.url, 1280).await;
    desk.sign_in("alice").await;
    desk.go("/clusters/key").await;
    audit(&desk, "a connected cluster").await;
    desk.press("Open terminal").await;
    is_so(&desk, "it is connected", "document.querySelector('[data-terminal][data-state=connected]')").await;
    is_so(&desk, "it has the keyboard", "document.activeElement.matches('.xterm-helper-textarea')").await;
    press_keys(&desk, &format!("printf 'sum=%s f\\303\\274r\\n' $((40+2)){ENTER}")).await;
    shows(&desk, "sum=42 für").await;
    press_keys(&desk, &format!("{CONTROL}{F6}")).await;
    is_so(&desk, "the keyboard is out", "document.activeElement.matches('[data-terminal-reader]')").await;
    audit(&desk, "a terminal").await;
    let path = desk.path().await;
    desk.close().await;

    let phone = Browser::open(&portal.url, 390).await;
    phone.sign_in("alice").await;
    phone.go("/terminals").await;
    audit(&phone, "the list of terminals").await;
    phone.run("document.querySelector('a.btn[href^=\"/terminals/\"]').click()").await;
    shows(&phone, "sum=42 für").await;
    assert_eq!(phone.path().await, path);
    audit(&phone, "a terminal on a phone").await;
    // The key bar: Ctrl and a letter end a program.
    press_keys(&phone, &format!("echo re''ady; cat{ENTER}")).await;
    shows(&phone, "ready").await;
    press_keys(&phone, &format!("here{ENTER}")).await;
    is_so(&phone, "cat repeats", "document.querySelector('.xterm-rows').innerText.split('here').length === 3").await;
    phone.press("Ctrl").await;
    press_keys(&phone, "c").await;
    press_keys(&phone, &format!("echo sum=$((50+2)){ENTER}")).await;
    shows(&phone, "sum=52").await;

    // Another window takes it over, and this one says so.
    let other = Browser::open(&portal.url, 1280).await;
    other.sign_in("alice").await;
    other.go(&path).await;
    shows(&other, "sum=52").await;
    phone.wait_for_text("now shown in another window").await;
    phone.press("Show it here").await;
    other.wait_for_text("now shown in another window").await;
    shows(&phone, "sum=52").await;
    audit(&other, "a terminal that has moved").await;
    press_keys(&phone, &format!("exit{ENTER}")).await;
    phone.wait_for_text("The terminal has ended. The shell has ended.").await;
    phone.press("Open a new terminal").await;
    is_so(&phone, "it is connected", "document.querySelector('[data-terminal][data-state=connected]')").await;
    assert_ne!(phone.path().await, path);
    drop(alice);
}
