//! A host that shows another identity: everything stops, the page says so, and an administrator decides.

use portolan::ssh::RunCommandError;

use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::server::{CODE, Server, through, with_automation_host};
use crate::support::wait::wait_until;
use crate::support::{Client, TestApp};

const ALARM: &str = "The portal sends nothing to this cluster until an administrator has reviewed its host key";

/// A real key that is not the server's.
const OTHER_KIND: &str = "ecdsa-sha2-nistp256 AAAAE2VjZHNhLXNoYTItbmlzdHAyNTYAAAAIbmlzdHAyNTYAAABBBB2fNFa07se9tW7hLPGHdtMIg/AjZ/rjxoFkQa4EeAN5XHhtwNNPvTWSxjNtPzbsZnXkf+cx74fjEdb5NuvZb44=";

async fn try_to_connect(person: &Client) {
    assert_eq!(person.post("/clusters/own/connect", &[]).await.status, 303);
}

#[tokio::test]
async fn changed_host_key_blocks_everyone_until_an_administrator_decides() {
    let server = Server::start();
    let (mut portal, admin, alice) = TestApp::with_member("alice").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    bob.prepare_on(&server, "own", "bob").await;
    alice.connect("own").await;
    let line = portal.connection("alice", "own").await;
    server.change_host_key();
    assert!(run(&line, "true", &[]).await.is_ok(), "nobody has noticed yet");

    try_to_connect(&bob).await;
    bob.wait_until_asked("own", ALARM).await;
    assert_eq!(server.log().matches("Accepted publickey for bob").count(), 0, "nothing was sent");
    for person in [&alice, &bob] {
        let page = person.get("/clusters/own").await;
        assert!(page.text().contains("Connections to this cluster are blocked"));
        let refused = person.post_and_follow("/clusters/own/connect", &[]).await;
        assert!(refused.text().contains("Connections to this cluster are currently blocked"));
    }
    let key = portal.connection_key("alice", "own").await;
    assert_eq!(portal.app.connections.connection(key).unwrap_err(), RunCommandError::HostKeyInDoubt);
    portal.restart().await;
    assert_eq!(portal.app.connections.connection(key).unwrap_err(), RunCommandError::HostKeyInDoubt, "not forgotten");
    let page = admin.get("/clusters/own/host-keys").await;
    let fingerprint = portolan::ssh::host_keys::HostKey::parse(&server.host_key()).unwrap();
    assert!(page.text().contains(&format!("127.0.0.1 presented {}", fingerprint.fingerprint())));
    for path in ["/clusters/own/end-alarm", "/clusters/own/host-keys"] {
        assert_eq!(bob.post(path, &[("compared", "true")]).await.status, 403, "not for members");
    }

    // A false alarm: the pinned keys stay, and what stood goes on.
    admin.post("/clusters/own/end-alarm", &[]).await;
    let line = portal.connection("alice", "own").await;
    assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n");
    try_to_connect(&bob).await;
    bob.wait_until_asked("own", ALARM).await;

    // The centre has changed it: the new keys are pinned after a comparison, and everyone connects anew.
    let page = admin.get("/clusters/own/host-keys").await;
    let keys = page.attribute("input[name=keys]", "value");
    let unseen = admin.post("/clusters/own/host-keys", &[("keys", &keys)]).await;
    assert_eq!(unseen.status, 422, "not without comparing");
    assert_eq!(portal.app.connections.connection(key).unwrap_err(), RunCommandError::HostKeyInDoubt);
    let form = [("keys", keys.as_str()), ("compared", "true")];
    admin.post("/clusters/own/host-keys", &form).await;
    assert_eq!(portal.app.connections.connection(key).unwrap_err(), RunCommandError::NotConnected);
    tokio::join!(alice.connect("own"), bob.connect("own"));
}

#[tokio::test]
async fn other_host_key_type_counts_as_changed_and_no_pin_as_unknown() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    let pin = |line: &str| [("login".to_owned(), line.to_owned())];
    portal.add_pinned(&server.site("own"), &pin(OTHER_KIND)).await;
    alice.prepare_on(&server, "own", "alice").await;
    try_to_connect(&alice).await;
    alice.wait_until_asked("own", ALARM).await;

    // The automation host may be pinned later than the others.
    let site = with_automation_host(server.site("robot"), server.port);
    portal.add_pinned(&site, &pin(&server.host_key())).await;
    alice.name_user("robot", "alice").await;
    alice.post("/account/key", &[("role", "robot")]).await;
    alice.post("/clusters/robot/automation/test", &[]).await;
    wait_until("the page tells", async || {
        let page = alice.get("/clusters/robot/automation").await;
        page.text().contains("presented a host key that this portal")
    })
    .await;
    assert!(!alice.get("/clusters/robot").await.text().contains("are blocked"), "no alarm");
    assert!(!server.log().contains("Accepted"), "nothing was sent");
    assert!(portal.run_folders().is_empty());
}

#[tokio::test]
async fn host_behind_a_jump_host_asks_for_its_code_and_both_keys_are_checked() {
    let (gate, inner) = (Server::start(), Server::asking(CODE, ""));
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    let pins = [("jump".to_owned(), gate.host_key()), ("login".to_owned(), inner.host_key())];
    portal.add_pinned(&through(inner.site("own"), gate.port), &pins).await;
    let key = alice.make_key().await;
    gate.allow("alice", &key);
    inner.allow("alice", &key);
    alice.name_user("own", "alice").await;
    try_to_connect(&alice).await;
    let asked = alice.wait_until_asked("own", "Verification code").await;
    alice.answer("own", &asked, &Cluster::get().code("alice")).await;
    alice.wait_until_connected("own").await;
    assert_eq!((gate.visits(), inner.visits()), (1, 1));
    let line = portal.connection("alice", "own").await;
    assert_eq!(run(&line, "hostname", &[]).await.unwrap().stdout_text(), "login1.harbour.local\n");
    alice.post("/clusters/own/disconnect", &[]).await;

    gate.change_host_key();
    try_to_connect(&alice).await;
    alice.wait_until_asked("own", ALARM).await;
    assert_eq!(inner.visits(), 1, "no further than that");
    let stopped = admin.get("/clusters/own/host-keys").await;
    assert!(stopped.text().contains("127.0.0.1 presented SHA256:"));
}
