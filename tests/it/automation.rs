//! Automation hosts: what is missing is told apart, only plain words are said, and nobody is ever asked.

use portolan::domain::{ConnectionRole, PersonId};
use portolan::ssh::{CallUrgency, RemoteCommand, RunCommandError};
use portolan::store::connections::ConnectionKey;

use crate::support::cluster::Cluster;
use crate::support::server::{CODE, Server, with_automation_host};
use crate::support::wait::wait_until;
use crate::support::{Client, Page, TestApp};

/// As on the cluster's own robot port: whoever is enrolled is let through without a question.
const ENROLLED: &str = "auth required pam_listfile.so item=user sense=allow file=@DIR@/enrolled onerr=fail quiet\n";
const WRAPPERS: &str = "/harbour/code/allowed_commands";

/// A portal with a cluster that has an automation host, and alice with a key for it. Gives the public half.
async fn with_alice(server: &Server) -> (TestApp, Client, String) {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    let site = with_automation_host(server.site("own"), server.port);
    portal.add_pinned(&site, &server.pins()).await;
    alice.name_user("own", "alice").await;
    let form = [("role", "robot"), ("back", "/clusters/own/automation")];
    alice.post("/account/key", &form).await;
    // The page shows it only with its restrictions in front.
    let person = PersonId(portal.person_id("alice").await);
    let mut db = portal.app.store.read().await.unwrap();
    let keys = portolan::store::keys::list_for_person(&mut db, person).await.unwrap();
    drop(db);
    let half = keys[0].public_line.clone();
    assert!(!alice.get("/account/key").await.text().contains(&half));
    (portal, alice, half)
}

/// The line that the portal's guide makes for this program.
async fn key_line(alice: &Client, address: &str, program: &str) -> String {
    let guide = format!("/clusters/own/automation?address={address}&command={program}");
    alice.get(&guide).await.select_text("figure.code code")
}

async fn test_it(alice: &Client) -> Page {
    alice.post("/clusters/own/automation/test", &[]).await;
    wait_until("the test ends", async || {
        let page = alice.get("/clusters/own/automation").await;
        !page.text().contains("Testing the automation host")
    })
    .await;
    // Its parts are read one after the other; that one was perhaps begun before the end.
    alice.get("/clusters/own/automation").await
}

fn says(page: &Page, words: &[&str]) {
    let said = page.select_text("#test-title");
    for words in words {
        assert!(said.contains(words), "{words} in {said}");
    }
}

#[tokio::test]
async fn each_missing_step_has_its_own_message() {
    let server = Server::asking_beside(&[("enrolled", "")], ENROLLED, "DisableForwarding yes");
    let (portal, alice, _) = with_alice(&server).await;
    let slurm = format!("{WRAPPERS}/slurm_commands.sh");
    says(&test_it(&alice).await, &["The host rejected your SSH key", "on the centre's key page"]);
    let line = key_line(&alice, "192.0.2.1", &slurm).await;
    assert!(line.starts_with("restrict,from=\"192.0.2.1\",command=\""), "{line}");
    server.allow("alice", &line);
    says(&test_it(&alice).await, &["rejected your SSH key", "connects from the address in the line"]);
    server.forget("alice");
    server.allow("alice", &key_line(&alice, "127.0.0.1", &slurm).await);
    says(&test_it(&alice).await, &["accepted your SSH key, but your account"]);
    server.write("enrolled", "alice\n");
    let page = test_it(&alice).await;
    let version = Cluster::get().slurm_version();
    says(&page, &["It works", &version, "squeue, scontrol", "rejected this command: sinfo"]);
    says(&page, &["rejected this command: sacctmgr", "such as portolan-commands"]);
    let key = portal.connection_key("alice", "own").await;
    let line = portal.app.connections.connection(ConnectionKey { role: ConnectionRole::Automation, ..key }).unwrap();
    let asked = async |command: RemoteCommand| line.run(command, CallUrgency::Interactive).await;
    let refused = asked(RemoteCommand::new("sinfo").arg("-h")).await;
    assert!(matches!(&refused, Err(RunCommandError::Rejected(words)) if words.contains("sinfo")));
    for odd in ["two words", "$HOME", "`id`", "a;b", "'q'", "*", ""] {
        let refused = asked(RemoteCommand::new("squeue").arg(odd)).await;
        assert!(matches!(refused, Err(RunCommandError::InvalidCommand(_))), "{odd}: {refused:?}");
    }
}

#[tokio::test]
async fn host_that_prompts_is_named_and_nobody_is_asked() {
    let server = Server::asking(CODE, "");
    let (portal, alice, half) = with_alice(&server).await;
    server.allow("alice", &half);
    says(&test_it(&alice).await, &["asks for a second factor", "ask the centre's support"]);
    let panel = alice.get("/clusters/own/panel").await;
    assert!(!panel.text().contains("Verification code"), "{}", panel.text());
    for _ in 0..3 {
        portal.clock.advance(3000);
        portal.app.connections.sweep().await.unwrap();
    }
    assert_eq!(server.visits(), 1, "it is not tried again by itself");
}

#[tokio::test]
async fn site_wrapper_and_our_wrapper_accept_the_portals_commands() {
    let ours = include_str!("../../automation/portolan-commands");
    // Writes down what it is asked for, as it came.
    let listening =
        "#!/bin/sh\nprintf '%s\\n' \"$SSH_ORIGINAL_COMMAND\" >>${0%/*}/said\nexec ${0%/*}/$(cat ${0%/*}/next)\n";
    let centres = format!("#!/bin/sh\nexec {WRAPPERS}/allowed_commands.sh\n");
    let files =
        [("enrolled", "alice\n"), ("ours", ours), ("centres", &centres), ("listening", listening), ("said", "")];
    let server = Server::asking_beside(&files, ENROLLED, "DisableForwarding yes");
    server.tell("chmod 755 ours centres listening; chmod 666 said");
    let (_portal, alice, _) = with_alice(&server).await;
    let program = format!("{}/listening", server.inside());
    server.allow("alice", &key_line(&alice, "127.0.0.1", &program).await);
    for (next, tools) in [("ours", "squeue, scontrol, sinfo, sacctmgr"), ("centres", "squeue, scontrol")] {
        server.write("next", next);
        says(&test_it(&alice).await, &["It works", tools]);
        alice.post("/clusters/own/automation/disconnect", &[]).await;
    }
    let said = server.read("said");
    assert!(said.lines().count() >= 8, "{said}");
    let plain = |c: char| c.is_ascii_alphanumeric() || " %|@:=,._/+-".contains(c);
    assert!(said.lines().all(|line| line.chars().all(plain)), "no quotes, no variables: {said}");
    assert!(!server.log().contains("forward"), "nothing was to be forwarded: {}", server.log());
}
