//! Connections and what befalls them: few sessions, killed masters and servers, commands that are late or print too much.

use std::time::Duration;

use portolan::cluster::ConnectionStatus;
use portolan::ssh::{CallUrgency, RemoteCommand, RunCommandError};

use crate::support::cluster::Cluster;
use crate::support::connections::run;
use crate::support::program::signal_pid;
use crate::support::relay::{Relay, with_alice_over};
use crate::support::server::{CODE, Server, is_alive};
use crate::support::wait::{wait_for_value, wait_until};
use crate::support::{Client, TestApp};

/// A portal with alice, who is connected to a server of her own.
async fn with_alice_connected(server: &Server) -> (TestApp, Client) {
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", server).await;
    alice.prepare_on(server, "own", "alice").await;
    alice.connect("own").await;
    (portal, alice)
}

#[tokio::test]
async fn callers_queue_when_the_server_allows_few_sessions() {
    for most in [2, 1] {
        let server = Server::with(&format!("MaxSessions {most}"));
        let (portal, _alice) = with_alice_connected(&server).await;
        let line = portal.connection("alice", "own").await;
        let mut callers = tokio::task::JoinSet::new();
        for number in 0..20 {
            let line = line.clone();
            callers.spawn(async move { run(&line, "echo", &[&number.to_string()]).await });
        }
        let mut answers = Vec::new();
        for answer in callers.join_all().await {
            answers.push(answer.unwrap().stdout_text().trim().parse::<u32>().unwrap());
        }
        answers.sort_unstable();
        assert_eq!(answers, (0..20).collect::<Vec<_>>());
        // Short ones only wait a moment for each other; by long ones the portal learns how many are allowed.
        let mut callers = tokio::task::JoinSet::new();
        for _ in 0..6 {
            let line = line.clone();
            callers.spawn(async move { run(&line, "sleep", &["0.7"]).await });
        }
        assert!(callers.join_all().await.iter().all(Result::is_ok));
        assert!(line.session_limit() <= most, "{} sessions, {most} are allowed", line.session_limit());
    }
}

#[tokio::test]
async fn killed_master_loses_the_command_and_the_page_says_so() {
    let server = Server::start();
    let (portal, alice) = with_alice_connected(&server).await;
    let line = portal.connection("alice", "own").await;
    // That of an earlier run may still be there.
    let seconds = format!("4711.{}", std::process::id());
    let asked = {
        let (line, seconds) = (line.clone(), seconds.clone());
        tokio::spawn(async move { run(&line, "sleep", &[&seconds]).await })
    };
    let there = async || Cluster::get().count_processes(&format!("sleep {seconds}")) == 1;
    wait_until("the command runs", there).await;
    signal_pid(line.master().pid().try_into().unwrap(), "KILL");
    assert_eq!(asked.await.unwrap(), Err(RunCommandError::ConnectionLost));
    let key = portal.connection_key("alice", "own").await;
    let is_down = async || matches!(portal.app.connections.status(key), ConnectionStatus::Down);
    wait_until("the connection counts as lost", is_down).await;
    alice.wait_until_asked("own", "The connection was lost").await;
    assert!(alice.get("/clusters/own").await.text().contains("Reconnect"));
    assert!(portal.run_folders().is_empty(), "nothing is left");
    assert_eq!(run(&line, "true", &[]).await, Err(RunCommandError::NotConnected), "nothing was sent");
}

#[tokio::test]
async fn command_cut_off_midway_counts_as_lost_not_as_unsent() {
    let server = Server::start();
    let relay = Relay::to(server.port).await;
    let (portal, _alice) = with_alice_over(&relay, &server).await;
    let line = portal.connection("alice", "own").await;
    let master = line.master().pid();
    let files = || std::fs::read_dir(format!("/proc/{master}/fd")).unwrap().count();
    relay.cut();
    let before = files();
    let asked = tokio::spawn(async move { run(&line, "true", &[]).await });
    wait_for_value("ssh has taken the command over", async || files(), |seen| *seen >= before + 4).await;
    signal_pid(master.try_into().unwrap(), "KILL");
    assert_eq!(asked.await.unwrap(), Err(RunCommandError::ConnectionLost));
}

#[tokio::test]
async fn connection_without_prompts_reconnects_by_itself_with_backoff() {
    let server = Server::start();
    let (portal, alice) = with_alice_connected(&server).await;
    server.kill();
    let lost = alice.wait_until_asked("own", "The cluster may have closed it").await;
    assert!(lost.text().contains("Reconnect"));
    portal.app.connections.sweep().await.unwrap();
    alice.wait_until_asked("own", "refused the connection").await;
    let tries = portal.tries("alice", "own").await;
    server.start_again();
    portal.app.connections.sweep().await.unwrap();
    assert_eq!(portal.tries("alice", "own").await, tries, "not again so soon");
    portal.clock.advance(60);
    portal.app.connections.sweep().await.unwrap();
    alice.wait_until_connected("own").await;
    assert_eq!(portal.tries("alice", "own").await, tries + 1);
    let answer = run(&portal.connection("alice", "own").await, "squeue", &["--me", "-h"]).await;
    assert_eq!(answer.unwrap().code, 0);
}

#[tokio::test]
async fn connection_with_prompts_waits_for_its_owner() {
    let server = Server::asking(CODE, "");
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    alice.post("/clusters/own/connect", &[]).await;
    let asked = alice.wait_until_asked("own", "Verification code").await;
    alice.answer("own", &asked, &Cluster::get().code("alice")).await;
    alice.wait_until_connected("own").await;
    server.drop_connections();
    alice.wait_until_asked("own", "The cluster may have closed it").await;
    for _ in 0..3 {
        portal.clock.advance(3000);
        portal.app.connections.sweep().await.unwrap();
    }
    assert_eq!((portal.tries("alice", "own").await, server.visits()), (1, 1), "nobody is bothered");
    let page = alice.get("/clusters").await;
    assert!(page.text().contains("Reconnect"), "one unobtrusive way back: {}", page.text());
}

#[tokio::test]
async fn commands_are_limited_in_size_and_time_and_the_connection_survives() {
    let server = Server::start();
    let (portal, alice) = with_alice_connected(&server).await;
    let line = portal.connection("alice", "own").await;
    let much = RemoteCommand::new("seq").arg("1000000").with_max_output(1000);
    assert_eq!(line.run(much, CallUrgency::Interactive).await, Err(RunCommandError::OutputTooLong));
    let late = RemoteCommand::new("sleep").arg("4711.02").with_deadline(Duration::from_secs(1));
    assert_eq!(line.run(late, CallUrgency::Interactive).await, Err(RunCommandError::TimedOut));
    assert_eq!(Cluster::get().count_processes("sleep 4711.02"), 0, "ended there too");
    assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n");
    let panel = alice.get("/clusters/own/panel").await;
    assert!(panel.text().contains("respond in time"), "{}", panel.text());
}

#[tokio::test]
async fn abandoned_calls_free_their_sessions() {
    let server = Server::start();
    let (portal, _alice) = with_alice_connected(&server).await;
    let line = portal.connection("alice", "own").await;
    let most = line.session_limit();
    let asked = || RemoteCommand::new("sleep").arg("0.4711").with_deadline(Duration::from_secs(20));
    let mut callers: Vec<_> = (0..12)
        .map(|_| {
            let line = line.clone();
            tokio::spawn(async move { line.run(asked(), CallUrgency::Interactive).await })
        })
        .collect();
    wait_for_value("the first ones run", async || Cluster::get().count_processes("sleep 0.4711"), |seen| *seen > 0)
        .await;
    for caller in callers.drain(..) {
        caller.abort();
    }
    let mut others = tokio::task::JoinSet::new();
    for _ in 0..12 {
        let line = line.clone();
        others.spawn(async move { run(&line, "true", &[]).await.unwrap().code });
    }
    assert_eq!(others.join_all().await, vec![0; 12]);
    assert_eq!(line.session_limit(), most, "the server has refused none");
}

#[tokio::test]
async fn connecting_can_be_cancelled_during_discovery() {
    // A login that never comes to an end: the connection stands, but nothing is known of the place yet.
    let server = Server::with("ForceCommand sleep 4711.03");
    let (portal, _, alice) = TestApp::with_member("alice").await;
    portal.add_server("own", &server).await;
    alice.prepare_on(&server, "own", "alice").await;
    for way in ["/clusters/own/cancel", "/clusters/own/disconnect"] {
        alice.post("/clusters/own/connect", &[]).await;
        alice.wait_until_asked("own", "Reading your setup").await;
        let folder = portal.app.config.run_dir().join(&portal.run_folders()[0]);
        let ssh = std::fs::read_to_string(folder.join("pid")).unwrap().parse().unwrap();
        let left = alice.post_and_follow(way, &[("purpose", "connect")]).await;
        assert!(left.text().contains(">Connect<"), "{way}: {}", left.text());
        wait_until("the process has ended", async || !is_alive(ssh)).await;
        assert!(!portal.stored_connection("alice", "own").await.is_wanted, "{way}");
    }
}

#[tokio::test]
async fn closing_an_old_connection_does_not_disturb_a_new_one() {
    let server = Server::start();
    let (portal, alice) = with_alice_connected(&server).await;
    // A process that hangs takes its time to end; meanwhile the other tab connects.
    let hanging = portal.connection("alice", "own").await.master().pid();
    signal_pid(hanging.try_into().unwrap(), "STOP");
    let (_, ()) = tokio::join!(alice.post("/clusters/own/disconnect", &[]), async {
        alice.wait_until_asked("own", "Reconnect").await;
        alice.post("/clusters/own/connect", &[]).await;
    });
    alice.wait_until_connected("own").await;
    assert!(!is_alive(hanging));
    let answer = run(&portal.connection("alice", "own").await, "echo", &["on"]).await;
    assert_eq!(answer.unwrap().stdout_text(), "on\n");
    assert_eq!(portal.run_folders().len(), 1);
}
