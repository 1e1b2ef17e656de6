//! A person in a real browser: set up, invite, join, second factor, sign out and in.

use crate::support::browser::Browser;
use crate::support::{PASSWORD, TestApp, totp};

async fn fill_new_person(browser: &Browser, display_name: &str, name: &str) {
    browser.fill("display_name", display_name).await;
    browser.fill("name", name).await;
    browser.fill("password", PASSWORD).await;
    browser.fill("again", PASSWORD).await;
    browser.press("Create account").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn from_the_set_up_link_to_a_member_with_a_second_factor() {
    let portal = TestApp::start().await;
    let token = portal.app.auth.create_setup_link().await.unwrap().unwrap();

    let admin = Browser::open(&portal.url, 1280).await;
    admin.go(&format!("/setup/{}", token.as_str())).await;
    fill_new_person(&admin, "Ada Smith", "ada").await;
    admin.wait_for_text("Hello Ada").await;

    admin.press("Create a group").await;
    admin.fill("name", "Smith Lab").await;
    admin.press("Create group").await;
    admin.wait_for_text("Group created").await;
    admin.fill("label", "Bob").await;
    admin.press("Create invitation link").await;
    admin.wait_for_text("Invitation created").await;
    let link = admin.find(".alert code").await.text().await.unwrap();
    let path = link.strip_prefix(&portal.url).unwrap().to_owned();

    let member = Browser::open(&portal.url, 390).await;
    member.go(&path).await;
    member.wait_for_text("Ada Smith invited you").await;
    fill_new_person(&member, "Bob Builder", "bob").await;
    member.wait_for_text("Welcome aboard").await;

    member.press("Set up second factor").await;
    let key = member.find(".code code").await.text().await.unwrap();
    member.fill("code", &totp::code(&key, portal.clock.now().0)).await;
    member.fill("password", PASSWORD).await;
    member.press("Turn on second factor").await;
    member.wait_for_text("Your recovery codes").await;
    member.press("I have saved my codes").await;
    member.wait_for_text("10 of 10 codes left").await;

    // On a phone the way out is in the menu.
    member.find(".menu-phone summary").await.click().await.unwrap();
    member.find(".menu-phone form[action='/sign-out'] button").await.click().await.unwrap();
    member.wait_for_text("You're signed out").await;

    portal.clock.advance(60);
    member.fill("name", "bob").await;
    member.fill("password", PASSWORD).await;
    member.press("Sign in").await;
    member.wait_for_text("Enter your one-time code").await;
    member.fill("code", &totp::code(&key, portal.clock.now().0)).await;
    member.press("Continue").await;
    member.wait_for_text("You're all set").await;

    admin.close().await;
    member.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_page_learns_at_once_that_it_was_signed_out() {
    let (portal, admin, _) = TestApp::with_member("bob").await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.go("/sign-in").await;
    browser.fill("name", "bob").await;
    browser.fill("password", PASSWORD).await;
    browser.press("Sign in").await;
    browser.wait_for_text("Hello bob").await;

    let id = portal.person_id("bob").await;
    assert_eq!(admin.post(&format!("/people/{id}/disable"), &[]).await.status, 303);
    // Nobody touches the browser: the stream of events tells it.
    browser.wait_for_text("Forgot your password?").await;
    assert_eq!(browser.path().await, "/sign-in");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn theme_copy_button_and_password_reveal_work() {
    let (portal, admin) = TestApp::with_admin().await;
    drop(admin);
    let browser = Browser::open(&portal.url, 1280).await;
    browser.go("/sign-in").await;
    browser.find("button[name=theme][value=dark]").await.click().await.unwrap();
    assert_eq!(browser.run("return document.documentElement.dataset.theme").await, "dark");
    browser.find("button[data-reveal]").await.click().await.unwrap();
    assert_eq!(browser.run("return document.querySelector('[name=password]').type").await, "text");
    browser.fill("name", "ada").await;
    browser.fill("password", PASSWORD).await;
    browser.press("Sign in").await;
    browser.wait_for_text("Hello ada").await;
    let theme = browser.run("return document.documentElement.dataset.theme").await;
    assert_eq!(theme, "dark", "the choice is kept on the next page");
    browser.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_keyboard_alone_is_enough_to_sign_in() {
    let (portal, admin) = TestApp::with_admin().await;
    drop(admin);
    let browser = Browser::open(&portal.url, 1280).await;
    browser.go("/sign-in").await;
    let skip = browser.window.active_element().await.unwrap();
    skip.send_keys("\u{E004}").await.unwrap();
    let first = browser.run("return document.activeElement.textContent").await;
    assert_eq!(first, "Skip to content", "the first stop leads past the navigation");
    let name = browser.find("[name=name]").await;
    name.send_keys("ada\u{E004}").await.unwrap();
    browser.window.active_element().await.unwrap().send_keys(&format!("{PASSWORD}\u{E007}")).await.unwrap();
    browser.wait_for_text("Hello ada").await;
    browser.close().await;
}

/// On a phone as well: nothing happens before the question is answered.
#[tokio::test(flavor = "multi_thread")]
async fn changing_and_removing_a_member_asks_first() {
    let (portal, admin, bob) = TestApp::with_member("bob").await;
    let browser = Browser::open(&portal.url, 390).await;
    browser.sign_in("ada").await;
    browser.go("/groups/1/members").await;
    browser.press("Change to PI… bob").await;
    browser.wait_for_text("by name, manage the group").await;
    assert_eq!(bob.get("/groups/1/accounts").await.status, 403, "not yet");
    browser.press("Change to PI").await;
    browser.wait_for_text("Role changed.").await;
    assert_eq!(bob.get("/groups/1/accounts").await.status, 200);
    browser.press("Change to member… bob").await;
    browser.wait_for_text("bob is the only PI of this group. Invite another PI first.").await;

    portal.member(&admin, "max").await;
    browser.go("/groups/1/members").await;
    browser.press("Remove… bob from the group").await;
    browser.wait_for_text("choose who becomes a PI").await;
    browser.press("Remove from group").await;
    browser.wait_for_text("Choose who becomes the new PI.").await;
    let field = format!("f-remove-{}-successor", portal.person_id("bob").await);
    let max = portal.person_id("max").await;
    browser.run(&format!("document.getElementById('{field}').value = '{max}'")).await;
    browser.press("Remove from group").await;
    browser.wait_for_text("Member removed from the group").await;
    assert_eq!(bob.get("/groups/1/members").await.status, 403);
    browser.close().await;
}
