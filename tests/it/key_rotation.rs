//! A new key in place of the old one: proven first, and the connection that stands does not notice.

use crate::support::TestApp;
use crate::support::server::Server;
use crate::support::wait::wait_until;

#[tokio::test]
async fn new_key_is_tested_before_the_old_one_is_removed() {
    let server = Server::start();
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    alice.connect("own").await;
    let master = portal.connection("alice", "own").await.master().pid();

    let page = alice.post_and_follow("/account/key", &[]).await;
    let halves = page.select_all("figure.code code");
    let [old, new] = &halves[..] else { panic!("two keys: {halves:?}") };
    assert!(page.text().contains("Not tested yet"));
    let again = alice.post_and_follow("/account/key", &[]).await;
    assert!(again.text().contains("You already have a new key"));
    let early = alice.post_and_follow("/account/key/replace", &[]).await;
    assert!(early.select_text("main").contains("hasn't been tested yet"), "{}", early.text());

    // The cluster does not know it yet: the test fails, and nothing else happens.
    let tried = async |times| {
        alice.post("/clusters/own/test-key", &[]).await;
        wait_until("the test is over", async || {
            portal.tries("alice", "own").await == times
                && alice.get("/clusters/own/panel").await.text().contains("panel-up")
        })
        .await;
    };
    tried(2).await;
    assert!(alice.get("/account/key").await.text().contains("Not tested yet"));
    server.allow("alice", new);
    tried(3).await;
    assert!(alice.get("/account/key").await.text().contains("Tested"));
    assert_eq!(portal.connection("alice", "own").await.master().pid(), master, "undisturbed");
    assert_eq!(portal.run_folders().len(), 1, "nothing of the tests is left");

    let replaced = alice.post_and_follow("/account/key/replace", &[]).await;
    assert!(replaced.text().contains("the old one is deleted"));
    assert_eq!(replaced.select_all("figure.code code"), std::slice::from_ref(new));
    server.forget("alice");
    server.allow("alice", old);
    alice.post("/clusters/own/disconnect", &[]).await;
    alice.post("/clusters/own/connect", &[]).await;
    alice.wait_until_asked("own", "rejected your SSH key").await;
    server.allow("alice", new);
    alice.connect("own").await;
}
