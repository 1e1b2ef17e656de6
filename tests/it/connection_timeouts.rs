//! What takes its time by nature, tried side by side: silent networks, hanging servers, people who do not answer.

use std::time::Duration;

use portolan::cluster::ConnectionStatus;
use portolan::ssh::{CallUrgency, RemoteCommand, RunCommandError};

use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::relay::{Relay, with_alice_over};
use crate::support::server::{CODE, Server, is_alive};
use crate::support::wait::wait_for_value;
use crate::support::{Client, TestApp};

#[tokio::test]
async fn every_silent_server_times_out_with_a_message_and_leaves_nothing() {
    tokio::join!(
        a_person_who_does_not_answer(),
        an_answer_after_the_servers_own_patience(),
        a_server_that_hangs(),
        a_connection_whose_process_hangs(),
        a_network_that_is_cut_while_all_processes_live(),
    );
}

async fn alice_on(server: &Server, change: impl FnOnce(&mut portolan::sites::Site)) -> (TestApp, Client) {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    let mut site = server.site("own");
    change(&mut site);
    portal.add_pinned(&site, &server.pins()).await;
    alice.prepare_on(server, "own", "alice").await;
    (portal, alice)
}

async fn begin(person: &Client) {
    assert_eq!(person.post("/clusters/own/connect", &[]).await.status, 303);
}

async fn a_person_who_does_not_answer() {
    let server = Server::asking(CODE, "");
    let (portal, alice) = alice_on(&server, |site| site.login.grace_s = Some(10)).await;
    begin(&alice).await;
    alice.wait_until_asked("own", "Verification code").await;
    let pid = portal.app.config.run_dir().join(&portal.run_folders()[0]).join("pid");
    let ssh = std::fs::read_to_string(pid).unwrap().parse().unwrap();
    assert!(is_alive(ssh));
    wait_for_value("the sign-in has ended", async || portal.run_folders(), Vec::is_empty).await;
    assert!(!is_alive(ssh), "no process is left");
    alice.wait_until_asked("own", "You ran out of time to answer").await;
}

async fn an_answer_after_the_servers_own_patience() {
    let server = Server::asking(CODE, "LoginGraceTime 5");
    let (portal, alice) = alice_on(&server, |_| ()).await;
    begin(&alice).await;
    let asked = alice.wait_until_asked("own", "Verification code").await;
    wait_for_value("the server has lost patience", async || server.connections(), |seen| *seen == 0).await;
    alice.answer("own", &asked, &Cluster::get().code("alice")).await;
    alice.wait_until_asked("own", "waited too long for an answer").await;
    assert!(portal.run_folders().is_empty(), "nothing is left");
    assert!(!portal.stored_connection("alice", "own").await.is_wanted);
}

async fn a_server_that_hangs() {
    let server = Server::start();
    let (portal, alice) = alice_on(&server, |_| ()).await;
    server.signal("STOP");
    begin(&alice).await;
    alice.wait_until_asked("own", "respond in time").await;
    assert!(portal.run_folders().is_empty(), "nothing is left");
    server.signal("CONT");
    alice.connect("own").await;
}

async fn a_connection_whose_process_hangs() {
    let server = Server::start();
    let (portal, alice) = alice_on(&server, |_| ()).await;
    alice.connect("own").await;
    let line = portal.connection("alice", "own").await;
    server.signal_connections("STOP");
    let asked = RemoteCommand::new("true").with_deadline(Duration::from_secs(1));
    assert_eq!(line.run(asked, CallUrgency::Interactive).await, Err(RunCommandError::TimedOut));
    server.signal_connections("CONT");
    assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n", "it goes on");
}

async fn a_network_that_is_cut_while_all_processes_live() {
    let server = Server::start();
    let relay = Relay::to(server.port).await;
    let (portal, _alice) = with_alice_over(&relay, &server).await;
    let line = portal.connection("alice", "own").await;
    let short = || RemoteCommand::new("sleep").arg("1").with_deadline(Duration::from_secs(1));
    let under_way = {
        let line = line.clone();
        tokio::spawn(async move { line.run(short(), CallUrgency::Interactive).await })
    };
    wait_for_value(
        "the command is under way",
        async || line.call_budget().stats(std::time::Instant::now()).commands,
        |seen| *seen > 4,
    )
    .await;
    relay.cut();
    let asked_later = line.run(short(), CallUrgency::Interactive).await;
    let under_way = under_way.await.unwrap();
    for result in [asked_later, under_way] {
        assert!(matches!(result, Err(RunCommandError::TimedOut | RunCommandError::ConnectionLost)), "{result:?}");
    }
    assert!(is_alive(line.master().pid()), "ssh has not noticed yet");
    relay.mend();
    assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n", "a short cut costs nothing");
    let key = portal.connection_key("alice", "own").await;
    assert!(matches!(portal.app.connections.status(key), ConnectionStatus::Up(_)));
}
