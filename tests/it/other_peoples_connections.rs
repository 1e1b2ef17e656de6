//! A person who tries another's connection, question or key: nothing changes, and nothing is learnt.

use portolan::cluster::ConnectionStatus;

use crate::support::cluster::Cluster;
use crate::support::server::{CODE, Server, is_alive};
use crate::support::{Client, TestApp};

const LINE: &[(&str, &[(&str, &str)])] = &[
    ("/clusters/own/answer", &[("number", "1"), ("answer", "123456"), ("purpose", "connect")]),
    ("/clusters/own/answer", &[("number", "1"), ("answer", "123456"), ("purpose", "test")]),
    ("/clusters/own/cancel", &[("purpose", "connect")]),
    ("/clusters/own/disconnect", &[]),
    ("/clusters/own/test-key", &[]),
    ("/clusters/own/automation/disconnect", &[]),
    ("/clusters/own/connect", &[]),
];

async fn number_asked(person: &Client) -> String {
    person.get("/clusters/own/panel").await.attribute("input[name=number]", "value")
}

#[tokio::test]
async fn prompts_connections_and_keys_belong_to_one_person() {
    let server = Server::asking(CODE, "");
    let (portal, admin, alice) = TestApp::with_member("alice").await;
    let bob = portal.member(&admin, "bob").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    let key_page = alice.get("/account/key").await;
    let key_paths = [
        key_page.attribute("form[action$=unattended]", "action"),
        key_page.attribute("form[action$=delete]", "action"),
    ];
    alice.post("/clusters/own/connect", &[]).await;
    let asked = alice.wait_until_asked("own", "Verification code").await;

    for other in [&bob, &admin, &portal.visitor()] {
        for (path, form) in LINE {
            let answer = other.post(path, form).await;
            assert!(matches!(answer.status, 303 | 404 | 409), "{path}: {}", answer.status);
            assert_eq!(number_asked(&alice).await, "1", "{path}");
        }
        let panel = other.get("/clusters/own/panel").await;
        assert!(!panel.text().contains("Verification code"), "{}", panel.text());
    }
    assert_eq!(server.visits(), 1);

    alice.answer("own", &asked, &Cluster::get().code("alice")).await;
    alice.wait_until_connected("own").await;
    let master = portal.connection("alice", "own").await.master().pid();
    // Bob says that he is alice there. It is her key that opens the door, not her name.
    bob.make_key().await;
    bob.name_user("own", "alice").await;
    for other in [&bob, &admin, &portal.visitor()] {
        for (path, form) in LINE {
            other.post(path, form).await;
        }
        for path in &key_paths {
            let form = [("allow", "true"), ("password", crate::support::PASSWORD)];
            let answer = other.post(path, &form).await;
            assert!(matches!(answer.status, 303 | 404), "{path}: {}", answer.status);
            assert_ne!(answer.location(), "/account/key", "{path}");
        }
        assert!(!other.get("/clusters").await.text().contains("As alice since"));
    }
    bob.wait_until_asked("own", "rejected your SSH key").await;
    assert!(is_alive(master));
    let status = portal.app.connections.status(portal.connection_key("alice", "own").await);
    assert!(matches!(status, ConnectionStatus::Up(_)), "{status:?}");
    let after = alice.get("/account/key").await;
    assert!(after.text().contains("Used only while you&#39;re signed in"));
    assert_eq!(after.select_text("figure.code code"), key_page.select_text("figure.code code"));
}
