//! Keys and connections: made, used, kept and closed, against the real test cluster.

use crate::support::TestApp;
use crate::support::cluster::Cluster;

#[tokio::test]
async fn a_member_makes_a_key_and_connects_where_a_key_is_enough() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("key").await;
    let page = alice.get("/clusters/key").await;
    assert!(page.text().contains("Your user name"), "{}", page.text());
    alice.prepare("key", "alice").await;
    alice.connect("key").await;
    let page = alice.get("/clusters/key").await;
    let version = Cluster::get().slurm_version();
    for words in ["as <strong>alice</strong>", "About this cluster", &version, "def-smith", "t4"] {
        assert!(page.text().contains(words), "{words} in {}", page.text());
    }
    assert!(alice.get("/account/key").await.text().contains("once,"));
    let closed = alice.post_and_follow("/clusters/key/disconnect", &[]).await;
    assert!(closed.text().contains("Disconnected."));
    assert!(closed.text().contains("Reconnect"));
}

#[tokio::test]
async fn one_time_code_is_entered_on_the_page() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_cluster("mfa").await;
    alice.prepare("mfa", "alice").await;
    alice.post("/clusters/mfa/connect", &[]).await;
    let asked = alice.wait_until_asked("mfa", "Verification code").await;
    assert!(asked.text().contains("Enter your one-time code"));
    alice.answer("mfa", &asked, "000000").await;
    let asked = alice.wait_until_asked("mfa", "The cluster is asking again").await;
    alice.answer("mfa", &asked, &Cluster::get().code("alice")).await;
    alice.wait_until_connected("mfa").await;
}

#[tokio::test]
async fn duo_push_is_requested_with_a_button() {
    let (portal, _, bob) = TestApp::with_member("bob").await;
    portal.add_cluster("duo").await;
    bob.prepare("duo", "bob").await;
    bob.post("/clusters/duo/connect", &[]).await;
    let asked = bob.wait_until_asked("duo", "Duo Push to").await;
    assert_eq!(asked.attribute("button[name=answer]", "value"), "1");
    bob.answer("duo", &asked, "1").await;
    bob.wait_until_asked("duo", "Check your phone").await;
    assert!(Cluster::get().script(&["push", "approve", "bob"]).status.success());
    bob.wait_until_connected("duo").await;
}

#[tokio::test]
async fn password_and_code_open_a_cluster_without_keys() {
    let (portal, _, carol) = TestApp::with_member("carol").await;
    portal.add_cluster("password").await;
    carol.make_key().await;
    carol.name_user("password", "carol").await;
    carol.post("/clusters/password/connect", &[]).await;
    let asked = carol.wait_until_asked("password", "One-time password (OATH)").await;
    assert!(asked.text().contains("Enter your one-time code"), "a code, not a password");
    carol.answer("password", &asked, &Cluster::get().code("carol")).await;
    let asked = carol.wait_until_asked("password", "Enter your cluster password").await;
    let password = Cluster::get().person("carol")["password"].as_str().unwrap().to_owned();
    carol.answer("password", &asked, &password).await;
    carol.wait_until_connected("password").await;
}

#[tokio::test]
async fn automation_wrapper_is_installed_in_the_home_folder() {
    let (portal, _, dave) = TestApp::with_member("dave").await;
    portal.add_cluster("key").await;
    dave.name_user("key", "dave").await;
    let page = dave.post_and_follow("/clusters/key/automation/install", &[]).await;
    assert_eq!(page.status, 404, "a site without an automation host has no such page");
    dave.prepare("key", "dave").await;
    dave.connect("key").await;
    dave.post("/clusters/key/automation/install", &[]).await;
    let looked = Cluster::get().script(&[
        "exec",
        "--as",
        "dave",
        "sh",
        "-c",
        "ls -l ~/portolan-commands; cat ~/portolan-commands",
    ]);
    let text = String::from_utf8(looked.stdout).unwrap();
    assert!(text.starts_with("-rwxr-xr-x"), "{text}");
    assert!(text.contains(portolan::sites::automation::WRAPPER_SCRIPT), "{text}");
}
