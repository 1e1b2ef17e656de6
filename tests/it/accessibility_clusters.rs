//! The pages of clusters, keys and connections, in every state, as `accessibility.rs` looks at the others.

use std::process::{Command, Stdio};

use portolan::auth::activity::Actor;
use portolan::sites::{Site, SiteAutomationHosts, SiteLoginFactor, SiteName};

use crate::accessibility::audit;
use crate::support::browser::Browser;
use crate::support::cluster::Cluster;
use crate::support::{Client, PASSWORD, TestApp};

/// A host key that no host has.
const OTHER_HOST_KEY: &str = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl";

impl Browser {
    /// Opens a page and looks at it.
    async fn audit_page(&self, path: &str) {
        self.go(path).await;
        audit(self, path).await;
    }

    /// Looks at the page with everything unfolded.
    async fn audit_unfolded(&self, place: &str) {
        self.run("for (const fold of document.querySelectorAll('main details')) fold.open = true").await;
        audit(self, place).await;
    }

    /// Types an answer to the cluster's question.
    async fn say(&self, text: &str) {
        let field = self.find("#f-answer").await;
        field.send_keys(text).await.unwrap();
        let typed = field.prop("value").await.unwrap();
        assert_eq!(typed.as_deref(), Some(text), "what is typed arrives in the field");
        field.send_keys("\u{E007}").await.unwrap();
    }
}

/// A port of the test cluster, as a centre with everything to say would describe it.
fn site(kind: &str, ways: &[SiteLoginFactor]) -> Site {
    let mut site = Site::with_defaults(SiteName(kind.parse().unwrap()), &format!("Harbour {kind}"));
    site.operator = Some("the Harbour Computing Centre".into());
    site.notes = vec!["Everything that answers is real.".into()];
    site.login.host = Some("127.0.0.1".parse().unwrap());
    site.login.port = Cluster::get().port(kind);
    site.login.accepts = vec![ways.to_vec()];
    site.login.region = Some("From everywhere.".into());
    site.keys.opens.0 = ways.contains(&SiteLoginFactor::Key);
    if site.keys.opens.0 {
        site.keys.steps = vec!["Open the key page.".into(), "Paste the key.".into()];
        site.keys.page = Some("https://harbour.example/keys".parse().unwrap());
        site.keys.access = Some("https://harbour.example/access".parse().unwrap());
        site.keys.delay = Some("A new key works immediately.".into());
    } else {
        site.keys.why_not = Some("This cluster takes no keys.".into());
    }
    site
}

/// An ssh server whose banner is long, loud and full of tricks.
struct Hostile {
    server: std::process::Child,
    _folder: tempfile::TempDir,
}

impl Drop for Hostile {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

impl Hostile {
    /// Starts it and adds it to the portal.
    async fn start(portal: &TestApp) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let banner = format!(
            "\u{1B}[2J<script>alert(1)</script> <b>Portolan says: type your portal password</b>\n{}\n\u{202E}العربية\n{}",
            "A".repeat(2000),
            "a line of many words that goes on and on\n".repeat(80),
        );
        std::fs::write(at("banner"), banner).unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let settings = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey {}\nBanner {}\nPidFile none\nUsePAM no\n\
             PubkeyAuthentication no\nKbdInteractiveAuthentication no\nPasswordAuthentication yes\n\
             AllowUsers nobody-at-all\n",
            at("key"),
            at("banner"),
        );
        std::fs::write(at("settings"), settings).unwrap();
        let key = at("key");
        let arguments = ["-q", "-t", "ed25519", "-N", "", "-f", &key];
        assert!(Command::new("ssh-keygen").args(arguments).status().unwrap().success());
        // Debian's sshd wants this folder; its own service makes it.
        let _ = std::fs::create_dir_all("/run/sshd");
        let server = Command::new("/usr/sbin/sshd")
            .args(["-D", "-e", "-f", &at("settings")])
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let hostile = Self { server, _folder: folder };
        let mut site = site("password", &[SiteLoginFactor::Password]);
        site.name = SiteName("hostile".parse().unwrap());
        site.title = "Hostile".into();
        site.login.port = port;
        let host = "127.0.0.1".parse().unwrap();
        let mut keys = Vec::new();
        while keys.is_empty() {
            keys = portolan::ssh::host_keys::scan(&host, port).await.unwrap_or_default();
        }
        let pins: Vec<_> = keys.iter().map(|key| ("login".to_owned(), key.to_line())).collect();
        portal.app.connections.add_cluster(&Actor::command_line(), &site, &pins).await.unwrap();
        hostile
    }
}

/// What administrators see before and after a cluster is there.
async fn audit_administration(browser: &Browser, portal: &TestApp, admin: &Client) {
    browser.sign_in("ada").await;
    for path in ["/", "/clusters", "/clusters/new", "/clusters/new?preset=fir"] {
        browser.audit_page(path).await;
    }
    browser.fill("host", "-oProxyCommand=x").await;
    browser.press("Folders, accounts and units").await;
    browser.fill("storage", "no colon").await;
    browser.press("Continue to host keys").await;
    browser.wait_for_text("There is a problem").await;
    audit(browser, "a preset with problems").await;

    let mut nowhere = site("key", &[SiteLoginFactor::Key]);
    nowhere.login.port = 1;
    let mut differs = site("key", &[SiteLoginFactor::Key]);
    let published = "SHA256:NJgHnZFzGX0zYyUwCMUdWccvfCaTgKmZKzPaqL8VNM8";
    differs.login.fingerprints = vec![published.parse().unwrap()];
    let mut as_published = site("key", &[SiteLoginFactor::Key]);
    as_published.login.fingerprints = vec![Cluster::get().fingerprint().parse().unwrap()];
    as_published.automation = Some(SiteAutomationHosts {
        hosts: vec!["127.0.0.1".parse().unwrap()],
        port: Cluster::get().port("robot"),
        support: Some("support@harbour.example".into()),
        notes: vec!["Access is given on request only.".into()],
        forbids: vec!["A terminal.".into()],
        ..SiteAutomationHosts::default()
    });
    for (site, words) in
        [(nowhere, "No response"), (differs, "match the published ones"), (as_published, "Matches published keys")]
    {
        browser.go("/clusters/new").await;
        browser.press("Import settings").await;
        let file = site.to_toml().unwrap();
        let script = format!("document.querySelector('[name=file]').value = {file:?}");
        browser.run(&script).await;
        browser.press("Continue").await;
        browser.wait_for_text(words).await;
        audit(browser, words).await;
    }
    browser.press("Pin host keys and add Harbour key").await;
    browser.wait_for_text("There is a problem").await;
    audit(browser, "host keys that nobody compared").await;
    browser.find("[name=compared]").await.click().await.unwrap();
    browser.press("Pin host keys and add Harbour key").await;
    browser.wait_for_text("Cluster added").await;

    for path in ["/clusters/key/settings", "/clusters/key/host-keys"] {
        browser.audit_page(path).await;
        browser.audit_unfolded(path).await;
    }
    portal.add_site(&site("password", &[SiteLoginFactor::Code, SiteLoginFactor::Password])).await;
    assert_eq!(admin.post("/clusters/password/retire", &[]).await.status, 303);
    browser.audit_page("/clusters/password/settings").await;
    browser.audit_unfolded("settings of a retired cluster").await;
    browser.audit_page("/clusters/password").await;
    browser.audit_page("/clusters").await;
    assert_eq!(admin.post("/clusters/password/restore", &[]).await.status, 303);
}

/// The way of a member, from nothing to connected.
async fn audit_connecting(browser: &Browser, user: &str) {
    let cluster = Cluster::get();
    for path in ["/", "/clusters", "/account/key", "/clusters/mfa"] {
        browser.audit_page(path).await;
    }
    browser.fill("user", "-oProxyCommand=x").await;
    browser.press("Save").await;
    browser.wait_for_text("Enter only your user name").await;
    audit(browser, "a wrong user name").await;
    browser.fill("user", user).await;
    browser.press("Save").await;
    browser.wait_for_text(&format!(" is {user}.")).await;
    audit(browser, "a way without a key").await;
    browser.press("Create my key").await;
    browser.wait_for_text("SSH key created").await;
    audit(browser, "a way with a key").await;
    browser.press("Connect").await;
    browser.wait_for_text("rejected your SSH key").await;
    audit(browser, "a key that the cluster does not know").await;

    let line = browser.find("figure.code code").await.text().await.unwrap();
    cluster.install_key(user, &line);
    browser.press("Connect").await;
    browser.wait_for_text("Enter your one-time code").await;
    audit(browser, "a question").await;
    browser.say("000000").await;
    browser.wait_for_text("The cluster is asking again").await;
    audit(browser, "a question again").await;
    browser.say(&cluster.code(user)).await;
    browser.wait_for_text("About this cluster").await;
    audit(browser, "connected").await;
    browser.audit_unfolded("connected, unfolded").await;
    browser.audit_page("/clusters/mfa/forget").await;
    browser.go("/clusters/mfa").await;
    browser.press("Disconnect").await;
    browser.wait_for_text("Disconnected.").await;
    audit(browser, "connected before").await;

    // Duo: the menu, and the phone that nobody answers.
    connect(browser, "duo", user).await;
    browser.wait_for_text("Confirm your identity").await;
    browser.audit_unfolded("Duo's menu").await;
    browser.find("button[name=answer][value='1']").await.click().await.unwrap();
    browser.wait_for_text("Check your phone").await;
    audit(browser, "check your phone").await;
    browser.audit_page("/clusters").await;
    browser.audit_page("/").await;
    assert!(cluster.script(&["push", "deny", user]).status.success());
    browser.go("/clusters/duo").await;
    browser.wait_for_text("The cluster is asking again").await;
    audit(browser, "Duo again").await;
    browser.press("Cancel").await;

    // A password that must be changed.
    assert!(cluster.script(&["user", "expire", user]).status.success());
    connect(browser, "password", user).await;
    browser.wait_for_text("One-time password").await;
    browser.say(&cluster.code(user)).await;
    browser.wait_for_text("Enter your cluster password").await;
    audit(browser, "a password").await;
    let password = cluster.person(user)["password"].as_str().unwrap().to_owned();
    browser.say(&password).await;
    browser.wait_for_text("Your cluster password has expired").await;
    audit(browser, "a password that has run out").await;
    browser.press("Cancel").await;
    assert!(cluster.script(&["user", "unexpire", user]).status.success());

    // Words that nobody should be fooled by.
    connect(browser, "hostile", user).await;
    browser.wait_for_text("Enter your cluster password").await;
    browser.wait_for_text("Portolan says").await;
    audit(browser, "a hostile banner").await;
    let markup = browser.run("return document.querySelectorAll('.said *').length").await;
    assert_eq!(markup, 0, "words of a server are text");
    browser.press("Cancel").await;

    // A host that shows another key.
    connect(browser, "changed", user).await;
    browser.wait_for_text("Connections to this cluster are blocked").await;
    audit(browser, "an alarm").await;
    browser.audit_page("/clusters").await;
    browser.audit_page("/").await;
}

async fn connect(browser: &Browser, slug: &str, user: &str) {
    browser.go(&format!("/clusters/{slug}")).await;
    browser.fill("user", user).await;
    browser.press("Save").await;
    browser.wait_for_text(&format!(" is {user}.")).await;
    browser.press("Connect").await;
}

/// Keys, and the automation host.
async fn audit_keys(browser: &Browser, user: &str) {
    browser.audit_page("/account/key").await;
    browser.audit_unfolded("a key").await;
    browser.fill("key", "ssh-ed25519 AAAA a public key").await;
    browser.press("Import key").await;
    browser.wait_for_text("There is a problem").await;
    audit(browser, "a key that is none").await;
    browser.go("/account/key").await;
    browser.press("Allow unattended use…").await;
    browser.fill("password", "wrong wrong wrong").await;
    browser.press("Allow unattended use").await;
    browser.wait_for_text("Wrong password").await;
    audit(browser, "unattended with a wrong password").await;
    browser.fill("password", PASSWORD).await;
    browser.press("Allow unattended use").await;
    browser.wait_for_text("The portal can now use this key").await;
    audit(browser, "unattended").await;
    browser.press("Create replacement key").await;
    browser.wait_for_text("New key created").await;
    browser.audit_unfolded("a new key").await;

    browser.go("/clusters/mfa").await;
    audit(browser, "a new key on a cluster").await;
    browser.press("Test new key").await;
    browser.wait_for_text("didn't accept the new key").await;
    audit(browser, "a new key that does not work").await;

    browser.audit_page("/clusters/key/automation").await;
    connect(browser, "key", user).await;
    browser.wait_for_text("About this cluster").await;
    browser.go("/clusters/key/automation").await;
    browser.press("Create automation key").await;
    browser.wait_for_text("restrict,from=").await;
    browser.audit_unfolded("automation with a key").await;
    browser.press("Run test").await;
    browser.wait_for_text("The test failed").await;
    audit(browser, "automation that does not work").await;
    browser.audit_page("/account/key").await;
}

async fn audit_all(width: u32, user: &str) {
    let (portal, admin, _) = TestApp::with_member(user).await;
    let browser = Browser::open(&portal.url, width).await;
    audit_administration(&browser, &portal, &admin).await;
    portal.add_site(&site("mfa", &[SiteLoginFactor::Key, SiteLoginFactor::Code])).await;
    portal.add_site(&site("duo", &[SiteLoginFactor::Key, SiteLoginFactor::Duo])).await;
    let hostile = Hostile::start(&portal).await;
    let mut changed = site("key", &[SiteLoginFactor::Key]);
    changed.name = SiteName("changed".parse().unwrap());
    changed.title = "Changed".into();
    let pins = [("login".to_owned(), OTHER_HOST_KEY.to_owned())];
    portal.app.connections.add_cluster(&Actor::command_line(), &changed, &pins).await.unwrap();
    browser.window.delete_all_cookies().await.unwrap();
    browser.sign_in(user).await;
    audit_connecting(&browser, user).await;
    audit_keys(&browser, user).await;
    browser.window.delete_all_cookies().await.unwrap();
    browser.sign_in("ada").await;
    browser.audit_page("/clusters/changed").await;
    browser.audit_page("/clusters/changed/host-keys").await;
    browser.close().await;
    drop(hostile);
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_pages_are_usable_on_a_desk() {
    audit_all(1280, "tessa").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn cluster_pages_are_usable_on_a_phone() {
    audit_all(390, "fin").await;
}
