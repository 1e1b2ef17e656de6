//! Signing out, being switched off, restarts and new passwords: what becomes of keys and connections.

use portolan::auth::ssh_keys::UnsealedKey;
use portolan::cluster::ConnectionStatus;
use portolan::domain::ConnectionRole;
use portolan::store;

use crate::support::connections::run;
use crate::support::server::{CODE, Server, is_alive};
use crate::support::wait::{wait_for_value, wait_until};
use crate::support::{Client, PASSWORD, TestApp};

const NEW_PASSWORD: &str = "another harbour, later";

/// A portal with alice, who is connected to a server of her own.
async fn with_alice_connected(server: &Server) -> (TestApp, Client, Client) {
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", server).await;
    alice.prepare_on(server, "own", "alice").await;
    alice.connect("own").await;
    (portal, admin, alice)
}

/// Lets alice begin to connect to a server that asks; gives the process.
async fn begin_at(portal: &TestApp, server: &Server, alice: &Client) -> i32 {
    portal.add_server("asks", server).await;
    server.allow("alice", &alice.get("/account/key").await.select_text("figure.code code"));
    alice.name_user("asks", "alice").await;
    alice.post("/clusters/asks/connect", &[]).await;
    alice.wait_until_asked("asks", "Verification code").await;
    let key = portal.connection_key("alice", "asks").await;
    let folder = format!("{}-{}-login", key.person, key.cluster);
    let pid = portal.app.config.run_dir().join(folder).join("pid");
    std::fs::read_to_string(pid).unwrap().parse().unwrap()
}

async fn opens(portal: &TestApp, name: &str) -> bool {
    let person = portal.connection_key(name, "own").await.person;
    let open = portal.app.auth.unseal_keys(person, ConnectionRole::Login).await;
    open.is_ok_and(|keys: Vec<UnsealedKey>| !keys.is_empty())
}

#[tokio::test]
async fn signing_out_keeps_connections_and_signing_out_everywhere_closes_them() {
    let (server, asking) = (Server::start(), Server::asking(CODE, ""));
    let (portal, _, alice) = with_alice_connected(&server).await;
    let master = portal.connection("alice", "own").await.master().pid();
    alice.post("/sign-out", &[]).await;
    portal.app.connections.sweep().await.unwrap();
    assert!(is_alive(master));
    alice.sign_in("alice", PASSWORD).await;
    assert!(alice.get("/clusters/own/panel").await.text().contains("panel-up"));
    let on_its_way = begin_at(&portal, &asking, &alice).await;
    alice.post("/account/devices/end-all", &[]).await;
    wait_until("both processes have ended", async || !is_alive(master) && !is_alive(on_its_way)).await;
    wait_for_value("nothing is left", async || portal.run_folders(), Vec::is_empty).await;
    portal.clock.advance(60);
    portal.app.connections.sweep().await.unwrap();
    assert_eq!((server.visits(), asking.visits()), (1, 1), "and it stays so");
}

#[tokio::test]
async fn switching_an_account_off_closes_its_connections() {
    let (server, asking) = (Server::start(), Server::asking(CODE, ""));
    let (portal, admin, alice) = with_alice_connected(&server).await;
    let master = portal.connection("alice", "own").await.master().pid();
    let on_its_way = begin_at(&portal, &asking, &alice).await;
    let path = format!("/people/{}/disable", portal.person_id("alice").await);
    admin.post(&path, &[]).await;
    wait_until("both processes have ended", async || !is_alive(master) && !is_alive(on_its_way)).await;
    wait_for_value("nothing is left", async || portal.run_folders(), Vec::is_empty).await;
    portal.clock.advance(60);
    portal.app.connections.sweep().await.unwrap();
    assert_eq!((server.visits(), asking.visits()), (1, 1), "and it stays so");
}

#[tokio::test]
async fn deleting_an_account_closes_its_connections() {
    let server = Server::start();
    let (portal, admin, alice) = with_alice_connected(&server).await;
    let master = portal.connection("alice", "own").await.master().pid();
    let path = format!("/people/{}/delete", portal.person_id("alice").await);
    assert_eq!(admin.post(&path, &[]).await.status, 303);
    assert!(!alice.is_signed_in().await);
    wait_until("the process has ended", async || !is_alive(master)).await;
    wait_for_value("nothing is left", async || portal.run_folders(), Vec::is_empty).await;
    portal.clock.advance(60);
    portal.app.connections.sweep().await.unwrap();
    assert_eq!(server.visits(), 1, "and it stays so");
}

#[tokio::test]
async fn key_is_locked_after_the_last_sign_out_unless_its_owner_allowed_more() {
    let server = Server::start();
    let (portal, _, alice) = with_alice_connected(&server).await;
    let key = portal.connection_key("alice", "own").await;
    let is_down = async || matches!(portal.app.connections.status(key), ConnectionStatus::Down);
    let second = portal.visitor();
    second.sign_in("alice", PASSWORD).await;
    alice.post("/sign-out", &[]).await;
    assert!(opens(&portal, "alice").await, "she is still signed in elsewhere");
    second.post("/sign-out", &[]).await;
    assert!(!opens(&portal, "alice").await);
    server.drop_connections();
    wait_until("the connection is gone", is_down).await;
    portal.clock.advance(60);
    portal.app.connections.sweep().await.unwrap();
    assert_eq!(portal.tries("alice", "own").await, 1, "nothing could be tried");

    alice.sign_in("alice", PASSWORD).await;
    let page = alice.get("/account/key").await;
    let unattended = page.attribute("form[action$=unattended]", "action");
    let wrong = [("allow", "true"), ("password", "not this one")];
    assert_eq!(alice.post(&unattended, &wrong).await.status, 422, "not without the password");
    let right = [("allow", "true"), ("password", PASSWORD)];
    let page = alice.post_and_follow(&unattended, &right).await;
    assert!(page.text().contains("Unattended use allowed"));
    alice.post("/sign-out", &[]).await;
    portal.app.connections.sweep().await.unwrap();
    wait_until("it comes back", async || matches!(portal.app.connections.status(key), ConnectionStatus::Up(_))).await;
    assert_eq!(portal.tries("alice", "own").await, 2);

    alice.sign_in("alice", PASSWORD).await;
    alice.post(&unattended, &[("allow", "false")]).await;
    alice.post("/sign-out", &[]).await;
    assert!(!opens(&portal, "alice").await, "closed again");
}

#[tokio::test]
async fn expired_session_locks_the_key_like_signing_out() {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    alice.make_key().await;
    let person = portolan::domain::PersonId(portal.person_id("alice").await);
    let open = async || portal.app.auth.unseal_keys(person, ConnectionRole::Login).await.is_ok();
    assert!(open().await);
    portal.clock.advance(13 * 3600);
    assert!(!open().await);
}

#[tokio::test]
async fn session_cookie_unlocks_the_key_after_a_restart() {
    let server = Server::start();
    let (mut portal, _, alice) = with_alice_connected(&server).await;
    let master = portal.connection("alice", "own").await.master().pid();
    portal.restart().await;
    assert!(!opens(&portal, "alice").await, "nobody has come back yet");
    assert!(alice.get("/clusters/own/panel").await.text().contains("panel-up"), "taken over");
    let line = portal.connection("alice", "own").await;
    assert_eq!((line.master().pid(), server.visits()), (master, 1), "nobody was asked");
    assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n");
    alice.post("/clusters/own/disconnect", &[]).await;
    assert!(!is_alive(master));
    alice.connect("own").await;
}

#[tokio::test]
async fn a_new_password_keeps_the_key_and_a_reset_link_loses_it_and_says_so() {
    let server = Server::start();
    let (portal, admin, alice) = with_alice_connected(&server).await;
    let master = portal.connection("alice", "own").await.master().pid();
    let form = [("current", PASSWORD), ("password", NEW_PASSWORD), ("again", NEW_PASSWORD)];
    assert_eq!(alice.post("/account/password", &form).await.status, 303);
    assert!(is_alive(master), "the connection stays");
    alice.post("/sign-out", &[]).await;
    assert_eq!(portal.visitor().sign_in("alice", PASSWORD).await.status, 422);
    alice.sign_in("alice", NEW_PASSWORD).await;
    alice.post("/clusters/own/disconnect", &[]).await;
    alice.connect("own").await;
    let master = portal.connection("alice", "own").await.master().pid();

    let person = format!("/people/{}", portal.person_id("alice").await);
    assert!(admin.get(&person).await.text().contains("deletes their SSH keys"), "said before");
    let made = admin.post_and_follow(&format!("{person}/reset-link"), &[]).await;
    let link = made.select_text(".alert code").replace(&portal.url, "");
    let visitor = portal.visitor();
    assert!(visitor.get(&link).await.text().contains("it will be deleted"), "said before");
    assert!(opens(&portal, "alice").await, "a link that is not used changes nothing");
    let form = [("password", PASSWORD), ("again", PASSWORD)];
    let after = visitor.post_and_follow(&link, &form).await;
    assert!(after.text().contains("Your SSH key was deleted"), "said after: {}", after.text());
    wait_until("the connection is closed", async || !is_alive(master)).await;
    visitor.sign_in("alice", PASSWORD).await;
    assert!(visitor.get("/account/key").await.text().contains("Create your key"));
    let refused = visitor.post_and_follow("/clusters/own/connect", &[]).await;
    assert!(refused.text().contains("First create or import an SSH key"), "{}", refused.text());
}

#[tokio::test]
async fn hourly_limit_on_attempts_survives_a_restart() {
    let server = Server::start();
    let (mut portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    let key = portal.connection_key("alice", "own").await;
    for _ in 0..20 {
        let mut tx = portal.app.store.write().await.unwrap();
        store::connections::begin_attempt(&mut tx, key, portal.clock.now()).await.unwrap();
        store::commit(tx).await.unwrap();
    }
    for _ in 0..2 {
        let refused = alice.post_and_follow("/clusters/own/connect", &[]).await;
        assert!(refused.text().contains("Too many connection attempts"), "{}", refused.text());
        portal.restart().await;
    }
    assert_eq!(server.visits(), 0, "not a single one");
    portal.clock.advance(3600);
    alice.connect("own").await;
}
