//! Connecting in a real browser: the key, the site's own key page, codes, Duo, two tabs, a restart, an alarm.
//! Whoever is asked for a code or a phone here is someone else in each test: a cluster counts wrong codes by person.

use portolan::auth::activity::Actor;
use portolan::sites::{Site, SiteName};

use crate::support::browser::Browser;
use crate::support::cluster::Cluster;
use crate::support::program::Installation;
use crate::support::wait::wait_until;
use crate::support::{PASSWORD, TestApp};

/// A host key that no host has.
const OTHER_HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

impl Browser {
    /// Signs in.
    pub async fn sign_in(&self, name: &str) {
        self.go("/sign-in").await;
        self.fill("name", name).await;
        self.fill("password", PASSWORD).await;
        self.press("Sign in").await;
        self.wait_for_text(&format!("Hello {name}")).await;
    }

    /// Adds the test cluster's port of this kind from the form of a preset, through its host keys.
    async fn add_cluster(&self, slug: &str, title: &str, port: u16) {
        self.go("/clusters/new?preset=generic").await;
        for (field, value) in [("title", title), ("name", slug), ("host", "127.0.0.1"), ("port", &port.to_string())] {
            self.fill(field, value).await;
        }
        self.press("Continue to host keys").await;
        self.wait_for_text("No published keys").await;
        self.wait_for_text(Cluster::get().fingerprint()).await;
        let add = format!("Pin host keys and add {title}");
        self.press(&add).await;
        self.wait_for_text("Compare the fingerprints, then").await;
        self.find("[name=compared]").await.click().await.unwrap();
        self.press(&add).await;
        self.wait_for_text("Cluster added").await;
    }

    /// Names the user on a cluster.
    async fn name_user(&self, slug: &str, user: &str) {
        self.go(&format!("/clusters/{slug}")).await;
        self.fill("user", user).await;
        self.press("Save").await;
        self.wait_for_text(&format!(" is {user}.")).await;
    }

    /// Leaves a public key on the cluster's own key page, as a person does.
    async fn register_key(&self, user: &str, public_line: &str) {
        let page = format!("http://127.0.0.1:{}/", Cluster::get().port("keypage"));
        self.window.goto(&page).await.unwrap();
        self.fill("user", user).await;
        self.fill("key", public_line).await;
        self.press("Save").await;
        self.wait_for_text("The key was saved").await;
    }

    /// The public half of the key that the page shows.
    async fn public_line(&self) -> String {
        self.find("figure.code code").await.text().await.unwrap()
    }

    /// Types an answer to the cluster's question.
    async fn answer(&self, text: &str) {
        self.find("#f-answer").await.send_keys(text).await.unwrap();
        self.press("Send").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_connects_by_key_and_by_code_and_a_restart_changes_nothing() {
    let cluster = Cluster::get();
    let installation = Installation::new();
    let server = installation.serve().await;
    let admin = Browser::open(&installation.url(), 1280).await;
    admin.go(&server.setup_path()).await;
    admin.fill_new_person("ada").await;
    admin.wait_for_text("Hello ada").await;
    admin.press("Create a group").await;
    admin.fill("name", "Smith Lab").await;
    admin.press("Create group").await;
    admin.go("/").await;
    admin.press("Add a cluster").await;
    admin.wait_for_text("Digital Research Alliance of Canada").await;
    admin.add_cluster("harbour", "Harbour", cluster.port("key")).await;
    admin.add_cluster("codes", "Harbour with codes", cluster.port("mfa")).await;
    admin.go("/groups/1/members").await;
    admin.fill("label", "Alice").await;
    admin.press("Create invitation link").await;
    let link = admin.find(".alert code").await.text().await.unwrap();
    admin.close().await;

    let member = Browser::open(&installation.url(), 1280).await;
    member.go(link.strip_prefix(&installation.url()).unwrap()).await;
    member.fill_new_person("alice").await;
    member.wait_for_text("Connect to a cluster").await;
    member.name_user("harbour", "asmith").await;
    member.press("Create my key").await;
    member.wait_for_text("SSH key created").await;
    let public_line = member.public_line().await;

    // Not registered yet: the page says so and leads back to the step that is missing.
    member.press("Connect").await;
    member.wait_for_text("rejected your SSH key").await;
    let step = member.find(".step[aria-current=step] h3").await.text().await.unwrap();
    assert!(step.starts_with("Your SSH key"), "{step}");

    member.register_key("asmith", &public_line).await;
    member.go("/clusters/harbour").await;
    member.press("Connect").await;
    member.wait_for_text("About this cluster").await;
    member.wait_for_text("Connected as asmith on Harbour").await;

    member.name_user("codes", "asmith").await;
    member.press("Connect").await;
    member.wait_for_text("Enter your one-time code").await;
    // A moment after the words are there.
    wait_until("the code can be typed at once", async || {
        member.run("return document.activeElement.id").await == "f-answer"
    })
    .await;
    member.answer("000000").await;
    member.wait_for_text("The cluster is asking again").await;
    member.answer(&cluster.code("asmith")).await;
    member.wait_for_text("Connected as asmith on Harbour with codes").await;

    assert!(server.stop("TERM").success());
    let server = installation.serve().await;
    for slug in ["harbour", "codes"] {
        member.go(&format!("/clusters/{slug}")).await;
        member.find(".panel-up").await;
    }
    member.go("/clusters").await;
    let marks = member.run("return document.querySelectorAll('.badge.is-ok').length").await;
    assert_eq!(marks, 2, "both are still there: {}", member.text().await);
    member.press_in_row("Harbour", "Disconnect").await;
    member.wait_for_text("Disconnected.").await;
    member.close().await;
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn duo_is_one_button_on_a_phone() {
    let (portal, _, dave) = TestApp::with_member("dave").await;
    portal.add_cluster("duo").await;
    dave.prepare("duo", "dave").await;
    let phone = Browser::open(&portal.url, 390).await;
    phone.sign_in("dave").await;
    phone.press("Connect").await;
    phone.wait_for_text("Your connection").await;
    phone.press("Connect").await;
    phone.wait_for_text("Confirm your identity").await;
    phone.find("button[name=answer][value='1']").await.click().await.unwrap();
    phone.wait_for_text("Check your phone").await;
    assert!(Cluster::get().script(&["push", "approve", "dave"]).status.success());
    phone.wait_for_text("Connected as dave").await;
    let wide = phone.run("return document.documentElement.scrollWidth > innerWidth").await;
    assert_eq!(wide, false, "nothing is wider than the phone");
    let top = phone.run("return scrollY").await;
    assert_eq!(top, 0, "the page begins with what is there now");
    phone.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_tabs_show_the_same_prompt_and_keep_what_is_typed() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("mfa").await;
    alice.prepare("mfa", "mjones").await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("alice").await;
    browser.go("/clusters/mfa").await;
    let first = browser.window.window().await.unwrap();
    let second = browser.window.new_window(true).await.unwrap().handle;
    browser.window.switch_to_window(second).await.unwrap();
    browser.go("/clusters/mfa").await;

    browser.window.switch_to_window(first.clone()).await.unwrap();
    browser.press("Connect").await;
    browser.find("#f-answer").await.send_keys("12").await.unwrap();

    // Nobody touches the other tab: it moves by itself. Closing it changes nothing.
    let tabs = browser.window.windows().await.unwrap();
    let other = tabs.into_iter().find(|tab| *tab != first).unwrap();
    browser.window.switch_to_window(other).await.unwrap();
    browser.wait_for_text("Enter your one-time code").await;
    browser.window.close_window().await.unwrap();
    browser.window.switch_to_window(first).await.unwrap();

    // Longer than the page waits before it looks again.
    let asked = browser.run("return performance.getEntriesByType('resource').length").await;
    let looked_again =
        format!("return performance.getEntriesByType('resource').length > {}", asked.as_u64().unwrap() + 1);
    browser.wait_until_true("the page looks again by itself", &looked_again).await;
    let typed = browser.run("return document.getElementById('f-answer').value").await;
    assert_eq!(typed, "12", "what is typed stays");

    browser.press("Cancel").await;
    browser.press("Connect").await;
    browser.wait_for_text("Enter your one-time code").await;
    browser.answer(&Cluster::get().code("mjones")).await;
    browser.wait_for_text("Connected as mjones").await;
    browser.go("/account/key").await;
    browser.back().await;
    browser.wait_for_text("Connected as mjones").await;
    browser.close().await;
}

/// The portal has pinned another key than the host shows: to it, that is a changed host key. The cluster itself stays
/// as it is, since other tests use it at the same time.
#[tokio::test(flavor = "multi_thread")]
async fn changed_host_key_blocks_connecting_until_an_administrator_decides() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    let mut site = Site::with_defaults(SiteName("key".parse().unwrap()), "Harbour");
    site.login.host = Some("127.0.0.1".parse().unwrap());
    site.login.port = Cluster::get().port("key");
    let pins = [("login".to_owned(), OTHER_HOST_KEY.to_owned())];
    portal.app.connections.add_cluster(&Actor::command_line(), &site, &pins).await.unwrap();
    alice.prepare("key", "alice").await;

    let member = Browser::open(&portal.url, 1280).await;
    member.sign_in("alice").await;
    member.go("/clusters/key").await;
    member.press("Connect").await;
    member.wait_for_text("Connections to this cluster are blocked").await;
    member.wait_for_text("need to do anything").await;
    assert!(!member.text().await.contains("Reconnect"), "nothing can be tried meanwhile");
    member.go("/").await;
    member.wait_for_text("Blocked").await;

    let admin = Browser::open(&portal.url, 1280).await;
    admin.sign_in("ada").await;
    admin.go("/clusters/key").await;
    admin.press("Review host keys").await;
    admin.wait_for_text("Before you decide").await;
    admin.wait_for_text("Currently pinned").await;
    admin.wait_for_text(Cluster::get().fingerprint()).await;
    admin.find("[name=compared]").await.click().await.unwrap();
    admin.press("Pin host keys").await;
    admin.wait_for_text("Host keys pinned").await;
    admin.close().await;

    member.go("/clusters/key").await;
    member.press("Connect").await;
    member.wait_for_text("Connected as alice").await;
    member.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_key_asks_for_confirmation() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    alice.make_key().await;
    let browser = Browser::open(&portal.url, 1280).await;
    browser.sign_in("alice").await;
    browser.go("/account/key").await;
    browser.press("Delete my key…").await;
    browser.press("Delete key").await;
    browser.wait_for_text("SSH key deleted").await;
    browser.close().await;
}
