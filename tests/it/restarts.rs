//! The portal killed and started again: connections are taken over, nobody is asked, and what nobody wants is ended.

use std::process::{Command, Stdio};

use portolan::store;

use crate::support::connections::run;
use crate::support::program::{Installation, PROGRAM, Server as Program};
use crate::support::server::{CODE, Server, is_alive};
use crate::support::wait::wait_for_value;
use crate::support::{Client, PASSWORD, TestApp};

const SLUGS: [&str; 5] = ["one", "two", "three", "four", "five"];

/// An installation with two people and the server as a cluster, under several names.
async fn prepare(server: &Server, slugs: &[&str]) -> Installation {
    let installation = Installation::new();
    for name in ["ada", "ben"] {
        let add = ["user", "add", name, "--admin", "--password-stdin"];
        assert!(installation.run_with_input(&add, PASSWORD).status.success());
    }
    installation.add_clusters(server, slugs).await;
    installation
}

/// Signs someone in and gives them a key with which the server lets them in as `user`.
async fn person(installation: &Installation, server: &Server, name: &str, user: &str) -> Client {
    let client = Client::new(&installation.url());
    client.sign_in(name, PASSWORD).await;
    server.allow(user, &client.make_key().await);
    client
}

#[tokio::test]
async fn ten_connections_survive_a_kill_without_prompts() {
    let server = Server::start();
    let installation = prepare(&server, &SLUGS).await;
    let program = installation.serve().await;
    let people =
        [person(&installation, &server, "ada", "alice").await, person(&installation, &server, "ben", "bob").await];
    for (client, user) in people.iter().zip(["alice", "bob"]) {
        for slug in SLUGS {
            client.name_user(slug, user).await;
            client.post(&format!("/clusters/{slug}/connect"), &[]).await;
        }
    }
    for client in &people {
        for slug in SLUGS {
            client.wait_until_connected(slug).await;
        }
    }
    program.stop("KILL");
    let program = installation.serve().await;
    for client in &people {
        for slug in SLUGS {
            let panel = client.get(&format!("/clusters/{slug}/panel")).await;
            assert!(panel.text().contains("panel-up"), "{slug}: {}", panel.text());
        }
    }
    program.stop("KILL");
    let app = installation.open().await;
    assert_eq!(app.connections.adopt_masters().await.unwrap(), 10);
    let mut db = app.store.read().await.unwrap();
    let lines = store::connections::list_wanted(&mut db).await.unwrap();
    drop(db);
    assert_eq!(lines.len(), 10);
    for line in lines {
        let open = app.connections.connection(line.key()).unwrap();
        let said = run(&open, "whoami", &[]).await.unwrap().stdout_text();
        assert_eq!(said.trim(), line.remote_user);
    }
    assert_eq!(server.visits(), 10, "one sign-in each, before the first kill");
    app.store.close().await;
}

#[tokio::test]
async fn start_closes_connections_of_removed_people_accounts_and_clusters() {
    let server = Server::start();
    let (mut portal, admin, alice) = TestApp::with_member("alice").await;
    let bob = portal.member(&admin, "bob").await;
    let slugs = ["line", "cluster", "kept"];
    server.allow("alice", &alice.make_key().await);
    for slug in slugs {
        portal.add_server(slug, &server).await;
        alice.name_user(slug, "alice").await;
    }
    bob.prepare_on(&server, "kept", "bob").await;
    tokio::join!(alice.connect("line"), alice.connect("cluster"), alice.connect("kept"), bob.connect("kept"));
    let pid = async |name, slug| portal.connection(name, slug).await.master().pid();
    let gone = [pid("alice", "line").await, pid("alice", "cluster").await, pid("bob", "kept").await];
    let kept = pid("alice", "kept").await;
    let line = portal.connection_key("alice", "line").await;
    let run_dir = portal.app.config.run_dir();
    portal.stop().await;

    let database = portolan::store::Store::open(portal.app.store.path()).await.unwrap();
    let mut tx = database.write().await.unwrap();
    sqlx::query("DELETE FROM connections WHERE person_id = $1 AND cluster_id = $2")
        .bind(line.person.0)
        .bind(line.cluster.0)
        .execute(&mut *tx)
        .await
        .unwrap();
    for sql in ["DELETE FROM clusters WHERE slug = 'cluster'", "DELETE FROM people WHERE name = 'bob'"] {
        sqlx::query(sql).execute(&mut *tx).await.unwrap();
    }
    store::commit(tx).await.unwrap();
    database.close().await;
    // What else may lie there: a dead connection, the test of a key, something that is none of ours.
    for name in ["9-9-login", "1-1-login-test", "notes"] {
        std::fs::create_dir(run_dir.join(name)).unwrap();
        std::fs::write(run_dir.join(name).join("pid"), std::process::id().to_string()).unwrap();
    }
    portal.start_again().await;
    assert!(gone.iter().all(|pid| !is_alive(*pid)), "orphans are ended");
    assert!(is_alive(kept));
    assert_eq!(portal.run_folders().len(), 2, "{:?}", portal.run_folders());
    assert!(run_dir.join("notes").exists(), "what is none of ours is left alone");
    let line = portal.connection("alice", "kept").await;
    assert_eq!(run(&line, "echo", &["on"]).await.unwrap().stdout_text(), "on\n");
}

#[tokio::test]
async fn stopping_cancels_waiting_prompts_without_answering_them() {
    let server = Server::asking(CODE, "");
    let installation = prepare(&server, &["own"]).await;
    let program = installation.serve().await;
    let ada = person(&installation, &server, "ada", "alice").await;
    ada.name_user("own", "alice").await;
    ada.post("/clusters/own/connect", &[]).await;
    ada.wait_until_asked("own", "Verification code").await;
    assert!(program.stop("TERM").success());
    assert_eq!(std::fs::read_dir(installation.data().join("run")).unwrap().count(), 0);
    wait_for_value("the server has seen it", async || server.connections(), |seen| *seen == 0).await;
    assert!(!server.log().contains("Failed"), "no code was tried: {}", server.log());
}

/// Starts the program with its sockets on a small disk of its own.
async fn serve_with_small_run_folder(installation: &Installation) -> Program {
    let run = installation.dir.path().join("run");
    std::fs::create_dir(&run).unwrap();
    let script = r#"mount -t tmpfs -o size=64k,mode=700 tmpfs "$1" && exec "$2" serve"#;
    let mut command = Command::new("unshare");
    command.args(["--mount", "sh", "-c", script, "sh"]).arg(&run).arg(PROGRAM);
    installation.configure(&mut command);
    let log = installation.dir.path().join("log");
    command.env("PORTOLAN_RUN_DIR", &run).stdout(Stdio::null());
    let child = command.stderr(std::fs::File::create(&log).unwrap()).spawn().unwrap();
    let program = Program::new(child, log);
    program.wait_until_ready(&installation.url()).await;
    program
}

#[tokio::test]
async fn full_disk_in_the_run_folder_is_reported_and_leaves_nothing() {
    let server = Server::start();
    let installation = prepare(&server, &["own"]).await;
    let program = serve_with_small_run_folder(&installation).await;
    let ada = person(&installation, &server, "ada", "alice").await;
    ada.name_user("own", "alice").await;
    let run = installation.dir.path().join("run");
    let run = format!("/proc/{}/root{}", program.child.id(), run.display());
    let filler = format!("{run}/filler");
    let full = std::fs::write(&filler, vec![0; 128 * 1024]);
    assert!(full.is_err(), "the disk is full");
    ada.post("/clusters/own/connect", &[]).await;
    let panel = ada.wait_until_asked("own", "open the connection because of an error on its server").await;
    assert!(panel.text().contains("No space left"), "{}", panel.text());
    let left = || std::fs::read_dir(&run).unwrap().count();
    assert_eq!((left(), server.visits()), (1, 0), "nothing but the filler");
    std::fs::remove_file(&filler).unwrap();
    ada.connect("own").await;
    ada.post("/clusters/own/disconnect", &[]).await;
    wait_for_value("it is closed", async || server.connections(), |seen| *seen == 0).await;
    assert_eq!(left(), 0);
}
